//! The table of jobs as a file: CSV for everybody, Parquet for data frames.

use std::borrow::Cow;
use std::io::{self, Write};

use hostler_core::units::Time;

use super::{JobLine, MICROS_PER_HOUR};
use crate::lower::Workload;
use crate::parquet::{Cell, Column, Kind, ParquetWriter};

const COLUMNS: [Column; 16] = [
    always("job_id", Kind::Text),
    always("user", Kind::Text),
    always("queue", Kind::Text),
    always("gpus", Kind::Number),
    always("submit_s", Kind::Number),
    sometimes("start_s", Kind::Number),
    sometimes("end_s", Kind::Number),
    always("wait_s", Kind::Number),
    always("run_s", Kind::Number),
    sometimes("jct_s", Kind::Number),
    sometimes("gpu_model", Kind::Text),
    always("gpu_hours", Kind::Number),
    always("lost_gpu_hours", Kind::Number),
    always("restarts", Kind::Count),
    always("preemptions", Kind::Count),
    always("ending", Kind::Text),
];

const fn always(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, optional: false }
}

const fn sometimes(name: &'static str, kind: Kind) -> Column {
    Column { name, kind, optional: true }
}

/// Writes the lines as a CSV table with a heading; times are seconds since the start.
pub fn write_csv(
    lines: &[JobLine],
    workload: &Workload,
    out: &mut dyn Write,
) -> Result<(), csv::Error> {
    let mut table = csv::Writer::from_writer(out);
    table.write_record(COLUMNS.map(|column| column.name))?;
    for cells in lines.iter().filter_map(|line| cells(line, workload)) {
        for cell in cells {
            table.write_field(&*words(cell))?;
        }
        table.write_record(None::<&[u8]>)?;
    }
    Ok(table.flush()?)
}

/// Writes the same table as a Parquet file.
pub fn write_parquet(
    lines: &[JobLine],
    workload: &Workload,
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut table = ParquetWriter::new(out, &COLUMNS)?;
    for cells in lines.iter().filter_map(|line| cells(line, workload)) {
        table.row(&cells)?;
    }
    table.finish()
}

fn cells<'a>(line: &JobLine, workload: &'a Workload) -> Option<[Cell<'a>; COLUMNS.len()]> {
    let trace = workload.trace();
    let job = trace.jobs.get(line.job.index())?;
    let gpus = trace.tasks_of(job).iter();
    let gpus: u64 = gpus.map(|task| u64::from(task.count) * u64::from(task.gpu_milli.or(0))).sum();
    let secs = |time: Time| Cell::Number(time.since(Time::ZERO).secs_f64());
    let hours = |micros: u64| Cell::Number(micros as f64 / MICROS_PER_HOUR);
    let model = line.model.map(|model| &*workload.site.models[model.index()].name);
    Some([
        Cell::Text(trace.str(job.job_id)),
        Cell::Text(trace.str(job.user)),
        Cell::Text(trace.str(job.queue)),
        Cell::Number(gpus as f64 / 1000.0),
        secs(line.submitted),
        line.first_start.map_or(Cell::Empty, secs),
        line.ending.map_or(Cell::Empty, |_| secs(line.end)),
        Cell::Number(line.wait.secs_f64()),
        Cell::Number(line.ran.secs_f64()),
        line.jct_s().map_or(Cell::Empty, Cell::Number),
        model.map_or(Cell::Empty, Cell::Text),
        hours(line.gpu_time),
        hours(line.lost_gpu_time),
        Cell::Count(line.restarts),
        Cell::Count(line.preemptions),
        Cell::Text(line.ending_word()),
    ])
}

fn words(cell: Cell<'_>) -> Cow<'_, str> {
    match cell {
        Cell::Text(text) => text.into(),
        Cell::Number(number) => number.to_string().into(),
        Cell::Count(count) => count.to_string().into(),
        Cell::Empty => "".into(),
    }
}

#[cfg(test)]
mod tests;
