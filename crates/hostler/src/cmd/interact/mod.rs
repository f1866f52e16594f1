//! `hostler run` and `hostler attach`: a job with a person at its terminal.

pub mod exec;
pub mod forward;
mod recorded;
mod session;
mod terminal;

use std::future::Future;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use hostler_live::api::Accepted;
use hostler_live::client::stream::{StreamError, Streams};
use hostler_live::client::{Client, ClientError};
use hostler_live::job::{JobRequest, JobState, JobView};
use hostler_live::limits::LINGER_SECS;
use hostler_live::selection::Selection;
use hostler_live::stream::{Interactive, StreamKind, StreamRequest};
use tokio::runtime::Builder;
use tokio::time::sleep;

use self::session::{Ended, Person};
use super::submit as submitting;
use crate::ExitWith;
use crate::chosen;
use crate::cli::{Attach, Run, Submit};
use crate::live::{access, client, ending, variable};
use crate::say::say;
use crate::submission::{self, Submission};

/// Time between two looks at a job that waits.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// Time for which a lost connection is tried again.
const RECONNECT: Duration = Duration::from_secs(120);

/// Time for the daemon to hear of the end that is known here.
const END_HEARD: Duration = Duration::from_secs(10);

/// Runs a command as a job and attaches to it.
pub fn run(args: &Run) -> Result<()> {
    let submit = &args.submit;
    for (given, flag) in [
        (submit.print, "--print"),
        (submit.json, "--json"),
        (submit.schema, "--schema"),
        (submit.array.is_some(), "--array"),
    ] {
        if given {
            bail!("`{flag}` is no option of `hostler run`; use `hostler submit`");
        }
    }
    let mut job = submission::read(&commanded(submit))?;
    job.notes.iter().for_each(|note| say(format_args!("note: {note}")));
    let mut client = client()?;
    submission::settle(&mut client, &mut job)?;
    let Submission { mut request, .. } = job;
    let linger_secs = (!args.keep).then_some(args.linger.unwrap_or(LINGER_SECS));
    make_interactive(&mut request, args.no_terminal, linger_secs);
    let accepted = submitting::send(&mut client, submit, &request)?;
    say(format_args!("job {}", accepted.first));
    follow(client, accepted, &args.port)
}

/// Words that name no file are a command here, also without `--`.
fn commanded(submit: &Submit) -> Submit {
    let mut submit = submit.clone();
    let file = submit.file.take_if(|file| submit.command.is_empty() && !file.is_file());
    if let Some(program) = file.and_then(|file| file.to_str().map(str::to_owned)) {
        submit.command = [vec![program], std::mem::take(&mut submit.args)].concat();
    }
    submit
}

/// Makes a job one that a person is attached to, with a terminal where there is one.
pub fn make_interactive(request: &mut JobRequest, no_terminal: bool, linger_secs: Option<u64>) {
    let terminal = (!no_terminal && terminal::is_there()).then(terminal::size);
    if terminal.is_some() && !request.env.contains_key("TERM") {
        request.env.extend(variable("TERM").map(|term| ("TERM".to_owned(), term)));
    }
    request.interactive = Some(Interactive { terminal, linger_secs });
}

/// Attaches to a job that was submitted just now, from its start to its end.
pub fn follow(client: Client, job: Accepted, ports: &[(u16, u16)]) -> Result<()> {
    stay(client, job.first, true, ports)
}

/// Comes back to a job.
pub fn attach(args: &Attach) -> Result<()> {
    let mut client = client()?;
    let job = one(&mut client, args.job)?;
    not_over(&job)?;
    stay(client, job.id, false, &[])
}

/// Refuses a job that is over: there is nobody inside.
fn not_over(job: &JobView) -> Result<()> {
    if let Some(over) = job.ended.map(|_| ending(job)) {
        bail!("job {} is over: {over}; `hostler logs {0}` shows its output", chosen::word(job));
    }
    Ok(())
}

/// The one job that a word means.
fn one(client: &mut Client, word: Selection) -> Result<JobView> {
    let mut jobs = chosen::jobs(client, &[word])?;
    match jobs.len() {
        0 => Err(anyhow!("no job `{word}`; `hostler queue` lists them")),
        1 => Ok(jobs.remove(0)),
        count => Err(anyhow!("`{word}` means {count} jobs; name one of them, as in 12_3")),
    }
}

