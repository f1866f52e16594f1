//! `sbatch` and `srun`.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;

use anyhow::{Context, Result, bail};
use hostler_live::api::Accepted;
use hostler_live::client::Client;
use hostler_live::job::JobRequest;
use hostler_live::limits::LINGER_SECS;
use hostler_live::selection::Selection;

use crate::cli::Logs;
use crate::cmd::{interact, logs, submit as submitting};
use crate::live::{client, variable};
use crate::say::{print, say};
use crate::submission::{Submission, apply, export, localize, sbatch, script, settle};

/// Submits a script, or the line of `--wrap`.
pub fn submit(words: &[String]) -> Result<()> {
    let (options, rest) = sbatch::split_options(words)?;
    let flags = sbatch::flags_of(&[(0, options.clone())])?;
    let job = match (&flags.wrap, rest.split_first()) {
        (Some(_), Some(_)) => bail!("a script and `--wrap` do not go together"),
        (Some(line), None) => {
            let text = format!("#!/bin/sh\n{line}\n");
            script::read_with(Path::new("wrap"), text, Some(&options))?
        }
        (None, Some((file, arguments))) => {
            let text = std::fs::read_to_string(file);
            let text = text.with_context(|| format!("cannot read `{file}`"))?;
            let mut job = script::read_with(Path::new(file), text, Some(&options))?;
            job.request.command.extend(arguments.iter().cloned());
            job
        }
        (None, None) => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
            script::read_with(Path::new("sbatch"), text, Some(&options))?
        }
    };
    let mut client = client()?;
    let wait = job.wait;
    let accepted = send(&mut client, job)?;
    submitting::tell_of_mail(accepted);
    match flags.parsable {
        true => print(accepted.first)?,
        false => print(format_args!("Submitted batch job {}", accepted.first))?,
    }
    if wait { submitting::until_over(&mut client, accepted) } else { Ok(()) }
}

fn send(client: &mut Client, mut job: Submission) -> Result<Accepted> {
    export(&mut job)?;
    settle(client, &mut job)?;
    for note in &job.notes {
        say(format_args!("note: {note}"));
    }
    localize(&mut job.request)?;
    Ok(client.post("/jobs", &job.request)?)
}

/// Runs a command: in a job as it is, since each task runs the script; elsewhere as a job.
pub fn run(words: &[String]) -> Result<()> {
    let (mut options, command) = sbatch::split_options(words)?;
    let is_interactive = options.iter().any(|option| option == "--pty");
    options.retain(|option| option != "--pty");
    let Some((program, arguments)) = command.split_first() else {
        bail!("no command; see --help");
    };
    if variable("HOSTLER_JOB").is_some() {
        let fault = std::process::Command::new(program).args(arguments).exec();
        return Err(fault).with_context(|| format!("cannot run `{program}`"));
    }
    let flags = sbatch::flags_of(&[(0, options)])?;
    let mut request = JobRequest { command, slurm: true, ..JobRequest::default() };
    let parsed = script::parse(&flags.words)?;
    apply(&mut request, &parsed);
    script::submitted_here(&mut request);
    if is_interactive {
        interact::make_interactive(&mut request, false, Some(LINGER_SECS));
    }
    let mut client = client()?;
    let job = Submission { request, notes: flags.notes, wait: true, export: parsed.export };
    let accepted = send(&mut client, job)?;
    say(format_args!("srun: job {} queued and waiting for resources", accepted.first));
    if is_interactive {
        return interact::follow(client, accepted, &[]);
    }
    logs::run(&Logs {
        jobs: Selection::Job(accepted.first.into()),
        follow: true,
        stdout: false,
        stderr: false,
        rank: None,
        start: None,
        all_starts: false,
        tail: None,
        json: false,
    })?;
    submitting::until_over(&mut client, accepted)
}
