//! What the published simulator would have made of the jobs, under several orders.

use super::{Def, percent};
use crate::analyze::figure::{Figure, curve};
use crate::analyze::input::{Input, Task};
use crate::analyze::need::Need;
use crate::analyze::simulator::{PER_MINUTE, Rank, Simulated, SimulatedCluster};
use crate::analyze::stats::{ascending, mean};
use crate::report::chart::Axis;
use crate::report::data::Format;

/// The figure `completion-time`.
pub const COMPLETION_TIME: Def = Def {
    key: "completion-time",
    title: "Completion time by order",
    meaning: "The gap between shortest-job-first and first-in-first-out is what knowing run times \
              is worth at this load.",
    published: "",
    needs: &[Need::Simulator],
    compute: completion_time,
};

/// The figure `schedule`.
pub const SCHEDULE: Def = Def {
    key: "schedule",
    title: "Waiting by order of machines",
    meaning: "Filling machines in order keeps fast ones free for those who need them; balancing \
              spreads load and fills them.",
    published: "",
    needs: &[Need::Simulator],
    compute: schedule,
};

/// Orders of jobs that are compared; the last is what others are measured against.
const RANKS: [(&str, Rank); 5] = [
    ("sjf", Rank::Duration),
    ("sju", Rank::User),
    ("sjg", Rank::Group),
    ("sjgg", Rank::GroupGpu),
    ("fifo", Rank::Submit),
];

/// GPUs of the published program for so many jobs: 6,500 for 20,000.
fn gpus(jobs: usize) -> u32 {
    ((jobs as f64 * 6500.0 / 20_000.0).round() as u32).clamp(8, 6500)
}

/// Parts of that pool on which all orders are compared: a smaller pool is a higher load.
const PARTS: [u32; 4] = [1, 2, 4, 8];

/// Work of all jobs over the time from the first submission to the last, in GPUs.
fn demand(input: &Input) -> f64 {
    let work = |task: &Task| task.gpu_or_zero() / 100.0 * f64::from(task.count) * task.run;
    let work: f64 = input.tasks.iter().map(work).filter(|work| work.is_finite()).sum();
    let times = || input.tasks.iter().map(|task| task.asked).filter(|time| time.is_finite());
    let (first, last) = (times().fold(f64::NAN, f64::min), times().fold(f64::NAN, f64::max));
    work / (last - first).max(1.0)
}

fn completion_time(input: &Input, figure: &mut Figure) {
    let demand = demand(input);
    let words = "GPUs that the jobs keep busy on average at their own times";
    figure.fact("demand", words, demand, Format::Number);
    figure.notes.push(format!(
        "Arrivals are not those of the table: {PER_MINUTE} jobs come each minute, as in the \
         published comparison."
    ));
    let jobs = input.simulator.as_ref().map_or(0, |simulator| simulator.jobs());
    let mut rows = Vec::new();
    for part in PARTS {
        let gpus = (gpus(jobs) / part).max(8);
        let mut values = Vec::new();
        for (name, rank) in RANKS {
            let outcome = simulate(input, rank, SimulatedCluster::Single(gpus), false);
            if let Err(why) = &outcome {
                figure.notes.push(format!("{name} on {gpus} GPUs is left out: {why}."));
            }
            let mean = outcome.map_or(f64::NAN, |outcome| outcome.avg_jct_s);
            let words = format!("{name}: mean completion time on {gpus} GPUs");
            figure.fact(&format!("{name}_{gpus}"), &words, mean, Format::Duration);
            values.push(mean);
        }
        let cut = 1.0 - values[0] / values[RANKS.len() - 1];
        values.push(cut);
        let words = format!("cut of completion time on {gpus} GPUs, sjf against fifo");
        figure.fact(&format!("cut_{gpus}"), &words, cut, Format::Percent);
        // What happens at another rate of arrivals is no news of this workload, unless jobs would
        // queue at their own, too.
        if demand >= f64::from(gpus) {
            let text = format!(
                "Shortest job first would cut mean completion time by {} on a pool of {gpus} GPUs, \
                 if jobs came at {PER_MINUTE} a minute instead of when they did; at their own \
                 times they keep {demand:.1} GPUs busy on average.",
                percent(cut)
            );
            figure.finding(0.8 * cut.max(0.0), cut, jobs, &text);
        }
        rows.push((format!("{gpus} GPUs"), values));
    }
    // Only the largest cut is a finding; the others are in the table.
    figure.findings.sort_by(|one, other| other.importance.total_cmp(&one.importance));
    figure.findings.truncate(1);
    let bars: Vec<(String, f64)> = rows.iter().map(|row| (row.0.clone(), row.1[5])).collect();
    figure.bars("Cut of completion time, sjf against fifo", "cut", Format::Percent, &bars);
    let columns = ["pool", "sjf", "sju", "sjg", "sjgg", "fifo", "cut of sjf against fifo"];
    let mut formats = [Format::Duration; 6];
    formats[5] = Format::Percent;
    figure.table("Mean completion time, published simulator", &columns, &formats, rows);
}

fn schedule(input: &Input, figure: &mut Figure) {
    let mut curves = Vec::new();
    for (name, pack) in [("pack", true), ("balance", false)] {
        let waits = match simulate(input, Rank::Submit, SimulatedCluster::Hetero, pack) {
            Ok(Simulated { avg_wait_s, waits, .. }) => {
                let words = format!("{name}: mean waiting over instances");
                figure.fact(name, &words, avg_wait_s, Format::Duration);
                waits
            }
            Err(why) => {
                figure.notes.push(format!("{name} is left out: {why}."));
                continue;
            }
        };
        let v100 = ascending(waits.iter().filter(|wait| wait.v100).map(|wait| wait.wait_s));
        let words = format!("{name}: mean waiting of V100 jobs");
        figure.fact(&format!("{name}_v100"), &words, mean(&v100), Format::Duration);
        curves.push(curve(name, ascending(waits.iter().map(|wait| wait.wait_s))));
        curves.push(curve(format!("{name}, V100 jobs"), v100));
    }
    let axis = Axis::log("waiting time", Format::Duration, 1.0);
    figure.cdf("Waiting on machines of several types, first in first out", axis, "jobs", curves);
}

fn simulate(
    input: &Input,
    rank: Rank,
    cluster: SimulatedCluster,
    pack: bool,
) -> Result<Simulated, String> {
    input.simulator.as_ref().ok_or("no simulator was given")?.run(rank, cluster, pack)
}
