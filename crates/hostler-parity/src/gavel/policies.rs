//! The policies of the original under their own names, made of the parts of ours.

use std::sync::{Arc, Mutex};

use hostler_core::policy::Policy;
use hostler_core::predict::EstimateSource;
use hostler_core::units::Span;
use hostler_policies::allocate::RateKnowledge::{Agnostic, Aware, Packed};
use hostler_policies::allocate::{
    Allocate, Allox, FifoPacked, FifoPerf, FinishTime, Grouped, Instance, Isolated, MaxMin,
    StrategyProof, SumThroughput, WaterFilling, isolated_rates,
};
use hostler_policies::fair::{FairQuestion, Ranking, Rounds, Rules};
use hostler_policies::place::first_fit::FirstFit;

use super::allocate::{
    Apart, FinishCentre, Flat, PairedMaxMin, PublishedFifo, RandomPairs, RoomAnywhere,
    SearchedMakespan, flat,
};
use super::exact::Exact;
use super::rounds::{GavelPolicy, PublishedDealing, Remembering, Shuffles};
use super::{GavelError, Options, ROUND_SECS, TYPES};

/// Least seconds between two solutions.
const GAP_SECS: u64 = 1920;

/// GPU types by name, which decides between equally good ones.
const BY_NAME: [usize; 3] = [2, 1, 0];

/// A policy of the original.
pub struct GavelPolicyDef {
    /// What the original calls it.
    pub name: &'static str,
    /// Makes its allocator, from a seed.
    make: fn(u64) -> Box<dyn Allocate>,
    /// Whether GPU types are dealt out in a new order each round.
    shuffled: bool,
    /// Whether weights count.
    weighted: bool,
    /// Whether jobs may share GPUs.
    packed: bool,
    /// Whether jobs without a share may take what is left.
    fillers: bool,
    /// Steps per second of each job with an equal part of the cluster.
    alone: fn(&Instance) -> Vec<f64>,
}

impl GavelPolicyDef {
    const fn new(name: &'static str, make: fn(u64) -> Box<dyn Allocate>) -> GavelPolicyDef {
        GavelPolicyDef {
            name,
            make,
            shuffled: false,
            weighted: false,
            packed: false,
            fillers: true,
            alone: isolated_rates,
        }
    }

    const fn shuffled(self) -> GavelPolicyDef {
        GavelPolicyDef { shuffled: true, ..self }
    }

    const fn weighted(self) -> GavelPolicyDef {
        GavelPolicyDef { weighted: true, ..self }
    }

    const fn packed(self) -> GavelPolicyDef {
        GavelPolicyDef { packed: true, ..self }
    }

    const fn without_fillers(self) -> GavelPolicyDef {
        GavelPolicyDef { fillers: false, ..self }
    }

    const fn flat(self) -> GavelPolicyDef {
        GavelPolicyDef { alone: |instance| isolated_rates(&flat(instance)), ..self }
    }
}

