//! Every policy on random instances, odd ones among them: shares that keep the rules, always.

use hostler_core::random::Random;
use hostler_policies::allocate::*;
use proptest::prelude::*;

/// A number that is sometimes extreme.
fn odd(random: &mut Random) -> f64 {
    random.pick(&[(1.0, 4.0), (1e-3, 1.0), (1e3, 1.0), (7.25, 2.0)]) * (0.5 + random.uniform())
}

fn job(random: &mut Random, types: usize, kinds: u32) -> JobRow {
    let rates = (0..types)
        .map(|gpu| if gpu > 0 && random.uniform() < 0.3 { 0.0 } else { odd(random) })
        .collect();
    JobRow {
        rates,
        kind: (random.uniform() * f64::from(kinds)) as u32,
        gang: random.pick(&[(1, 6.0), (2, 1.0), (4, 1.0), (8, 0.5)]),
        weight: random.pick(&[(1.0, 3.0), (5.0, 1.0), (0.1, 0.5)]),
        steps_left: 1000.0 * odd(random) * random.pick(&[(1.0, 8.0), (0.0, 1.0)]),
        end_is_known: random.uniform() < 0.5,
        age_secs: 3600.0 * odd(random) * random.pick(&[(1.0, 1.0), (0.0, 1.0)]),
        finish_credit: 3600.0 * odd(random) * random.pick(&[(1.0, 1.0), (0.0, 1.0)]),
        slack_secs: random.pick(&[(None, 3.0), (Some(1e7), 1.0), (Some(10.0), 0.2)]),
        entity: random.pick(&[(Some(0), 1.0), (Some(1), 1.0), (None, 1.0)]),
        held_type: None,
        number: 0,
        ..JobRow::default()
    }
}

fn instance(seed: u64, jobs: usize, types: usize) -> Instance {
    let mut random = Random::new(seed);
    let random = &mut random;
    let kinds = 4;
    let mut rows: Vec<JobRow> = (0..jobs).map(|_| job(random, types, kinds)).collect();
    // Some are exactly alike.
    for at in 1..rows.len() {
        if random.uniform() < 0.4 {
            rows[at] = rows[(random.uniform() * at as f64) as usize].clone();
        }
    }
    let mut pairs = Vec::new();
    for first in 0..kinds {
        for second in first..kinds {
            let rates = (0..types).map(|_| (odd(random), random.pick(&[(0.0, 1.0), (0.9, 3.0)])));
            pairs.push(PairRow { first, second, rates: rates.collect(), seen: true });
        }
    }
    let workers =
        |gpu: usize| random.pick(&[(f64::from(gpu as u32 == 0), 1.0), (3.0, 2.0), (64.0, 1.0)]);
    Instance {
        workers: (0..types).map(workers).collect(),
        prices: vec![0.7; types],
        jobs: rows,
        pairs,
        entities: vec![
            Entity { weight: 1.0, inner: Inner::Fairness },
            Entity { weight: 2.0, inner: Inner::Fifo },
        ],
    }
}

fn solvers() -> Vec<(String, Box<dyn Allocate>)> {
    let mut list: Vec<(String, Box<dyn Allocate>)> = vec![
        ("strategy-proof".into(), Box::new(StrategyProof)),
        ("isolated".into(), Box::new(Isolated)),
        ("fifo".into(), Box::new(Fifo { seed: 3 })),
        ("fifo-packed".into(), Box::new(FifoPacked::default())),
        ("shortest".into(), Box::new(Shortest)),
    ];
    for (priced, deadlines, packed) in [(false, false, false), (true, true, true)] {
        let sum = SumThroughput { priced, deadlines, packed, ..Default::default() };
        list.push((format!("sum {packed}"), Box::new(sum)));
    }
    for rate_knowledge in [RateKnowledge::Agnostic, RateKnowledge::Aware, RateKnowledge::Packed] {
        list.push((format!("max-min {rate_knowledge:?}"), Box::new(MaxMin::new(rate_knowledge))));
        list.push((
            format!("water-filling {rate_knowledge:?}"),
            Box::new(WaterFilling { rate_knowledge }),
        ));
        list.push((
            format!("finish-time {rate_knowledge:?}"),
            Box::new(FinishTime { rate_knowledge, weighted: true }),
        ));
        list.push((format!("makespan {rate_knowledge:?}"), Box::new(Makespan { rate_knowledge })));
    }
    list
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    #[test]
    fn shares_keep_the_rules(seed: u64, jobs in 1usize..25, types in 1usize..4) {
        let instance = instance(seed, jobs, types);
        for (name, mut policy) in solvers() {
            let allocation = policy.allocate(&instance).unwrap();
            let worst = violation(&instance, &allocation);
            prop_assert!(worst <= 1e-6, "{}: broken by {}", name, worst);
            prop_assert!(!allocation.objective.is_nan(), "{}", name);
            prop_assert!(
                matches!(allocation.fallback, None | Some(Fallback::DeadlinesDropped)),
                "{}: {:?}", name, allocation.fallback
            );
        }
    }

    #[test]
    fn parts_keep_the_rules_of_the_whole(seed: u64, jobs in 10usize..60) {
        let instance = instance(seed, jobs, 3);
        let inner = MaxMin::new(RateKnowledge::Packed);
        let mut pop = Pop { inner, jobs_max: 8, seed };
        let parts = pop.allocate(&instance).unwrap();
        prop_assert!(violation(&instance, &parts) <= 1e-6);
        let whole = MaxMin::new(RateKnowledge::Packed).allocate(&instance).unwrap();
        prop_assert!(parts.objective <= whole.objective * (1.0 + 1e-6), "better than the best");
    }
}
