//! `hostler agent`.

use std::io::{ErrorKind, Write as _};

use anyhow::{Context as _, Result, anyhow, bail};
use hostler_live::agent::discover::{MachineOverrides, machine};
use hostler_live::agent::gpus::Gpus;
use hostler_live::agent::image::{Found, find, try_out};
use hostler_live::agent::{self, AgentOptions, Daemon, JobSettings, Suspending};
use hostler_live::api::{Enrolled, Enrolment};
use hostler_live::client::{Access, Client, ClientError, Server};
use hostler_live::host::{Secret, hash_of};
use hostler_live::server::tls::write_secret;
use tokio::signal::unix::{SignalKind, signal};

use super::job_user::job_users;
use super::serve::start_log;
use crate::cli::{Agent, Suspend};

/// The secret of an agent that has not enrolled yet.
const DRAFT: &str = "token-to-be";

/// Runs an agent, or shows what it would offer.
pub fn run(args: &Agent) -> Result<()> {
    let gpus = args.fake_gpus.clone().map_or_else(Gpus::find, Gpus::Fake);
    let said = MachineOverrides {
        name: args.name.clone(),
        address: args.address.clone(),
        cpu_milli: args.cpus.map(|cpus| cpus.saturating_mul(1000)),
        mem_mib: args.mem_mib,
        rack: args.rack,
    };
    if args.show {
        let server = args.server.as_deref().map(Server::parse).transpose()?;
        let daemon = server.map(|server| format!("{}:{}", server.host, server.port));
        let mut machine = machine(&said, &gpus, &daemon.unwrap_or_default());
        suspending(args.suspend).offer(&gpus, &mut machine);
        let path = std::env::var("PATH").unwrap_or_default();
        let images = args.images.settings();
        let folder = tempfile::tempdir().context("cannot make a folder")?;
        let user = job_users(&args.users)?.any();
        let found = find(&images.programs, &path);
        let (found, unusable) =
            try_out(found, &images.args, &folder.path().join("images"), user.as_ref());
        machine.unusable_runtimes = unusable;
        machine.runtimes = found.iter().map(Found::runtime).collect();
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
            images: args.images.settings(),
            checkpoints: args.checkpoints.clone(),
            segment_bytes: args.output_mib << 20,
            ..JobSettings::default()
        },
        share_gpus: args.mps,
        suspend: suspending(args.suspend),
    };
    work(options)
}

fn suspending(suspend: Suspend) -> Suspending {
    match suspend {
        Suspend::Auto => Suspending::Auto,
        Suspend::On => Suspending::On,
        Suspend::Off => Suspending::Off,
    }
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
    if server.starts_with("unix:") {
        bail!("agents do not come by the daemon's socket; name it as https://HOST:PORT");
    }
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
    agent::folder::make(&args.data, 0o711)
        .with_context(|| format!("cannot make the folder `{}`", args.data.display()))?;
    if let Some(own) = enrolled(args, &daemon, &Server::parse(server)?, node)? {
        write_secret(&kept, &own)?;
        // What is left of it does no harm.
        let _ = std::fs::remove_file(args.data.join(DRAFT));
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

/// The node's own secret, which a one-time token let speak for it; none when what was shown is no
/// one-time token but the node's own already.
///
/// The secret is written down first: whatever gets lost then, the next try finds it.
fn enrolled(args: &Agent, daemon: &Daemon, server: &Server, node: &str) -> Result<Option<String>> {
    let draft = args.data.join(DRAFT);
    let own = match std::fs::read_to_string(&draft) {
        Ok(own) => own,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let fresh = Secret::generate()?.reveal().to_owned();
            write_secret(&draft, &fresh)?;
            fresh
        }
        Err(error) => {
            return Err(error).with_context(|| format!("cannot read `{}`", draft.display()));
        }
    };
    let enrol = |token: &str| {
        let access = Access { server: server.clone(), token: token.to_owned(), fingerprint: None };
        let enrolment = Enrolment { node: node.to_owned(), hash: hash_of(&own) };
        let mut client = Client::over(access, daemon.tls.clone())?;
        client.post::<Enrolled>("/agents/enrol", &enrolment)
    };
    let asked = match enrol(&daemon.token) {
        // Whether it was heard, the second try tells.
        Err(ClientError::Unreachable { .. }) => enrol(&daemon.token),
        asked => asked,
    };
    match asked {
        Ok(_) => Ok(Some(own)),
        // It may be the node's own already, or the daemon is away.
        Err(ClientError::Refused { status: 403 | 404, .. } | ClientError::Unreachable { .. }) => {
            Ok(None)
        }
        // It may have been spent for this very secret, by one who did not live to hear of it: then
        // the daemon knows the secret, though it enrols nobody.
        Err(ClientError::Refused { status: 401, .. })
            if matches!(enrol(&own), Err(ClientError::Refused { status: 403, .. })) =>
        {
            Ok(Some(own))
        }
        Err(ClientError::Refused { status: 401, .. }) => Err(anyhow!(
            "cannot enrol node `{node}`: the daemon does not take its token, which is mistyped, \
             used by another agent or revoked; make another with `hostler token create --role \
             agent {node}` and start the agent by the line that it prints"
        )),
        Err(error) => Err(error).context(format!("cannot enrol node `{node}`")),
    }
}
