//! Writes a report of made-up numbers, to look at the page without a simulation.
//!
//! `cargo run -p hostler-sim --example report_sample -- report.html 10` shows ten policies; the
//! numbers are the same every time.

use hostler_sim::report::data::{Better, Column, Format, GroupFigures, Heat, Report, Run, Series};
use hostler_sim::report::{render, table};

const JOBS: usize = 4_000;
const DAYS: f64 = 9.0;
const POLICIES: [(&str, &str, f64, f64, f64); 10] = [
    ("fifo", "first come, first served; the head of the queue blocks", 1.0, 1.0, 0.0),
    ("fifo-backfill", "first come, first served, short jobs fill the gaps", 0.62, 1.1, 0.0),
    ("sjf", "shortest estimated job first", 0.36, 2.4, 0.0),
    ("srtf", "shortest remaining time first, preempts", 0.31, 2.9, 1_204.0),
    ("las", "least GPU time received first, re-ranked every round", 0.41, 1.3, 2_871.0),
    ("priority", "highest priority first, preempts lower ones", 0.74, 1.9, 812.0),
    ("max-min-fairness", "evens out the share every tenant receives", 0.58, 0.8, 1_530.0),
    ("elastic", "grows and shrinks jobs with the free capacity", 0.44, 0.9, 640.0),
    ("gavel", "most throughput over unlike GPUs, by linear program", 0.47, 1.0, 3_310.0),
    ("pack", "fits small jobs onto shared GPUs", 0.52, 1.2, 0.0),
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let path = arguments.get(1).map_or("hostler-report.html", String::as_str);
    let policies = arguments.get(2).and_then(|text| text.parse().ok()).unwrap_or(6);
    let report = sample(policies);
    print!("{}", table::text(&report, false));
    let page = render(&report);
    eprintln!("{path}: {} bytes", page.len());
    std::fs::write(path, page).expect("the path given can be written");
}

fn sample(policies: usize) -> Report {
    Report {
        title: "Which policy suits this cluster?".to_owned(),
        subtitle: "4,000 jobs, 190 machines, 674 GPUs, load 0.9".to_owned(),
        command: "hostler compare --jobs 4000 --load 0.9 --seed 7 --report hostler-report.html"
            .to_owned(),
        columns: columns(),
        runs: POLICIES.iter().take(policies).enumerate().map(run).collect(),
        notes: vec!["Made-up numbers: a sample of the page, not a measurement.".to_owned()],
    }
}

fn columns() -> Vec<Column> {
    use Better::{Higher, Lower, Neither};
    use Format::{Count, Duration, Number, Percent};
    let rows = [
        ("avg_jct", "avg JCT", "time", Lower, Duration, "Mean time from submission to completion."),
        ("p50_jct", "median JCT", "time", Lower, Duration, "Half of the jobs complete within it."),
        ("p99_jct", "p99 JCT", "time", Lower, Duration, "99 of 100 jobs complete within it."),
        ("avg_wait", "avg wait", "time", Lower, Duration, "Mean time from submission to start."),
        ("p99_wait", "p99 wait", "time", Lower, Duration, "99 of 100 jobs start within it."),
        ("makespan", "makespan", "time", Lower, Duration, "First submission to last completion."),
        ("allocated", "GPUs allocated", "share of GPUs", Higher, Percent, "Mean share held."),
        ("used", "GPUs used", "share of GPUs", Higher, Percent, "Mean share that does work."),
        ("fairness", "fairness", "index", Higher, Number, "Jain's index of slow-down by tenant."),
        ("preemptions", "preemptions", "times", Lower, Count, "Jobs stopped to run another."),
        ("finished", "jobs done", "jobs", Neither, Count, "Jobs that completed."),
    ];
    let column =
        |(key, label, unit, better, format, explanation): (&str, &str, &str, _, _, &str)| {
            let [key, label, unit, explanation] =
                [key, label, unit, explanation].map(str::to_owned);
            Column { key, label, unit, explanation, better, format }
        };
    rows.into_iter().map(column).collect()
}

