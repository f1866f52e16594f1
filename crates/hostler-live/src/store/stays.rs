//! The stays of a job, for the accounts: when it had which GPUs, and whether anything came of it.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::limits::STAYS_MAX;

/// Joules of a kilowatt hour.
pub(crate) const JOULES_PER_KWH: f64 = 3.6e6;

/// A time for which a job had GPUs of one model, or machines without.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StayRow {
    /// When it began, in microseconds.
    pub from: u64,
    /// When it ended; none while it lasts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<u64>,
    /// Model of the GPUs; empty without any.
    pub model: String,
    /// Thousandths of GPUs that are booked.
    pub gpu_milli: u64,
    /// GPU time of one that is over, in microseconds.
    #[serde(default)]
    pub gpu_micros: u64,
    /// Whether it was cut short and nothing of it was saved.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
    /// Energy of its GPUs, once it is over and where they told it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joules: Option<u64>,
}

impl StayRow {
    /// GPU time up to now, in microseconds.
    pub fn gpu_time(&self, now: u64) -> u64 {
        match self.to {
            Some(_) => self.gpu_micros,
            None => gpu_micros(self.gpu_milli, now.saturating_sub(self.from)),
        }
    }
}

/// GPU time of so many thousandths of GPUs for so long.
pub fn gpu_micros(gpu_milli: u64, micros: u64) -> u64 {
    let time = u128::from(gpu_milli) * u128::from(micros) / 1000;
    u64::try_from(time).unwrap_or(u64::MAX)
}

/// Notes that a job has these GPUs from now on.
pub(crate) fn begin(stays: &mut Vec<StayRow>, now: u64, gpus: Vec<(String, u64)>) {
    let stay = |(model, gpu_milli)| StayRow { from: now, model, gpu_milli, ..StayRow::default() };
    stays.extend(gpus.into_iter().map(stay));
}

/// Notes what GPUs of each model used in the stay that ends now.
pub(crate) fn measured(stays: &mut [StayRow], joules: &BTreeMap<String, u64>) {
    for stay in stays.iter_mut().filter(|stay| stay.to.is_none()) {
        stay.joules = joules.get(&stay.model).copied();
    }
}

/// Energy of all stays in kWh, where any was measured.
pub(crate) fn energy_kwh(stays: &[StayRow]) -> Option<f64> {
    let joules = stays.iter().filter_map(|stay| stay.joules);
    joules.reduce(u64::saturating_add).map(|joules| joules as f64 / JOULES_PER_KWH)
}

/// Notes that it used them until then.
pub(crate) fn end(stays: &mut Vec<StayRow>, at: u64, lost: bool) {
    for stay in stays.iter_mut().filter(|stay| stay.to.is_none()) {
        stay.gpu_micros = gpu_micros(stay.gpu_milli, at.saturating_sub(stay.from));
        (stay.to, stay.lost) = (Some(at.max(stay.from)), lost);
    }
    while stays.len() > STAYS_MAX && join_oldest(stays) {}
}

/// Notes that a job was over then: its last stay was not cut short.
pub(crate) fn over(stays: &mut [StayRow], at: u64) {
    stays.iter_mut().filter(|stay| stay.to == Some(at)).for_each(|stay| stay.lost = false);
}

/// Makes one of two stays that are alike, the oldest there are.
fn join_oldest(stays: &mut Vec<StayRow>) -> bool {
    let alike = |one: &StayRow, other: &StayRow| one.model == other.model && one.lost == other.lost;
    for first in 0..stays.len() {
        let later = (first + 1..stays.len())
            .find(|later| stays[*later].to.is_some() && alike(&stays[first], &stays[*later]));
        let Some(later) = later else { continue };
        let joined = stays.remove(later);
        let kept = &mut stays[first];
        kept.gpu_micros = kept.gpu_micros.saturating_add(joined.gpu_micros);
        kept.to = joined.to.max(kept.to);
        kept.joules = match (kept.joules, joined.joules) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        return true;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_stays_become_few_and_lose_no_gpu_time() {
        let mut stays = Vec::new();
        for turn in 0..1000_u64 {
            let model = if turn % 2 == 0 { "A100" } else { "V100" };
            begin(&mut stays, turn * 10, vec![(model.to_owned(), 500)]);
            measured(&mut stays, &BTreeMap::from([("A100".to_owned(), 7)]));
            end(&mut stays, turn * 10 + 6, turn % 3 == 0);
        }
        assert_eq!(stays.len(), STAYS_MAX);
        assert_eq!(stays.iter().map(|stay| stay.gpu_micros).sum::<u64>(), 3000);
        let lost = stays.iter().filter(|stay| stay.lost).map(|stay| stay.gpu_micros);
        assert_eq!(lost.sum::<u64>(), 334 * 3);
        assert_eq!(stays.iter().filter_map(|stay| stay.joules).sum::<u64>(), 500 * 7);
        assert_eq!(stays.last().and_then(|stay| stay.to), Some(9996));
    }
}
