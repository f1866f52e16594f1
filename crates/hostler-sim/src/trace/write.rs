//! Writes the native tables. The same trace gives the same bytes on every platform.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::error::TraceError;
use super::meta::Meta;
use super::read::{INSTANCES, JOBS, NODES, TASKS};
use super::rows::Column;
use super::source::{self, Compression, cannot};
use super::table::{OptU32, OptU64, SHARING_NAMES, Trace};
use super::text::TextId;

/// Writes all tables and `meta.toml` (with row counts) to a folder, which is made if needed and
/// must not hold native tables yet: tables of two traces must never mix.
pub fn write(trace: &Trace, folder: &Path, packing: Compression) -> Result<(), TraceError> {
    std::fs::create_dir_all(folder).map_err(cannot("create", folder))?;
    refuse_existing(folder)?;
    let tables: [(&str, bool, TableWriter); 4] = [
        ("nodes.csv", !trace.nodes.is_empty(), write_nodes),
        ("jobs.csv", true, write_jobs),
        ("tasks.csv", true, write_tasks),
        ("instances.csv", !trace.instances.is_empty(), write_instances),
    ];
    for (name, wanted, write_table) in tables {
        if !wanted {
            continue;
        }
        let path = folder.join(format!("{name}{}", packing.suffix()));
        let written = Packed::create(&path, packing).and_then(|mut packed| {
            write_table(trace, &mut packed)?;
            packed.finish()
        });
        written.map_err(cannot("write", &path))?;
    }
    let meta = Meta { rows: trace.row_counts(), ..trace.meta.clone() };
    let path = folder.join("meta.toml");
    std::fs::write(&path, meta.to_toml()).map_err(cannot("write", &path))
}

type TableWriter = fn(&Trace, &mut dyn Write) -> io::Result<()>;

fn refuse_existing(folder: &Path) -> Result<(), TraceError> {
    for name in ["nodes.csv", "jobs.csv", "tasks.csv", "instances.csv"] {
        if let Some(path) = source::find(folder, name)? {
            return Err(TraceError::Exists { path });
        }
    }
    Ok(())
}

/// A file that packs what is written to it.
pub(super) enum Packed {
    Plain(BufWriter<File>),
    Gzip(flate2::write::GzEncoder<BufWriter<File>>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
}

impl Packed {
    pub(super) fn create(path: &Path, packing: Compression) -> io::Result<Packed> {
        let file = BufWriter::with_capacity(1 << 16, File::create(path)?);
        Ok(match packing {
            Compression::None => Packed::Plain(file),
            // Level 6 and no time stamp: same bytes for the same table.
            Compression::Gzip => {
                Packed::Gzip(flate2::write::GzEncoder::new(file, flate2::Compression::new(6)))
            }
            Compression::Zstd => Packed::Zstd(zstd::Encoder::new(file, 3)?),
        })
    }

    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Packed::Plain(file) => file,
            Packed::Gzip(encoder) => encoder.finish()?,
            Packed::Zstd(encoder) => encoder.finish()?,
        }
        .flush()
    }
}

impl Write for Packed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Packed::Plain(file) => file.write(bytes),
            Packed::Gzip(encoder) => encoder.write(bytes),
            Packed::Zstd(encoder) => encoder.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Packed::Plain(file) => file.flush(),
            Packed::Gzip(encoder) => encoder.flush(),
            Packed::Zstd(encoder) => encoder.flush(),
        }
    }
}

/// A CSV table in the making, field by field.
struct Fields<'a> {
    csv: csv::Writer<&'a mut dyn Write>,
    trace: &'a Trace,
}

impl<'a> Fields<'a> {
    fn new(out: &'a mut dyn Write, trace: &'a Trace, columns: &[Column]) -> io::Result<Self> {
        let mut csv = csv::WriterBuilder::new().flexible(true).from_writer(out);
        csv.write_record(columns.iter().map(|column| column.name))?;
        Ok(Fields { csv, trace })
    }

    fn text(&mut self, id: TextId) -> io::Result<()> {
        Ok(self.csv.write_field(self.trace.str(id))?)
    }

    fn word(&mut self, word: &str) -> io::Result<()> {
        Ok(self.csv.write_field(word)?)
    }

