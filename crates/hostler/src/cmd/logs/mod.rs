//! `hostler logs`.
//!
//! Where both streams are shown, what a job printed on standard output goes to standard output as
//! it is, and each line of its standard error to standard error behind a mark: what is redirected
//! is what the job wrote, and what is read on a terminal tells the two apart. Lines of several
//! tasks are whole, and each is behind the number of its task.

mod print;
mod read;

use std::sync::mpsc::{SyncSender, sync_channel};

use anyhow::{Result, anyhow, bail};
use hostler_live::api::JobOutput;
use hostler_live::client::{Client, ClientError};
use hostler_live::job::{JobView, StartView};
use hostler_live::wire::Stream;

use self::print::Printer;
use self::read::{Asked, Source, read};
use super::show::start_words;
use crate::chosen::{self, word};
use crate::cli::Logs;
use crate::live::client;
use crate::say::{print, say};

/// Pieces that wait to be printed.
const PIECES_MAX: usize = 8;

/// Streams that are followed at once: each is a thread and a connection.
const FOLLOWED_MAX: usize = 64;

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

/// The output of one job: of its last start, of one, or of all.
fn one(client: &mut Client, args: &Logs, job: &JobView) -> Result<()> {
    let mut asked = Asked { job: job.id, options: args.clone(), start: None, from: None };
    if let Some(number) = args.start {
        let starts = job.restarts + 1;
        if number > starts {
            bail!("job {} has been started {starts} times, not {number}", word(job));
        }
        asked.start = Some(number - 1);
    }
    if !args.all_starts {
        return one_start(client, &asked, job);
    }
    let starts: Vec<StartView> = client.get::<JobView>(&format!("/jobs/{}", job.id))?.starts;
    if args.follow {
        asked.from = starts.first().map(|start| start.restart);
        return one_start(client, &asked, job);
    }
    for start in &starts {
        if !args.json {
            print(format_args!("==> start {} <==", start_words(start)))?;
        }
        asked.start = Some(start.restart);
        match one_start(client, &asked, job) {
            // Its node may be gone.
            Err(fault) if fault.is::<ClientError>() => say(format_args!("{fault}")),
            done => done?,
        }
    }
    Ok(())
}

fn one_start(client: &mut Client, asked: &Asked, job: &JobView) -> Result<()> {
    let args = &asked.options;
    let streams: &[Stream] = match (args.stdout, args.stderr) {
        (true, false) => &[Stream::Stdout],
        (false, true) => &[Stream::Stderr],
        (true, true) | (false, false) => &[Stream::Stdout, Stream::Stderr],
    };
    let ranks = ranks(args, job);
    let (json, both) = (args.json, streams.len() > 1);
    let label = (ranks.len() > 1).then(|| (ranks.len() - 1).to_string().len());
    let mut printer = Printer::new(job.id, json, both, label);
    let sources = ranks
        .iter()
        .flat_map(|rank| streams.iter().map(|stream| Source { rank: *rank, stream: *stream }));
    let sources: Vec<Source> = sources.collect();
    if args.follow && sources.len() > 1 {
        follow_all(asked, &sources, &mut printer)?;
    } else {
        read_all(client, asked, &sources, &mut printer)?;
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

/// The tasks that are shown: one, or all, and of a job that is over the one that failed first.
fn ranks(args: &Logs, job: &JobView) -> Vec<u32> {
    if let Some(rank) = args.rank {
        return vec![rank];
    }
    let mut ranks: Vec<u32> = (0..job.request.tasks.max(1)).collect();
    if let Some(failed) = job.failed_rank.filter(|_| job.ended.is_some()) {
        ranks.sort_by_key(|rank| *rank != failed);
    }
    ranks
}

/// Reads one stream after the other. Tasks whose node does not answer keep nobody from the others.
fn read_all(
    client: &mut Client,
    asked: &Asked,
    sources: &[Source],
    printer: &mut Printer,
) -> Result<()> {
    let mut failed = Vec::new();
    for source in sources.iter().copied() {
        match read(client, asked, source, &mut |output| printer.print(source, output)) {
            Err(fault) if fault.is::<ClientError>() => failed.push((source.rank, fault)),
            done => done?,
        }
    }
    if failed.len() == sources.len()
        && let Some((_, fault)) = failed.pop()
    {
        return Err(fault);
    }
    failed.dedup_by_key(|(rank, _)| *rank);
    failed.iter().for_each(|(rank, fault)| say(format_args!("task {rank}: {fault}")));
    Ok(())
}

/// Reads all streams at once: while one is silent another may go on.
fn follow_all(asked: &Asked, sources: &[Source], printer: &mut Printer) -> Result<()> {
    if sources.len() > FOLLOWED_MAX {
        let most = FOLLOWED_MAX / 2;
        bail!("more than {most} tasks cannot be followed at once; name one with `--rank`");
    }
    let (sender, pieces) = sync_channel(PIECES_MAX);
    for source in sources {
        let (sender, asked, source) = (sender.clone(), asked.clone(), *source);
        std::thread::spawn(move || {
            let done = client().and_then(|mut client| {
                read(&mut client, &asked, source, &mut |output| send(&sender, Ok((source, output))))
            });
            if let Err(fault) = done {
                // Nobody who reads is no reason to say so.
                let _ = sender.send(Err(fault));
            }
        });
    }
    drop(sender);
    for piece in pieces {
        let (source, output) = piece?;
        printer.print(source, output)?;
    }
    Ok(())
}

type PageRead = Result<(Source, JobOutput)>;

fn send(sender: &SyncSender<PageRead>, said: PageRead) -> Result<()> {
    sender.send(said).map_err(|_| anyhow!("nobody reads any more"))
}
