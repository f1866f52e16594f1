//! `hostler serve`.

use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hostler_core::registry::Registry;
use hostler_core::units::{Span, Time};
use hostler_live::agent::discover::{MachineOverrides, seen_from_outside};
use hostler_live::agent::gpus::Gpus;
use hostler_live::agent::user::JobUsers;
use hostler_live::agent::{AgentError, AgentOptions, Daemon, JobSettings, Suspending, place};
use hostler_live::client::pin;
use hostler_live::host::{self, Experience};
use hostler_live::limits::DEAD_AFTER_FENCE_SECS_MIN;
use hostler_live::server::rate::Rate;
use hostler_live::server::tls::host_name;
use hostler_live::server::{self, Certificate, Engine, LocalSettings, Running, notices};
use hostler_predict::Lesson;

use super::job_user::job_users;
use super::slurm;
use crate::cli::{
    EngineKind, JobUserOptions, LogFormat, LogLevel, LogOptions, NoticeOptions, Serve,
};
use crate::input;
use crate::say::{print, say};
use crate::settings::Chosen;
use crate::submission;

/// Time beyond the fence after which a node is given up: what ending jobs may take.
const DEAD_AFTER_FENCE_SECS: u64 = 60;

/// Beats that fit into a short fence.
const BEATS_PER_FENCE: u64 = 6;

/// Runs the daemon until it is told to stop.
pub fn run(args: &Serve, registry: Registry) -> Result<()> {
    start_log(&args.log);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("cannot start threads")?.block_on(serve(args, registry))
}

async fn serve(args: &Serve, registry: Registry) -> Result<()> {
    let JobUserOptions { job_user, job_users, .. } = &args.users;
    if !args.with_agent && (job_user.is_some() || job_users.is_some()) {
        bail!(
            "`--job-user` and `--job-users` are for an agent in this process; add `--with-agent`"
        );
    }
    let agent_options = args.with_agent.then(|| AgentPart::find(args)).transpose()?;
    let is_open = agent_options.as_ref().is_some_and(|part| part.users.are_own());
    let mut settings = settings(args, registry)?;
    settings.host.only_default_tenant = is_open && !args.trust_tenants;
    if is_open {
        warn_of_open_secrets(args);
    }
    let running = server::start(settings).await?;
    let url = running.url();
    if running.first_token().is_some() {
        let pin = running.fingerprint().map(|pin| format!(" --fingerprint {pin}"));
        let file = args.data.join(server::ADMIN_TOKEN);
        say("first start; a token for an admin is kept where only this user reads it:");
        let pin = pin.unwrap_or_default();
        // Whoever does not read it finds the token in its file.
        let _ = print(format_args!("hostler login {url}{pin} < {}", file.display()));
    }
    let socket = running.socket().map(|path| path.display().to_string());
    tracing::info!(url, fingerprint = running.fingerprint(), socket, "serving");
    let Some(part) = agent_options else { return Ok(running.until_told_to_stop().await?) };
    let agent = agent(args, part, &running).await?;
    tokio::select! {
        // The jobs of the agent go on under their shims.
        ended = running.until_told_to_stop() => Ok(ended?),
        // Who asked for both would wait for jobs that nobody runs. What is in the store is safe
        // whenever the process ends.
        fault = agent => Err(fault).context("the agent in this process has ended"),
    }
}

/// Says what jobs can do that run under the daemon's account.
fn warn_of_open_secrets(args: &Serve) {
    let whose = match args.trust_tenants {
        true => "jobs of every tenant are taken",
        false => "only jobs of tenant `default` are taken",
    };
    tracing::warn!(
        folder = %args.data.display(),
        "jobs run under the daemon's own account and can read its secrets, the token of an admin \
         included: whoever submits one can become admin; {whose}. As root they run as somebody else"
    );
}

/// What is found out about the agent before anything is started.
struct AgentPart {
    users: JobUsers,
    data: PathBuf,
    address: Option<String>,
}

