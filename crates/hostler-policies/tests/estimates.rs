//! What policies do with run times that were learnt instead of told.

use expect_test::expect;
use hostler_core::event::Event;
use hostler_core::job::Estimate;
use hostler_core::metrics::Metrics;
use hostler_core::record::Record;
use hostler_core::units::Time;
use hostler_policies::builtin;
use hostler_sim::lower::Workload;
use hostler_sim::scenario::Scenario;
use hostler_sim::trace::PaiLike;
use hostler_sim::{fixture, run};

#[test]
fn sjf_goes_by_what_like_jobs_took_and_not_by_what_their_users_say() {
    // Three short jobs of one tenant and three long ones of another teach what to expect. Then a
    // long job that claims to take a second meets a short one that claims to take a hundred.
    let scenario = "
        cluster 1
        job s1    at 0   tenant short  for 1
        job s2    at 0   tenant short  for 1
        job s3    at 0   tenant short  for 1
        job l1    at 0   tenant long   for 10
        job l2    at 0   tenant long   for 10
        job l3    at 0   tenant long   for 10
        job boast at 40  tenant long   for 10  estimate 1
        job shy   at 40  tenant short  for 1   estimate 100
    ";
    let build = || builtin().from_toml("kind = 'sjf'\nestimate = 'median'").unwrap();
    expect![[r#"
        s1     0..1
        s2     1..2
        s3     2..3
        l1     3..13
        l2     13..23
        l3     23..33
        boast  41..51
        shy    40..41
        avg jct 10.88  makespan 51  preemptions 0
    "#]]
    .assert_eq(&fixture::check(&build, scenario).text);
}

/// Enough jobs that most of them arrive while others wait.
const JOBS: u32 = 4000;
/// Times what the cluster has: with less, few jobs wait and the order hardly matters.
const LOAD: f64 = 4.0;

/// Average completion time on a seeded workload.
fn average_jct(policy: &str) -> f64 {
    average_jct_in("", policy)
}

/// The same under a scenario.
fn average_jct_in(scenario: &str, policy: &str) -> f64 {
    let options = PaiLike { jobs: JOBS, seed: 7, scale: 20, ..PaiLike::default() };
    let cluster = options.cluster();
    let options = options.at_load(LOAD, &cluster).expect("the load can be reached");
    let trace = options.generate().expect("the options are valid");
    let mut workload = Workload::new(trace, &cluster).expect("the generator's own trace is valid");
    let scenario = Scenario::parse(scenario).expect("the scenario is valid");
    scenario.apply(&mut workload).expect("the scenario fits");
    let policy = builtin().from_toml(policy).expect("the settings are valid");
    let finished = run::simulate(&workload, policy, Metrics::default(), None)
        .expect("policies keep the rules");
    let summary = finished.watch.summary(&finished.state);
    assert_eq!(summary.jobs_done, u64::from(JOBS));
    summary.avg_jct_s
}

#[test]
fn learnt_run_times_are_worth_something_and_the_truth_is_worth_more() {
    let strict = average_jct("kind = 'fifo'");
    let fifo = average_jct("kind = 'fifo'\nhead = 'skips'");
    let median = average_jct("kind = 'sjf'\nestimate = 'median'");
    let cart = average_jct("kind = 'sjf'\nestimate = 'cart'");
    let blend = average_jct("kind = 'sjf'\nestimate = 'blend'");
    let oracle = average_jct("kind = 'sjf'\nestimate = 'oracle'");
    let shown = format!(
        "fifo {strict:.0}, that skips {fifo:.0}; sjf by median {median:.0}, by cart {cart:.0}, \
         by blend {blend:.0}, by oracle {oracle:.0}\n"
    );
    expect![[r#"
        fifo 24885, that skips 9026; sjf by median 8468, by cart 8112, by blend 8214, by oracle 7090
    "#]]
    .assert_eq(&shown);
    assert!(fifo < strict, "{fifo} against {strict}");
    assert!(median < fifo, "{median} against {fifo}");
    // A burst this short ends before a tree has much to add; it must not do harm beyond chance.
    assert!(cart < strict, "{cart} against {strict}");
    assert!(blend < median, "{blend} against {median}");
    assert!(oracle < blend.min(cart), "{oracle} against {blend} and {cart}");
}

#[test]
fn the_worse_the_information_the_worse_sjf_does() {
    let by_oracle = |setting: &str, values: &[f64]| -> Vec<f64> {
        let jct = |value: &f64| {
            let scenario = format!("[estimates]\nseed = 1\n{setting} = {value:?}");
            average_jct_in(&scenario, "kind = 'sjf'")
        };
        values.iter().map(jct).collect()
    };
    let noise = by_oracle("noise", &[0.0, 0.5, 1.0, 2.0, 4.0]);
    let shuffle = by_oracle("shuffle", &[0.0, 0.25, 0.5, 1.0]);
    let scale = by_oracle("scale", &[0.1, 1.0, 10.0]);
    let line = |name: &str, jct: &[f64]| {
        let jct: Vec<String> = jct.iter().map(|jct| format!("{jct:.0}")).collect();
        format!("{name} {}\n", jct.join(" "))
    };
    expect![[r#"
        noise 7090 7116 7199 7433 7785
        shuffle 7090 7335 7819 8736
        scale 7090 7090 7090
    "#]]
    .assert_eq(&(line("noise", &noise) + &line("shuffle", &shuffle) + &line("scale", &scale)));
    assert!(noise.is_sorted(), "{noise:?}");
    assert!(shuffle.is_sorted(), "{shuffle:?}");
    // An order does not change when all are off by the same factor.
    assert!(scale.iter().all(|jct| *jct == noise[0]), "{scale:?}");
}

/// Two hundred jobs of a second teach; then three of another tenant run for `secs`, others arrive
/// meanwhile, and a fourth of that tenant comes at 300.
fn estimates_while_others_run(policy: &str, secs: u64) -> Vec<(Time, Estimate)> {
    let mut scenario = "cluster 8\n".to_owned();
    for number in 0..200 {
        scenario += &format!("job t{number} at {} tenant steady for 1\n", number / 2);
    }
    for number in 0..3 {
        scenario += &format!("job open{number} at 200 tenant other for {secs}\n");
    }
    for number in 0..20 {
        scenario += &format!("job m{number} at {} tenant other for 1\n", 201 + number);
    }
    scenario += "job late at 300 tenant other for 1\n";
    let build = || builtin().from_toml(policy).expect("the settings are valid");
    let checked = fixture::check(&build, &scenario);
    let mut estimates = Vec::new();
    for record in &checked.records {
        let Record::Input { at, events } = record else { continue };
        estimates.extend(events.iter().filter_map(|event| match event {
            Event::Estimated { estimate, .. } => Some((*at, *estimate)),
            _ => None,
        }));
    }
    estimates
}

#[test]
fn no_estimate_knows_a_run_that_is_not_over() {
    for source in ["median", "cart", "blend"] {
        let policy = &format!("kind = 'sjf'\nestimate = '{source}'");
        let short = estimates_while_others_run(policy, 60);
        let long = estimates_while_others_run(policy, 7000);
        let open = short.iter().filter(|(at, _)| *at < Time::from_secs(260)).count();
        assert!(open > 200, "{open} jobs had an estimate");
        assert_eq!(short[..open], long[..open], "{policy}");
        assert_eq!(short.len(), long.len());
    }
}
