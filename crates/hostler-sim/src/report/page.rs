//! The body of the comparison page, section by section.
//!
//! Tables and findings are complete without scripts, because some mail programs run none; plots
//! appear where scripts run.

use super::changes::changes;
use super::compare::waiting_and_running;
use super::data::{Better, Column, Format, Report, Run};
use super::findings::{findings, rejections};
use super::format;
use super::groups::groups;
use super::html::escape;

/// Colours and dashes of the style sheet; the script counts the same way.
const COLOURS: usize = 6;
const DASHES: usize = 3;
/// Stands where plots will be.
pub const NEEDS_SCRIPT: &str = "<noscript><p class=\"quiet\">Plots need JavaScript.</p></noscript>";

/// Everything between the body tags.
pub fn body(report: &Report) -> String {
    let labels = report.labels();
    let mut sections = vec![summary(report, &labels)];
    if !report.runs.is_empty() {
        sections.push(comparison(report));
        sections.push(distributions());
        sections.push(over_time(report, &labels));
        sections.push(groups(report, &labels));
        sections.push(changes(report, &labels));
        sections.push(machines(report, &labels));
    }
    sections.push(notes(report, &labels));
    let sections = sections.concat();
    format!("{}<main>\n{}{sections}</main>", header(report), contents(&sections))
}

/// Links to the sections of a page, by their headings; nothing for a page of one or two.
pub fn contents(sections: &str) -> String {
    let mut entries = Vec::new();
    for heading in sections.split("<h2 id=\"").skip(1) {
        let Some((id, rest)) = heading.split_once("\">") else { continue };
        let title = rest.split("</h2>").next().unwrap_or_default();
        entries.push(format!("<li><a href=\"#{id}\">{title}</a></li>\n"));
    }
    match entries.len() {
        0..=2 => String::new(),
        _ => format!("<nav aria-label=\"Contents\">\n<ol>\n{}</ol>\n</nav>\n", entries.concat()),
    }
}

/// Title and subtitle of a page.
pub fn header(report: &Report) -> String {
    format!(
        "<header>\n<div>\n<h1>{}</h1>\n<p class=\"subtitle\">{}</p>\n</div>\n\
         <button type=\"button\" id=\"theme\" hidden>Dark</button>\n</header>\n",
        escape(&report.title),
        escape(&report.subtitle)
    )
}

fn summary(report: &Report, labels: &[String]) -> String {
    let picture = match waiting_and_running(report, labels) {
        Some(_) if report.runs.len() > 1 => figure("parts", "How long a job takes"),
        Some(_) | None => String::new(),
    };
    format!("{}{picture}", opening(&findings(report), rejections(report).len()))
}

/// The findings; the first `alarms` of them stand apart, because they put the rest in doubt.
pub fn opening(sentences: &[String], alarms: usize) -> String {
    let (alarms, rest) = sentences.split_at(alarms.min(sentences.len()));
    let paragraph = |class: &str, sentences: &[String]| match sentences {
        [] => String::new(),
        some => format!("<p class=\"{class}\">{}</p>\n", escape(&some.join(" "))),
    };
    format!(
        "<section aria-labelledby=\"findings\">\n<h2 id=\"findings\">Findings</h2>\n\
         {}{}</section>\n",
        paragraph("lead alarm", alarms),
        paragraph("lead", rest)
    )
}

fn comparison(report: &Report) -> String {
    let ranked = |column: &Column| column.better != Better::Neither;
    let options = report.columns.iter().enumerate().filter(|(_, column)| ranked(column));
    let options: Vec<(String, &str)> =
        options.map(|(index, column)| (format!("bar-{index}"), column.label.as_str())).collect();
    format!(
        "<section aria-labelledby=\"policies\">\n<h2 id=\"policies\">Policies compared</h2>\n\
         {}{}</section>\n",
        table_of(report, "policies"),
        if options.is_empty() { String::new() } else { chosen("measure", "Measure", &options) }
    )
}

/// All values of a report, a row for each run; the table is named by the element `labelled_by`.
pub fn table_of(report: &Report, labelled_by: &str) -> String {
    let headings: String = report.columns.iter().map(|column| heading(&column.label)).collect();
    let columns: Vec<TableColumn> =
        (0..report.columns.len()).map(|index| TableColumn::new(report, index)).collect();
    let mut rows = String::new();
    for (run, label) in report.labels().iter().enumerate() {
        let cells: String = columns.iter().map(|column| column.cell(run)).collect();
        rows.push_str(&format!("<tr>{}{cells}</tr>\n", row_heading(label, Some(run))));
    }
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-labelledby=\"{labelled_by}\">\n\
         <table class=\"sortable\">\n<caption><span><span class=\"star\">★</span>marks the best \
         value of a column. Choose a heading to sort.</span></caption>\n\
         <thead><tr>{}{headings}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>\n",
        text_heading("Policy")
    )
}

