//! `hostler exec`.

use anyhow::{Result, anyhow};
use hostler_live::client::stream::Streams;
use hostler_live::stream::{StreamKind, StreamRequest};

use super::session::{Ended, Person};
use super::{block_on, narrow, one, terminal};
use crate::ExitWith;
use crate::cli::Exec;
use crate::live::{access, client, variable};

/// Runs a command inside a job.
pub fn run(args: &Exec) -> Result<()> {
    let job = one(&mut client()?, args.job)?.id;
    let streams = Streams::new(access()?)?;
    let terminal = (!args.no_terminal && terminal::is_there()).then(terminal::size);
    let term = terminal.and_then(|_| variable("TERM"));
    let what = StreamKind::Exec { command: args.command.clone(), terminal, term };
    let request = StreamRequest { rank: args.rank, counts: true, what };
    let ended = block_on(async move {
        let mut person = Person::new()?;
        let stream = streams.open(job, &request).await?;
        Ok(person.talk(stream, false).await)
    })?;
    let code = match ended {
        Ended::Exit(code) => narrow(code),
        Ended::Unread | Ended::Detached => 0,
        Ended::Interrupted => 130,
        Ended::Told(signal) => narrow(128 + signal),
        Ended::Fault(fault) => return Err(anyhow!("job {job}: {fault}")),
        Ended::Lost => {
            return Err(anyhow!(
                "the connection is lost, and the command ends with it; `hostler show {job}` says \
                 whether the job goes on"
            ));
        }
    };
    match code {
        0 => Ok(()),
        code => Err(ExitWith { code, words: String::new() }.into()),
    }
}
