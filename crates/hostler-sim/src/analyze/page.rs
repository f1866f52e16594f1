//! The analysis as one HTML page: findings first, then every figure, then what is missing.

use std::collections::BTreeMap;

use super::Analysis;
use super::against;
use super::figure::{Figure, FigureTable};
use crate::report::chart::Chart;
use crate::report::data::Format;
use crate::report::format;
use crate::report::html::{document, escape};
use crate::report::page::contents;

/// Rows of a table on the page; JSON has all.
const ROWS_MAX: usize = 60;
const NEEDS_SCRIPT: &str = "<noscript><p class=\"quiet\">Plots need JavaScript.</p></noscript>";

/// The whole page; `command` made it.
pub fn page(analysis: &Analysis, command: &str, before: Option<&Analysis>) -> String {
    let mut charts: BTreeMap<String, Chart> = BTreeMap::new();
    let mut sections = vec![findings(analysis)];
    sections.extend(before.map(|before| against::section(analysis, before)));
    for figure in &analysis.figures {
        sections.push(section(figure, &mut charts));
    }
    sections.push(missing(analysis));
    sections.push(notes(analysis, command));
    let sections = sections.concat();
    let title = "Hostler: analysis of a workload";
    let body = format!(
        "<header>\n<div>\n<h1>{title}</h1>\n<p class=\"subtitle\">{}</p>\n</div>\n\
         <button type=\"button\" id=\"theme\" hidden>Dark</button>\n</header>\n\
         <main>\n{NEEDS_SCRIPT}\n{}{sections}</main>",
        escape(&analysis.subtitle),
        contents(&sections)
    );
    document(title, &body, &charts)
}

fn findings(analysis: &Analysis) -> String {
    let entries: String = analysis
        .findings
        .iter()
        .map(|finding| {
            let (key, text) = (finding.figure, escape(&finding.text));
            format!("<li>{text} <a class=\"quiet\" href=\"#{key}\">figure</a></li>\n")
        })
        .collect();
    let entries = match entries.as_str() {
        "" => "<p class=\"lead\">The tables allow no finding.</p>\n".to_owned(),
        entries => format!("<ol class=\"lead\">\n{entries}</ol>\n"),
    };
    format!(
        "<section aria-labelledby=\"findings\">\n<h2 id=\"findings\">Findings</h2>\n{entries}\
         </section>\n"
    )
}

fn section(figure: &Figure, charts: &mut BTreeMap<String, Chart>) -> String {
    let key = figure.key;
    let mut body = String::new();
    if !figure.published.is_empty() {
        let text = escape(figure.published);
        body.push_str(&format!(
            "<p class=\"quiet\">Published for the full PAI trace: {text}</p>\n"
        ));
    }
    for note in &figure.notes {
        body.push_str(&format!("<p class=\"quiet\">{}</p>\n", escape(note)));
    }
    body.push_str(&facts(figure));
    let alone = figure.charts.len() == 1;
    let mut figures = String::new();
    for (index, (caption, chart)) in figure.charts.iter().enumerate() {
        let id = format!("{key}-{index}");
        figures.push_str(&format!(
            "<figure class=\"chart\" data-chart=\"{id}\"><figcaption>{}</figcaption></figure>\n",
            escape(caption)
        ));
        charts.insert(id, chart.clone());
    }
    let wide = alone || figure.charts.iter().any(|(_, chart)| matches!(chart, Chart::Heat(_)));
    body.push_str(&match wide {
        true => figures,
        false => format!("<div class=\"pair\">\n{figures}</div>\n"),
    });
    let tables = figure.tables.iter().filter(|table| table.shown && !table.rows.is_empty());
    let tables: String = tables.map(table).collect();
    if !tables.is_empty() {
        body.push_str(&format!("<details>\n<summary>Numbers</summary>\n{tables}</details>\n"));
    }
    format!(
        "<section aria-labelledby=\"{key}\">\n<h2 id=\"{key}\">{}</h2>\n<p>{}</p>\n{body}\
         </section>\n",
        escape(figure.title),
        escape(figure.meaning)
    )
}

fn facts(figure: &Figure) -> String {
    let known = figure.facts.iter().filter(|fact| fact.value.is_finite());
    let entries: String = known
        .map(|fact| {
            let value = format::value(fact.value, fact.format);
            format!("<dt>{}</dt><dd>{}</dd>\n", escape(&fact.words), escape(&value))
        })
        .collect();
    if entries.is_empty() {
        String::new()
    } else {
        format!("<dl class=\"facts\">\n{entries}</dl>\n")
    }
}

fn table(table: &FigureTable) -> String {
    let headings: String = table
        .columns
        .iter()
        .enumerate()
        .map(|(at, name)| {
            let class = if at == 0 { " class=\"text\"" } else { "" };
            format!("<th scope=\"col\"{class}>{}</th>", escape(name))
        })
        .collect();
    let format_of = |column: usize| table.formats.get(column).copied().unwrap_or(Format::Number);
    let columns = table.columns.len().saturating_sub(1);
    let texts: Vec<Vec<String>> = (0..columns)
        .map(|column| {
            let values = table.rows.iter().map(|row| row.1.get(column).copied());
            format::column(&values.collect::<Vec<_>>(), format_of(column))
        })
        .collect();
    let mut rows = String::new();
    for (at, row) in table.rows.iter().enumerate().take(ROWS_MAX) {
        let cells: String =
            texts.iter().map(|column| format!("<td>{}</td>", escape(&column[at]))).collect();
        rows.push_str(&format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(&row.0)));
    }
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"{name}\">\n<table>\n\
         <caption><span>{name}</span></caption>\n<thead><tr>{headings}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</div>\n",
        name = escape(&table.name)
    )
}

fn missing(analysis: &Analysis) -> String {
    if analysis.not_computed.is_empty() {
        return String::new();
    }
    let entries: String = analysis
        .not_computed
        .iter()
        .map(|missing| {
            let needs = escape(&missing.needs.join("; "));
            format!("<dt>{}</dt><dd>not computed: needs {needs}</dd>\n", missing.key)
        })
        .collect();
    format!(
        "<section aria-labelledby=\"missing\">\n<h2 id=\"missing\">Not computed</h2>\n\
         <dl>\n{entries}</dl>\n</section>\n"
    )
}

fn notes(analysis: &Analysis, command: &str) -> String {
    let count = |(name, rows): (&String, &u64)| {
        format!("<dt>{}</dt><dd>{}</dd>\n", escape(name), format::grouped(*rows as f64, 0))
    };
    let list = |title: &str, rows: &BTreeMap<String, u64>| match rows.is_empty() {
        true => String::new(),
        false => {
            format!("<h3>{title}</h3>\n<dl>\n{}</dl>\n", rows.iter().map(count).collect::<String>())
        }
    };
    format!(
        "<section aria-labelledby=\"notes\">\n<h2 id=\"notes\">Notes</h2>\n\
         <p>Quantiles are by nearest rank. A value that is not known is left out of the figure \
         that needs it.</p>\n{}{}<h3>Made by</h3>\n\
         <pre class=\"scroll\" tabindex=\"0\"><code>{}</code></pre>\n</section>\n",
        list("Rows read", &analysis.rows),
        list("Rows left out", &analysis.left_out),
        escape(command)
    )
}