/// Runs something that talks to the person and the daemon at once.
fn block_on<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let runtime = runtime.context("cannot start threads")?;
    let done = runtime.block_on(work);
    // Whoever reads standard input may sit there for ever.
    runtime.shutdown_background();
    done
}

/// Stays with a job until its end, or until the person leaves.
fn stay(client: Client, job: u32, is_ours: bool, ports: &[(u16, u16)]) -> Result<()> {
    let streams = Streams::new(access()?)?;
    let client = Arc::new(Mutex::new(client));
    let stay = Stay { job, is_ours, client: client.clone(), streams, told: String::new() };
    let code = block_on(async move { stay.until_over(ports).await })?;
    match code {
        0 => Ok(()),
        code => Err(ExitWith { code, words: String::new() }.into()),
    }
}

struct Stay {
    job: u32,
    /// Whether the job was submitted by this command.
    is_ours: bool,
    client: Arc<Mutex<Client>>,
    streams: Streams,
    /// What was said of it last.
    told: String,
}

impl Stay {
    /// Waits, attaches, and attaches again; gives the exit code.
    async fn until_over(mut self, ports: &[(u16, u16)]) -> Result<u8> {
        let mut person = Person::new()?;
        let mut lost_since: Option<Instant> = None;
        let mut forwards = ports.to_vec();
        loop {
            let over = tokio::select! {
                over = self.until_running(&mut lost_since) => over?,
                signal = person.told_to_end() => return self.leave_waiting(signal).await,
            };
            if let Some(job) = over {
                return self.came_too_late(job, &person).await;
            }
            let what = StreamKind::Attach { known: person.known };
            let request = StreamRequest { rank: 0, counts: true, what };
            let stream = match self.streams.open(self.job, &request).await {
                Ok(stream) => stream,
                Err(fault) if self.is_worth_a_try(&fault, &mut lost_since).await? => continue,
                Err(fault) => return Err(fault.into()),
            };
            for (local, remote) in forwards.drain(..) {
                forward::spawn(&self.streams, self.job, 0, local, remote, true).await?;
            }
            if lost_since.take().is_none() && stream.opened.terminal && terminal::is_there() {
                let job = self.job;
                say(format_args!("attached to job {job}; Ctrl-] d leaves it running"));
            }
            match person.talk(stream, true).await {
                Ended::Lost => _ = self.is_patient(&mut lost_since),
                ended => return self.ended(ended).await,
            }
        }
    }

    /// The job is over and nobody was attached: what it wrote meanwhile is recorded.
    async fn came_too_late(&self, job: JobView, person: &Person) -> Result<u8> {
        let known = person.known.map(|(_, offset)| offset);
        let client = self.client.clone();
        let printed = tokio::task::spawn_blocking(move || {
            let mut client = client.lock().unwrap_or_else(PoisonError::into_inner);
            recorded::print_rest(&mut client, &job, known).map(|()| job)
        });
        let job = printed.await.context("cannot read the output")??;
        let why = if job.reason.is_empty() { "" } else { ": " };
        if job.state != JobState::Finished {
            say(format_args!("job {}: {}{why}{}", self.job, ending(&job), job.reason));
        }
        Ok(code_of(&job, None))
    }

    /// What comes of how a stream ended.
    async fn ended(&mut self, ended: Ended) -> Result<u8> {
        let job = self.job;
        match ended {
            Ended::Exit(code) => {
                let end = Instant::now() + END_HEARD;
                while Instant::now() < end {
                    match self.look().await {
                        Ok(job) if job.ended.is_some() => return Ok(code_of(&job, Some(code))),
                        Ok(_) => sleep(LOOK_AGAIN / 10).await,
                        Err(_) => sleep(LOOK_AGAIN).await,
                    }
                }
                Ok(narrow(code))
            }
            Ended::Detached => {
                say(format_args!("job {job} goes on; `hostler attach {job}` comes back to it"));
                Ok(0)
            }
            Ended::Interrupted => self.cancel(2).await,
            Ended::Told(signal) => {
                say(format_args!("job {job} goes on; `hostler attach {job}` comes back to it"));
                Ok(narrow(128 + signal))
            }
            Ended::Unread => Ok(0),
            Ended::Fault(fault) => Err(anyhow!("job {job}: {fault}")),
            Ended::Lost => Ok(1),
        }
    }

