//! What the published simulator would have made of the jobs, under several orders.

use super::{Def, percent};
use crate::analyze::figure::Figure;
use crate::analyze::input::Input;
use crate::analyze::need::Need;
use crate::parity::pai2020::{self, Cluster, Options, Rank};
use crate::report::data::Format;

pub const COMPLETION_TIME: Def = Def {
    key: "completion-time",
    title: "Completion time by order",
    meaning: "The gap between shortest-job-first and first-in-first-out is what knowing run times \
              is worth at this load.",
    published: "",
    needs: &[Need::Simulator],
    compute: completion_time,
};

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

/// Arrivals in a minute, as the published program has by default.
const PER_MINUTE: u32 = 1000;

/// GPUs for which the published program is run with this many jobs: 6,500 for 20,000.
fn gpus(jobs: usize) -> u32 {
    ((jobs as f64 * 6500.0 / 20_000.0).round() as u32).clamp(8, 6500)
}

fn completion_time(input: &Input, figure: &mut Figure) {
    let gpus = gpus(input.simulator.len());
    figure.fact("gpus", "GPUs of the pool", f64::from(gpus), Format::Count);
    let mut rows = Vec::new();
    for (name, rank) in RANKS {
        let cluster = Cluster::Single(gpus);
        let options = Options { rank, cluster, per_minute: Some(PER_MINUTE), sample: None };
        match simulate(input, &options, false) {
            Ok(outcome) => {
                let words = format!("{name}: mean completion time");
                figure.fact(name, &words, outcome.avg_jct_s, Format::Duration);
                let row = vec![outcome.avg_jct_s, outcome.avg_wait_s, outcome.makespan_s as f64];
                rows.push((name.to_owned(), row));
            }
            Err(why) => figure.notes.push(format!("{name} is left out: {why}.")),
        }
    }
    let (sjf, fifo) = (figure.value("sjf"), figure.value("fifo"));
    if let (Some(sjf), Some(fifo)) = (sjf, fifo) {
        let cut = 1.0 - sjf / fifo;
        figure.fact("cut", "cut of completion time, sjf against fifo", cut, Format::Percent);
        let text = format!(
            "Shortest job first would cut mean completion time by {} on a pool of {gpus} GPUs.",
            percent(cut)
        );
        figure.finding(0.8 * cut.max(0.0), cut, text);
    }
    figure.table(
        "Published simulator, one pool",
        &["order", "mean completion", "mean waiting", "makespan"],
        &[Format::Duration, Format::Duration, Format::Duration],
        rows,
    );
}

fn schedule(input: &Input, figure: &mut Figure) {
    let mut rows = Vec::new();
    for (name, pack) in [("pack", true), ("balance", false)] {
        let (rank, cluster) = (Rank::Submit, Cluster::Hetero);
        let options = Options { rank, cluster, per_minute: Some(PER_MINUTE), sample: None };
        match simulate(input, &options, pack) {
            Ok(outcome) => {
                let words = format!("{name}: mean waiting");
                figure.fact(name, &words, outcome.avg_wait_s, Format::Duration);
                rows.push((name.to_owned(), vec![outcome.avg_wait_s, outcome.avg_jct_s]));
            }
            Err(why) => figure.notes.push(format!("{name} is left out: {why}.")),
        }
    }
    figure.table(
        "Published simulator, machines of several types, first in first out",
        &["order of machines", "mean waiting", "mean completion"],
        &[Format::Duration, Format::Duration],
        rows,
    );
}

fn simulate(input: &Input, options: &Options, pack: bool) -> Result<pai2020::Outcome, String> {
    let policies = input.policies.as_ref().ok_or("no policies were given")?;
    let policy = policies(options.rank, pack);
    pai2020::run(&input.simulator, options, policy).map_err(|error| error.to_string())
}
