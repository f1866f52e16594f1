//! How soon jobs like one are over, by what jobs needed that are: the Gittins index. No policy of
//! its own.
//!
//! The index of a job that has received `a` is the chance that it ends within the next `span` of
//! GPU time, for each GPU second that it is likely to get meanwhile:
//! `P(X - a <= span | X > a) / E[min(X - a, span) | X > a]`, where `X` is what like jobs needed.
//! Here stands its inverse, the GPU time that an end takes, as that is a span.

use std::collections::BTreeMap;

use hostler_core::id::{GroupId, TenantId};
use hostler_core::job::JobSpec;
use hostler_core::service::Services;

/// What jobs needed, ascending (device-microseconds).
#[derive(Debug, Default)]
pub(super) struct Needs {
    ascending: Vec<u64>,
    /// What the first of them add up to.
    sums: Vec<u128>,
}

impl FromIterator<u64> for Needs {
    fn from_iter<I: IntoIterator<Item = u64>>(needs: I) -> Needs {
        let mut ascending: Vec<u64> = needs.into_iter().collect();
        ascending.sort_unstable();
        let mut sums = vec![0];
        sums.extend(ascending.iter().scan(0u128, |sum, need| {
            *sum += u128::from(*need);
            Some(*sum)
        }));
        Needs { ascending, sums }
    }
}

impl Needs {
    /// GPU time that an end takes, of jobs that have received `served` and get up to `span` more;
    /// none when none of them would end.
    pub(super) fn time_per_end(&self, served: u64, span: u64) -> Option<u64> {
        let until = served.saturating_add(span);
        let over = self.ascending.partition_point(|need| *need <= served);
        let ended = self.ascending.partition_point(|need| *need <= until);
        let ends = (ended - over) as u128;
        let all = self.sums[ended] - self.sums[over];
        let go_on = (self.ascending.len() - ended) as u128;
        let spent = all - u128::from(served) * ends + u128::from(span) * go_on;
        spent.checked_div(ends).map(|time| u64::try_from(time).unwrap_or(u64::MAX))
    }
}

/// What is learnt of all jobs, and of like ones where enough of them ended.
#[derive(Debug, Default)]
pub(super) struct Ends {
    all: Option<Needs>,
    tenants: BTreeMap<TenantId, Needs>,
    groups: BTreeMap<(TenantId, GroupId), Needs>,
}

impl Ends {
    /// By no fewer ends than `least`.
    pub(super) fn new(services: &Services, least: usize) -> Ends {
        let mut all = Vec::new();
        let mut tenants: BTreeMap<_, Vec<u64>> = BTreeMap::new();
        let mut groups: BTreeMap<_, Vec<u64>> = BTreeMap::new();
        for service in services.learnt() {
            all.push(service.gpu_time);
            tenants.entry(service.tenant).or_default().push(service.gpu_time);
            if let Some(group) = service.group {
                groups.entry((service.tenant, group)).or_default().push(service.gpu_time);
            }
        }
        Ends {
            all: (all.len() >= least).then(|| all.into_iter().collect()),
            tenants: enough(tenants, least),
            groups: enough(groups, least),
        }
    }

    /// What the jobs needed that are most like this one: of its group, of its tenant, or all.
    pub(super) fn needs_like(&self, spec: &JobSpec) -> Option<&Needs> {
        let group = spec.group.and_then(|group| self.groups.get(&(spec.tenant, group)));
        group.or_else(|| self.tenants.get(&spec.tenant)).or(self.all.as_ref())
    }
}

fn enough<Key: Ord>(needs: BTreeMap<Key, Vec<u64>>, least: usize) -> BTreeMap<Key, Needs> {
    let enough = needs.into_iter().filter(|(_, needs)| needs.len() >= least);
    enough.map(|(key, needs)| (key, needs.into_iter().collect())).collect()
}

#[cfg(test)]
mod tests {
    use hostler_core::random::Random;

    use super::Needs;

    fn needs(list: &[u64]) -> Needs {
        list.iter().copied().collect()
    }

    #[test]
    fn by_hand() {
        let needs = needs(&[10, 20, 100, 20]);
        // Nobody ends within 5: the index is zero.
        assert_eq!(needs.time_per_end(0, 5), None);
        // One of four ends; it and three others get 10 each.
        assert_eq!(needs.time_per_end(0, 10), Some(40));
        // Three of four end: 10 + 20 + 20, and 50 for the one that does not.
        assert_eq!(needs.time_per_end(0, 50), Some(100 / 3));
        // Of the three that are left two end: 10 + 10, and 20.
        assert_eq!(needs.time_per_end(10, 20), Some(20));
        // One is left, and ends with certainty.
        assert_eq!(needs.time_per_end(40, 1000), Some(60));
        assert_eq!(needs.time_per_end(40, 59), None);
        // Nobody ever needed as much.
        assert_eq!(needs.time_per_end(100, 1000), None);
        assert_eq!(needs.time_per_end(u64::MAX, u64::MAX), None);
        assert_eq!(Needs::from_iter([]).time_per_end(0, 1), None);
    }

    /// The definition, job by job.
    fn by_definition(needs: &[u64], served: u64, span: u64) -> Option<u64> {
        let left: Vec<u64> =
            needs.iter().filter(|need| **need > served).map(|need| need - served).collect();
        let ends = left.iter().filter(|left| **left <= span).count() as u64;
        let spent: u64 = left.iter().map(|left| *left.min(&span)).sum();
        spent.checked_div(ends)
    }

    #[test]
    fn as_the_definition_has_it_for_chance_needs() {
        let mut random = Random::new(13);
        for _ in 0..2000 {
            let mut below = |most: u64| random.bits() % most;
            let list: Vec<u64> = (0..1 + below(40)).map(|_| 1 + below(60)).collect();
            let known = needs(&list);
            for _ in 0..40 {
                let (served, span) = (below(70), 1 + below(70));
                let wanted = by_definition(&list, served, span);
                assert_eq!(known.time_per_end(served, span), wanted, "{list:?} {served} {span}");
            }
        }
    }
}
