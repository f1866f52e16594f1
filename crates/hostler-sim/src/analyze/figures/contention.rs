//! Whether busy GPUs are busy because they are shared.

use super::{Def, percent};
use crate::analyze::figure::Figure;
use crate::analyze::input::Input;
use crate::analyze::need::Need;
use crate::report::data::Format;
use crate::trace::TextId;

/// The figure `contention`.
pub const CONTENTION: Def = Def {
    key: "contention",
    title: "Contention on shared GPUs",
    meaning: "Few busy GPUs with several tenants mean that sharing costs little speed; many mean \
              that it is time to separate them.",
    published: "Of GPUs at 95 % use or more about 4 % hold two or more workers.",
    needs: &[Need::Instances, Need::GpuNames],
    compute,
};

/// An instance on one GPU.
#[derive(Clone, Copy)]
pub(super) struct Tenancy {
    pub(super) gpu: (u32, TextId),
    pub(super) start: f64,
    pub(super) end: f64,
    pub(super) used: f64,
}

/// All stays of instances on GPUs, by GPU and start.
pub(super) fn tenancies(input: &Input) -> Vec<Tenancy> {
    let mut tenancies = Vec::new();
    for worker in input.last_workers().filter(|worker| worker.run().is_finite()) {
        for usage in input.usage_of(worker).iter().filter(|usage| !usage.gpu_name.is_empty()) {
            let used = if usage.gpu.is_nan() { 0.0 } else { f64::from(usage.gpu) };
            let gpu = (worker.machine, usage.gpu_name);
            tenancies.push(Tenancy { gpu, start: worker.start, end: worker.end, used });
        }
    }
    tenancies.sort_unstable_by(|one, other| {
        let times = one.start.total_cmp(&other.start).then(one.end.total_cmp(&other.end));
        one.gpu.cmp(&other.gpu).then(times).then(one.used.total_cmp(&other.used))
    });
    tenancies
}

const SLOT_SECS: f64 = 300.0;
const BANDS: [(&str, f64); 5] = [
    ("below 25 %", 25.0),
    ("25 to 50 %", 50.0),
    ("50 to 75 %", 75.0),
    ("75 to 95 %", 95.0),
    ("95 % and more", f64::INFINITY),
];

/// Slots by band of use, with one tenant and with several.
type Slots = [[f64; 2]; BANDS.len()];

fn compute(input: &Input, figure: &mut Figure) {
    let tenancies = tenancies(input);
    let mut slots = Slots::default();
    let mut changes: Vec<(f64, i32, f64)> = Vec::new();
    for of_gpu in tenancies.chunk_by(|one, other| one.gpu == other.gpu) {
        changes.clear();
        changes.extend(of_gpu.iter().map(|tenancy| (tenancy.start, 1, tenancy.used)));
        changes.extend(of_gpu.iter().map(|tenancy| (tenancy.end, -1, -tenancy.used)));
        changes.sort_unstable_by(|one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
        sweep(&changes, &mut slots);
    }
    let busy = slots[BANDS.len() - 1];
    let share = busy[1] / (busy[0] + busy[1]);
    let total: f64 = slots.iter().flatten().sum();
    figure.fact("slots", "GPUs in use, counted every five minutes", total, Format::Count);
    figure.fact("busy", "of those at 95 % use or more", busy[0] + busy[1], Format::Count);
    figure.fact("busy_shared", "of busy ones with two or more workers", share, Format::Percent);
    let text = format!("Of GPUs at 95 % use or more, {} hold two or more workers.", percent(share));
    // Who is never busy does not care with whom.
    let weight = (busy[0] + busy[1]) / total;
    figure.finding(0.2 + 0.6 * share * weight, share, (busy[0] + busy[1]) as usize, &text);
    let rows = BANDS.iter().zip(slots).map(|((name, _), [one, several])| {
        ((*name).to_owned(), vec![one, several, several / (one + several)])
    });
    figure.table(
        "GPUs every five minutes, by use",
        &["use", "one worker", "two or more", "share of two or more"],
        &[Format::Count, Format::Count, Format::Percent],
        rows.collect(),
    );
    let bars: Vec<(String, f64)> = BANDS
        .iter()
        .zip(slots)
        .map(|((name, _), row)| ((*name).to_owned(), row[0] + row[1]))
        .collect();
    figure.bars("GPUs in use by band of use", "slots of five minutes", Format::Count, &bars);
}

/// Counts the full five minutes that fall into each stretch between two changes.
fn sweep(changes: &[(f64, i32, f64)], slots: &mut Slots) {
    let (mut workers, mut used) = (0, 0.0);
    for (change, next) in changes.iter().zip(&changes[1..]) {
        workers += change.1;
        used += change.2;
        let passed = (next.0 / SLOT_SECS).ceil() - (change.0 / SLOT_SECS).ceil();
        if workers > 0 && passed > 0.0 {
            let last = BANDS.len() - 1;
            let band = BANDS.iter().position(|(_, below)| used < *below).unwrap_or(last);
            slots[band][usize::from(workers > 1)] += passed;
        }
    }
}
