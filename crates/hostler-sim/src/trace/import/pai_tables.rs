//! The seven tables of Alibaba's PAI trace of 2020, row by row.
//!
//! The files have no header line; a `.header` file beside one names its columns, otherwise the
//! published order holds. Rows are handed over as they are read and never collected, because the
//! largest table has 7.5 million. What rows mean together is for the caller.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::trace::error::{Fault, Faults, Problem, TraceError};
use crate::trace::limits::ROWS_MAX;
use crate::trace::rows::Records;
use crate::trace::source::{self, Meter};

/// A table of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PaiTable {
    /// Jobs: who submitted what when.
    Job,
    /// Tasks: roles of jobs and what an instance asks for.
    Task,
    /// Instances: where and when they ran.
    Instance,
    /// Sensors: what instances used.
    Sensor,
    /// Groups: which jobs do the same again.
    GroupTag,
    /// Machines.
    MachineSpec,
    /// What machines did while an instance ran.
    MachineMetric,
}

impl PaiTable {
    /// Every table with its file name (without `.csv`) and its columns in the published order.
    pub const ALL: [(PaiTable, &'static str, &'static [&'static str]); 7] = [
        (PaiTable::Job, "pai_job_table", &JOB),
        (PaiTable::Task, "pai_task_table", &TASK),
        (PaiTable::Instance, "pai_instance_table", &INSTANCE),
        (PaiTable::Sensor, "pai_sensor_table", &SENSOR),
        (PaiTable::GroupTag, "pai_group_tag_table", &GROUP_TAG),
        (PaiTable::MachineSpec, "pai_machine_spec", &MACHINE_SPEC),
        (PaiTable::MachineMetric, "pai_machine_metric", &MACHINE_METRIC),
    ];

    /// File name without ending.
    pub fn name(self) -> &'static str {
        PaiTable::ALL[self as usize].1
    }

    fn columns(self) -> &'static [&'static str] {
        PaiTable::ALL[self as usize].2
    }
}

const JOB: [&str; 6] = ["job_name", "inst_id", "user", "status", "start_time", "end_time"];
const TASK: [&str; 10] = [
    "job_name",
    "task_name",
    "inst_num",
    "status",
    "start_time",
    "end_time",
    "plan_cpu",
    "plan_mem",
    "plan_gpu",
    "gpu_type",
];
const INSTANCE: [&str; 9] = [
    "job_name",
    "task_name",
    "inst_name",
    "worker_name",
    "inst_id",
    "status",
    "start_time",
    "end_time",
    "machine",
];
const SENSOR: [&str; 16] = [
    "job_name",
    "task_name",
    "worker_name",
    "inst_id",
    "machine",
    "gpu_name",
    "cpu_usage",
    "gpu_wrk_util",
    "avg_mem",
    "max_mem",
    "avg_gpu_wrk_mem",
    "max_gpu_wrk_mem",
    "read",
    "write",
    "read_count",
    "write_count",
];
const GROUP_TAG: [&str; 5] = ["inst_id", "user", "gpu_type_spec", "group", "workload"];
const MACHINE_SPEC: [&str; 5] = ["machine", "gpu_type", "cap_cpu", "cap_mem", "cap_gpu"];
const MACHINE_METRIC: [&str; 12] = [
    "worker_name",
    "machine",
    "start_time",
    "end_time",
    "machine_cpu_iowait",
    "machine_cpu_kernel",
    "machine_cpu_usr",
    "machine_gpu",
    "machine_load_1",
    "machine_net_receive",
    "machine_num_worker",
    "machine_cpu",
];

/// The tables that a folder holds.
pub type PaiFiles = BTreeMap<PaiTable, PathBuf>;

/// Finds the tables of a folder, packed or not. A part of a table may carry a word in its name,
/// as in `pai_instance_table.sample.csv.gz`.
pub fn find_pai_tables(folder: &Path) -> Result<PaiFiles, TraceError> {
    let entries = std::fs::read_dir(folder).map_err(source::cannot("read", folder))?;
    let mut paths = Vec::new();
    for entry in entries {
        paths.push(entry.map_err(source::cannot("read", folder))?.path());
    }
    paths.sort();
    let mut found = PaiFiles::new();
    for path in paths.into_iter().filter(|path| path.is_file()) {
        let Some(table) = table_of(&source::file_name(&path)) else { continue };
        if let Some(first) = found.insert(table, path.clone()) {
            return Err(TraceError::Ambiguous { first, second: path });
        }
    }
    Ok(found)
}

fn table_of(file: &str) -> Option<PaiTable> {
    let name = file.strip_suffix(".gz").or_else(|| file.strip_suffix(".zst")).unwrap_or(file);
    let stem = name.strip_suffix(".csv")?;
    let known =
        |known: &str| stem.strip_prefix(known).is_some_and(|r| r.is_empty() || r.starts_with('.'));
    PaiTable::ALL.into_iter().find(|(_, name, _)| known(name)).map(|(table, ..)| table)
}

