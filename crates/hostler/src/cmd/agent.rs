//! `hostler agent`.

use std::io::{ErrorKind, Write as _};

use anyhow::{Context as _, Result};
use hostler_live::agent::discover::{Said, machine};
use hostler_live::agent::gpus::Gpus;
use hostler_live::agent::{self, AgentOptions, Daemon, JobSettings};
use hostler_live::api::{Enrolment, MadeToken};
use hostler_live::client::{Access, Client, ClientError, Server};
use hostler_live::server::tls::write_secret;
use tokio::signal::unix::{SignalKind, signal};

use super::job_user::job_users;
use super::serve::start_log;
use crate::cli::Agent;

/// Runs an agent, or shows what it would offer.
pub fn run(args: &Agent) -> Result<()> {
    let gpus = args.fake_gpus.clone().map_or_else(Gpus::find, Gpus::Fake);
    let said = Said {
        name: args.name.clone(),
        address: args.address.clone(),
        cpu_milli: args.cpus.map(|cpus| cpus.saturating_mul(1000)),
        mem_mib: args.mem_mib,
        rack: args.rack,
    };
    if args.show {
        let server = args.server.as_deref().map(Server::parse).transpose()?;
        let daemon = server.map(|server| format!("{}:{}", server.host, server.port));
        let machine = machine(&said, &gpus, &daemon.unwrap_or_default());
        let text = serde_json::to_string_pretty(&machine)?;
        return Ok(writeln!(std::io::stdout(), "{text}")?);
    }
    start_log(&args.log);
    let options = AgentOptions {
        daemon: daemon(args, &machine(&said, &gpus, "").name)?,
        data: args.data.clone(),
        said,
        gpus,
        jobs: JobSettings {
            users: job_users(&args.users)?,
            checkpoints: args.checkpoints.clone(),
            segment_bytes: args.output_mib << 20,
            ..JobSettings::default()
        },
        share_gpus: args.mps,
    };
    work(options)
}

/// Runs until it is told to stop. Jobs go on.
fn work(options: AgentOptions) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .context("cannot start threads")?;
    let ended = runtime.block_on(async {
        let mut terminate = signal(SignalKind::terminate())?;
        tokio::select! {
            ended = agent::run(options) => ended.map_err(anyhow::Error::from),
            _ = terminate.recv() => Ok(()),
            _ = tokio::signal::ctrl_c() => Ok(()),
        }
    });
    // What waits for shims is not waited for.
    runtime.shutdown_background();
    ended
}

/// Where the daemon is, with the node's own token: the one that is kept, or what the shown one is
/// good for.
fn daemon(args: &Agent, node: &str) -> Result<Daemon> {
    let server = args.server.as_deref().unwrap_or_default();
    let reach = |token: &str| -> Result<Daemon> {
        Ok(match &args.ca {
            Some(authorities) => Daemon::signed(&Server::parse(server)?, token, authorities)?,
            None => Daemon::pinned(&Access::new(server, token, args.fingerprint.as_deref())?)?,
        })
    };
    let kept = args.data.join("token");
    match std::fs::read_to_string(&kept) {
        Ok(own) => return reach(own.trim()),
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read `{}`", kept.display()));
        }
    }
    let mut daemon = reach(shown(args)?.trim())?;
    if let Some(own) = enrolled(&daemon, Server::parse(server)?, node)? {
        agent::folder::make(&args.data, 0o711)
            .with_context(|| format!("cannot make the folder `{}`", args.data.display()))?;
        write_secret(&kept, &own)?;
        daemon.token = own;
    }
    Ok(daemon)
}

/// The token that the agent was given. It is never an argument: others see those.
fn shown(args: &Agent) -> Result<String> {
    match &args.token_file {
        Some(file) => std::fs::read_to_string(file)
            .with_context(|| format!("cannot read the token in `{}`", file.display())),
        None => std::env::var("HOSTLER_TOKEN").with_context(|| {
            let data = args.data.display();
            format!(
                "no token in `{data}`; make one with `hostler token create --role agent NODE` and \
                 set HOSTLER_TOKEN, or name a file with `--token-file`"
            )
        }),
    }
}

/// The node's own token for a one-time token; none when it is no one-time token.
fn enrolled(daemon: &Daemon, server: Server, node: &str) -> Result<Option<String>> {
    let access = Access { server, token: daemon.token.clone(), fingerprint: None };
    let mut client = Client::over(access, daemon.tls.clone())?;
    let enrolment = Enrolment { node: node.to_owned() };
    match client.post::<MadeToken>("/agents/enrol", &enrolment) {
        Ok(made) => Ok(Some(made.token)),
        // It may be the node's own already, or the daemon is away.
        Err(ClientError::Refused { status: 403 | 404, .. } | ClientError::Unreachable { .. }) => {
            Ok(None)
        }
        Err(error) => Err(error).context(format!("cannot enrol node `{node}`")),
    }
}
