//! `hostler show`: all that is known about jobs.

use anyhow::Result;
use hostler_live::job::{JobRequest, JobView, Sharing, StartView};
use hostler_live::limits::GRACE_SECS;
use hostler_live::notice::NotifyEvent;
use hostler_live::selection::Selection;
use hostler_live::store::StartEnd;

use crate::chosen::{self, folded, word, word_for};
use crate::cli::Show;
use crate::live::{
    asked, client, energy, exit_words, failed_task, length, moment, print_json, standing,
    task_words,
};
use crate::say::{print, say};

/// All that is known.
pub fn run(args: &Show) -> Result<()> {
    let mut client = client()?;
    let mut jobs = chosen::jobs(&mut client, &args.jobs)?;
    if let [only] = jobs.as_mut_slice() {
        // Lists leave the environment out.
        *only = client.get(&format!("/jobs/{}", only.id))?;
        if args.json && is_one(&args.jobs, only) {
            return print_json(only);
        }
    }
    if args.json {
        return print_json(&jobs);
    }
    if jobs.is_empty() {
        say("none of these jobs is there");
    }
    let whole =
        |job: &JobView| args.jobs.contains(&Selection::Job(job.array_of.unwrap_or(job.id).into()));
    for (number, group) in
        folded(&jobs, |job| whole(job).then_some(()).ok_or(job.id)).iter().enumerate()
    {
        if number > 0 {
            print("")?;
        }
        let lines = if group.len() == 1 { lines(group[0]) } else { array_lines(group) };
        for (name, value) in lines.into_iter().filter(|(_, value)| !value.is_empty()) {
            print(format_args!("{name:15} {value}"))?;
        }
    }
    Ok(())
}

/// Whether the words can mean one job only.
fn is_one(words: &[Selection], job: &JobView) -> bool {
    match words {
        [Selection::Job(_)] => job.array_of != Some(job.id),
        [Selection::Indices { first, last, .. }] => first == last,
        _ => false,
    }
}

/// An array: what is the same for all of it, and where its jobs stand.
fn array_lines(jobs: &[&JobView]) -> Vec<(&'static str, String)> {
    let own =
        ["state", "reason", "started", "ended", "expected start", "expected end", "exit code"];
    let more = ["nodes", "restarts", "steps done", "energy", "array"];
    let mut lines = lines(jobs[0]);
    lines.retain(|(name, _)| !own.contains(name) && !more.contains(name));
    let array = jobs[0].array_of.unwrap_or(jobs[0].id);
    lines[0].1 = format!("{array}, an array of {}", jobs[0].request.array);
    let owned: Vec<JobView> = jobs.iter().map(|job| (*job).clone()).collect();
    let key = |job: &JobView| (job.state, job.reason.clone(), job.exit_code, failed_task(job));
    for group in folded(&owned, key) {
        let word = word_for(&group).filter(|word| word.contains('_'));
        let word = word.unwrap_or_else(|| format!("{} of them", group.len()));
        let first = group[0];
        let mut words = format!("{word}: {}", standing(first.state, first.held_by));
        if let Some(code) = first.exit_code.filter(|_| first.ended.is_some()) {
            words += &format!(", {}{}", exit_words(code), failed_task(first));
        }
        if !first.reason.is_empty() {
            words += &format!(", {}", first.reason);
        }
        lines.push(("jobs", words));
    }
    lines
}

fn lines(job: &JobView) -> Vec<(&'static str, String)> {
    let time = |time: Option<f64>| time.map(moment).unwrap_or_default();
    let array = match (job.array_of, job.array_index) {
        (Some(of), Some(index)) => format!("index {index} of array {of}; its number is {}", job.id),
        _ => String::new(),
    };
    let mut lines = vec![
        ("job", word(job)),
        ("name", job.name.clone()),
        ("tenant", job.tenant.clone()),
        ("user", job.user.clone()),
        ("in Slurm", job.engine_id.clone().unwrap_or_default()),
        ("state", standing(job.state, job.held_by)),
        ("reason", job.reason.clone()),
        ("submitted", moment(job.submitted)),
        ("started", time(job.started)),
        ("ended", time(job.ended)),
        ("expected start", time(job.expected_start)),
        ("expected end", time(job.expected_end)),
        ("exit code", job.exit_code.map(exit_code).unwrap_or_default() + &failed_task(job)),
        ("nodes", job.nodes.join(" ")),
        ("restarts", job.restarts.to_string()),
        ("steps done", number(job.steps_done)),
        ("energy", job.energy_kwh.map(|kwh| format!("{} kWh", energy(kwh))).unwrap_or_default()),
        ("array", array),
    ];
    if job.starts.len() > 1 {
        lines.extend(job.starts.iter().map(|start| ("start", start_words(start))));
    }
    lines.extend(asked_lines(job));
    lines
}

