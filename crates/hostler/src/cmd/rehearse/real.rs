//! The real run: a daemon and agents in this process, in a folder that goes with them; shims and
//! jobs are processes as always.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use hostler_core::record::Record;
use hostler_core::registry::Registry;
use hostler_live::agent::discover::MachineOverrides;
use hostler_live::agent::gpus::Gpus;
use hostler_live::agent::image::ImageSettings;
use hostler_live::agent::user::is_root;
use hostler_live::agent::{AgentOptions, Daemon, JobSettings, Suspending};
use hostler_live::host::{self, Command, Experience, HostHandle, Principal};
use hostler_live::job::{JobRequest, Sharing};
use hostler_live::server::rate::Rate;
use hostler_live::server::{self, Certificate, Running};
use tokio::time::sleep;

use super::plan::{Planned, RehearsalPlan};
use crate::cli::{JobUserOptions, Rehearse};
use crate::cmd::job_user::job_users;
use crate::progress::Bars;
use crate::settings::Chosen;

/// Records that are read from the log at a time.
const RECORDS_MAX: usize = 10_000;

/// Seconds for the agents to connect, and for the jobs beyond what they run.
const PATIENCE_SECS: u64 = 60;

/// Runs the jobs and gives the daemon's log.
pub fn run(
    args: &Rehearse,
    registry: Registry,
    chosen: &Chosen,
    plan: &RehearsalPlan,
) -> Result<Vec<Record>> {
    let folder = tempfile::Builder::new().prefix("hostler-").tempdir();
    let folder = folder.context("cannot make a folder for the rehearsal")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.context("cannot start threads")?;
    let records = runtime.block_on(rehearse(args, registry, chosen, plan, folder.path()));
    runtime.shutdown_background();
    records
}

async fn rehearse(
    args: &Rehearse,
    registry: Registry,
    chosen: &Chosen,
    plan: &RehearsalPlan,
    folder: &Path,
) -> Result<Vec<Record>> {
    let running = server::start(server::Settings {
        engine: server::Engine::Agents,
        experience: Experience::default(),
        data: folder.join("daemon"),
        store: None,
        new_store: false,
        snapshot_every: None,
        notices: server::notices::Settings::default(),
        listen: ([127, 0, 0, 1], 0).into(),
        local: None,
        certificate: Certificate::None,
        rate: Rate { per_second: 1e6, burst: 1e6 },
        host: host::Settings::new(chosen.toml()),
        policies: Arc::new(move |text| registry.from_toml(text).map_err(|error| error.to_string())),
    })
    .await?;
    let mut agents = Vec::new();
    for number in 0..args.nodes {
        agents.push(agent(args, &running, folder, number).await?);
        // One after the other, so that nodes have the same numbers in every rehearsal.
        until(running.host(), move |host| host.connected_agents() == number as usize + 1).await?;
    }
    let played = play(running.host(), plan, args.fake_gpus.mem_mib).await;
    let records = match played {
        Ok(()) => read(running.host()).await,
        Err(fault) => Err(fault),
    };
    agents.iter().for_each(|agent| agent.abort());
    running.stop().await?;
    records
}

async fn agent(
    args: &Rehearse,
    running: &Running,
    folder: &Path,
    number: u32,
) -> Result<tokio::task::JoinHandle<()>> {
    let node = format!("node-{number}");
    let token = running.own_agent_token(&node).await?;
    let (host, port) = running.reachable();
    let plenty = Some(1 << 20);
    let said = MachineOverrides {
        name: Some(node.clone()),
        cpu_milli: plenty,
        mem_mib: plenty,
        ..MachineOverrides::default()
    };
    let options = AgentOptions {
        daemon: Daemon { host, port, tls: None, token },
        data: folder.join(node),
        said,
        gpus: Gpus::Fake(args.fake_gpus.clone()),
        jobs: JobSettings {
            // Jobs are commands of ours and run this program, wherever it lies.
            users: job_users(&JobUserOptions {
                job_user: is_root().then(|| "0:0".to_owned()),
                ..JobUserOptions::default()
            })?,
            // None of them has an image, and many agents would try the same programs at once.
            images: ImageSettings { programs: Vec::new(), ..ImageSettings::default() },
            ..JobSettings::default()
        },
        share_gpus: false,
        // What is simulated beside it does not suspend jobs either.
        suspend: Suspending::Off,
    };
    Ok(tokio::spawn(async {
        if let Err(fault) = hostler_live::agent::run(options).await {
            crate::say::say(format_args!("error: an agent has ended: {fault}"));
        }
    }))
}

