//! The files of the original: traces, shapes of clusters, and GPU times of past jobs.

use std::io::Read;
use std::path::Path;

use hostler_sim::trace::source;

use super::TiresiasError;

/// Bytes of a file: far more than a trace that can be looked at.
const BYTES_MAX: u64 = 1 << 30;

/// CPUs and memory (GB) of a node where a shape is given by name. CPUs are enough for a job that
/// takes all GPUs of the node.
const CPUS_MIN: u32 = 40;
const CPUS_PER_GPU: u32 = 6;
const MEM_GB: u32 = 256;

/// Shapes of the original that have several switches: switches, nodes of each, GPUs and CPUs of a
/// node.
const SWITCHED: [(&str, [u32; 4]); 2] = [("n160g8", [5, 32, 8, 128]), ("n256g8", [8, 32, 8, 64])];

/// A job of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TiresiasJob {
    /// Its name in the file.
    pub id: Box<str>,
    /// GPUs that it asks for.
    pub gpus: u32,
    /// Second of its submission.
    pub submit: u64,
    /// Seconds that it runs.
    pub duration: u64,
}

/// What a cluster looks like: equal nodes under equal switches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClusterShape {
    /// Switches.
    pub switches: u32,
    /// Nodes under each switch.
    pub nodes: u32,
    /// GPUs of a node.
    pub gpus: u32,
    /// CPUs of a node.
    pub cpus: u32,
    /// Memory of a node in GB.
    pub mem_gb: u32,
}

impl ClusterShape {
    /// GPUs of the cluster.
    pub fn all_gpus(&self) -> u32 {
        self.switches.saturating_mul(self.nodes).saturating_mul(self.gpus)
    }

    /// A shape by its name: `n15g4` is one switch with 15 nodes of 4 GPUs.
    fn named(name: &str) -> Option<ClusterShape> {
        if let Some((_, [switches, nodes, gpus, cpus])) =
            SWITCHED.into_iter().find(|(known, _)| *known == name)
        {
            return Some(ClusterShape { switches, nodes, gpus, cpus, mem_gb: MEM_GB });
        }
        let (nodes, gpus) = name.strip_prefix('n')?.split_once('g')?;
        let number = |text: &str| text.parse().ok().filter(|number| (1..100_000).contains(number));
        let (nodes, gpus) = (number(nodes)?, number(gpus)?);
        let cpus = CPUS_MIN.max(CPUS_PER_GPU * gpus);
        Some(ClusterShape { switches: 1, nodes, gpus, cpus, mem_gb: MEM_GB })
    }
}

/// Reads a shape: a file with one row, or a name such as `n15g4`.
pub fn read_shape(name: &str) -> Result<ClusterShape, TiresiasError> {
    if let Some(shape) = ClusterShape::named(name) {
        return Ok(shape);
    }
    let path = Path::new(name);
    if !path.exists() {
        return Err(TiresiasError::Cluster(name.to_owned()));
    }
    let table = Table::read(path)?;
    let columns =
        ["num_switch", "num_node_p_switch", "num_gpu_p_node", "num_cpu_p_node", "mem_p_node"];
    let [switches, nodes, gpus, cpus, mem_gb] = table.columns(columns)?;
    let row = table.rows.first().ok_or_else(|| table.fault(0, "no row".to_owned()))?;
    let number = |at: usize| table.number(0, row, at);
    Ok(ClusterShape {
        switches: number(switches)?,
        nodes: number(nodes)?,
        gpus: number(gpus)?,
        cpus: number(cpus)?,
        mem_gb: number(mem_gb)?,
    })
}

/// Reads a trace, packed or not.
pub fn read(path: &Path) -> Result<Vec<TiresiasJob>, TiresiasError> {
    let table = Table::read(path)?;
    let columns = table.columns(["job_id", "num_gpu", "submit_time", "duration"])?;
    let mut jobs = Vec::with_capacity(table.rows.len());
    for (at, row) in table.rows.iter().enumerate() {
        let [id, gpus, submit, duration] = columns;
        let job = TiresiasJob {
            id: row.get(id).unwrap_or_default().into(),
            gpus: table.number(at, row, gpus)?,
            submit: table.number(at, row, submit)?,
            duration: table.number(at, row, duration)?,
        };
        if job.gpus == 0 || job.duration == 0 {
            let fault = "a job asks for at least one GPU and runs for at least one second";
            return Err(table.fault(at, fault.to_owned()));
        }
        jobs.push(job);
    }
    Ok(jobs)
}

/// Reads GPU seconds of past jobs, one in each line below the header.
pub fn read_samples(path: &Path) -> Result<Vec<u64>, TiresiasError> {
    let file = path.display().to_string();
    let mut text = String::new();
    let fault = |line: u64, fault: String| TiresiasError::Row { file: file.clone(), line, fault };
    let mut input = source::unpacked(path)?.take(BYTES_MAX);
    input.read_to_string(&mut text).map_err(|error| fault(1, error.to_string()))?;
    let lines = text.lines().enumerate().skip(1).filter(|(_, line)| !line.trim().is_empty());
    let number = |(at, line): (usize, &str)| {
        let number = line.trim().parse::<f64>().ok().filter(|number| *number >= 0.0);
        let number = number.map(|number| number as u64);
        number.ok_or_else(|| fault(at as u64 + 1, format!("not a number of seconds: `{line}`")))
    };
    lines.map(number).collect()
}

/// A table with a header.
struct Table {
    file: String,
    header: csv::StringRecord,
    rows: Vec<csv::StringRecord>,
}

impl Table {
    fn read(path: &Path) -> Result<Table, TiresiasError> {
        let input = source::unpacked(path)?.take(BYTES_MAX);
        let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(input);
        let file = path.display().to_string();
        let fault =
            |line: u64, fault: String| TiresiasError::Row { file: file.clone(), line, fault };
        let header = reader.headers().map_err(|error| fault(1, error.to_string()))?.clone();
        let mut rows = Vec::new();
        for row in reader.records() {
            rows.push(row.map_err(|error| fault(rows.len() as u64 + 2, error.to_string()))?);
        }
        Ok(Table { file, header, rows })
    }

    /// Where columns are. Memory has a unit in its name in some files.
    fn columns<const N: usize>(&self, names: [&str; N]) -> Result<[usize; N], TiresiasError> {
        let mut found = [0; N];
        for (at, name) in names.into_iter().enumerate() {
            let called = |column: &str| column.trim().replace("mem_gb_p_node", "mem_p_node");
            let place = self.header.iter().position(|column| called(column) == name);
            found[at] = place.ok_or_else(|| TiresiasError::Row {
                file: self.file.clone(),
                line: 1,
                fault: format!("no column `{name}`"),
            })?;
        }
        Ok(found)
    }

    fn number<Number: std::str::FromStr>(
        &self,
        row: usize,
        record: &csv::StringRecord,
        column: usize,
    ) -> Result<Number, TiresiasError> {
        let text = record.get(column).unwrap_or_default().trim();
        let name = self.header.get(column).unwrap_or_default().trim();
        text.parse().map_err(|_| self.fault(row, format!("`{name}` is no whole number: `{text}`")))
    }

    fn fault(&self, row: usize, fault: String) -> TiresiasError {
        TiresiasError::Row { file: self.file.clone(), line: row as u64 + 2, fault }
    }
}