fn run((index, policy): (usize, &(&str, &str, f64, f64, f64))) -> Run {
    let (name, summary, speed, tail, preemptions) = *policy;
    let mut random = Random(index as u64 + 11);
    let mut works: Vec<f64> = Vec::new();
    let mut waits: Vec<f64> = Vec::new();
    for _ in 0..JOBS {
        let work = (7.6 + 1.7 * random.normal()).exp().min(4e5);
        let unlucky = random.next() < 0.04;
        let wait = (8.0 * speed + 1.6 * random.normal()).exp() * speed * 4.0;
        let wait =
            if random.next() < 0.25 { 0.0 } else { wait * if unlucky { 9.0 * tail } else { 1.0 } };
        works.push(work + wait);
        waits.push(wait);
    }
    let allocated = 0.93 - 0.12 * speed + 0.004 * index as f64;
    let values = [
        mean(&works),
        quantile(&works, 0.5),
        quantile(&works, 0.99),
        mean(&waits),
        quantile(&waits, 0.99),
        (DAYS + speed) * 86_400.0,
        allocated,
        allocated * 0.71,
        0.93 - 0.08 * (tail - 0.8),
        preemptions,
        JOBS as f64,
    ];
    Run {
        policy: name.to_owned(),
        settings: if name == "las" { "round_secs = 360".to_owned() } else { String::new() },
        summary: summary.to_owned(),
        values: values.into_iter().map(Some).collect(),
        jct_cdf: cdf(&works),
        wait_cdf: cdf(&waits),
        series: series(&mut random, speed),
        tenants: tenants(&mut random, speed, tail),
        heat: heat(&mut random, speed),
        ..Run::default()
    }
}

fn series(random: &mut Random, speed: f64) -> Series {
    let mut series = Series::default();
    let mut drift = 0.0;
    for step in 0..2_000 {
        let time = step as f64 / 2_000.0;
        drift = drift * 0.995 + random.normal() * 0.012;
        let day = (time * DAYS * std::f64::consts::TAU).sin();
        let fade = ((1.0 - time) * 9.0).clamp(0.0, 1.0);
        let wave = (120.0 + 90.0 * day + 500.0 * drift) * speed * (1.0 + 2.0 * time);
        let allocated = ((0.9 + 0.07 * day + drift * 0.3 - 0.08 * speed) * fade).clamp(0.0, 1.0);
        series.times_s.push(time * DAYS * 86_400.0);
        series.queue.push((wave * fade).max(0.0).round());
        series.allocated.push(allocated);
        series.used.push(allocated * (0.7 + 0.05 * day));
    }
    series
}

fn tenants(random: &mut Random, speed: f64, tail: f64) -> Vec<GroupFigures> {
    let tenant = |index: usize, random: &mut Random| GroupFigures {
        name: format!("team-{}", ["vision", "speech", "search", "ads", "robots"][index % 5])
            + &format!("-{index:02}"),
        jobs: 400 / (index as u64 + 1) + 12,
        gpu_hours: 21_000.0 / (index as f64 + 1.0) * (0.8 + 0.4 * random.next()),
        lost_gpu_hours: 0.0,
        waited_s: 900_000.0 * speed * (0.6 + random.next()),
        avg_jct_s: 20_000.0 * speed * (0.6 + random.next()),
        avg_wait_s: 9_000.0 * speed * (0.6 + random.next()),
        p99_wait_s: 60_000.0 * tail * (0.6 + random.next()),
    };
    (0..34).map(|index| tenant(index, random)).collect()
}

fn heat(random: &mut Random, speed: f64) -> Heat {
    let models = [
        ("H200", 24, 8),
        ("A100-80GB", 48, 4),
        ("A100-40GB", 30, 4),
        ("V100", 58, 2),
        ("T4", 30, 1),
    ];
    let mut heat = Heat {
        times_s: (0..192).map(|step| f64::from(step) * 4_050.0).collect(),
        ..Heat::default()
    };
    for (model, count, gpus) in models {
        for number in 0..count {
            heat.machines.push(format!("{}-{number:03}", model.to_lowercase()));
            heat.groups.push(model.to_owned());
            let mut held = gpus;
            let fault = (random.next() < 0.06).then(|| (random.next() * 170.0) as usize);
            for step in 0..192_usize {
                let busy = if step > 173 { 0.35 } else { 0.97 - 0.12 * speed };
                if random.next() < 0.18 {
                    held = (0..gpus).filter(|_| random.next() < busy).count();
                }
                let down = fault.is_some_and(|from| (from..from + 20).contains(&step));
                heat.cells.push(if down { 255 } else { (held * 100 / gpus) as u8 });
            }
        }
    }
    heat
}

fn cdf(values: &[f64]) -> Vec<(f64, f64)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let count = sorted.len() as f64;
    sorted.into_iter().enumerate().map(|(rank, value)| (value, (rank + 1) as f64 / count)).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

/// SplitMix64: enough for a picture.
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.next()).sum::<f64>() - 6.0
    }
}
