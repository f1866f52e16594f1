//! The tenants of each policy, the largest by name and the rest as one row.

use super::data::{Format, Report, Run, TenantFigures};
use super::format;
use super::html::escape;
use super::page::{TableColumn, heading, row_heading, select, text_heading};

/// Tenants shown by name; the rest is one row.
const TENANTS_MAX: usize = 20;

/// The section of tenants: one table per policy, of which the reader chooses one.
pub fn tenants(report: &Report, labels: &[String]) -> String {
    let options: Vec<(String, &str)> =
        (0..labels.len()).map(|run| (format!("tenants-{run}"), labels[run].as_str())).collect();
    let panels: String = report
        .runs
        .iter()
        .enumerate()
        .map(|(run, data)| {
            let table = tenant_table(data, &labels[run]);
            format!("<div id=\"tenants-{run}\" class=\"panel\">\n{table}</div>\n")
        })
        .collect();
    format!(
        "<section aria-labelledby=\"tenants\">\n<h2 id=\"tenants\">Tenants</h2>\n\
         {}{panels}</section>\n",
        select("tenant-policy", "Policy", "panels", "", &options)
    )
}

fn tenant_table(run: &Run, label: &str) -> String {
    if run.tenants.is_empty() {
        return format!("<p class=\"quiet\">No tenants recorded under {}.</p>\n", escape(label));
    }
    let shown = largest_tenants(&run.tenants);
    let column = |heading: &str, format: Format, value: fn(&TenantFigures) -> f64| {
        let values: Vec<Option<f64>> = shown.iter().map(|tenant| Some(value(tenant))).collect();
        let texts = format::column(&values, format);
        TableColumn { heading: heading.to_owned(), best: vec![false; values.len()], values, texts }
    };
    let columns = [
        column("Jobs", Format::Count, |tenant| tenant.jobs as f64),
        column("GPU hours", Format::Number, |tenant| tenant.gpu_hours),
        column("avg JCT", Format::Duration, |tenant| tenant.avg_jct_s),
        column("avg wait", Format::Duration, |tenant| tenant.avg_wait_s),
        column("p99 wait", Format::Duration, |tenant| tenant.p99_wait_s),
    ];
    let headings: String = columns.iter().map(|column| heading(&column.heading)).collect();
    let mut rows = String::new();
    for (index, tenant) in shown.iter().enumerate() {
        let cells: String = columns.iter().map(|column| column.cell(index)).collect();
        let last = if index == TENANTS_MAX { " class=\"others\"" } else { "" };
        rows.push_str(&format!("<tr{last}>{}{cells}</tr>\n", row_heading(&tenant.name, None)));
    }
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Tenants\">\n\
         <table class=\"sortable\">\n<caption><span>{}</span></caption>\n\
         <thead><tr>{}{headings}</tr></thead>\n\
         <tbody>\n{rows}</tbody>\n</table>\n</div>\n",
        escape(&tenant_caption(run.tenants.len(), label)),
        text_heading("Tenant")
    )
}

fn tenant_caption(count: usize, label: &str) -> String {
    if count > TENANTS_MAX {
        format!(
            "The {TENANTS_MAX} tenants with the most GPU hours under {label}, of {count}. In the \
             row of the others, means are weighted by jobs and p99 is the largest."
        )
    } else {
        format!("Tenants by GPU hours under {label}.")
    }
}

/// The largest tenants, and all the others as one.
fn largest_tenants(tenants: &[TenantFigures]) -> Vec<TenantFigures> {
    let mut sorted = tenants.to_vec();
    sorted.sort_by(|left, right| {
        right.gpu_hours.total_cmp(&left.gpu_hours).then_with(|| left.name.cmp(&right.name))
    });
    if sorted.len() <= TENANTS_MAX {
        return sorted;
    }
    let rest = sorted.split_off(TENANTS_MAX);
    let jobs: u64 = rest.iter().map(|tenant| tenant.jobs).sum();
    let mean = |value: fn(&TenantFigures) -> f64| {
        rest.iter().map(|tenant| value(tenant) * tenant.jobs as f64).sum::<f64>() / jobs as f64
    };
    sorted.push(TenantFigures {
        name: format!("{} others", rest.len()),
        jobs,
        gpu_hours: rest.iter().map(|tenant| tenant.gpu_hours).sum(),
        avg_jct_s: mean(|tenant| tenant.avg_jct_s),
        avg_wait_s: mean(|tenant| tenant.avg_wait_s),
        p99_wait_s: rest.iter().map(|tenant| tenant.p99_wait_s).fold(0.0, f64::max),
    });
    sorted
}