    fn integer(&mut self, value: u64) -> io::Result<()> {
        let mut digits = [0; 20];
        let mut start = digits.len();
        let mut rest = value;
        loop {
            start -= 1;
            digits[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        Ok(self.csv.write_field(&digits[start..])?)
    }

    fn long(&mut self, value: OptU64) -> io::Result<()> {
        match value.get() {
            Some(value) => self.integer(value),
            None => self.word(""),
        }
    }

    fn number(&mut self, value: OptU32) -> io::Result<()> {
        match value.get() {
            Some(value) => self.integer(u64::from(value)),
            None => self.word(""),
        }
    }

    fn end_row(&mut self) -> io::Result<()> {
        Ok(self.csv.write_record(None::<&[u8]>)?)
    }
}

/// Writes `nodes.csv`; the optional columns only when some node has them.
pub fn write_nodes(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let known = |value: OptU32| value.get().is_some();
    let extra = trace
        .nodes
        .iter()
        .any(|node| known(node.islands) || known(node.idle_watts) || known(node.peak_watts));
    let columns = if extra { &NODES[..] } else { &NODES[..13] };
    let mut row = Fields::new(out, trace, columns)?;
    for node in &trace.nodes {
        row.text(node.node_id)?;
        row.text(node.pool)?;
        row.text(node.gpu_model)?;
        row.integer(u64::from(node.gpu_count))?;
        row.number(node.gpu_mem_mib)?;
        row.number(node.cpu_milli)?;
        row.number(node.mem_mib)?;
        row.number(node.nic_mbps)?;
        row.word(node.link.name())?;
        row.text(node.rack)?;
        row.text(node.labels)?;
        row.long(node.up_from_s)?;
        row.long(node.up_to_s)?;
        if extra {
            row.number(node.islands)?;
            row.number(node.idle_watts)?;
            row.number(node.peak_watts)?;
        }
        row.end_row()?;
    }
    row.csv.flush()
}

/// Writes `jobs.csv`; the last column only when some job has it.
pub fn write_jobs(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let extra = trace.jobs.iter().any(|job| job.sharing.is_some());
    let columns = if extra { &JOBS[..] } else { &JOBS[..12] };
    let mut row = Fields::new(out, trace, columns)?;
    for job in &trace.jobs {
        row.text(job.job_id)?;
        row.text(job.user)?;
        row.text(job.group_tag)?;
        row.text(job.queue)?;
        row.text(job.priority_class)?;
        row.integer(job.submit_ms)?;
        row.long(job.deadline_ms)?;
        row.long(job.time_limit_ms)?;
        row.long(job.est_ms)?;
        row.word(job.status_in_trace.name())?;
        row.text(job.workload)?;
        row.number(job.attempts)?;
        if extra {
            let named = SHARING_NAMES.iter().find(|(sharing, _)| *sharing == job.sharing);
            row.word(named.map_or("", |(_, name)| name))?;
        }
        row.end_row()?;
    }
    row.csv.flush()
}

/// Writes `tasks.csv`; the last columns only when some task has them.
pub fn write_tasks(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let known = |value: OptU32| value.get().is_some();
    let mut tasks = trace.tasks.iter();
    let extra = tasks.any(|task| known(task.gpu_use_milli) || known(task.gpu_mem_use_mib));
    let columns = if extra { &TASKS[..] } else { &TASKS[..17] };
    let mut row = Fields::new(out, trace, columns)?;
    for task in &trace.tasks {
        row.text(task.job_id)?;
        row.text(task.task)?;
        row.integer(u64::from(task.count))?;
        row.word(task.gang.map_or("", |gang| if gang { "1" } else { "0" }))?;
        row.number(task.min_count)?;
        row.number(task.max_count)?;
        row.number(task.gpu_milli)?;
        row.text(task.gpu_models)?;
        row.number(task.gpu_mem_mib)?;
        row.number(task.cpu_milli)?;
        row.number(task.mem_mib)?;
        row.long(task.duration_ms)?;
        row.long(task.work)?;
        row.text(task.model)?;
        row.long(task.start_ms)?;
        row.long(task.end_ms)?;
        row.text(task.placement)?;
        if extra {
            row.number(task.gpu_use_milli)?;
            row.number(task.gpu_mem_use_mib)?;
        }
        row.end_row()?;
    }
    row.csv.flush()
}

/// Writes `instances.csv`.
pub fn write_instances(trace: &Trace, out: &mut dyn Write) -> io::Result<()> {
    let mut row = Fields::new(out, trace, &INSTANCES)?;
    for instance in &trace.instances {
        row.text(instance.job_id)?;
        row.text(instance.task)?;
        row.number(instance.index)?;
        row.text(instance.node_id)?;
        row.long(instance.start_ms)?;
        row.long(instance.end_ms)?;
        row.word(instance.status.name())?;
        row.number(instance.cpu_use_milli)?;
        row.number(instance.gpu_use_milli)?;
        row.number(instance.gpu_mem_used_mib)?;
        row.end_row()?;
    }
    row.csv.flush()
}
