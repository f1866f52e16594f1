//! Two policies job by job: who is done sooner, who later, and by how much.

use super::data::{Changed, Changes, Format, Report};
use super::format;
use super::html::escape;
use super::page::{TableColumn, heading, row_heading, select, text_heading};

/// The section of changes against the first policy; nothing where there is but one.
pub fn changes(report: &Report, labels: &[String]) -> String {
    let runs = report.runs.iter().zip(labels).enumerate();
    let changed: Vec<(usize, &Changes, &String)> =
        runs.filter_map(|(at, (run, label))| Some((at, run.changes.as_ref()?, label))).collect();
    let Some(first) = labels.first().filter(|_| !changed.is_empty()) else {
        return String::new();
    };
    let options: Vec<(String, &str)> =
        changed.iter().map(|(at, _, label)| (format!("changes-{at}"), label.as_str())).collect();
    let panels: String = changed
        .iter()
        .map(|(at, changes, label)| {
            let body = panel(changes, label, first);
            format!("<div id=\"changes-{at}\" class=\"panel\">\n{body}</div>\n")
        })
        .collect();
    format!(
        "<section aria-labelledby=\"changes\">\n<h2 id=\"changes\">Job by job against {}</h2>\n\
         {}{panels}</section>\n",
        escape(first),
        select("changes-policy", "Policy", "panels", "", &options)
    )
}

fn panel(changes: &Changes, label: &str, first: &str) -> String {
    let count = |jobs: u64| format::grouped(jobs as f64, 0);
    let same = changes.jobs - changes.sooner - changes.later;
    let middle = match changes.median_s {
        0.0 => "Half of them gain or lose nothing".to_owned(),
        secs => {
            let word = if secs < 0.0 { "sooner" } else { "later" };
            format!("The middle one is {} {word}", format::value(secs.abs(), Format::Duration))
        }
    };
    let words = format!(
        "Of {} jobs that finish under both, {} are done sooner under {label}, {} later and {} at \
         the same time, to the second. {middle}.",
        count(changes.jobs),
        count(changes.sooner),
        count(changes.later),
        count(same)
    );
    format!(
        "<p>{}</p>\n{}{}",
        escape(&words),
        table("Jobs that gain most", &changes.most_sooner, label, first),
        table("Jobs that lose most", &changes.most_later, label, first)
    )
}

fn table(title: &str, jobs: &[Changed], label: &str, first: &str) -> String {
    if jobs.is_empty() {
        return String::new();
    }
    let column = |heading: &str, value: fn(&Changed) -> f64| {
        let values: Vec<Option<f64>> = jobs.iter().map(|job| Some(value(job))).collect();
        let texts = format::column(&values, Format::Duration);
        TableColumn { heading: heading.to_owned(), best: vec![false; values.len()], values, texts }
    };
    let columns = [
        column(&format!("JCT under {first}"), |job| job.before_s),
        column(&format!("under {label}"), |job| job.after_s),
        column("change", |job| job.after_s - job.before_s),
    ];
    let headings: String = columns.iter().map(|column| heading(&column.heading)).collect();
    let rows = jobs.iter().enumerate().map(|(row, job)| {
        let cells: String = columns.iter().map(|column| column.cell(row)).collect();
        format!("<tr>{}{cells}</tr>\n", row_heading(&job.job, None))
    });
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{title}\">\n\
         <table class=\"sortable\">\n<caption><span>{title}.</span></caption>\n\
         <thead><tr>{}{headings}</tr></thead>\n<tbody>\n{}</tbody>\n</table>\n</div>\n",
        text_heading("Job"),
        rows.collect::<String>()
    )
}