/// One row; fields are named by their place in the published order.
pub struct PaiRow<'r> {
    record: &'r csv::ByteRecord,
    places: &'r [usize],
}

/// Why a row is left out.
pub type Reason = &'static str;

impl<'r> PaiRow<'r> {
    /// The bytes of a field; empty when the file has no such column.
    pub fn bytes(&self, column: usize) -> &'r [u8] {
        self.record.get(self.places[column]).unwrap_or_default()
    }

    /// A field as text.
    pub fn text(&self, column: usize) -> Result<&'r str, Reason> {
        std::str::from_utf8(self.bytes(column)).map_err(|_| "a text is not UTF-8")
    }

    /// A field that names the row.
    pub fn name(&self, column: usize) -> Result<&'r [u8], Reason> {
        Some(self.bytes(column)).filter(|name| !name.is_empty()).ok_or("a name is missing")
    }

    /// A finite number of at least 0, or nothing where the field is empty.
    pub fn number(&self, column: usize) -> Result<Option<f64>, Reason> {
        let text = self.text(column)?;
        if text.is_empty() {
            return Ok(None);
        }
        let value: f64 = text.parse().map_err(|_| "a number cannot be read")?;
        match value.is_finite() && value >= 0.0 {
            true => Ok(Some(value)),
            false => Err("a number is negative or not finite"),
        }
    }

    /// A time in seconds; 0 stands for "not known", as does an empty field.
    pub fn time(&self, column: usize) -> Result<Option<f64>, Reason> {
        let time = self.number(column)?.filter(|time| *time > 0.0);
        match time.is_some_and(|time| time > TIME_SECS_MAX) {
            true => Err("a time is too large"),
            false => Ok(time),
        }
    }
}

/// Largest time that is believed: ten thousand years.
const TIME_SECS_MAX: f64 = 3.2e11;

/// Reads a table and hands over every row; rows refused by `take` are counted under their reason.
/// Returns the number of rows read.
pub(crate) fn each_pai_row(
    table: PaiTable,
    path: &Path,
    meter: &mut Meter<'_>,
    dropped: &mut BTreeMap<String, u64>,
    take: &mut dyn FnMut(&PaiRow<'_>) -> Result<(), Reason>,
) -> Result<u64, TraceError> {
    let file = source::file_name(path);
    let (places, width) = places(table, path)?;
    let mut input = source::open(path, meter)?;
    let mut records = Records::new(&mut *input);
    let mut record = csv::ByteRecord::new();
    let mut rows: u64 = 0;
    loop {
        match records.next(&mut record) {
            Ok(true) => {}
            Ok(false) => return Ok(rows),
            Err((line, problem)) => return Err(broken(file, line, problem)),
        }
        let first = table.columns()[0].as_bytes();
        if rows == 0 && record.get(places[0]) == Some(first) {
            continue; // a header line that somebody added
        }
        if rows as usize >= ROWS_MAX {
            return Err(broken(file, rows, Problem::TooManyRows));
        }
        rows += 1;
        let taken = match record.len() == width {
            true => take(&PaiRow { record: &record, places: &places }),
            false => Err("wrong number of fields"),
        };
        if let Err(reason) = taken {
            *dropped.entry(format!("{}: {reason}", table.name())).or_default() += 1;
        }
    }
}

fn broken(file: String, line: u64, problem: Problem) -> TraceError {
    let fault = Fault { file, line, column: String::new(), value: String::new(), problem };
    TraceError::Faults(Faults { list: vec![fault], stopped: false })
}

const ABSENT: usize = usize::MAX;

/// Where each column stands, and how many fields a row has.
fn places(table: PaiTable, path: &Path) -> Result<(Vec<usize>, usize), TraceError> {
    let columns = table.columns();
    let header = path.with_file_name(format!("{}.header", table.name()));
    if !header.is_file() {
        return Ok(((0..columns.len()).collect(), columns.len()));
    }
    let text = source::read_small(&header)?;
    let names: Vec<&str> = text.trim().split(',').map(str::trim).collect();
    let place = |column: &&str| names.iter().position(|name| name == column).unwrap_or(ABSENT);
    let places: Vec<usize> = columns.iter().map(place).collect();
    if places[0] == ABSENT {
        let column = columns[0].to_owned();
        let (file, problem) = (source::file_name(&header), Problem::MissingColumn);
        let fault = Fault { file, line: 1, column, value: String::new(), problem };
        return Err(TraceError::Faults(Faults { list: vec![fault], stopped: false }));
    }
    Ok((places, names.len()))
}
