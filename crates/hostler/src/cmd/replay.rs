//! `hostler replay`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};

use anyhow::{Context, Result, anyhow, bail};
use hostler_core::engine::Engine;
use hostler_core::event::Event;
use hostler_core::metrics::Metrics;
use hostler_core::record::Record;
use hostler_core::registry::Registry;
use hostler_core::replay::{Replay, ReplayError};
use serde_json::json;

use crate::cli;
use crate::say::say;

/// Bytes of one line of a log: a batch of a million facts fits, a file without lines does not.
const LINE_MAX: u64 = 1 << 30;

/// Folds a log and shows its end.
pub fn run(args: &cli::Replay, registry: Registry) -> Result<()> {
    let name = args.log.display().to_string();
    let file = File::open(&args.log).with_context(|| format!("cannot read `{name}`"))?;
    let mut lines =
        Lines { input: BufReader::new(file), name, number: 0, registry: registry.clone() };
    let Some(first) = lines.next()? else { bail!("`{}` is empty", lines.name) };
    let build = move |settings: &str| {
        registry.from_toml(settings).expect("reading a line checked its policies")
    };
    let policy = build(policy_of(&first, &lines.name)?);
    let engine = Engine::new(policy, Metrics::default()).with_builder(Box::new(build));
    let mut replay = Replay::new(engine, args.check);
    let mut next = Some(first);
    while let Some(record) = next {
        follow(&mut replay, &record, &lines)?;
        next = lines.next()?;
    }
    let (records, compared) = (replay.records, replay.compared);
    let engine = replay.into_engine();
    let summary = engine.watch().summary(engine.state());
    let mut out = std::io::stdout().lock();
    if args.json {
        let result = json!({
            "records": records,
            "events": engine.events(),
            "decisions_compared": args.check.then_some(compared),
            "summary": summary,
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&result)?)?;
        return Ok(());
    }
    writeln!(
        out,
        "{records} records, {} facts, up to {} s",
        engine.events(),
        engine.state().now()
    )?;
    writeln!(
        out,
        "jobs: {} done, {} failed, {} rejected, {} not over",
        summary.jobs_done, summary.jobs_failed, summary.jobs_rejected, summary.jobs_unfinished
    )?;
    writeln!(out, "avg jct {:.2} s, makespan {:.2} s", summary.avg_jct_s, summary.makespan_s)?;
    if args.check {
        writeln!(out, "the policy was asked again: {compared} decisions, all the same")?;
    }
    Ok(())
}

/// Feeds a record; one that does not follow from those before it is told with its line.
fn follow(replay: &mut Replay<Metrics>, record: &Record, lines: &Lines) -> Result<()> {
    let fault = match replay.feed(record) {
        Ok(()) => return Ok(()),
        Err(ReplayError::Mismatch { record, logged, again }) => {
            let at = logged.iter().zip(&again).take_while(|(one, other)| one == other).count();
            let show = |decisions: &[_]| match decisions.get(at) {
                Some(decision) => format!("{decision:?}"),
                None => "nothing more".to_owned(),
            };
            let (logged, again) = (show(&logged), show(&again));
            bail!("record {record}: logged was\n  {logged}\nthe policy now says\n  {again}");
        }
        Err(ReplayError::Fact { fault, .. }) => fault.to_string(),
        Err(ReplayError::Decision { fault, .. }) => fault.to_string(),
        Err(ReplayError::Taken { fault, .. }) => fault.to_string(),
        Err(ReplayError::Order { .. }) => {
            "facts and the decisions on them do not go together".to_owned()
        }
    };
    bail!("{}:{}: does not follow from the lines before: {fault}", lines.name, lines.number)
}

/// The settings of the policy that the log begins with.
fn policy_of<'a>(first: &'a Record, name: &str) -> Result<&'a str> {
    let Record::Input { .. } = first else { bail!("`{name}` does not begin with facts") };
    policies(first).next().with_context(|| format!("`{name}` does not begin with a policy"))
}

/// Settings of the policies that a record puts in place.
fn policies(record: &Record) -> impl Iterator<Item = &str> {
    let events: &[Event] = match record {
        Record::Input { events, .. } => events,
        Record::Output { .. } => &[],
    };
    events.iter().filter_map(|event| match event {
        Event::PolicyChanged { settings } => Some(&**settings),
        _ => None,
    })
}

struct Lines {
    input: BufReader<File>,
    name: String,
    number: u64,
    /// Policies that a log can name.
    registry: Registry,
}

impl Lines {
    /// The next record. A last line that was cut off by a crash is left out with a warning.
    fn next(&mut self) -> Result<Option<Record>> {
        let mut line = Vec::new();
        self.number += 1;
        let (name, number) = (&self.name, self.number);
        let mut limited = (&mut self.input).take(LINE_MAX);
        let read = limited.read_until(b'\n', &mut line);
        if read.with_context(|| format!("cannot read `{name}`"))? == 0 {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            if line.len() as u64 >= LINE_MAX {
                bail!("{name}:{number}: longer than {LINE_MAX} bytes; this is no log");
            }
            let words = "the last line is cut off and left out";
            say(format_args!("warning: {name}:{number}: {words}"));
            return Ok(None);
        }
        let record = serde_json::from_slice(&line);
        let record = record.with_context(|| format!("{name}:{number}: no record of a log"))?;
        for settings in policies(&record) {
            // The words only: a log with a policy that is not known here is no usage error.
            let known = self.registry.from_toml(settings);
            known.map_err(|error| anyhow!("{name}:{number}: {error}"))?;
        }
        Ok(Some(record))
    }
}
