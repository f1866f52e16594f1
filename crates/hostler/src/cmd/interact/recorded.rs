//! Output that a job wrote while nobody was attached, and that no stream will bring any more: it is
//! over. The record has it.

use std::io::{Write as _, stderr, stdout};

use anyhow::Result;
use hostler_live::api::JobOutput;
use hostler_live::client::{Client, query};
use hostler_live::job::JobView;
use hostler_live::wire::Stream;

use crate::say::say;

/// Prints what is missing of the output of a job that is over; `known` is how much was seen.
pub fn print_rest(client: &mut Client, job: &JobView, known: Option<u64>) -> Result<()> {
    let has_terminal = job.request.interactive.is_some_and(|how| how.terminal.is_some());
    match known {
        // Both streams were counted together, so that nobody knows where each goes on.
        Some(_) if !has_terminal => {
            say(format_args!("its last output may be missing; `hostler logs {}` has all", job.id));
            Ok(())
        }
        known => {
            print(client, job.id, Stream::Stdout, known.unwrap_or(0))?;
            print(client, job.id, Stream::Stderr, 0)
        }
    }
}

fn print(client: &mut Client, job: u32, stream: Stream, mut offset: u64) -> Result<()> {
    let name = if stream == Stream::Stdout { "stdout" } else { "stderr" };
    loop {
        let path = query(
            &format!("/jobs/{job}/output"),
            &[("stream", Some(name.to_owned())), ("offset", Some(offset.to_string()))],
        );
        // One that never started has none.
        let Ok(JobOutput { piece, .. }) = client.get(&path) else { return Ok(()) };
        let raw = piece.raw();
        match stream {
            Stream::Stdout => stdout().write_all(&raw).and_then(|()| stdout().flush())?,
            Stream::Stderr => stderr().write_all(&raw)?,
        }
        offset = piece.offset + piece.bytes;
        if piece.bytes == 0 || piece.last {
            return Ok(());
        }
    }
}