/// Every policy of the original that is repeated here.
pub const POLICIES: &[GavelPolicyDef] = &[
    GavelPolicyDef::new("isolated", |_| Box::new(Isolated)).shuffled(),
    GavelPolicyDef::new("max_min_fairness", |_| {
        Box::new(MaxMin { rate_knowledge: Agnostic, programmes: Apart })
    })
    .shuffled()
    .weighted(),
    GavelPolicyDef::new("max_min_fairness_perf", |_| {
        Box::new(MaxMin { rate_knowledge: Aware, programmes: Apart })
    })
    .weighted(),
    GavelPolicyDef::new("max_min_fairness_packed", |_| Box::new(PairedMaxMin)).weighted().packed(),
    GavelPolicyDef::new("max_min_fairness_water_filling", |_| {
        Box::new(WaterFilling { rate_knowledge: Agnostic })
    })
    .shuffled()
    .weighted(),
    GavelPolicyDef::new("max_min_fairness_water_filling_perf", |_| {
        Box::new(WaterFilling { rate_knowledge: Aware })
    })
    .weighted(),
    GavelPolicyDef::new("max_min_fairness_water_filling_packed", |_| {
        Box::new(WaterFilling { rate_knowledge: Packed })
    })
    .weighted()
    .packed(),
    GavelPolicyDef::new("strategy_proof", |_| Box::new(StrategyProof)).weighted(),
    GavelPolicyDef::new("finish_time_fairness", |_| Box::new(Flat(FinishCentre))).shuffled().flat(),
    GavelPolicyDef::new("finish_time_fairness_perf", |_| Box::new(FinishCentre)),
    GavelPolicyDef::new("finish_time_fairness_packed", |_| {
        Box::new(FinishTime { rate_knowledge: Packed, weighted: false })
    })
    .packed(),
    GavelPolicyDef::new("min_total_duration", |_| {
        Box::new(Flat(SearchedMakespan { packed: false }))
    })
    .shuffled(),
    GavelPolicyDef::new("min_total_duration_perf", |_| {
        Box::new(SearchedMakespan { packed: false })
    }),
    GavelPolicyDef::new("min_total_duration_packed", |_| {
        Box::new(SearchedMakespan { packed: true })
    })
    .packed(),
    GavelPolicyDef::new("max_sum_throughput_perf", |_| Box::new(sum(false, false))),
    GavelPolicyDef::new("max_sum_throughput_normalized_by_cost_perf", |_| {
        Box::new(sum(true, false))
    }),
    GavelPolicyDef::new("max_sum_throughput_normalized_by_cost_perf_SLOs", |_| {
        Box::new(sum(true, true))
    }),
    GavelPolicyDef::new("max_sum_throughput_normalized_by_cost_packed_SLOs", |_| {
        let programmes = Grouped::default();
        Box::new(SumThroughput { priced: true, deadlines: true, packed: true, programmes })
    })
    .packed(),
    GavelPolicyDef::new("fifo", |seed| Box::new(PublishedFifo::new(seed, BY_NAME.to_vec())))
        .shuffled()
        .without_fillers(),
    GavelPolicyDef::new("fifo_perf", |_| Box::new(RoomAnywhere(fastest()))).without_fillers(),
    GavelPolicyDef::new("fifo_packed", |_| Box::new(RoomAnywhere(FifoPacked { alone: fastest() })))
        .packed()
        .without_fillers(),
    GavelPolicyDef::new("allox", |_| {
        Box::new(Allox { alpha: 1.0, tie_order: BY_NAME.to_vec(), ahead: false })
    }),
    GavelPolicyDef::new("gandiva", |seed| Box::new(RandomPairs::new(seed))).packed(),
];

fn sum(priced: bool, deadlines: bool) -> SumThroughput<Apart> {
    SumThroughput { priced, deadlines, packed: false, programmes: Apart }
}

fn fastest() -> FifoPerf {
    FifoPerf { tie_order: BY_NAME.to_vec() }
}

/// The policy of this name.
pub fn find(name: &str) -> Result<&'static GavelPolicyDef, GavelError> {
    POLICIES.iter().find(|def| def.name == name).ok_or_else(|| {
        let known: Vec<&str> = POLICIES.iter().map(|def| def.name).collect();
        GavelError::Policy { name: name.to_owned(), known: known.join(", ") }
    })
}

impl GavelPolicyDef {
    /// The policy, for a run of which `exact` knows all bits.
    pub(super) fn build(&self, options: &Options, exact: &Arc<Exact>) -> Box<dyn Policy> {
        let (weighted, packed, alone) = (self.weighted, self.packed, self.alone);
        let round = Span::from_secs(ROUND_SECS as u64);
        let rules = Rules {
            round,
            gap: Span::from_secs(GAP_SECS),
            reuse: false,
            ranking: Ranking { head_start: Span(round.0 / 2), fillers: self.fillers },
            dealing: Box::new(PublishedDealing {
                shuffles: self.shuffled.then(|| Shuffles::new(options.seed)),
            }),
            place: Box::new(FirstFit),
            moves: false,
            estimates: EstimateSource::User,
        };
        let bits = Arc::clone(exact);
        let prices = TYPES.iter().zip(options.prices);
        let question = FairQuestion {
            packed,
            weighted,
            prices: prices.map(|(name, price)| ((*name).to_owned(), price)).collect(),
            alone: Some(Arc::new(move |instance| alone(&bits.correct(instance, weighted)))),
            ..FairQuestion::new()
        };
        let inner = Arc::new(Mutex::new((self.make)(options.seed)));
        let remembering = Remembering { exact: Arc::clone(exact), weighted, packed, inner };
        let rounds = Rounds::new(rules, question, move |_| Box::new(remembering.clone()));
        Box::new(GavelPolicy { rounds, exact: Arc::clone(exact) })
    }
}
