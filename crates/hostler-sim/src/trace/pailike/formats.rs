//! What drawn jobs can become: native tables, or the CSV of the published PAI job simulator.

use std::collections::HashMap;
use std::io::{self, Write};
use std::path::Path;

use super::draw::{DrawnJob, Draws, Template};
use super::{PaiLike, habits, uses};
use crate::trace::error::TraceError;
use crate::trace::source::{Compression, cannot};
use crate::trace::table::{JobRow, OptU32, OptU64, TaskRow, Trace};
use crate::trace::text::TextId;
use crate::trace::write::{Packed, write};

/// What `trace gen` writes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Native tables in a folder.
    #[default]
    Native,
    /// One CSV with totals of each job and duration estimates.
    PaiSimEstimate,
    /// One CSV with requests per instance.
    PaiSimGang,
}

impl Format {
    /// Every format with its name on the command line.
    pub const NAMES: [(Format, &'static str); 3] = [
        (Format::Native, "native"),
        (Format::PaiSimEstimate, "pai-sim-estimate"),
        (Format::PaiSimGang, "pai-sim-gang"),
    ];
}

impl PaiLike {
    /// Generates and writes: to a folder (native), or to one file whose name says the packing.
    pub fn write(
        &self,
        path: &Path,
        format: Format,
        packing: Compression,
    ) -> Result<(), TraceError> {
        let draws = self.draw()?;
        let write_csv = match format {
            Format::Native => return write(&draws.to_trace()?, path, packing),
            Format::PaiSimEstimate => Draws::write_estimate,
            Format::PaiSimGang => Draws::write_gang,
        };
        if path.exists() {
            return Err(TraceError::Exists { path: path.to_owned() });
        }
        let written = Packed::create(path, Compression::of(path)).and_then(|mut packed| {
            write_csv(&draws, &mut packed)?;
            packed.finish()
        });
        written.map_err(cannot("write", path))
    }
}

impl Draws {
    /// The native tables, with the machines of the PAI cluster at the scale of the options.
    pub fn to_trace(&self) -> Result<Trace, TraceError> {
        let mut trace = Trace { meta: self.options.meta(), ..Trace::default() };
        trace.set_nodes(&self.options.cluster())?;
        trace.jobs.reserve_exact(self.jobs.len());
        trace.tasks.reserve_exact(self.jobs.len());
        let mut groups = Vec::with_capacity(self.templates.len());
        for group in 0..self.templates.len() {
            groups.push(trace.text.intern(&format!("g{group:06}"))?);
        }
        let worker = trace.text.intern("worker")?;
        let mut queues = vec![TextId::EMPTY; self.users];
        if self.options.habits {
            let of_users = habits::queues(self.options.seed, self.users);
            for (queue, number) in queues.iter_mut().zip(of_users) {
                *queue = trace.text.intern(&format!("q{number:02}"))?;
            }
        }
        for (row, job) in self.jobs.iter().enumerate() {
            let template = &self.templates[job.template as usize];
            let id = match self.options.habits {
                true => format!("{}-{row}", habits::name(template.kind)),
                false => row.to_string(),
            };
            let job_id = trace.text.intern(&id)?;
            let user = trace.text.intern(&format!("u{:04}", job.user))?;
            let models = if template.is_type_asked { template.gpu_type.name() } else { "" };
            let gpu_models = trace.text.intern(models)?;
            trace.jobs.push(JobRow {
                job_id,
                user,
                group_tag: groups[job.template as usize],
                queue: queues[job.user as usize],
                submit_ms: job.submit_secs * 1000,
                status_in_trace: job.status,
                attempts: OptU32::some(1),
                tasks_start: row as u32,
                tasks_count: 1,
                ..JobRow::default()
            });
            trace.tasks.push(task(job, template, [job_id, worker, gpu_models]));
        }
        if self.options.gpu_use {
            uses::fill(self, &mut trace);
        }
        trace.meta.rows = trace.row_counts();
        Ok(trace)
    }