    /// Waits until the job runs, and says why it does not; gives it when it is over.
    async fn until_running(&mut self, lost_since: &mut Option<Instant>) -> Result<Option<JobView>> {
        loop {
            let job = match self.look().await {
                Ok(job) => job,
                Err(fault) if is_unreachable(&fault) && self.is_patient(lost_since) => {
                    sleep(5 * LOOK_AGAIN).await;
                    continue;
                }
                Err(fault) => return Err(fault),
            };
            if job.ended.is_some() {
                return Ok(Some(job));
            }
            if matches!(job.state, JobState::Running | JobState::Stopping) {
                return Ok(None);
            }
            if job.reason != self.told && !job.reason.is_empty() {
                say(format_args!("job {} waits: {}", self.job, job.reason));
                self.told = job.reason;
            }
            sleep(LOOK_AGAIN).await;
        }
    }

    /// Whether a stream that does not stand may do so in a moment.
    async fn is_worth_a_try(
        &self,
        fault: &StreamError,
        lost_since: &mut Option<Instant>,
    ) -> Result<bool> {
        // One that ended, or was stopped to be started again, in between is not at fault.
        let job = self.look().await;
        let moved = job.is_ok_and(|job| job.state != JobState::Running);
        let try_again = moved || (fault.may_pass() && self.is_patient(lost_since));
        if try_again {
            sleep(LOOK_AGAIN).await;
        }
        Ok(try_again)
    }

    /// Notes that the daemon or the job is away; says whether to wait for it.
    fn is_patient(&self, lost_since: &mut Option<Instant>) -> bool {
        let since = *lost_since.get_or_insert_with(|| {
            say(format_args!("job {}: the connection is lost; trying again", self.job));
            Instant::now()
        });
        let patient = since.elapsed() < RECONNECT;
        if !patient {
            say(format_args!("`hostler attach {}` comes back to the job", self.job));
        }
        patient
    }

    /// The person does not want to wait any longer.
    async fn leave_waiting(&mut self, signal: i32) -> Result<u8> {
        match self.is_ours {
            true => self.cancel(signal).await,
            false => Ok(narrow(128 + signal)),
        }
    }

    async fn cancel(&mut self, signal: i32) -> Result<u8> {
        let path = format!("/jobs/{}/cancel", self.job);
        let cancelled = self.ask(move |client| client.post::<JobView>(&path, &())).await;
        match cancelled {
            Ok(_) => say(format_args!("job {} is cancelled", self.job)),
            Err(fault) => say(format_args!("job {} is not cancelled: {fault}", self.job)),
        }
        Ok(narrow(128 + signal))
    }

    async fn look(&self) -> Result<JobView> {
        let path = format!("/jobs/{}", self.job);
        self.ask(move |client| client.get(&path)).await
    }

    /// Asks the daemon beside the stream.
    async fn ask<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&mut Client) -> Result<T, ClientError> + Send + 'static,
    ) -> Result<T> {
        let client = self.client.clone();
        let asked = tokio::task::spawn_blocking(move || {
            ask(&mut client.lock().unwrap_or_else(PoisonError::into_inner))
        });
        Ok(asked.await.context("cannot ask the daemon")??)
    }
}

fn is_unreachable(fault: &anyhow::Error) -> bool {
    matches!(fault.downcast_ref(), Some(ClientError::Unreachable { .. }))
}

/// The exit code for a job that is over; `seen` is that of its first task.
fn code_of(job: &JobView, seen: Option<i32>) -> u8 {
    let code = job.exit_code.or(seen.filter(|code| *code != 0));
    match code.filter(|code| *code != 0) {
        Some(code) => narrow(code),
        None => u8::from(job.state != JobState::Finished),
    }
}

/// A code as processes can have it; one that does not fit is not zero.
fn narrow(code: i32) -> u8 {
    match code {
        0 => 0,
        code => u8::try_from(code & 0xff).ok().filter(|code| *code > 0).unwrap_or(1),
    }
}
