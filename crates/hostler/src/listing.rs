//! Lists of jobs for people: arrays folded, notes cut to the screen, states in colour.

use std::io::IsTerminal as _;

use hostler_live::job::{JobState, JobView};

use crate::chosen::{folded, word, word_for};
use crate::live::{
    asked, exit_words, failed_task, field, length, moment, now, standing, state_name, variable,
};

/// Columns of a screen that cannot be asked.
const COLUMNS: u16 = 80;

/// Columns that a note has at least, on however small a screen.
const NOTE_MIN: usize = 12;

/// Characters of a name, and of the names of nodes.
const NAME_MAX: usize = 16;
const NODES_MAX: usize = 16;

/// How a list is shown.
#[derive(Clone, Copy, Debug)]
pub struct Look {
    /// Columns that a line may have.
    pub width: Option<usize>,
    /// Whether states have colours.
    pub colours: bool,
    /// Whether jobs of an array that stand at the same place share a line.
    pub folds: bool,
}

impl Look {
    /// As the reader of standard output wants it: a terminal has a width and colours, a pipe takes
    /// everything. `COLUMNS` and `NO_COLOR` come before what a terminal says.
    pub fn of_stdout(folds: bool) -> Look {
        let is_terminal = std::io::stdout().is_terminal();
        let size = ratatui::crossterm::terminal::size;
        let asked = || size().ok().map(|(width, _)| width).filter(|width| *width > 0);
        let told = variable("COLUMNS").and_then(|columns| columns.parse().ok());
        let width = told.or_else(|| is_terminal.then(|| asked().unwrap_or(COLUMNS).into()));
        let plain = variable("NO_COLOR").is_some() || variable("TERM").as_deref() == Some("dumb");
        Look { width, colours: is_terminal && !plain, folds }
    }
}

/// Lines that jobs take up.
pub fn lines_of(jobs: &[JobView], look: Look) -> usize {
    if look.folds { groups(jobs).len() } else { jobs.len() }
}

fn groups(jobs: &[JobView]) -> Vec<Vec<&JobView>> {
    folded(jobs, |job| (job.state, job.held_by.map(|by| by as u8), job.exit_code))
}

/// Jobs that are not over.
pub fn queue(jobs: &[JobView], look: Look) -> String {
    let now = now();
    let heads = ["JOB", "NAME", "USER", "STATE", "GPUS", "TIME", "NODES", "NOTE"];
    let row = |group: &[&JobView]| {
        let job = group[0];
        let time = length(now - job.started.unwrap_or(job.submitted));
        [
            named(group),
            cut(&job.name, NAME_MAX),
            job.user.clone(),
            state(group),
            asked(job),
            time,
            nodes(group),
            note(group),
        ]
    };
    table(heads, &rows(jobs, look, row), look)
}

/// Jobs that are over, with how long they ran and when they ended.
pub fn history(jobs: &[JobView], look: Look) -> String {
    let heads = ["JOB", "NAME", "USER", "STATE", "GPUS", "RAN", "ENDED (UTC)", "NOTE"];
    let row = |group: &[&JobView]| {
        let job = group[0];
        let ran = |job: &&JobView| Some(job.ended? - job.started?);
        let longest = group
            .iter()
            .filter_map(ran)
            .fold(None, |most: Option<f64>, ran| Some(most.map_or(ran, |most| most.max(ran))));
        let last = group.iter().filter_map(|job| job.ended).fold(0.0, f64::max);
        let ended: String = moment(last).chars().take("2026-11-16 09:12".len()).collect();
        [
            named(group),
            cut(&job.name, NAME_MAX),
            job.user.clone(),
            state(group),
            asked(job),
            longest.map_or("-".to_owned(), length),
            ended,
            note(group),
        ]
    };
    table(heads, &rows(jobs, look, row), look)
}

/// Jobs as CSV, with a head; times are seconds since the epoch.
pub fn csv(jobs: &[JobView]) -> String {
    let heads = "job,array,index,name,user,tenant,state,exit_code,failed_task,failed_node,gpus,\
                 tasks,submitted,started,ended,restarts,energy_kwh,nodes,reason\n";
    let line = |job: &JobView| {
        let number = |number: Option<u32>| number.map(|it| it.to_string()).unwrap_or_default();
        let time = |time: Option<f64>| time.map(|time| time.to_string()).unwrap_or_default();
        let code = job.exit_code.map(|code| code.to_string()).unwrap_or_default();
        let fields = [
            job.id.to_string(),
            number(job.array_of),
            number(job.array_index),
            field(&job.name),
            field(&job.user),
            field(&job.tenant),
            state_name(job.state),
            code,
            number(job.failed_rank),
            field(job.failed_node.as_deref().unwrap_or_default()),
            job.request.gpus.to_string(),
            job.request.tasks.max(1).to_string(),
            job.submitted.to_string(),
            time(job.started),
            time(job.ended),
            job.restarts.to_string(),
            time(job.energy_kwh),
            field(&job.nodes.join(" ")),
            field(&job.reason),
        ];
        fields.join(",") + "\n"
    };
    jobs.iter().map(line).fold(heads.to_owned(), |all, line| all + &line)
}

