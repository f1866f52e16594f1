//! The generator: determinism, and the marginals it promises.

use std::collections::{BTreeMap, HashMap};

use expect_test::expect;

use super::super::pailike::{Draws, GpuType, PaiLike, Template};
use super::super::table::{OptU32, TaskRow};
use super::super::write::{write_jobs, write_tasks};
use super::super::{Cluster, check, load, scaled};
use super::told;

/// One figure, the interval in which it is accepted, and its name.
struct Row(&'static str, f64, f64, f64);

#[test]
fn marginals_of_three_seeds_are_accepted() {
    for (seed, habits) in [(1, false), (2, false), (3, false), (1, true), (2, true), (3, true)] {
        let options = PaiLike { jobs: 100_000, seed, habits, ..PaiLike::default() };
        let draws = options.draw().unwrap();
        let rows = marginals(&draws);
        let mut table = String::new();
        let mut accepted = true;
        for Row(name, value, low, high) in rows {
            // Kinds of work make fewer, larger draws: seeds differ more.
            let slack = if habits { (high - low) / 2.0 } else { 0.0 };
            let (low, high) = (low - slack, high + slack);
            let ok = (low..=high).contains(&value);
            accepted &= ok;
            let mark = if ok { "" } else { "  <-- outside" };
            table.push_str(&format!("{name:<28} {value:>10.3}  {low:.2} .. {high:.2}{mark}\n"));
        }
        println!("seed {seed}, habits {habits}\n{table}");
        assert!(accepted, "seed {seed}, habits {habits}\n{table}");
    }
}

fn marginals(draws: &Draws) -> Vec<Row> {
    let mut rows = arrival_rows(draws);
    rows.extend(shape_rows(draws));
    rows.extend(duration_rows(draws));
    rows.extend(recurrence_rows(draws));
    rows
}

fn quantile(sorted: &[u64], at: f64) -> f64 {
    sorted[((at * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1] as f64
}

fn arrival_rows(draws: &Draws) -> Vec<Row> {
    let last = draws.jobs[draws.jobs.len() - 1].submit_secs;
    let mut hours = vec![0u64; (last / 3600) as usize];
    for job in &draws.jobs {
        if let Some(hour) = hours.get_mut((job.submit_secs / 3600) as usize) {
            *hour += 1;
        }
    }
    hours.sort_unstable();
    let median = quantile(&hours, 0.5);
    let mean = draws.jobs.len() as f64 / (last as f64 / 3600.0);
    vec![
        Row("jobs per hour, mean", mean, 330.0, 365.0),
        Row("hourly P25/P50", quantile(&hours, 0.25) / median, 0.70, 0.82),
        Row("hourly P75/P50", quantile(&hours, 0.75) / median, 1.15, 1.35),
    ]
}

fn shape_rows(draws: &Draws) -> Vec<Row> {
    let templates = || draws.jobs.iter().map(|job| &draws.templates[job.template as usize]);
    let jobs = draws.jobs.len() as f64;
    let instances: u64 = templates().map(|t| u64::from(t.count)).sum();
    let ganged: u64 = templates().map(|t| u64::from(t.count)).filter(|count| *count > 1).sum();
    let singles = templates().filter(|t| t.count == 1).count() as f64;
    let mut rows = vec![
        Row("instances in gangs %", 100.0 * ganged as f64 / instances as f64, 80.0, 88.0),
        Row("gang = 1, jobs %", 100.0 * singles / jobs, 75.0, 78.0),
    ];
    let gpus = [
        ("gpu 1000 %", 1000, 35.1),
        ("gpu 250 %", 250, 21.6),
        ("gpu 0 %", 0, 17.8),
        ("gpu 500 %", 500, 10.8),
        ("gpu 100 %", 100, 9.3),
    ];
    for (name, milli, target) in gpus {
        let share = 100.0 * templates().filter(|t| t.gpu_milli == milli).count() as f64 / jobs;
        rows.push(Row(name, share, target - 1.5, target + 1.5));
    }
    let gpu_jobs = templates().filter(|t| t.gpu_milli > 0).count() as f64;
    for (name, kind, target) in [
        ("GPU jobs MISC %", GpuType::Misc, 66.7),
        ("GPU jobs T4 %", GpuType::T4, 21.7),
        ("GPU jobs P100 %", GpuType::P100, 7.0),
    ] {
        let share = 100.0 * templates().filter(|t| t.gpu_type == kind).count() as f64 / gpu_jobs;
        rows.push(Row(name, share, target - 2.0, target + 2.0));
    }
    let asked = |milli: fn(&Template) -> u32| -> f64 {
        let on_gpus = templates().filter(|t| t.gpu_milli > 0);
        on_gpus.map(|t| f64::from(t.count) * f64::from(milli(t))).sum()
    };
    let (cpu, gpu) = (asked(|t| t.cpu_milli), asked(|t| t.gpu_milli));
    rows.push(Row("vCPU per GPU asked", cpu / gpu, 14.0, 25.0));
    rows
}

fn duration_rows(draws: &Draws) -> Vec<Row> {
    let mut durations: Vec<u64> =
        draws.jobs.iter().map(|job| u64::from(job.duration_secs)).collect();
    durations.sort_unstable();
    let row = |name, at, target: f64, off: f64| {
        Row(name, quantile(&durations, at), target * (1.0 - off), target * (1.0 + off))
    };
    vec![
        row("duration P50 s", 0.5, 614.0, 0.1),
        row("duration P90 s", 0.9, 12_390.0, 0.1),
        row("duration P99 s", 0.99, 67_166.0, 0.2),
    ]
}

fn recurrence_rows(draws: &Draws) -> Vec<Row> {
    let jobs = draws.jobs.len() as f64;
    let (mut groups, mut users) = (HashMap::<u32, u64>::new(), BTreeMap::<u32, u64>::new());
    for job in &draws.jobs {
        *groups.entry(job.template).or_default() += 1;
        let count = draws.templates[job.template as usize].count;
        *users.entry(job.user).or_default() += u64::from(count);
    }
    let recurring: u64 = groups.values().filter(|size| **size >= 5).sum();
    let mut by_user: Vec<u64> = users.into_values().collect();
    by_user.sort_unstable_by(|a, b| b.cmp(a));
    let top = by_user.len().div_ceil(20);
    let share = by_user[..top].iter().sum::<u64>() as f64 / by_user.iter().sum::<u64>() as f64;
    vec![
        Row("jobs in groups >= 5 %", 100.0 * recurring as f64 / jobs, 62.0, 70.0),
        Row("top 5% of users, instances %", 100.0 * share, 70.0, 85.0),
        Row("group median within 25% %", 100.0 * predicted(draws) / jobs, 68.0, 77.0),
    ]
}

/// Jobs whose run time the median of earlier jobs of the group foretells within a quarter.
fn predicted(draws: &Draws) -> f64 {
    let mut earlier: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut hits = 0.0;
    for job in &draws.jobs {
        let sorted = earlier.entry(job.template).or_default();
        if !sorted.is_empty() {
            let middle = sorted[sorted.len() / 2] + sorted[(sorted.len() - 1) / 2];
            let (median, truth) = (f64::from(middle) / 2.0, f64::from(job.duration_secs));
            hits += f64::from(u8::from((median - truth).abs() <= 0.25 * truth));
        }
        let place = sorted.partition_point(|value| *value < job.duration_secs);
        sorted.insert(place, job.duration_secs);
    }
    hits
}

fn text_of(options: PaiLike, write: impl Fn(&Draws, &mut Vec<u8>)) -> String {
    let mut bytes = Vec::new();
    write(&options.draw().unwrap(), &mut bytes);
    String::from_utf8(bytes).unwrap()
}

/// Recorded: the same options give these bytes on every platform and in every version.
#[test]
fn a_seed_gives_the_same_bytes_for_ever() {
    let options = PaiLike { jobs: 6, seed: 7, per_hour: 345.0, ..PaiLike::default() };
    let native = text_of(options, |draws, out| {
        let trace = draws.to_trace().unwrap();
        write_jobs(&trace, out).unwrap();
        write_tasks(&trace, out).unwrap();
    });
    expect![[r#"
        job_id,user,group_tag,queue,priority_class,submit_ms,deadline_ms,time_limit_ms,est_ms,status_in_trace,workload,attempts
        0,u0000,g000000,,,11000,,,,Completed,,1
        1,u0003,g000001,,,16000,,,,Completed,,1
        2,u0001,g000002,,,21000,,,,Failed,,1
        3,u0000,g000000,,,33000,,,,Completed,,1
        4,u0000,g000000,,,39000,,,,Completed,,1
        5,u0000,g000000,,,43000,,,,Completed,,1
        job_id,task,count,gang,min_count,max_count,gpu_milli,gpu_models,gpu_mem_mib,cpu_milli,mem_mib,duration_ms,work,model,start_ms,end_ms,placement
        0,worker,10,1,,,500,,,2000,8253,77000,,,,,
        1,worker,1,0,,,100,,,8000,10250,525000,,,,,
        2,worker,1,0,,,0,,,6000,29242,169000,,,,,
        3,worker,10,1,,,500,,,2000,8253,79000,,,,,
        4,worker,10,1,,,500,,,2000,8253,59000,,,,,
        5,worker,10,1,,,500,,,2000,8253,80000,,,,,
    "#]].assert_eq(&native);
    expect![[r#"
        job_id,user,num_gpu,num_cpu,num_pod,duration,job_name,submit_time,group,gpu_type,wait_time,user_dur,group_dur,group_gpu_dur
        0,u0000,5.0,20.0,10.0,77,n000000,11,g000000,MISC,0,78.0,78.0,78.0
        1,u0003,0.1,8.0,1.0,525,n000001,16,g000001,MISC,0,525.0,525.0,525.0
        2,u0001,0.0,6.0,1.0,169,n000002,21,g000002,CPU,0,169.0,169.0,169.0
        3,u0000,5.0,20.0,10.0,79,n000003,33,g000000,MISC,0,78.0,78.0,78.0
        4,u0000,5.0,20.0,10.0,59,n000004,39,g000000,MISC,0,78.0,78.0,78.0
        5,u0000,5.0,20.0,10.0,80,n000005,43,g000000,MISC,0,78.0,78.0,78.0
    "#]].assert_eq(&text_of(options, |draws, out| {
        draws.write_estimate(out).unwrap()
    }));
    expect![[r#"
        job_id,num_inst,submit_time,num_cpu,num_gpu,gpu_type,duration,user
        0,10,11,2.0,0.5,MISC,77,u0000
        1,1,16,8.0,0.1,MISC,525,u0003
        2,1,21,6.0,0.0,CPU,169,u0001
        3,10,33,2.0,0.5,MISC,79,u0000
        4,10,39,2.0,0.5,MISC,59,u0000
        5,10,43,2.0,0.5,MISC,80,u0000
    "#]]
    .assert_eq(&text_of(options, |draws, out| draws.write_gang(out).unwrap()));
}

#[test]
fn generated_traces_have_no_findings_at_any_scale() {
    for scale in [1, 10, 100] {
        let trace = PaiLike { jobs: 3000, scale, ..PaiLike::default() }.generate().unwrap();
        assert_eq!(check(&trace), [], "scale {scale}");
        let largest = trace.tasks.iter().map(|task| task.count).max().unwrap();
        assert!(largest <= (400 / scale).max(8), "a gang of {largest} at scale {scale}");
    }
}

#[test]
fn the_rate_moves_arrivals_but_not_the_jobs() {
    let slow = PaiLike { jobs: 300, ..PaiLike::default() };
    let fast = PaiLike { per_hour: 3450.0, ..slow };
    let (slow, fast) = (slow.draw().unwrap(), fast.draw().unwrap());
    assert_eq!(slow.templates, fast.templates);
    let last = |draws: &Draws| draws.jobs[299].submit_secs;
    assert!(last(&fast) * 5 < last(&slow), "{} against {}", last(&fast), last(&slow));
    let bodies =
        |draws: &Draws| draws.jobs.iter().map(|j| (j.user, j.duration_secs)).collect::<Vec<_>>();
    assert_eq!(bodies(&slow), bodies(&fast));
}

#[test]
fn a_wanted_load_is_met() {
    let cluster = scaled(&Cluster::pai(), 10);
    for target in [0.9, 1.3] {
        let base = PaiLike { jobs: 5000, scale: 10, ..PaiLike::default() };
        let trace = base.at_load(target, &cluster).unwrap().generate().unwrap();
        let got = load(&trace, &cluster.nodes).max();
        assert!((got / target - 1.0).abs() < 0.02, "load {got}, wanted {target}");
    }
}

/// Two jobs, by hand: 2 x 1 GPU for 10 s and 1 x 0.5 GPU for 20 s, in 5 s, on 2 GPUs.
#[test]
fn load_is_work_over_capacity_and_time() {
    let nodes = "node_id,gpu_count,cpu_milli\nn,2,4000\n";
    let jobs = "job_id,submit_ms\na,1000\nb,6000\n";
    let tasks =
        "job_id,count,gpu_milli,cpu_milli,duration_ms\na,2,1000,1000,10000\nb,1,500,,20000\n";
    let trace = super::tables(nodes, jobs, tasks, "").unwrap();
    let load = load(&trace, &trace.nodes);
    assert_eq!((load.gpu, load.cpu), (30.0 / 10.0, 20.0 / 20.0));
}

#[test]
fn options_out_of_range_are_named() {
    let base = PaiLike::default();
    let messages = [
        told(PaiLike { jobs: 0, ..base }.draw()),
        told(PaiLike { per_hour: f64::NAN, ..base }.draw()),
        told(PaiLike { scale: 0, ..base }.draw()),
        told(base.at_load(-1.0, &Cluster::lecture())),
    ];
    expect![[r#"
        invalid `jobs`: 0; expected 1 to 10000000
        invalid `per-hour`: NaN; expected 0.0002 to 1e9
        invalid `scale`: 0; expected 1 to 1000
        invalid `load`: -1; expected a number above 0
    "#]]
    .assert_eq(&messages.concat());
}

#[test]
fn real_use_leaves_the_rest_of_a_trace_as_it_is_and_has_the_published_marginals() {
    let options = PaiLike { jobs: 20_000, seed: 7, ..PaiLike::default() };
    let plain = options.generate().unwrap();
    let told = PaiLike { gpu_use: true, ..options }.generate().unwrap();
    let (mut uses, mut over, mut tasks) = (Vec::new(), 0u32, 0u32);
    for (before, task) in plain.tasks.iter().zip(&told.tasks) {
        let none = OptU32::NONE;
        let stripped = TaskRow { gpu_use_milli: none, gpu_mem_use_mib: none, ..*task };
        assert_eq!(TaskRow { gpu_mem_mib: none, ..stripped }, *before);
        if let (Some(used), Some(asked)) = (task.gpu_use_milli.get(), task.gpu_milli.get()) {
            uses.extend(std::iter::repeat_n(u64::from(used), task.count as usize));
            over += u32::from(used > asked);
            tasks += 1;
        }
    }
    uses.sort_unstable();
    // Published: half of the instances use at most 0.042 of a GPU; 2 % of the tasks use more than
    // they ask for.
    let median = quantile(&uses, 0.5);
    assert!((30.0..=55.0).contains(&median), "half of the instances use at most {median}");
    let over = f64::from(over) / f64::from(tasks);
    assert!((0.01..=0.03).contains(&over), "{over} of the tasks use more than they ask for");
}

/// Sets of five jobs and more of one user with one request: how many jobs are in such sets, and
/// the middle of the spreads of their run times (of the logarithm).
fn sets_of_user_and_request(draws: &Draws) -> (f64, f64) {
    let mut sets: BTreeMap<_, Vec<f64>> = BTreeMap::new();
    for job in &draws.jobs {
        let Template { count, gpu_milli, cpu_milli, mem_mib, .. } =
            draws.templates[job.template as usize];
        let request = (job.user, count, gpu_milli, cpu_milli, mem_mib);
        sets.entry(request).or_default().push(libm::log(f64::from(job.duration_secs)));
    }
    sets.retain(|_, logs| logs.len() >= 5);
    let mut spreads: Vec<f64> = sets.values().map(|logs| spread(logs)).collect();
    spreads.sort_by(f64::total_cmp);
    let jobs: usize = sets.values().map(Vec::len).sum();
    (jobs as f64 / draws.jobs.len() as f64, spreads[spreads.len() / 2])
}

fn spread(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| libm::pow(value - mean, 2.0)).sum::<f64>() / count).sqrt()
}

#[test]
fn with_habits_users_come_back_to_what_they_did_and_take_about_as_long() {
    let plain = PaiLike { jobs: 100_000, seed: 7, ..PaiLike::default() };
    let told = PaiLike { habits: true, ..plain };
    let (plain, told) = (plain.draw().unwrap(), told.draw().unwrap());
    let ((in_sets, one_group), (in_more, several)) =
        (sets_of_user_and_request(&plain), sets_of_user_and_request(&told));
    // Without habits a request stands for one group, and its jobs take the same.
    assert!((0.62..0.72).contains(&in_sets) && one_group < 0.1, "{in_sets} {one_group}");
    // Recorded: 0.76 and 1.05.
    assert!((0.85..0.95).contains(&in_more) && (0.4..1.1).contains(&several), "{several}");
    let times = |draws: &Draws| draws.jobs.iter().map(|job| job.submit_secs).collect::<Vec<_>>();
    assert_eq!(times(&plain), times(&told), "habits have nothing to do with arrivals");
}

#[test]
fn with_habits_jobs_have_names_and_queues() {
    let options = PaiLike { jobs: 4, seed: 7, habits: true, ..PaiLike::default() };
    let native = text_of(options, |draws, out| {
        write_jobs(&draws.to_trace().unwrap(), out).unwrap();
    });
    expect![[r#"
        job_id,user,group_tag,queue,priority_class,submit_ms,deadline_ms,time_limit_ms,est_ms,status_in_trace,workload,attempts
        train-a-0,u0000,g000000,q00,,11000,,,,Completed,,1
        tune-b-1,u0003,g000001,q02,,16000,,,,Completed,,1
        finetune-c-2,u0001,g000002,q04,,21000,,,,Failed,,1
        train-a-3,u0000,g000000,q00,,33000,,,,Completed,,1
    "#]].assert_eq(&native);
    let trace = PaiLike { jobs: 3000, ..options }.generate().unwrap();
    assert_eq!(check(&trace), []);
}
