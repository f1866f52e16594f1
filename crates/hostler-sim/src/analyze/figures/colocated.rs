//! How much the time of a mini-batch varies in jobs that share machines.

use super::{Def, percent};
use crate::analyze::figure::{Figure, curve};
use crate::analyze::input::Input;
use crate::analyze::need::Need;
use crate::analyze::stats::{ascending, mean, median, quantile};
use crate::report::chart::Axis;
use crate::report::data::Format;

/// The figure `co-located`.
pub const COLOCATED: Def = Def {
    key: "co-located",
    title: "Mini-batches beside neighbours",
    meaning: "A training job whose mini-batches vary in time is disturbed by its neighbours; the \
              coefficient of variation says by how much.",
    published: "Neighbours slow training by up to 28 %.",
    needs: &[Need::MiniBatches],
    compute,
};

fn compute(input: &Input, figure: &mut Figure) {
    let mut rows = Vec::new();
    let mut curves = Vec::new();
    for job in &input.minibatches {
        let times = ascending(job.times.iter().copied());
        let (middle, average) = (median(&times), mean(&times));
        let squares: Vec<f64> = times.iter().map(|time| (time - average).powi(2)).collect();
        let variation = mean(&squares).sqrt() / average;
        let slow = quantile(&times, 0.95) / middle - 1.0;
        figure.fact(
            &format!("{}_variation", job.name),
            &format!("{}: coefficient of variation", job.name),
            variation,
            Format::Number,
        );
        rows.push((job.name.clone(), vec![times.len() as f64, variation, slow]));
        curves.push(curve(job.name.clone(), times.iter().map(|time| time / middle).collect()));
    }
    let worst = rows.iter().max_by(|one, other| one.1[2].total_cmp(&other.1[2]));
    if let Some((name, row)) = worst {
        let slow = percent(row[2]);
        let text = format!("One in twenty mini-batches of {name} takes {slow} longer than usual.");
        figure.finding(0.3, row[2], row[0] as usize, &text);
    }
    figure.table(
        "Mini-batch times",
        &["job", "mini-batches", "coefficient of variation", "P95 above the median"],
        &[Format::Count, Format::Number, Format::Percent],
        rows,
    );
    let axis = Axis::log("time of a mini-batch / median", Format::Number, 0.1);
    figure.cdf("Time of mini-batches", axis, "mini-batches", curves);
    let note = "The files do not name machines, so times are not set against their CPU use.";
    figure.notes.push(note.to_owned());
}
