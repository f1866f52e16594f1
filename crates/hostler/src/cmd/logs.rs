//! `hostler logs`.
//!
//! Where both streams are shown, what a job printed on standard output goes to standard output as
//! it is, and each line of its standard error to standard error behind a mark: what is redirected
//! is what the job wrote, and what is read on a terminal tells the two apart.

use std::io::Write;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow, bail};
use hostler_live::api::JobOutput;
use hostler_live::client::{Client, ClientError, query};
use hostler_live::job::JobView;
use hostler_live::limits::OUTPUT_BYTES_MAX;
use hostler_live::wire::Stream;
use serde::Serialize;

use crate::chosen::{self, word};
use crate::cli::Logs;
use crate::live::client;
use crate::say::{print, say};

/// Seconds that one request waits for something new.
const WAIT_SECS: u32 = 20;

/// How long who follows waits for a daemon that does not answer.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pieces that wait to be printed.
const PIECES_MAX: usize = 8;

/// Before each line of standard error, where both streams are shown.
const MARK: &str = "err| ";

/// Prints output, and goes on where that is asked for.
pub fn run(args: &Logs) -> Result<()> {
    let mut client = client()?;
    let jobs = chosen::jobs(&mut client, &[args.jobs])?;
    let mut faults = 0;
    for (number, job) in jobs.iter().enumerate() {
        if jobs.len() == 1 {
            return one(&mut client, args, job);
        }
        if !args.json {
            let gap = if number > 0 { "\n" } else { "" };
            print(format_args!("{gap}==> {} <==", word(job)))?;
        }
        match one(&mut client, args, job) {
            // Those that have not started have no output; others have.
            Err(fault) if fault.is::<ClientError>() => {
                faults += 1;
                say(format_args!("job {}: {fault}", word(job)));
            }
            done => done?,
        }
    }
    match (jobs.len(), faults) {
        (0, _) => bail!("none of these jobs is there"),
        (jobs, faults) if jobs == faults => bail!("none of these jobs has output"),
        _ => Ok(()),
    }
}

fn one(client: &mut Client, args: &Logs, job: &JobView) -> Result<()> {
    let streams: &[Stream] = match (args.stdout, args.stderr) {
        (true, false) => &[Stream::Stdout],
        (false, true) => &[Stream::Stderr],
        (true, true) | (false, false) => &[Stream::Stdout, Stream::Stderr],
    };
    let args = Asked { job: job.id, options: args.clone() };
    let (json, both) = (args.options.json, streams.len() > 1);
    let mut printer = Printer { job: job.id, json, both, ..Printer::default() };
    if args.options.follow && streams.len() > 1 {
        follow_all(&args, streams, &mut printer)?;
    } else {
        for stream in streams {
            read(client, &args, *stream, &mut |output| printer.print(*stream, output))?;
        }
    }
    printer.finish()?;
    if !printer.printed && !json {
        say(match streams {
            [Stream::Stdout] => "nothing on standard output; `--stderr` shows the other stream",
            [Stream::Stderr] => "nothing on standard error; `--stdout` shows the other stream",
            _ => "the job printed nothing",
        });
    }
    Ok(())
}

/// Whose output is read, and how.
#[derive(Clone)]
struct Asked {
    job: u32,
    options: Logs,
}

/// Reads all streams at once: while one is silent another may go on.
fn follow_all(args: &Asked, streams: &[Stream], printer: &mut Printer) -> Result<()> {
    let (sender, pieces) = sync_channel(PIECES_MAX);
    for stream in streams {
        let (sender, args, stream) = (sender.clone(), args.clone(), *stream);
        std::thread::spawn(move || {
            let done = client().and_then(|mut client| {
                read(&mut client, &args, stream, &mut |output| send(&sender, Ok((stream, output))))
            });
            if let Err(fault) = done {
                // Nobody who reads is no reason to say so.
                let _ = sender.send(Err(fault));
            }
        });
    }
    drop(sender);
    for piece in pieces {
        let (stream, output) = piece?;
        printer.print(stream, output)?;
    }
    Ok(())
}

type PageRead = Result<(Stream, JobOutput)>;

fn send(sender: &SyncSender<PageRead>, said: PageRead) -> Result<()> {
    sender.send(said).map_err(|_| anyhow!("nobody reads any more"))
}

