//! The traces of the original: values between tabs, in two layouts, without a header.

use std::io::Read;
use std::path::Path;

use super::GavelError;
use hostler_sim::trace::source;

/// Bytes of a trace: a thousand times the largest published one.
const BYTES_MAX: u64 = 1 << 30;

/// Weights further from 1 than this are beyond what solvers can tell from none.
const WEIGHT_MIN: f64 = 1e-6;
const WEIGHT_MAX: f64 = 1e6;

/// A job as the original sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct GavelJob {
    /// What the table of throughputs calls it.
    pub kind: String,
    /// Steps to do.
    pub steps: u64,
    /// GPUs, all of one type.
    pub gpus: u32,
    /// Weight.
    pub weight: f64,
    /// Seconds.
    pub arrival: f64,
    /// How many times as long as on the first GPU type it may take, if that matters.
    pub slo: Option<f64>,
}

/// Reads a trace, packed or not.
pub fn read(path: &Path) -> Result<Vec<GavelJob>, GavelError> {
    read_from(source::unpacked(path)?, &path.display().to_string())
}

/// Reads a trace from any stream.
pub fn read_from(input: impl Read, file: &str) -> Result<Vec<GavelJob>, GavelError> {
    let fault = |line: usize, fault: String| GavelError::GavelJob {
        file: file.to_owned(),
        line: line as u64 + 1,
        fault,
    };
    let mut text = String::new();
    let read = input.take(BYTES_MAX).read_to_string(&mut text);
    read.map_err(|error| fault(0, error.to_string()))?;
    let mut rows: Vec<GavelJob> = Vec::new();
    for (at, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let row = row(line).map_err(|words| fault(at, words))?;
        if rows.last().is_some_and(|last| last.arrival > row.arrival) {
            return Err(fault(at, "arrives before the line above it; sort the trace".to_owned()));
        }
        rows.push(row);
    }
    Ok(rows)
}

fn row(line: &str) -> Result<GavelJob, String> {
    let fields: Vec<&str> = line.split('\t').map(str::trim).collect();
    let (steps, gpus, weight, slo, arrival) = match fields.len() {
        10 => (5, 6, Some(7), Some(8), 9),
        7 => (4, 6, None, None, 5),
        found => return Err(format!("{found} columns; expected 10 or 7")),
    };
    let bad = |name: &str, at: usize| format!("invalid `{name}`: `{}`", fields[at]);
    let whole = |name: &str, at: usize| {
        let number: Option<u64> = fields[at].parse().ok();
        number.filter(|number| *number > 0).ok_or_else(|| bad(name, at))
    };
    let seconds: Option<f64> = fields[arrival].parse().ok();
    let seconds = seconds.filter(|secs| secs.is_finite() && (0.0..=1e12).contains(secs));
    let gpus =
        u32::try_from(whole("scale_factor", gpus)?).map_err(|_| bad("scale_factor", gpus))?;
    let weight = weight.map_or(Ok(1.0), |at| {
        let number: Option<f64> = fields[at].parse().ok();
        let sane = number.filter(|number| (WEIGHT_MIN..=WEIGHT_MAX).contains(number));
        sane.ok_or_else(|| bad("priority_weight", at))
    })?;
    let slo = slo.and_then(|at| fields[at].parse::<f64>().ok());
    Ok(GavelJob {
        kind: fields[0].to_owned(),
        steps: whole("total_steps", steps)?,
        gpus,
        weight,
        arrival: seconds.ok_or_else(|| bad("arrival_time", arrival))?,
        slo: slo.filter(|slo| slo.is_finite() && *slo > 0.0),
    })
}