impl AgentPart {
    fn find(args: &Serve) -> Result<AgentPart> {
        let users = job_users(&args.users)?;
        let open = Path::new(place::OPEN_FOLDER);
        let data = place::choose(&args.data, users.any().as_ref(), open)?;
        let address = args.address.clone().or_else(|| seen_from_outside(args.listen.ip()));
        Ok(AgentPart { users, data, address })
    }
}

/// An agent in this process.
async fn agent(
    args: &Serve,
    part: AgentPart,
    running: &Running,
) -> Result<impl Future<Output = AgentError> + use<>> {
    let gpus = args.fake_gpus.clone().map_or_else(Gpus::find, Gpus::Fake);
    let node = host_name().unwrap_or_else(|| "localhost".to_owned());
    let token = running.own_agent_token(&node).await?;
    let tls = running.fingerprint().map(pin::config).transpose()?;
    let (host, port) = running.reachable();
    let only_default = part.users.are_own() && !args.trust_tenants;
    let options = AgentOptions {
        daemon: Daemon { host, port, tls, token },
        data: part.data,
        said: MachineOverrides {
            name: Some(node),
            address: part.address,
            ..MachineOverrides::default()
        },
        gpus,
        jobs: JobSettings {
            only_tenant: only_default.then_some(host::DEFAULT_TENANT_NUMBER),
            users: part.users,
            images: args.images.settings(),
            checkpoints: args.checkpoints.clone(),
            ..JobSettings::default()
        },
        share_gpus: false,
        suspend: Suspending::Auto,
    };
    Ok(async {
        match hostler_live::agent::run(options).await {
            Err(fault) => fault,
            Ok(()) => AgentError::Stopped,
        }
    })
}

fn settings(args: &Serve, registry: Registry) -> Result<server::Settings> {
    let policy = match &args.policy {
        Some(policy) => super::policy::text(policy, &registry)?,
        None => Chosen::parse(&registry, hostler_policies::DEFAULT)?.bare_toml(),
    };
    let mut host = times(args, policy)?;
    if let Some(fallback) = &args.fallback {
        host.fallback = super::policy::text(fallback, &registry)?;
    }
    let certificate = match (&args.cert, &args.key) {
        (Some(chain), Some(key)) => Certificate::Own { chain: chain.clone(), key: key.clone() },
        _ if args.plain => Certificate::None,
        _ => Certificate::Kept,
    };
    let per_second = f64::from(args.rate);
    Ok(server::Settings {
        data: args.data.clone(),
        store: args.store.clone(),
        new_store: args.new_store,
        snapshot_every: (args.snapshot_secs > 0).then_some(Duration::from_secs(args.snapshot_secs)),
        listen: args.listen,
        local: local(args)?,
        certificate,
        rate: Rate { per_second, burst: 2.0 * per_second },
        engine: engine(args)?,
        host,
        experience: experience(args)?,
        notices: told(&args.notices)?,
        policies: Arc::new(move |text| registry.from_toml(text).map_err(|error| error.to_string())),
    })
}

/// What runs the jobs.
fn engine(args: &Serve) -> Result<Engine> {
    match (args.engine, &args.slurm) {
        (EngineKind::Agents, None) => Ok(Engine::Agents),
        (EngineKind::Agents, Some(_)) => bail!("`--slurm` is for `--engine slurm`; add it"),
        (EngineKind::Slurm, file) => {
            if args.with_agent {
                bail!("`--with-agent` runs jobs by itself; with `--engine slurm` leave it out");
            }
            if args.lost_work_max.is_some() {
                bail!(
                    "`--lost-work-max` is not for `--engine slurm`: jobs that Slurm may requeue \
                     give way with `preempt_requeueable` in the file of `--slurm`"
                );
            }
            slurm::settings(file.as_deref()).map(Engine::Slurm)
        }
    }
}

/// How users of this machine are listened to.
fn local(args: &Serve) -> Result<Option<LocalSettings>> {
    let tenant = args.local_tenant.clone();
    let (socket, must) = match &args.socket {
        Some(path) if path.as_os_str() == "none" => {
            if tenant.is_some() {
                bail!(
                    "`--local-tenant` is for those who come by the socket; leave one of them out"
                );
            }
            return Ok(None);
        }
        Some(path) => (path.clone(), true),
        None => (args.data.join("hostler.sock"), tenant.is_some()),
    };
    Ok(Some(LocalSettings { socket, must, tenant }))
}