fn distributions() -> String {
    format!(
        "<section aria-labelledby=\"distributions\">\n<h2 id=\"distributions\">How long jobs \
         take</h2>\n<p class=\"quiet\">Share of jobs that are done, or have started, within a \
         time. Higher and further left is better; the time axis is logarithmic.</p>\n\
         {NEEDS_SCRIPT}\n\
         <div class=\"pair\">\n{}{}</div>\n\
         <h3>Spread</h3>\n<p class=\"quiet\">A box holds the middle half of the jobs, its bar is \
         the median, and the lines beside it reach to the 5th and the 95th percentile; the dot is \
         the mean. Further left is better; the time axis is logarithmic.</p>\n\
         <div class=\"pair\">\n{}{}</div>\n</section>\n",
        figure("jct", "Completion time"),
        figure("wait", "Waiting time"),
        figure("jct-box", "Completion time"),
        figure("wait-box", "Waiting time")
    )
}

fn over_time(report: &Report, labels: &[String]) -> String {
    let panels: String = (0..report.runs.len())
        .map(|run| {
            let series = &report.runs[run].series;
            let caption = format!(
                "{}<span class=\"quiet\">{}</span>",
                swatch_and_name(&labels[run], run),
                average_use(&series.allocated, &series.used)
            );
            format!(
                "<figure class=\"chart small\" data-chart=\"use-{run}\"><figcaption>{caption}\
                 </figcaption></figure>\n"
            )
        })
        .collect();
    format!(
        "<section aria-labelledby=\"time\">\n<h2 id=\"time\">The cluster over time</h2>\n\
         {NEEDS_SCRIPT}\n{}<h3>GPUs allocated and used</h3>\n<p class=\"quiet\">Filled: share of \
         GPUs allocated. Dashed: share of GPUs busy. Numbers are means over the whole time.</p>\n\
         <div class=\"panels\">\n{panels}</div>\n\
         {}</section>\n",
        figure("queue", "Jobs waiting"),
        sharing(report)
    )
}

/// What sharing of GPUs saves and costs, where any are shared.
fn sharing(report: &Report) -> String {
    if !report.runs.iter().any(Run::shares) {
        return String::new();
    }
    let contended = report.runs.iter().any(|run| !run.contended.is_empty());
    let contended = if contended { figure("contended", "GPUs contended") } else { String::new() };
    format!(
        "<h3>Shared GPUs</h3>\n<p class=\"quiet\">GPUs saved: how many more would be held if each \
         job on a shared GPU had one of its own. Contended: the jobs on a GPU would use more than \
         it has.</p>\n<div class=\"pair\">\n{}{contended}</div>\n",
        figure("saved", "GPUs saved")
    )
}

fn average_use(allocated: &[f64], used: &[f64]) -> String {
    let mean = |values: &[f64]| {
        let finite: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
        (!finite.is_empty()).then(|| finite.iter().sum::<f64>() / finite.len() as f64)
    };
    match (mean(allocated), mean(used)) {
        (Some(allocated), Some(used)) => format!(
            "{} allocated, {} used",
            unbroken(&format::value(allocated, Format::Percent)),
            unbroken(&format::value(used, Format::Percent))
        ),
        _ => "no data".to_owned(),
    }
}

fn machines(report: &Report, labels: &[String]) -> String {
    let options: Vec<(String, &str)> =
        (0..report.runs.len()).map(|run| (format!("heat-{run}"), labels[run].as_str())).collect();
    format!(
        "<section aria-labelledby=\"machines\">\n<h2 id=\"machines\">Machines</h2>\n\
         <p class=\"quiet\">Share of each machine's GPUs that is allocated, over time, grouped by \
         GPU model.</p>\n{NEEDS_SCRIPT}\n{}</section>\n",
        chosen("machine-policy", "Policy", &options)
    )
}

