//! `hostler trace`.

use std::io::Write;

use anyhow::{Result, bail};
use hostler_sim::trace::pailike::Format;
use hostler_sim::trace::{
    self, Compression, ConvertOptions, ImportOptions, PaiLike, ReadOptions, Severity, TraceError,
    Zone,
};
use serde_json::json;

use crate::cli::{
    GenCommand, GenPaiLike, Packing, TraceCheck, TraceCommand, TraceConvert, TraceFormat,
};
use crate::progress;

/// Runs one of the trace commands.
pub fn run(command: &TraceCommand) -> Result<()> {
    match command {
        TraceCommand::Check(args) => check(args),
        TraceCommand::Convert(args) => convert(args),
        TraceCommand::Gen(args) => match &args.command {
            GenCommand::PaiLike(args) => pai_like(args),
        },
    }
}

fn check(args: &TraceCheck) -> Result<()> {
    let bar = progress::bytes("reading");
    let mut advance = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let options = ReadOptions { skip_instances: false, progress: Some(&mut advance) };
    let trace = match trace::read(&args.dir, options) {
        Ok(trace) => trace,
        Err(fault) => {
            bar.finish_and_clear();
            if args.json {
                write_faults(&fault)?;
            }
            return Err(fault.into());
        }
    };
    bar.finish_and_clear();
    let findings = trace::check(&trace);
    let errors = findings.iter().filter(|finding| finding.severity() == Severity::Error).count();
    let warnings = findings.len() - errors;
    let mut out = std::io::stdout().lock();
    if args.json {
        let lines: Vec<String> = findings.iter().map(ToString::to_string).collect();
        let result = json!({
            "jobs": trace.jobs.len(),
            "tasks": trace.tasks.len(),
            "nodes": trace.nodes.len(),
            "errors": errors,
            "warnings": warnings,
            "findings": lines,
        });
        writeln!(out, "{}", serde_json::to_string_pretty(&result)?)?;
    } else {
        for finding in &findings {
            writeln!(out, "{finding}")?;
        }
        let (jobs, tasks, nodes) = (trace.jobs.len(), trace.tasks.len(), trace.nodes.len());
        writeln!(
            out,
            "{jobs} jobs, {tasks} tasks, {nodes} nodes: {errors} errors, {warnings} warnings"
        )?;
    }
    if errors > 0 {
        bail!("{errors} faults in `{}`", args.dir.display());
    }
    Ok(())
}

/// Why tables could not be read, as JSON in the shape of a check.
fn write_faults(fault: &TraceError) -> Result<()> {
    let findings: Vec<String> = match fault {
        TraceError::Faults(faults) => faults.list.iter().map(ToString::to_string).collect(),
        fault => vec![fault.to_string()],
    };
    let result = json!({
        "jobs": null,
        "tasks": null,
        "nodes": null,
        "errors": findings.len(),
        "warnings": 0,
        "findings": findings,
    });
    let mut out = std::io::stdout().lock();
    writeln!(out, "{}", serde_json::to_string_pretty(&result)?)?;
    Ok(())
}

fn packing(packing: Packing) -> Compression {
    match packing {
        Packing::None => Compression::None,
        Packing::Gzip => Compression::Gzip,
        Packing::Zstd => Compression::Zstd,
    }
}

fn zone(text: &str) -> Result<Zone, TraceError> {
    let (name, value, expected) = ("time-zone", text.to_owned(), Zone::EXPECTED.to_owned());
    Zone::parse(text).ok_or(TraceError::Option { name, value, expected })
}

fn convert(args: &TraceConvert) -> Result<()> {
    let time_zone = args.time_zone.as_deref().map(zone).transpose()?;
    let options = ConvertOptions {
        from: args.from.clone(),
        packing: packing(args.compress),
        keep_times: args.keep_times,
        strict: args.strict,
        runnable: args.runnable,
        any_gpu: args.any_gpu,
        reading: ImportOptions { span: args.span, time_zone },
    };
    let bar = progress::bytes("reading");
    let mut advance = |done, total| {
        bar.set_length(total);
        bar.set_position(done);
    };
    let converted = trace::convert(&args.input, &args.output, &options, &mut advance)?;
    bar.finish_and_clear();
    let mut out = std::io::stdout().lock();
    for (input, rows) in &converted.rows_read {
        writeln!(out, "read {rows} rows of {input} ({})", converted.importer)?;
    }
    for (reason, rows) in &converted.dropped {
        writeln!(out, "dropped {rows} rows: {reason}")?;
    }
    for (remark, rows) in &converted.noted {
        writeln!(out, "noted {rows} rows: {remark}")?;
    }
    for (table, rows) in &converted.rows {
        writeln!(out, "wrote {rows} rows of {table}")?;
    }
    Ok(())
}

fn pai_like(args: &GenPaiLike) -> Result<()> {
    let format = match args.format {
        TraceFormat::Native => Format::Native,
        TraceFormat::PaiSimEstimate => Format::PaiSimEstimate,
        TraceFormat::PaiSimGang => Format::PaiSimGang,
    };
    let GenPaiLike { jobs, seed, per_hour, scale, gpu_use, habits, .. } = *args;
    let mut options = PaiLike { jobs, seed, per_hour, scale, gpu_use, habits };
    let spinner = progress::spinner("generating");
    if let Some(load) = args.load {
        options = options.at_load(load, &options.cluster())?;
    }
    options.write(&args.out, format, packing(args.compress))?;
    spinner.finish_and_clear();
    let PaiLike { jobs, per_hour, .. } = options;
    let mut out = std::io::stdout().lock();
    writeln!(out, "{jobs} jobs, {per_hour:.1} per hour, in {}", args.out.display())?;
    Ok(())
}
