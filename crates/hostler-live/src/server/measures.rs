//! Figures for operators, as Prometheus reads them.

use std::fmt::Write as _;

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::App;
use super::access::{Caller, Look};
use super::fault::ApiFault;
use super::notices::NoticeCounts;
use hostler_core::metrics::Summary;

use crate::host::{Figures, Histogram};
use crate::job::JobState;

/// All that is shown, taken at one moment.
struct Measured {
    figures: Figures,
    jobs: Vec<(JobState, u64)>,
    nodes: Vec<(String, u64)>,
    gpus: f64,
    gpus_used: f64,
    agents: usize,
    summary: Summary,
    notices: NoticeCounts,
}

/// Shows figures in Prometheus' text format.
#[utoipa::path(
    get, path = "/metrics", tag = "about",
    responses((status = 200, description = "Figures.", body = String, content_type = "text/plain")),
)]
pub async fn metrics(State(app): State<App>, _: Caller<Look>) -> Result<Response, ApiFault> {
    let notices = app.notices.told();
    let measured = app.host.read(move |host| {
        let nodes = host.nodes();
        let mut health = std::collections::BTreeMap::new();
        for node in &nodes {
            *health.entry(node.health.clone()).or_default() += 1;
        }
        Measured {
            figures: host.figures().clone(),
            jobs: host.job_counts(),
            nodes: health.into_iter().collect(),
            gpus: nodes.iter().map(|node| f64::from(node.gpus)).sum(),
            gpus_used: nodes.iter().map(|node| node.gpus_used).sum(),
            agents: host.connected_agents(),
            summary: host.summary(),
            notices,
        }
    });
    let text = page(&measured.await?);
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

fn page(measured: &Measured) -> String {
    let Measured { figures, jobs, nodes, gpus, gpus_used, agents, summary, notices } = measured;
    let mut page = Page::default();
    page.histogram("decision_seconds", "Time of a step, the policy included.", &figures.decisions);
    page.histogram("commit_seconds", "Time of a durable commit.", &figures.commits);
    page.histogram("wait_seconds", "Time from submission to first start.", &figures.waits);
    let states: Vec<_> = jobs.iter().map(|(state, count)| (name(*state), *count as f64)).collect();
    page.labelled("jobs", "gauge", "Jobs that are not over.", "state", &states);
    let ended = figures.ended.iter().map(|(state, count)| (name(*state), *count as f64));
    let ended: Vec<_> = ended.collect();
    page.labelled("jobs_ended_total", "counter", "Jobs that ended.", "state", &ended);
    let nodes: Vec<_> = nodes.iter().map(|(state, count)| (state.clone(), *count as f64)).collect();
    page.labelled("nodes", "gauge", "Nodes.", "health", &nodes);
    let queued = jobs.iter().filter(|(state, _)| *state == JobState::Queued);
    let queued: u64 = queued.map(|(_, count)| count).sum();
    let share = if *gpus > 0.0 { gpus_used / gpus } else { 0.0 };
    page.value("queue_depth", "gauge", "Jobs that wait for their turn.", queued as f64);
    page.value("gpus", "gauge", "GPUs of all nodes.", *gpus);
    page.value("gpus_booked", "gauge", "GPUs that jobs hold.", *gpus_used);
    page.value("gpu_utilisation", "gauge", "Share of GPUs that jobs hold.", share);
    page.value("agents_connected", "gauge", "Agents that are connected.", *agents as f64);
    page.value("jobs_submitted_total", "counter", "Jobs taken in.", figures.submitted as f64);
    page.value("commands_total", "counter", "Commands taken in.", figures.commands as f64);
    page.value("starts_total", "counter", "Start orders given.", figures.starts as f64);
    let violations = figures.violations as f64;
    page.value("policy_violations_total", "counter", "Rules that policies broke.", violations);
    let given_up = figures.nodes_given_up as f64;
    page.value("nodes_given_up_total", "counter", "Nodes given up as silent.", given_up);
    let refused = figures.suspensions_refused as f64;
    let help = "Suspensions that a node could not carry out.";
    page.value("suspensions_refused_total", "counter", help, refused);
    let lost = figures.output_lost_bytes as f64;
    let help = "Bytes of output that nodes had no room for.";
    page.value("output_lost_bytes_total", "counter", help, lost);
    page.value(
        "log_records",
        "gauge",
        "Number of the last record of the log.",
        figures.records as f64,
    );
    page.notices(notices);
    page.run(summary);
    page.0
}

/// A state, as it is written in the interface.
fn name(state: JobState) -> String {
    match serde_json::to_value(state) {
        Ok(serde_json::Value::String(name)) => name,
        _ => String::new(),
    }
}

#[derive(Default)]
struct Page(String);

impl Page {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        writeln!(self.0, "hostler_{line}").expect("writing to a string");
    }

    fn head(&mut self, measure: &str, kind: &str, help: &str) {
        writeln!(self.0, "# HELP hostler_{measure} {help}\n# TYPE hostler_{measure} {kind}")
            .expect("writing to a string");
    }

    /// The figures that a simulation gives, under the same names; since the daemon started.
    fn run(&mut self, summary: &Summary) {
        let figures = serde_json::to_value(summary).unwrap_or_default();
        for (figure, value) in figures.as_object().into_iter().flatten() {
            if let Some(value) = value.as_f64() {
                let help = format!("As `{figure}` of a simulation.");
                self.value(&format!("run_{figure}"), "gauge", &help, value);
            }
        }
    }

    fn notices(&mut self, told: &NoticeCounts) {
        for (measure, help, of) in [
            ("notices_delivered_total", "Notices that were delivered.", told.delivered),
            ("notices_retried_total", "Tries to deliver one that failed.", told.failed_tries),
            ("notices_lost_total", "Notices that were given up, or had no room.", told.lost),
        ] {
            let of = [("webhook", of[0]), ("mail", of[1])];
            let of = of.map(|(by, count)| (by.to_owned(), count as f64));
            self.labelled(measure, "counter", help, "by", &of);
        }
    }

    fn value(&mut self, measure: &str, kind: &str, help: &str, value: f64) {
        self.head(measure, kind, help);
        self.line(format_args!("{measure} {value}"));
    }

    fn labelled(
        &mut self,
        measure: &str,
        kind: &str,
        help: &str,
        label: &str,
        values: &[(String, f64)],
    ) {
        self.head(measure, kind, help);
        for (of, value) in values {
            self.line(format_args!("{measure}{{{label}=\"{of}\"}} {value}"));
        }
    }

    fn histogram(&mut self, measure: &str, help: &str, histogram: &Histogram) {
        self.head(measure, "histogram", help);
        let mut below = 0;
        for (bound, count) in Histogram::bounds().iter().zip(&histogram.counts) {
            below += count;
            let seconds = *bound as f64 / 1e6;
            self.line(format_args!("{measure}_bucket{{le=\"{seconds}\"}} {below}"));
        }
        self.line(format_args!("{measure}_bucket{{le=\"+Inf\"}} {}", histogram.count()));
        self.line(format_args!("{measure}_sum {}", histogram.sum_micros as f64 / 1e6));
        self.line(format_args!("{measure}_count {}", histogram.count()));
    }
}
