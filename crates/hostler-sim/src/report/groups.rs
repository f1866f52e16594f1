//! Jobs by tenant, queue and GPU model: who gets, who waits and whose work is thrown away. The
//! largest groups by name, the rest as one row.

use super::data::{Format, GroupFigures, Report, Run};
use super::format;
use super::html::escape;
use super::page::{TableColumn, heading, row_heading, select, text_heading};

/// Groups shown by name; the rest is one row.
const GROUPS_MAX: usize = 20;

/// What jobs have in common: heading, plural, and where it is.
type Kind = (&'static str, &'static str, fn(&Run) -> &Vec<GroupFigures>);
const KINDS: [Kind; 3] = [
    ("Tenant", "tenants", |run| &run.tenants),
    ("Queue", "queues", |run| &run.queues),
    ("GPU model", "GPU models", |run| &run.models),
];

/// The section of groups: tables for each policy, of which the reader chooses one.
pub fn groups(report: &Report, labels: &[String]) -> String {
    let options: Vec<(String, &str)> =
        (0..labels.len()).map(|run| (format!("tenants-{run}"), labels[run].as_str())).collect();
    let panels: String = report
        .runs
        .iter()
        .enumerate()
        .map(|(run, data)| {
            let tables: String =
                KINDS.iter().map(|kind| group_table(data, &labels[run], kind)).collect();
            format!("<div id=\"tenants-{run}\" class=\"panel\">\n{tables}</div>\n")
        })
        .collect();
    format!(
        "<section aria-labelledby=\"tenants\">\n<h2 id=\"tenants\">Who gets, waits and \
         loses</h2>\n<p class=\"quiet\">Waited is the time without resources of all jobs together; \
         lost GPU hours are work that was thrown away at stops and failures. Choose a heading to \
         sort.</p>\n{}{panels}</section>\n",
        select("tenant-policy", "Policy", "panels", "", &options)
    )
}

fn group_table(run: &Run, label: &str, (title, plural, of): &Kind) -> String {
    let groups = of(run);
    if groups.is_empty() {
        return String::new();
    }
    let shown = largest(groups);
    let column = |heading: &str, format: Format, value: fn(&GroupFigures) -> f64| {
        let values: Vec<Option<f64>> = shown.iter().map(|group| Some(value(group))).collect();
        let texts = format::column(&values, format);
        TableColumn { heading: heading.to_owned(), best: vec![false; values.len()], values, texts }
    };
    let columns = [
        column("Jobs", Format::Count, |group| group.jobs as f64),
        column("GPU hours", Format::Number, |group| group.gpu_hours),
        column("lost GPU hours", Format::Number, |group| group.lost_gpu_hours),
        column("avg JCT", Format::Duration, |group| group.avg_jct_s),
        column("avg wait", Format::Duration, |group| group.avg_wait_s),
        column("p99 wait", Format::Duration, |group| group.p99_wait_s),
        column("waited", Format::Duration, |group| group.waited_s),
    ];
    let headings: String = columns.iter().map(|column| heading(&column.heading)).collect();
    let mut rows = String::new();
    for (index, group) in shown.iter().enumerate() {
        let cells: String = columns.iter().map(|column| column.cell(index)).collect();
        let last = if index == GROUPS_MAX { " class=\"others\"" } else { "" };
        rows.push_str(&format!("<tr{last}>{}{cells}</tr>\n", row_heading(&group.name, None)));
    }
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\n\
         <table class=\"sortable\">\n<caption><span>{}</span></caption>\n\
         <thead><tr>{}{headings}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</div>\n",
        escape(&caption(groups.len(), plural, label)),
        text_heading(title)
    )
}

fn caption(count: usize, plural: &str, label: &str) -> String {
    if count > GROUPS_MAX {
        format!(
            "The {GROUPS_MAX} {plural} with the most GPU hours under {label}, of {count}. In the \
             row of the others, means are weighted by jobs and p99 is the largest."
        )
    } else {
        format!("By GPU hours under {label}.")
    }
}

/// The largest groups, and all the others as one.
fn largest(groups: &[GroupFigures]) -> Vec<GroupFigures> {
    let mut sorted = groups.to_vec();
    sorted.sort_by(|left, right| {
        right.gpu_hours.total_cmp(&left.gpu_hours).then_with(|| left.name.cmp(&right.name))
    });
    if sorted.len() <= GROUPS_MAX {
        return sorted;
    }
    let rest = sorted.split_off(GROUPS_MAX);
    let jobs: u64 = rest.iter().map(|group| group.jobs).sum();
    let sum = |value: fn(&GroupFigures) -> f64| rest.iter().map(value).sum::<f64>();
    let mean = |value: fn(&GroupFigures) -> f64| {
        let weighted = rest.iter().map(|group| value(group) * group.jobs as f64).sum::<f64>();
        weighted / jobs.max(1) as f64
    };
    sorted.push(GroupFigures {
        name: format!("{} others", rest.len()),
        jobs,
        gpu_hours: sum(|group| group.gpu_hours),
        lost_gpu_hours: sum(|group| group.lost_gpu_hours),
        waited_s: sum(|group| group.waited_s),
        avg_jct_s: mean(|group| group.avg_jct_s),
        avg_wait_s: mean(|group| group.avg_wait_s),
        p99_wait_s: rest.iter().map(|group| group.p99_wait_s).fold(0.0, f64::max),
    });
    sorted
}