fn rows(
    jobs: &[JobView],
    look: Look,
    row: impl Fn(&[&JobView]) -> [String; 8],
) -> Vec<(JobState, [String; 8])> {
    if !look.folds {
        return jobs.iter().map(|job| (job.state, row(&[job]))).collect();
    }
    groups(jobs).iter().map(|group| (group[0].state, row(group))).collect()
}

/// The word for jobs of one line. Where they are no neighbours, that of their array.
fn named(group: &[&JobView]) -> String {
    let array = group[0].array_of.map(|array| array.to_string());
    word_for(group).or(array).unwrap_or_else(|| word(group[0]))
}

fn state(group: &[&JobView]) -> String {
    let state = standing(group[0].state, group[0].held_by);
    if group.len() > 1 { format!("{state} x{}", group.len()) } else { state }
}

fn nodes(group: &[&JobView]) -> String {
    let mut nodes: Vec<&str> =
        group.iter().flat_map(|job| &job.nodes).map(String::as_str).collect();
    nodes.sort_unstable();
    nodes.dedup();
    let all = nodes.join(",");
    match nodes.len() {
        0 | 1 => cut(&all, NODES_MAX),
        _ if all.chars().count() <= NODES_MAX => all,
        count => format!("{} +{}", cut(nodes[0], NODES_MAX - 4), count - 1),
    }
}

/// What is worth knowing besides; of several jobs only what is true of all.
fn note(group: &[&JobView]) -> String {
    let first = note_of(group[0]);
    let same = group.iter().all(|job| note_of(job) == first);
    if same { first } else { String::new() }
}

fn note_of(job: &JobView) -> String {
    match (job.exit_code, job.steps_done, job.request.steps) {
        // There is little room in a list: the name of the signal says it.
        (Some(code), _, _) if job.ended.is_some() => {
            let how = exit_words(code);
            let how = format!("{}{}", how.trim_start_matches("killed by "), failed_task(job));
            if job.reason.is_empty() { how } else { format!("{how}: {}", job.reason) }
        }
        (_, Some(done), Some(steps)) if job.reason.is_empty() => format!("step {done}/{steps}"),
        (_, Some(done), None) if job.reason.is_empty() => format!("step {done}"),
        _ => job.reason.clone(),
    }
}

/// A text of at most so many characters; what is left out shows.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    format!("{}…", kept.trim_end())
}

/// Rows under headings. The last column is cut where a line would be too long.
fn table(heads: [&str; 8], rows: &[(JobState, [String; 8])], look: Look) -> String {
    let count = |text: &str| text.chars().count();
    let width = |column: usize| {
        let cells = rows.iter().map(|(_, row)| count(&row[column]));
        cells.chain([count(heads[column])]).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..7).map(width).collect();
    let before: usize = widths.iter().map(|width| width + 2).sum();
    let most = look.width.map(|width| width.saturating_sub(before).max(NOTE_MIN));
    let line = |cells: &[String], colour: Option<&str>| {
        let mut line = String::new();
        for (column, (cell, width)) in cells.iter().zip(&widths).enumerate() {
            let padded = format!("{cell:width$}  ");
            match colour.filter(|_| column == 3) {
                Some(colour) => line += &format!("\u{1b}[{colour}m{padded}\u{1b}[0m"),
                None => line += &padded,
            }
        }
        line += &most.map_or_else(|| cells[7].clone(), |most| cut(&cells[7], most));
        line.trim_end().to_owned()
    };
    let mut lines = vec![line(&heads.map(str::to_owned), None)];
    for (state, row) in rows {
        lines.push(line(row, colour(*state).filter(|_| look.colours)));
    }
    lines.join("\n")
}