/// Gives the pieces of a stream, to its end or to what there is of it now.
fn read(
    client: &mut Client,
    args: &Asked,
    stream: Stream,
    each: &mut dyn FnMut(JobOutput) -> Result<()>,
) -> Result<()> {
    let (mut offset, mut restart) = (0, None);
    if let Some(lines) = args.options.tail {
        let output = tail(client, args, stream, lines as usize)?;
        (offset, restart) = (end_of(&output), Some(output.restart));
        let last = output.piece.last;
        each(output)?;
        if last {
            return Ok(());
        }
    }
    loop {
        let output = ask(client, args, stream, offset, restart, args.options.follow)?;
        let (last, bytes) = (output.piece.last, output.piece.bytes);
        let begin = if restart == Some(output.restart) { offset } else { 0 };
        tell_gap(stream, u64::try_from(begin).unwrap_or(0), output.piece.offset);
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
fn tail(client: &mut Client, args: &Asked, stream: Stream, lines: usize) -> Result<JobOutput> {
    let step = i64::try_from(OUTPUT_BYTES_MAX)?;
    let mut first = ask(client, args, stream, -step, None, args.options.follow)?;
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
        let before = ask(client, args, stream, (begin - step).max(0), None, false)?;
        let is_oldest = before.piece.offset > u64::try_from((begin - step).max(0))?;
        first = before;
        if is_oldest {
            break;
        }
    }
    let mut whole = first;
    let mut raw = whole.piece.raw();
    while !whole.piece.last && end_of(&whole) < end {
        let next = ask(client, args, stream, end_of(&whole), Some(whole.restart), false)?;
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
    stream: Stream,
    offset: i64,
    restart: Option<u32>,
    wait: bool,
) -> Result<JobOutput> {
    let path = query(
        &format!("/jobs/{}/output", args.job),
        &[
            ("stream", Some(name(stream).to_owned())),
            ("rank", Some(args.options.rank.to_string())),
            ("offset", Some(offset.to_string())),
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

/// Prints pieces of both streams as they come.
#[derive(Default)]
struct Printer {
    job: u32,
    json: bool,
    both: bool,
    printed: bool,
    /// How the last piece of standard error ended.
    before: Before,
}

/// What stands before the next piece of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Before {
    /// Nothing, or the end of a line.
    #[default]
    Line,
    /// A return to the beginning of the line.
    Return,
    /// A part of a line.
    Part,
}

/// A piece for machines.
#[derive(Serialize)]
struct PieceJson {
    job: u32,
    stream: Stream,
    #[serde(flatten)]
    output: JobOutput,
}

impl Printer {
    fn print(&mut self, stream: Stream, output: JobOutput) -> Result<()> {
        self.printed |= output.piece.bytes > 0;
        let mut out = std::io::stdout().lock();
        if self.json {
            writeln!(
                out,
                "{}",
                serde_json::to_string(&PieceJson { job: self.job, stream, output })?
            )?;
        } else if self.both && stream == Stream::Stderr {
            let marked = marked(&mut self.before, &output.piece.text);
            std::io::stderr().write_all(marked.as_bytes())?;
        } else {
            out.write_all(&output.piece.raw())?;
        }
        out.flush()?;
        Ok(())
    }

    fn finish(&mut self) -> Result<()> {
        if self.before != Before::Line {
            writeln!(std::io::stderr())?;
        }
        Ok(())
    }
}

/// The text with a mark before each line. A bar that is drawn over itself has one each time.
fn marked(before: &mut Before, text: &str) -> String {
    let mut marked = String::with_capacity(text.len() + MARK.len());
    for part in text.split_inclusive(['\n', '\r']) {
        let goes_on = *before == Before::Part || (*before == Before::Return && part == "\n");
        if !goes_on {
            marked.push_str(MARK);
        }
        marked.push_str(part);
        *before = match part.as_bytes().last() {
            Some(b'\n') => Before::Line,
            Some(b'\r') => Before::Return,
            _ => Before::Part,
        };
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_marked_once_however_they_come() {
        let mut before = Before::Line;
        let pieces = ["one\nt", "wo\n10 %\r", "20 %\r", "\n", "\n", "end"];
        let marked: String = pieces.iter().map(|piece| marked(&mut before, piece)).collect();
        let expected = "err| one\nerr| two\nerr| 10 %\rerr| 20 %\r\nerr| \nerr| end";
        assert_eq!((marked.as_str(), before), (expected, Before::Part));
    }

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
