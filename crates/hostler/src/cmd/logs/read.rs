//! Reading the streams of a job's tasks piece by piece.

use std::time::{Duration, Instant};

use anyhow::Result;
use hostler_live::api::JobOutput;
use hostler_live::client::{Client, ClientError, query};
use hostler_live::limits::OUTPUT_BYTES_MAX;
use hostler_live::wire::Stream;

use crate::cli::Logs;
use crate::say::say;

/// Seconds that one request waits for something new.
const WAIT_SECS: u32 = 20;

/// How long who follows waits for a daemon that does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// One stream of one task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Source {
    pub rank: u32,
    pub stream: Stream,
}

impl Ord for Source {
    fn cmp(&self, other: &Source) -> std::cmp::Ordering {
        let key = |source: &Source| (source.rank, name(source.stream));
        key(self).cmp(&key(other))
    }
}

impl PartialOrd for Source {
    fn partial_cmp(&self, other: &Source) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// Whose output is read, and how.
#[derive(Clone)]
pub(super) struct Asked {
    pub job: u32,
    pub options: Logs,
    /// Only this start, by how often the job had been started before.
    pub start: Option<u32>,
    /// From this start on.
    pub from: Option<u32>,
}

/// Gives the pieces of a stream, to its end or to what there is of it now.
pub(super) fn read(
    client: &mut Client,
    args: &Asked,
    source: Source,
    each: &mut dyn FnMut(JobOutput) -> Result<()>,
) -> Result<()> {
    let (mut offset, mut restart) = (0, args.from);
    if let Some(lines) = args.options.tail {
        let output = tail(client, args, source, lines as usize)?;
        (offset, restart) = (end_of(&output), Some(output.restart));
        let last = output.piece.last;
        each(output)?;
        if last {
            return Ok(());
        }
    }
    loop {
        let output = ask(client, args, source, offset, restart, args.options.follow)?;
        let (last, bytes) = (output.piece.last, output.piece.bytes);
        let begin = if restart == Some(output.restart) { offset } else { 0 };
        tell_gap(source.stream, u64::try_from(begin).unwrap_or(0), output.piece.offset);
        // The output of another start is read from its beginning.
        (offset, restart) = (end_of(&output), Some(output.restart));
        each(output)?;
        if last || (bytes == 0 && !args.options.follow) {
            return Ok(());
        }
    }
}

/// Says what is missing between what was asked for and what came: nodes keep the end of a long
/// stream only.
fn tell_gap(stream: Stream, asked: u64, came: u64) {
    let Some(gone) = came.checked_sub(asked).filter(|gone| *gone > 0) else { return };
    let which = if asked == 0 { "the first" } else { "here," };
    let name = name(stream);
    say(format!("{which} {gone} bytes of {name} are gone: its node keeps the newest part only"));
}

/// The last lines of a stream as it is now, as one piece. Goes back piece by piece until there are
/// enough lines, and reads on from there.
fn tail(client: &mut Client, args: &Asked, source: Source, lines: usize) -> Result<JobOutput> {
    let step = i64::try_from(OUTPUT_BYTES_MAX)?;
    let mut first = ask(client, args, source, -step, None, args.options.follow)?;
    if first.piece.bytes == 0 {
        return Ok(first);
    }
    // What comes meanwhile is no part of it.
    let (mut breaks, end) = (0, end_of(&first));
    loop {
        breaks += first.piece.text.matches('\n').count();
        let begin = i64::try_from(first.piece.offset)?;
        // One more than asked for: the line that is cut must not be among them.
        if breaks > lines || begin == 0 {
            break;
        }
        let before = ask(client, args, source, (begin - step).max(0), None, false)?;
        let is_oldest = before.piece.offset > u64::try_from((begin - step).max(0))?;
        first = before;
        if is_oldest {
            break;
        }
    }
    let mut whole = first;
    let mut raw = whole.piece.raw();
    while !whole.piece.last && end_of(&whole) < end {
        let next = ask(client, args, source, end_of(&whole), Some(whole.restart), false)?;
        let (ended, last) = (next.piece.bytes == 0, next.piece.last);
        if next.restart != whole.restart {
            whole = next;
            raw = whole.piece.raw();
        } else {
            raw.extend(next.piece.raw());
            whole.piece.bytes += next.piece.bytes;
            whole.piece.last = last;
        }
        if ended {
            break;
        }
    }
    let (end, kept) = (whole.piece.offset + whole.piece.bytes, last_lines(&raw, lines).to_vec());
    whole.piece.set_raw(kept);
    // An agent of before replaces what is no text, and by more bytes.
    whole.piece.offset = end.saturating_sub(whole.piece.bytes);
    Ok(whole)
}

/// The last lines of a text; one without an end counts, too.
fn last_lines(text: &[u8], lines: usize) -> &[u8] {
    let ended = text.strip_suffix(b"\n").unwrap_or(text);
    let mut breaks = ended.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    match breaks.nth(lines.saturating_sub(1)) {
        Some((at, _)) => &text[at + 1..],
        None => text,
    }
}

fn ask(
    client: &mut Client,
    args: &Asked,
    source: Source,
    offset: i64,
    restart: Option<u32>,
    wait: bool,
) -> Result<JobOutput> {
    let path = query(
        &format!("/jobs/{}/output", args.job),
        &[
            ("stream", Some(name(source.stream).to_owned())),
            ("rank", Some(source.rank.to_string())),
            ("offset", Some(offset.to_string())),
            ("start", args.start.map(|start| start.to_string())),
            ("restart", restart.map(|restart| restart.to_string())),
            ("wait_secs", wait.then(|| WAIT_SECS.to_string())),
        ],
    );
    let until = Instant::now() + PATIENCE;
    loop {
        match client.get(&path) {
            // Jobs go on while a daemon is started again, and so does who follows them.
            Err(ClientError::Unreachable { .. })
                if args.options.follow && Instant::now() < until =>
            {
                std::thread::sleep(Duration::from_secs(1));
            }
            answer => return Ok(answer?),
        }
    }
}

fn name(stream: Stream) -> &'static str {
    match stream {
        Stream::Stdout => "stdout",
        Stream::Stderr => "stderr",
    }
}

fn end_of(output: &JobOutput) -> i64 {
    i64::try_from(output.piece.offset + output.piece.bytes).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_counted_with_and_without_an_end() {
        let last = |text: &'static str, lines| {
            std::str::from_utf8(last_lines(text.as_bytes(), lines)).unwrap()
        };
        assert_eq!(last("a\nb\nc\n", 2), "b\nc\n");
        assert_eq!(last("a\nb\nc", 2), "b\nc");
        assert_eq!(last("a\nb\nc", 3), "a\nb\nc");
        assert_eq!(last("a\n\n", 1), "\n");
        assert_eq!(last("", 1), "");
    }
}