/// Remarks, definitions and the command line.
pub fn notes(report: &Report, labels: &[String]) -> String {
    let mut policies = String::new();
    for (run, label) in report.runs.iter().zip(labels) {
        let (label, summary) = (escape(label), escape(&run.summary));
        policies.push_str(&format!("<dt>{label}</dt><dd>{summary}</dd>\n"));
    }
    let columns: String = report.columns.iter().map(definition).collect();
    let remarks: String =
        report.notes.iter().map(|note| format!("<p>{}</p>\n", escape(note))).collect();
    let list = |title: &str, entries: &str| match entries {
        "" => String::new(),
        entries => format!("<h3>{title}</h3>\n<dl>\n{entries}</dl>\n"),
    };
    format!(
        "<section aria-labelledby=\"notes\">\n<h2 id=\"notes\">Notes</h2>\n{remarks}{}{}\
         <h3>Made by</h3>\n<pre class=\"scroll\" tabindex=\"0\"><code>{}</code></pre>\n\
         </section>\n",
        list("Policies", &policies),
        list("Columns", &columns),
        escape(&report.command)
    )
}

fn definition(column: &Column) -> String {
    let direction = match column.better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
        Better::Neither => "neither end is better",
    };
    let separator = if column.unit.is_empty() { "" } else { "; " };
    format!(
        "<dt>{}</dt><dd>{} <span class=\"quiet\">({}{separator}{direction})</span></dd>\n",
        escape(&column.label),
        escape(&column.explanation),
        escape(&column.unit)
    )
}

/// One column of a table: what is shown, what it is sorted by, and where the best values are.
pub struct TableColumn {
    pub heading: String,
    pub values: Vec<Option<f64>>,
    pub texts: Vec<String>,
    pub best: Vec<bool>,
}

impl TableColumn {
    fn new(report: &Report, index: usize) -> TableColumn {
        let column = &report.columns[index];
        let values: Vec<Option<f64>> = report.runs.iter().map(|run| run.value(index)).collect();
        let texts = format::column(&values, column.format);
        TableColumn { heading: column.label.clone(), values, texts, best: report.best(index) }
    }

    /// The cell of one row; a hole has no key and is sorted last.
    pub fn cell(&self, row: usize) -> String {
        let finite = self.values[row].filter(|value| value.is_finite());
        let key = finite.map_or_else(String::new, |value| format!(" data-value=\"{value}\""));
        let text = unbroken(&self.texts[row]);
        if self.best[row] {
            let star = "<span class=\"star\" aria-hidden=\"true\">★</span>";
            return format!(
                "<td{key} class=\"best\">{star}{text}<span class=\"unseen\"> best</span></td>"
            );
        }
        format!("<td{key}>{text}</td>")
    }
}

/// A number stays on one line with its unit.
fn unbroken(text: &str) -> String {
    text.replace(' ', "\u{a0}")
}

/// Heading of a column of numbers.
pub fn heading(label: &str) -> String {
    format!("<th scope=\"col\">{}</th>", escape(label))
}

/// Heading of the first column, which stays in view.
pub fn text_heading(label: &str) -> String {
    format!("<th scope=\"col\" class=\"text\">{}</th>", escape(label))
}

/// Heading of a row, with the colour of its policy where it has one.
pub fn row_heading(name: &str, slot: Option<usize>) -> String {
    let shown = slot.map_or_else(|| escape(name), |slot| swatch_and_name(name, slot));
    format!("<th scope=\"row\">{shown}</th>")
}

fn swatch_and_name(name: &str, slot: usize) -> String {
    let (colour, dash) = (slot % COLOURS, slot / COLOURS % DASHES);
    format!("<span class=\"swatch c{colour} d{dash}\"></span>{}", escape(name))
}

fn figure(chart: &str, caption: &str) -> String {
    format!(
        "<figure class=\"chart\" data-chart=\"{chart}\"><figcaption>{}</figcaption></figure>\n",
        escape(caption)
    )
}

/// A figure whose chart the reader chooses from a list.
fn chosen(id: &str, label: &str, options: &[(String, &str)]) -> String {
    let first = options.first().map_or("", |option| option.0.as_str());
    let target = format!("{id}-figure");
    format!(
        "{}<figure class=\"chart\" id=\"{target}\" data-chart=\"{first}\"></figure>\n",
        select(id, label, "chart", &target, options)
    )
}

/// A labelled list; `kind` tells the script whether it switches panels or the chart of `target`.
pub fn select(
    id: &str,
    label: &str,
    kind: &str,
    target: &str,
    options: &[(String, &str)],
) -> String {
    let entries: String = options
        .iter()
        .map(|(value, text)| format!("<option value=\"{value}\">{}</option>", escape(text)))
        .collect();
    format!(
        "<p class=\"control\"><label for=\"{id}\">{}</label>\
         <select id=\"{id}\" data-switch=\"{kind}\" data-target=\"{target}\">\
         {entries}</select></p>\n",
        escape(label)
    )
}