    /// The simulator's CSV "with estimates": requests are totals of the job, and estimates are
    /// medians over the whole trace, the job itself included. For parity, not for claims about
    /// prediction.
    pub fn write_estimate(&self, out: &mut dyn Write) -> io::Result<()> {
        let by_user = self.medians(|job| (job.user, 0));
        let by_group = self.medians(|job| (job.user, job.template));
        writeln!(
            out,
            "job_id,user,num_gpu,num_cpu,num_pod,duration,job_name,submit_time,group,gpu_type,\
             wait_time,user_dur,group_dur,group_gpu_dur"
        )?;
        for (row, job) in self.jobs.iter().enumerate() {
            let template = &self.templates[job.template as usize];
            let Template { count, .. } = *template;
            let gpu = thousandths(u64::from(count * template.gpu_milli));
            let cpu = thousandths(u64::from(count) * u64::from(template.cpu_milli));
            let kind = template.gpu_type.simulator_name();
            let DrawnJob { user, duration_secs, submit_secs, .. } = *job;
            let user_median = halves(by_user[&(user, 0)]);
            // A group has one GPU type, so the medians with and without type are the same.
            let group_median = halves(by_group[&(user, job.template)]);
            writeln!(
                out,
                "{row},u{user:04},{gpu},{cpu},{count}.0,{duration_secs},n{row:06},{submit_secs},\
                 g{:06},{kind},0,{user_median},{group_median},{group_median}",
                job.template
            )?;
        }
        out.flush()
    }

    /// The simulator's CSV "without estimates": requests are per instance.
    pub fn write_gang(&self, out: &mut dyn Write) -> io::Result<()> {
        writeln!(out, "job_id,num_inst,submit_time,num_cpu,num_gpu,gpu_type,duration,user")?;
        for (row, job) in self.jobs.iter().enumerate() {
            let template = &self.templates[job.template as usize];
            let cpu = thousandths(u64::from(template.cpu_milli));
            let gpu = thousandths(u64::from(template.gpu_milli));
            let kind = template.gpu_type.simulator_name();
            let (count, DrawnJob { user, duration_secs, submit_secs, .. }) = (template.count, job);
            writeln!(
                out,
                "{row},{count},{submit_secs},{cpu},{gpu},{kind},{duration_secs},u{user:04}"
            )?;
        }
        out.flush()
    }

    /// Twice the median run time by key, so that the mean of two middle ones stays whole.
    fn medians(&self, key: impl Fn(&DrawnJob) -> (u32, u32)) -> HashMap<(u32, u32), u64> {
        let mut all: HashMap<(u32, u32), Vec<u32>> = HashMap::new();
        for job in &self.jobs {
            all.entry(key(job)).or_default().push(job.duration_secs);
        }
        let twice_median = |mut values: Vec<u32>| {
            values.sort_unstable();
            let upper = values.len() / 2;
            let lower = (values.len() - 1) / 2;
            u64::from(values[lower]) + u64::from(values[upper])
        };
        all.into_iter().map(|(key, values)| (key, twice_median(values))).collect()
    }
}

fn task(job: &DrawnJob, template: &Template, texts: [TextId; 3]) -> TaskRow {
    let [job_id, task, gpu_models] = texts;
    TaskRow {
        job_id,
        task,
        gpu_models,
        count: template.count,
        gang: Some(template.count > 1),
        gpu_milli: OptU32::some(template.gpu_milli),
        cpu_milli: OptU32::some(template.cpu_milli),
        mem_mib: OptU32::some(template.mem_mib),
        duration_ms: OptU64::some(u64::from(job.duration_secs) * 1000),
        ..TaskRow::default()
    }
}

/// Thousandths as a decimal number with one to three places: `6.0`, `0.25`.
fn thousandths(value: u64) -> String {
    let text = format!("{}.{:03}", value / 1000, value % 1000);
    let short = text.trim_end_matches('0');
    if short.ends_with('.') { format!("{short}0") } else { short.to_owned() }
}

/// Halves as a decimal number: `972.5`, `1440.0`.
fn halves(value: u64) -> String {
    format!("{}.{}", value / 2, 5 * (value % 2))
}
