//! `hostler tenant`.

use anyhow::Result;
use hostler_live::client::{Ask, Method, StatusCode, escaped};
use hostler_live::host::TenantView;
use hostler_live::store::TenantQuota;

use crate::cli::{Most, TenantCommand, TenantSet};
use crate::live::{client, print_json, table};
use crate::say::{print, say};

/// Lists tenants, or sets what one may use.
pub fn run(command: &TenantCommand) -> Result<()> {
    match command {
        TenantCommand::List { json } => {
            let tenants: Vec<TenantView> = client()?.get("/tenants")?;
            if *json { print_json(&tenants) } else { show(&tenants) }
        }
        TenantCommand::Set(args) => set(args),
    }
}

fn set(args: &TenantSet) -> Result<()> {
    let mut client = client()?;
    let known: Vec<TenantView> = client.get("/tenants")?;
    let before = known.into_iter().find(|tenant| tenant.name == args.name);
    let before = before.map_or_else(TenantQuota::default, |tenant| tenant.quota);
    // What is not named stays as it is.
    let limit = |named: Option<Most>, before| named.map_or(before, |most| most.0);
    let quota = TenantQuota {
        weight: args.weight,
        jobs_max: limit(args.jobs, before.jobs_max),
        queued_max: limit(args.queued, before.queued_max),
        gpus_max: limit(args.gpus, before.gpus_max),
        budget_gpu_hours: limit(args.budget, before.budget_gpu_hours),
        budget_days: args.budget_days.or(before.budget_days),
    };
    let path = format!("/tenants/{}", escaped(&args.name));
    let body = Some(serde_json::to_vec(&quota)?);
    let ask = Ask { method: Method::PUT, path: &path, headers: &[], body };
    let (status, tenant): (_, TenantView) = client.call_with_status(&ask)?;
    if status == StatusCode::CREATED {
        say(format_args!("made tenant {}", tenant.name));
    }
    if args.json { print_json(&tenant) } else { show(&[tenant]) }
}

fn show(tenants: &[TenantView]) -> Result<()> {
    let most = |limit: Option<u32>| limit.map_or("-".to_owned(), |limit| limit.to_string());
    let row = |tenant: &TenantView| {
        let TenantView { name, quota, jobs, waiting, gpus, gpus_asked, budget_used } = tenant;
        let budget =
            budget_used.map(|used| format!("{used:.1}/{} h", most(quota.budget_gpu_hours)));
        [
            name.clone(),
            format!("{jobs}/{}", most(quota.jobs_max)),
            format!("{waiting}/{}", most(quota.queued_max)),
            format!("{gpus}/{}", most(quota.gpus_max)),
            gpus_asked.to_string(),
            most(quota.weight),
            budget.unwrap_or_else(|| "-".to_owned()),
        ]
    };
    let rows: Vec<_> = tenants.iter().map(row).collect();
    Ok(print(table(["TENANT", "JOBS", "WAITING", "GPUS", "ASKED", "WEIGHT", "BUDGET"], &rows))?)
}
