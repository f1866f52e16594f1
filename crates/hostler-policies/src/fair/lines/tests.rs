//! The lines against the plain computation, at every question of a run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hostler_core::metrics::Metrics;
use hostler_core::plan::Plan;
use hostler_core::policy::{Cadence, Policy, Wake};
use hostler_core::predict::EstimateSource;
use hostler_core::solve::Solve;
use hostler_core::state::ClusterState;
use hostler_core::units::Span;
use hostler_sim::lower::Workload;
use hostler_sim::run::simulate;
use hostler_sim::trace::PaiLike;

use super::*;
use crate::allocate::{Allocate, FifoPerf, MaxMin, RateKnowledge};
use crate::fair::{ByTier, FairQuestion, Rounds, Rules};
use crate::place::best_fit::BestFit;

/// Rounds whose lines are looked at after each question.
struct Checked {
    rounds: Rounds,
    looks: Arc<AtomicUsize>,
}

impl Policy for Checked {
    fn cadence(&self) -> Cadence {
        self.rounds.cadence()
    }

    fn estimates(&self) -> EstimateSource {
        self.rounds.estimates()
    }

    fn solver(&self) -> Option<Box<dyn Solve>> {
        self.rounds.solver()
    }

    fn decide(&mut self, view: &View<'_>, wake: Wake, plan: &mut Plan<'_>) {
        self.rounds.decide(view, wake, plan);
        let Rounds { lines, roster, rules, .. } = &self.rounds;
        if lines.is_current(view) {
            lines.check(view, roster, &rules.ranking, plan.free());
            self.looks.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Lines {
    fn is_current(&self, view: &View<'_>) -> bool {
        let unseen = self.changed.len() + self.freed.len();
        !self.stale && unseen == 0 && !self.shapes.is_empty() && self.solves == view.solves()
    }

    /// Everybody who waits stands where his account says, and no queue is given up that fits.
    fn check(&self, view: &View<'_>, roster: &Roster, ranking: &Ranking, free: &Capacity) {
        for (model, shapes) in self.shapes.iter().enumerate() {
            let runs = |id: &&JobId| roster.row(**id).is_some_and(|row| row.rates[model] > 0.0);
            let rank = |id: &JobId| ranking.of_waiting(view, *id, ModelId(model as u32));
            let plain = view.pending().iter().filter(runs).map(rank);
            let plain: BTreeSet<Urgency> =
                plain.filter(|rank| ranking.fillers || rank.has_share()).collect();
            let mut kept = BTreeSet::new();
            for id in shapes.ids() {
                let ranked = self.ranked[model].get(id) == Some(&self.solves);
                let jobs = shapes.get(id).gangs.values().flatten();
                kept.extend(jobs.map(|own| if ranked { *own } else { rank(&own.team.first) }));
            }
            assert_eq!(kept, plain);
            for shape in shapes.ids().map(|id| shapes.get(id)) {
                for count in shape.gangs.keys().filter(|count| **count > shape.bound) {
                    assert!(BestFit.choose(free, 0, &shape.least, *count).is_err());
                }
            }
        }
    }
}

/// Runs a crowded cluster; the answer is how often the lines were looked at, and what became of it.
fn run(
    fillers: bool,
    question: FairQuestion,
    make: fn() -> Box<dyn Allocate>,
) -> (usize, ClusterState) {
    let generator = PaiLike { jobs: 500, seed: 3, scale: 100, ..PaiLike::default() };
    let cluster = generator.cluster();
    let generator = generator.at_load(1.5, &cluster).unwrap();
    let workload = Workload::new(generator.generate().unwrap(), &cluster).unwrap();
    let rules = Rules {
        round: Span::from_secs(360),
        gap: Span::from_secs(720),
        reuse: true,
        ranking: Ranking { head_start: Span::from_secs(180), fillers },
        dealing: Box::new(ByTier),
        place: Box::new(BestFit),
        moves: false,
        estimates: EstimateSource::User,
    };
    let rounds = Rounds::new(rules, question, move |_| make());
    let looks = Arc::new(AtomicUsize::new(0));
    let policy = Checked { rounds, looks: Arc::clone(&looks) };
    let finished = simulate(&workload, Box::new(policy), Metrics::default(), None).unwrap();
    (looks.load(Ordering::Relaxed), finished.state)
}

#[test]
fn lines_are_what_sorting_all_that_wait_would_give() {
    let max_min = || -> Box<dyn Allocate> { Box::new(MaxMin::new(RateKnowledge::Aware)) };
    assert!(run(true, FairQuestion::new(), max_min).0 > 300);
    let by_age = || -> Box<dyn Allocate> { Box::new(FifoPerf::default()) };
    let (looks, all) = run(false, FairQuestion::new(), by_age);
    assert!(looks > 100);
    // Who is asked about in order of submission need not be asked about to the last.
    let in_order = FairQuestion { in_order: true, alone: None, ..FairQuestion::new() };
    assert!(run(false, in_order, by_age).1 == all);
}
