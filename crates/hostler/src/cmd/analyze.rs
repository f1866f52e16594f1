//! `hostler analyze`: what a recorded workload says about its cluster.

use std::io::Write;
use std::path::Path;

use anyhow::{Context, Result};
use hostler_parity::pai2020;
use hostler_sim::analyze::{self, Analysis, Source};
use serde_json::json;

use crate::cli::Analyze;
use crate::progress;

/// Reads the tables, computes every figure that they allow and shows them.
pub fn run(args: &Analyze) -> Result<()> {
    let analysis = analysis(&args.dir)?;
    let before = args.against.as_deref().map(self::analysis).transpose()?;
    let command = std::env::args().collect::<Vec<_>>().join(" ");
    // Neither loses the other: a full disk not the summary, a closed pipe not the report.
    let written = std::fs::write(&args.out, analysis.html(&command, before.as_ref()))
        .with_context(|| format!("cannot write `{}`", args.out.display()));
    let mut out = std::io::stdout().lock();
    let printed = match (args.json, &before) {
        (true, None) => serde_json::to_writer(&mut out, &analysis).map_err(std::io::Error::from),
        (true, Some(before)) => {
            let both = json!({ "now": analysis, "before": before });
            serde_json::to_writer(&mut out, &both).map_err(std::io::Error::from)
        }
        (false, None) => write!(out, "{}", analysis.text()),
        (false, Some(before)) => write!(out, "{}", analysis.text_against(before)),
    };
    let ended = if args.json { writeln!(out) } else { Ok(()) };
    written?;
    eprintln!("report: {}", args.out.display());
    Ok(printed.and(ended)?)
}

fn analysis(path: &Path) -> Result<Analysis> {
    let bar = progress::bytes("reading");
    let mut advance = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let mut input = analyze::read(path, &mut advance)?;
    bar.finish_and_clear();
    if input.source == Source::PaiSimulator {
        let rows = pai2020::read(path, usize::MAX)?;
        input.simulator = Some(Box::new(pai2020::Table(rows)));
    }
    let spinner = progress::spinner("computing");
    let mut step = |done, all| spinner.set_message(format!("computing figure {done} of {all}"));
    let analysis = analyze::analyze(&input, &mut step);
    spinner.finish_and_clear();
    Ok(analysis)
}
