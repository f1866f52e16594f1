//! How many GPUs sharing saves.

use super::contention::{Tenancy, tenancies};
use super::{Def, percent};
use crate::analyze::figure::Figure;
use crate::analyze::input::Input;
use crate::analyze::need::Need;
use crate::analyze::stats::{Clock, Spread, mean};
use crate::report::chart::{Axis, ChartShape};
use crate::report::data::Format;

/// The figure `sharing-saved`.
pub const SHARING_SAVED: Def = Def {
    key: "sharing-saved",
    title: "GPUs saved by sharing",
    meaning: "Without sharing every request would be rounded up to whole GPUs: the difference is \
              what would have to be bought.",
    published: "Sharing saves 50 % of GPUs on average, 2,500 at the peak.",
    needs: &[Need::Tasks, Need::Instances, Need::GpuNames],
    compute,
};

fn compute(input: &Input, figure: &mut Figure) {
    let tenancies = tenancies(input);
    let times = tenancies.iter().map(|tenancy| (tenancy.start, tenancy.end));
    let Some(clock) = Clock::over(times, 3) else { return };
    let mut sums = Spread::new(clock, 3);
    let counted = input.last_workers().filter(|worker| !input.usage_of(worker).is_empty());
    for worker in counted {
        let (plan, rows) = (input.task_of(worker).gpu_or_zero(), input.usage_of(worker));
        let named = rows.iter().filter(|usage| !usage.gpu_name.is_empty()).count() as f64;
        if plan <= 0.0 || named == 0.0 {
            continue;
        }
        let whole = (plan / 100.0).ceil();
        sums.add(WITHOUT, worker.start, worker.end, whole);
        sums.add(ASKED, worker.start, worker.end, plan / 100.0);
        // One sensor row stands for several GPUs of an instance; those are not shared.
        sums.add(WITH, worker.start, worker.end, (whole - named).max(0.0));
    }
    for (start, end) in busy(&tenancies) {
        sums.add(WITH, start, end, 1.0);
    }
    show(figure, &clock, &sums.means(), input.last_workers().count());
}

const WITHOUT: usize = 0;
const WITH: usize = 1;
const ASKED: usize = 2;

/// The times in which each GPU held anybody.
fn busy(tenancies: &[Tenancy]) -> Vec<(f64, f64)> {
    let mut spans: Vec<(f64, f64)> = Vec::new();
    let mut before = None;
    for tenancy in tenancies {
        match spans.last_mut() {
            Some(span) if before == Some(tenancy.gpu) && tenancy.start <= span.1 => {
                span.1 = span.1.max(tenancy.end);
            }
            _ => spans.push((tenancy.start, tenancy.end)),
        }
        before = Some(tenancy.gpu);
    }
    spans
}

fn show(figure: &mut Figure, clock: &Clock, means: &[f64], instances: usize) {
    let row = |kind: usize| &means[kind * clock.buckets..][..clock.buckets];
    let saved: Vec<f64> =
        row(WITHOUT).iter().zip(row(WITH)).map(|(without, with)| without - with).collect();
    let shares: Vec<f64> = saved.iter().zip(row(WITHOUT)).map(|(saved, all)| saved / all).collect();
    let shares: Vec<f64> = shares.into_iter().filter(|share| share.is_finite()).collect();
    let share = mean(&shares);
    let most = saved.iter().copied().fold(f64::NAN, f64::max);
    figure.fact("saved", "GPUs saved, mean over hours", share, Format::Percent);
    figure.fact("saved_most", "GPUs saved in the best hour", most, Format::Number);
    figure.fact("gpus_with", "GPUs in use, mean", mean(row(WITH)), Format::Number);
    figure.fact(
        "gpus_without",
        "GPUs needed without sharing, mean",
        mean(row(WITHOUT)),
        Format::Number,
    );
    figure.fact("gpus_asked", "GPUs asked for, mean", mean(row(ASKED)), Format::Number);
    let text = format!("Sharing saves {} of GPUs on average.", percent(share));
    figure.finding(0.9 * share.abs(), share, instances, &text);
    let line = |name: &str, shape, kind: usize| {
        let points = clock.times().into_iter().zip(row(kind).iter().copied()).collect();
        (name.to_owned(), shape, points)
    };
    figure.lines(
        "GPUs with and without sharing",
        Axis::linear("time since start", Format::Duration),
        Axis::linear("GPUs", Format::Count),
        vec![
            line("without sharing", ChartShape::Straight, WITHOUT),
            line("in use", ChartShape::Straight, WITH),
            line("asked for", ChartShape::Dashed, ASKED),
        ],
    );
}