/// The colour of a state, as terminals count them.
fn colour(state: JobState) -> Option<&'static str> {
    match state {
        JobState::Running | JobState::Starting => Some("32"),
        JobState::Held | JobState::Queued | JobState::Stopping => Some("33"),
        JobState::Failed | JobState::TimedOut | JobState::Rejected => Some("31"),
        JobState::Cancelled => Some("35"),
        JobState::Finished => None,
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use hostler_live::job::{HeldBy, JobRequest};

    use super::*;

    const PLAIN: Look = Look { width: Some(80), colours: false, folds: true };

    fn job(id: u32, state: JobState, reason: &str) -> JobView {
        JobView {
            id,
            version: 1,
            name: "a-name-that-is-longer-than-its-column".to_owned(),
            tenant: "default".to_owned(),
            user: "ada".to_owned(),
            state,
            held_by: (state == JobState::Held).then_some(HeldBy::Quota),
            reason: reason.to_owned(),
            submitted: now(),
            started: None,
            ended: None,
            expected_start: None,
            expected_end: None,
            exit_code: None,
            nodes: Vec::new(),
            restarts: 0,
            steps_done: None,
            energy_kwh: None,
            array_index: None,
            array_of: None,
            failed_rank: None,
            failed_node: None,
            starts: Vec::new(),
            engine_id: None,
            request: JobRequest { gpus: 1.0, ..JobRequest::default() },
        }
    }

    fn element(array: u32, index: u32, state: JobState) -> JobView {
        let request = JobRequest { array: 5, ..JobRequest::default() };
        let (array_of, array_index) = (Some(array), Some(index));
        JobView { array_of, array_index, request, ..job(array + index, state, "") }
    }

    #[test]
    fn arrays_are_folded_and_notes_fit_the_screen() {
        let long = "tenant `vision` uses all GPUs of its quota, and a few more words";
        let mut jobs = vec![job(3, JobState::Held, long)];
        let state = |index| if index == 2 { JobState::Running } else { JobState::Queued };
        jobs.extend((0..5).map(|index| element(10, index, state(index))));
        jobs.extend((0..5).map(|index| element(20, index, JobState::Queued)));
        jobs.extend((1..4).map(|index| element(30, index, JobState::Queued)));
        let shown = queue(&jobs, PLAIN);
        expect![[r#"
            JOB     NAME              USER  STATE       GPUS  TIME  NODES  NOTE
            3       a-name-that-is-…  ada   held:quota  1     0s           tenant `vision`…
            10      a-name-that-is-…  ada   queued x4   0     0s
            10_2    a-name-that-is-…  ada   running     0     0s
            20      a-name-that-is-…  ada   queued x5   0     0s
            30_1-3  a-name-that-is-…  ada   queued x3   0     0s
        "#]]
        .assert_eq(&format!("{shown}\n"));
        assert!(shown.lines().all(|line| line.chars().count() <= 80), "{shown}");
        assert_eq!(queue(&jobs, Look { folds: false, ..PLAIN }).lines().count(), 15);
        assert!(queue(&jobs, Look { width: None, ..PLAIN }).contains(long));
    }

    #[test]
    fn states_have_colours_where_they_are_wanted() {
        let failed = JobView {
            started: Some(1_763_283_100.0),
            ended: Some(1_763_283_165.0),
            exit_code: Some(137),
            ..job(3, JobState::Failed, "")
        };
        let shown = history(&[failed], Look { colours: true, ..PLAIN });
        assert!(shown.contains("\u{1b}[31mfailed"), "{shown:?}");
        assert!(shown.contains("1m05s"), "{shown}");
        assert!(shown.contains("2025-11-16 08:52"), "{shown}");
        assert!(shown.ends_with("  SIGKILL"), "{shown}");
    }

    #[test]
    fn jobs_that_are_over_are_lines_of_a_spreadsheet() {
        let mut over = job(7, JobState::Failed, "lost, \"quoted\"");
        (over.submitted, over.started, over.ended) = (1.0, Some(2.0), Some(3.5));
        (over.exit_code, over.failed_rank, over.failed_node) =
            (Some(9), Some(1), Some("n2".into()));
        (over.name, over.nodes) = ("=cmd".to_owned(), vec!["n1".to_owned(), "n2".to_owned()]);
        let text = csv(&[over]);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2, "{text}");
        assert_eq!(lines[0].split(',').count(), 19, "{text}");
        let line =
            "7,,,'=cmd,ada,default,failed,9,1,n2,1,1,1,2,3.5,0,,n1 n2,\"lost, \"\"quoted\"\"\"";
        assert_eq!(lines[1], line);
    }
}
