//! The job tables of the original, read as it reads them.

use std::io::Read;
use std::path::Path;

use super::Pai2020Error;
use hostler_sim::trace::source;

/// A job as the original sees it. GPUs and CPUs are per cent, per instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Pai2020Job {
    /// Its number in the file.
    pub job_id: i64,
    /// Instances that start together.
    pub instances: u32,
    /// GPUs of an instance.
    pub gpu: u64,
    /// CPUs of an instance.
    pub cpu: u64,
    /// Seconds.
    pub submit: i64,
    /// Seconds, at least one.
    pub duration: u64,
    /// Whether it runs on V100 nodes only.
    pub v100: bool,
    /// Estimates of the run time by user, by group, by group and GPU type; seconds.
    pub estimates: [Option<f64>; 3],
}

/// Bytes of a table: ten times the official one.
const BYTES_MAX: u64 = 1 << 30;

const ESTIMATES: [&str; 3] = ["user_dur", "group_dur", "group_gpu_dur"];

struct Columns {
    job_id: usize,
    num_gpu: Option<usize>,
    num_cpu: Option<usize>,
    duration: usize,
    gpu_type: Option<usize>,
    num_inst: Option<usize>,
    submit_time: Option<usize>,
    estimates: [Option<usize>; 3],
}

/// Reads at most `most` rows of a table, packed or not.
pub fn read(path: &Path, most: usize) -> Result<Vec<Pai2020Job>, Pai2020Error> {
    read_from(source::unpacked(path)?, &path.display().to_string(), most)
}

/// Reads at most `most` rows from any stream.
pub fn read_from(
    input: impl Read,
    file: &str,
    most: usize,
) -> Result<Vec<Pai2020Job>, Pai2020Error> {
    let mut table = csv::ReaderBuilder::new().flexible(true).from_reader(input.take(BYTES_MAX));
    let fault =
        |line: u64, fault: String| Pai2020Error::Pai2020Job { file: file.to_owned(), line, fault };
    let header = table.headers().map_err(|error| fault(1, error.to_string()))?.clone();
    let columns = Columns::find(&header).map_err(|name| fault(1, format!("no column `{name}`")))?;
    let mut rows = Vec::new();
    for record in table.records() {
        if rows.len() == most {
            break;
        }
        let line = rows.len() as u64 + 2;
        let record = record.map_err(|error| fault(line, error.to_string()))?;
        rows.push(columns.row(&record).map_err(|text| fault(line, text))?);
    }
    Ok(rows)
}

impl Columns {
    fn find(header: &csv::StringRecord) -> Result<Columns, &'static str> {
        let optional = |name: &str| header.iter().position(|column| column.trim() == name);
        let needed = |name: &'static str| optional(name).ok_or(name);
        Ok(Columns {
            job_id: needed("job_id")?,
            num_gpu: optional("num_gpu"),
            num_cpu: optional("num_cpu"),
            duration: needed("duration")?,
            gpu_type: optional("gpu_type"),
            num_inst: optional("num_inst"),
            submit_time: optional("submit_time"),
            estimates: ESTIMATES.map(optional),
        })
    }

    fn row(&self, record: &csv::StringRecord) -> Result<Pai2020Job, String> {
        let text = |column: Option<usize>| {
            column.and_then(|at| record.get(at)).map(str::trim).filter(|text| !text.is_empty())
        };
        let number = |column: Option<usize>, name: &str| match text(column) {
            None => Ok(None),
            Some(text) => {
                let value = text.parse::<f64>().ok().filter(|value| value.is_finite());
                let sane = value.filter(|value| value.abs() < 1e12);
                sane.map(Some).ok_or_else(|| format!("`{name}` is no usable number: `{text}`"))
            }
        };
        let needed = |column: usize, name: &str| {
            number(Some(column), name)?.ok_or_else(|| format!("`{name}` is empty"))
        };
        let percent = |column: Option<usize>, name: &str| match number(column, name)?.unwrap_or(0.0)
        {
            amount if amount >= 0.0 => Ok((amount * 100.0).round_ties_even() as u64),
            amount => Err(format!("`{name}` is negative: {amount}")),
        };
        let mut estimates = [None; 3];
        for (at, column) in self.estimates.iter().enumerate() {
            estimates[at] = number(*column, ESTIMATES[at])?;
        }
        let instances = number(self.num_inst, "num_inst")?.unwrap_or(1.0).round_ties_even();
        if !(1.0..=1e5).contains(&instances) {
            return Err(format!("`num_inst` is out of range: {instances}"));
        }
        Ok(Pai2020Job {
            job_id: needed(self.job_id, "job_id")? as i64,
            instances: instances as u32,
            gpu: percent(self.num_gpu, "num_gpu")?,
            cpu: percent(self.num_cpu, "num_cpu")?,
            submit: number(self.submit_time, "submit_time")?.unwrap_or(1.0).round_ties_even()
                as i64,
            duration: (needed(self.duration, "duration")?.trunc() as u64).max(1),
            v100: text(self.gpu_type) == Some("V100"),
            estimates,
        })
    }
}