/// A start in a line: its number, when, where, and how it ended.
pub fn start_words(start: &StartView) -> String {
    let (number, nodes) = (start.restart + 1, start.nodes.join(" "));
    let until = start.ended.map(|ended| format!(" to {}", moment(ended))).unwrap_or_default();
    let code = start.exit_code.map(exit_words);
    let how = match (start.end, code) {
        (None, _) => "it goes on".to_owned(),
        (Some(StartEnd::Own), None) => "it ended".to_owned(),
        (Some(StartEnd::Interrupted), _) => "cut short".to_owned(),
        (Some(StartEnd::Own), Some(code)) => {
            code + &task_words(start.failed_rank, start.failed_node.as_deref())
        }
        (Some(StartEnd::Preempted), _) => "stopped in favour of another job".to_owned(),
        (Some(StartEnd::Evicted), _) => "its node was wanted for something else".to_owned(),
        (Some(StartEnd::Cancelled), _) => "cancelled".to_owned(),
        (Some(StartEnd::TimeLimit), _) => "out of time".to_owned(),
        (Some(StartEnd::NodeFailed), _) => "its node failed".to_owned(),
        (Some(StartEnd::NotStarted), _) => "it did not begin".to_owned(),
    };
    format!("{number}: {}{until}, on {nodes}: {how}", moment(start.started))
}

/// What was asked for.
fn asked_lines(job: &JobView) -> Vec<(&'static str, String)> {
    let request = &job.request;
    let span = |secs: Option<u64>| secs.map(|secs| length(secs as f64)).unwrap_or_default();
    let some = |number: u64, unit: &str| match number {
        0 => String::new(),
        _ => format!("{number} {unit}"),
    };
    let yes = |is: bool, word: &str| if is { word.to_owned() } else { String::new() };
    let after: Vec<String> = request.after.iter().map(ToString::to_string).collect();
    let names: Vec<&str> = request.env.keys().map(String::as_str).collect();
    let deadline = request.deadline_secs.map(|secs| job.submitted + secs as f64);
    let placement = match (request.one_node, request.apart) {
        (true, _) => "all tasks on one node",
        (_, true) => "each task on a node of its own",
        (false, false) => "",
    };
    let sharing = match request.sharing {
        Sharing::Never => "",
        Sharing::Willing => "willing",
    };
    vec![
        ("command", request.command.join(" ")),
        ("script", script(&request.script)),
        ("workdir", request.workdir.clone()),
        ("image", request.image.clone()),
        ("mounts", request.mounts.join(" ")),
        ("gpus", asked(job)),
        ("gpu models", request.gpu_models.join(" ")),
        ("gpu memory", some(request.gpu_mem_mib.into(), "MiB")),
        ("sharing", sharing.to_owned()),
        ("cpus", request.cpus.to_string()),
        ("memory", some(request.mem_mib.into(), "MiB")),
        ("placement", placement.to_owned()),
        ("priority", request.priority.to_string()),
        ("group", request.group.clone()),
        ("reservation", request.reservation.clone()),
        ("after", after.join(" ")),
        ("at once", request.array_limit.map(|most| format!("{most} at most")).unwrap_or_default()),
        ("deadline", deadline.map(moment).unwrap_or_default()),
        ("max time", span(request.max_secs)),
        ("estimate", span(request.estimate_secs)),
        ("grace", length(request.grace_secs.unwrap_or(GRACE_SECS) as f64)),
        ("checkpoints", yes(request.checkpoints, "it can be stopped and started again")),
        ("no suspend", yes(request.no_suspend, "it is never suspended in main memory")),
        ("steps", number(request.steps)),
        ("skew", request.skew.map(|skew| skew.to_string()).unwrap_or_default()),
        ("notify", told(request)),
        ("variables", names.join(" ")),
        ("slurm", yes(request.slurm, "its variables are set, too")),
    ]
}

fn number(number: Option<u64>) -> String {
    number.map(|number| number.to_string()).unwrap_or_default()
}

/// Of what is told, and where.
fn told(request: &JobRequest) -> String {
    let word = |event: &NotifyEvent| match event {
        NotifyEvent::Start => "start",
        NotifyEvent::End => "end",
        NotifyEvent::Fail => "fail",
    };
    let mut words: Vec<&str> = request.notify.iter().map(word).collect();
    if !request.mail_to.is_empty() {
        words.extend(["to", &request.mail_to]);
    }
    words.join(" ")
}

/// A code, with the signal that it stands for.
fn exit_code(code: i32) -> String {
    let words = exit_words(code);
    match words.split_once(", ") {
        Some((_, means)) => format!("{code} ({means})"),
        None if words.starts_with("exit") => code.to_string(),
        None => format!("{code} ({words})"),
    }
}

/// The first line of a script and how long it is; `--json` has all of it.
fn script(text: &str) -> String {
    match text.lines().count() {
        0 => String::new(),
        lines => format!("{} ({lines} lines)", text.lines().next().unwrap_or_default()),
    }
}