/// Who is told of jobs. What is in a file is not shown when it cannot be used.
fn told(options: &NoticeOptions) -> Result<notices::Settings> {
    let read = |file: &Path| {
        std::fs::read_to_string(file).with_context(|| format!("cannot read `{}`", file.display()))
    };
    let address = |text: &String| match text.strip_prefix('@') {
        Some(file) => read(Path::new(file)).map(|text| text.trim().to_owned()),
        None => Ok(text.clone()),
    };
    let secret = options.webhook_secret.as_deref().map(read).transpose()?;
    let secret = secret.map(|secret| secret.trim_end().as_bytes().to_vec());
    if secret.as_ref().is_some_and(Vec::is_empty) {
        bail!("the file of `--webhook-secret` is empty; `openssl rand -hex 32` makes a secret");
    }
    let mail = options.mail_command.as_deref().map(submission::split).unwrap_or(Some(Vec::new()));
    let mail_command = mail.context("`--mail-command`: a quote is not closed")?;
    if options.mail_command.is_some() && mail_command.is_empty() {
        bail!("`--mail-command` is empty; name a program, as in `/usr/sbin/sendmail -t`");
    }
    Ok(notices::Settings {
        webhooks: options.webhook.iter().map(address).collect::<Result<_>>()?,
        secret,
        authorities: options.webhook_ca.clone(),
        mail_command,
        mail_from: options.mail_from.clone(),
    })
}

/// What predictors are taught by besides what finishes here.
fn experience(args: &Serve) -> Result<Experience> {
    let mut lessons: Vec<Lesson> = Vec::new();
    for trace in &args.history {
        // Traces count from times of their own; these follow each other.
        let after = lessons.last().map_or(Span::ZERO, |last| last.ended.since(Time::ZERO));
        lessons.extend(input::lessons(trace)?.into_iter().map(|lesson| Lesson {
            submitted: lesson.submitted + after,
            ended: lesson.ended + after,
            ..lesson
        }));
    }
    Ok(Experience { model: args.model.as_deref().map(input::read_model).transpose()?, lessons })
}

/// When silence means what. Several beats fit into the fence, or one late answer would end jobs.
fn times(args: &Serve, policy: String) -> Result<host::Settings> {
    let usual = host::Settings::new(policy);
    let fence = Span::from_secs(args.fence_secs);
    let dead = args.dead_secs.unwrap_or(args.fence_secs.saturating_add(DEAD_AFTER_FENCE_SECS));
    if dead < args.fence_secs.saturating_add(DEAD_AFTER_FENCE_SECS_MIN) {
        bail!(
            "`--dead-secs` is {dead}; jobs end at the fence of {} s and need {} s more for it",
            args.fence_secs,
            DEAD_AFTER_FENCE_SECS_MIN
        );
    }
    Ok(host::Settings {
        beat: usual.beat.min(Span(fence.0 / BEATS_PER_FENCE)),
        silent: usual.silent.min(Span(fence.0 / 2)),
        fence,
        dead: Span::from_secs(dead),
        lost_work_max: args.lost_work_max.map(Span::from_secs),
        notify_always: submission::events(&args.notices.webhook_events),
        ..usual
    })
}

/// Log lines go to standard error; secrets never get there, whatever the level.
pub fn start_log(options: &LogOptions) {
    let level = match options.log_level {
        LogLevel::Error => tracing::Level::ERROR,
        LogLevel::Warn => tracing::Level::WARN,
        LogLevel::Info => tracing::Level::INFO,
        LogLevel::Debug => tracing::Level::DEBUG,
        LogLevel::Trace => tracing::Level::TRACE,
    };
    let lines = tracing_subscriber::fmt().with_writer(std::io::stderr).with_max_level(level);
    match options.log_format {
        LogFormat::Text => lines.with_ansi(false).init(),
        LogFormat::Json => lines.json().init(),
    }
}
