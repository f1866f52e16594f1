//! `hostler usage`.

use std::io::Write as _;

use anyhow::Result;
use hostler_live::client::query;
use hostler_live::usage::{Usage, UsageBy, UsageRow};

use crate::cli::{By, UsageArgs, When};
use crate::live::{client, energy, field, moment, now, print_json, table};
use crate::say::say;

/// Shows what was used.
pub fn run(args: &UsageArgs) -> Result<()> {
    let now = now();
    let at = |when: When| match when {
        When::Ago(seconds) => (now - seconds as f64).max(0.0).to_string(),
        When::At(seconds) => seconds.max(0).to_string(),
    };
    let path = query(
        "/usage",
        &[
            ("by", Some(word(args.by).to_owned())),
            ("since", Some(at(args.since))),
            ("until", args.until.map(at)),
            ("tenant", args.tenant.clone()),
            ("user", args.user.clone()),
        ],
    );
    let usage: Usage = client()?.get(&path)?;
    if args.json {
        return print_json(&usage);
    }
    if let Some(user) = args.user.as_ref().filter(|_| usage.total.jobs == 0) {
        say(format_args!(
            "no job of user `{user}` was seen in this time; `hostler usage --by user` lists users"
        ));
    }
    if args.csv {
        return csv(&usage);
    }
    show(&usage)
}

fn word(by: By) -> &'static str {
    match by {
        By::User => "user",
        By::Tenant => "tenant",
        By::Model => "model",
        By::Group => "group",
        By::Day => "day",
        By::Week => "week",
        By::Month => "month",
    }
}

fn head(by: UsageBy) -> &'static str {
    match by {
        UsageBy::User => "USER",
        UsageBy::Tenant => "TENANT",
        UsageBy::Model => "MODEL",
        UsageBy::Group => "GROUP",
        UsageBy::Day => "DAY",
        UsageBy::Week => "WEEK",
        UsageBy::Month => "MONTH",
    }
}

fn show(usage: &Usage) -> Result<()> {
    let hours = |hours: f64| format!("{hours:.2}");
    let row = |row: &UsageRow, key: &str| {
        [
            key.to_owned(),
            row.jobs.to_string(),
            row.finished.to_string(),
            row.failed.to_string(),
            hours(row.gpu_hours),
            hours(row.failed_gpu_hours),
            hours(row.lost_gpu_hours),
            hours(row.waited_hours),
            row.energy_kwh.map_or("-".to_owned(), energy),
        ]
    };
    let mut rows: Vec<_> = usage.rows.iter().map(|one| row(one, &one.key)).collect();
    rows.push(row(&usage.total, "all"));
    let heads = ["JOBS", "FINISHED", "FAILED", "GPU-H", "FAILED-H", "LOST-H", "WAITED-H", "KWH"];
    let [jobs, finished, failed, gpu, failed_gpu, lost, waited, kwh] = heads;
    let by = head(usage.by);
    let mut out = std::io::stdout().lock();
    writeln!(out, "{} to {}", moment(usage.since), moment(usage.until))?;
    let heads = [by, jobs, finished, failed, gpu, failed_gpu, lost, waited, kwh];
    writeln!(out, "{}", table(heads, &rows))?;
    if usage.total.energy_kwh.is_none() {
        say("energy: no GPU told any");
    }
    if usage.guessed_jobs > 0 {
        say(format_args!(
            "{} jobs ran under an older version: each counts as one stay, from its first start",
            usage.guessed_jobs
        ));
    }
    Ok(())
}

/// Hours in full, for programs; energy is empty where it is not measured.
fn csv(usage: &Usage) -> Result<()> {
    let mut out = std::io::stdout().lock();
    let by = head(usage.by).to_lowercase();
    writeln!(
        out,
        "{by},jobs,finished,failed,gpu_hours,failed_gpu_hours,lost_gpu_hours,waited_hours,energy_kwh"
    )?;
    for row in &usage.rows {
        let UsageRow { jobs, finished, failed, gpu_hours, .. } = row;
        let energy = row.energy_kwh.map_or(String::new(), |energy| energy.to_string());
        writeln!(
            out,
            "{},{jobs},{finished},{failed},{gpu_hours},{},{},{},{energy}",
            field(&row.key),
            row.failed_gpu_hours,
            row.lost_gpu_hours,
            row.waited_hours,
        )?;
    }
    Ok(())
}