/// Submits every job at its time and waits until all have ended.
async fn play(host: &HostHandle, plan: &RehearsalPlan, device_mib: u32) -> Result<()> {
    let program = std::env::current_exe().context("cannot find this program")?;
    let program = program.to_str().context("the path of this program is no text")?;
    let bar = Bars::new(0).jobs("live", plan.jobs.len() as u64);
    let begun = Instant::now();
    for job in &plan.jobs {
        let due = begun + Duration::from_millis(job.at_ms);
        tokio::time::sleep_until(due.into()).await;
        let request = Box::new(request(job, program, device_mib));
        let command = Command::Submit { request, key: None, tenant: None };
        host.command(&Principal::daemon(), command).await?;
        bar.set_position(ended(host).await?);
    }
    let runs: u64 = plan.jobs.iter().map(|job| job.run_ms).sum();
    let most = begun + Duration::from_millis(runs) + Duration::from_secs(PATIENCE_SECS);
    while ended(host).await? < plan.jobs.len() as u64 {
        if Instant::now() > most {
            bail!("jobs do not end; is the machine overloaded?");
        }
        bar.set_position(ended(host).await?);
        sleep(Duration::from_millis(100)).await;
    }
    bar.finish_and_clear();
    Ok(())
}

/// Sleeps, and tells meanwhile what it uses.
const SCRIPT: &str = r#""$0" progress --gpu-use "$1" & exec sleep "$2""#;

fn request(job: &Planned, program: &str, device_mib: u32) -> JobRequest {
    let thousandths = |number: u64| format!("{}.{:03}", number / 1000, number % 1000);
    let words = [program, &thousandths(job.use_milli.into()), &thousandths(job.run_ms)];
    let command = ["sh", "-c", SCRIPT].into_iter().chain(words);
    let shares = job.gpu_milli < 1000;
    JobRequest {
        name: job.name.clone(),
        command: command.map(str::to_owned).collect(),
        gpus: f64::from(job.gpu_milli) / 1000.0,
        gpu_mem_mib: if shares { job.mem_mib(device_mib) } else { 0 },
        tasks: job.tasks,
        estimate_secs: Some(job.run_ms.div_ceil(1000)),
        sharing: if shares { Sharing::Willing } else { Sharing::Never },
        group: if job.group == 0 { String::new() } else { format!("group-{}", job.group) },
        checkpoints: false,
        ..JobRequest::default()
    }
}

async fn ended(host: &HostHandle) -> Result<u64> {
    Ok(host.read(|host| host.figures().ended.values().sum()).await?)
}

async fn until(
    host: &HostHandle,
    holds: impl Fn(&host::Host) -> bool + Copy + Send + 'static,
) -> Result<()> {
    let begun = Instant::now();
    while !host.read(holds).await? {
        if begun.elapsed() > Duration::from_secs(PATIENCE_SECS) {
            bail!("an agent does not connect within {PATIENCE_SECS} s");
        }
        sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

async fn read(host: &HostHandle) -> Result<Vec<Record>> {
    let (mut records, mut last) = (Vec::new(), 0);
    loop {
        let page = host.records(last, RECORDS_MAX).await?;
        let Some((number, _)) = page.last() else { return Ok(records) };
        last = *number;
        for (_, text) in &page {
            records.push(serde_json::from_str(text).context("a record of the log")?);
        }
    }
}
