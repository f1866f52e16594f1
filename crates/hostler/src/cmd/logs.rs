//! `hostler logs`.

use std::io::Write;

use anyhow::Result;
use hostler_live::api::JobOutput;
use hostler_live::client::query;

use crate::cli::Logs;
use crate::live::client;
use crate::say::say;

/// Seconds that one request waits for something new.
const WAIT_SECS: u32 = 20;

/// Prints output, and goes on where that is asked for.
pub fn run(args: &Logs) -> Result<()> {
    let mut client = client()?;
    let mut offset = args.tail.map_or(0, |bytes| -i64::from(bytes));
    let (mut restart, mut printed) = (None, false);
    let mut out = std::io::stdout().lock();
    loop {
        let stream = if args.stderr { "stderr" } else { "stdout" };
        let path = query(
            &format!("/jobs/{}/output", args.job),
            &[
                ("stream", Some(stream.to_owned())),
                ("rank", Some(args.rank.to_string())),
                ("offset", Some(offset.to_string())),
                ("restart", restart.map(|restart: u32| restart.to_string())),
                ("wait_secs", args.follow.then(|| WAIT_SECS.to_string())),
            ],
        );
        let output: JobOutput = client.get(&path)?;
        let piece = &output.piece;
        match args.json {
            true => writeln!(out, "{}", serde_json::to_string(&output)?)?,
            false => out.write_all(piece.text.as_bytes())?,
        }
        out.flush()?;
        printed |= piece.bytes > 0;
        if piece.last || (piece.bytes == 0 && !args.follow) {
            if !printed && !args.stderr && !args.json {
                say("nothing on standard output; `--stderr` shows the other stream");
            }
            return Ok(());
        }
        // The output of another start is read from its beginning.
        restart = Some(output.restart);
        offset = i64::try_from(piece.offset + piece.bytes).unwrap_or(i64::MAX);
    }
}
