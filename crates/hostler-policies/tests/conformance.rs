//! Every registered policy, also one from outside, on generated clusters, workloads and faults.
//!
//! Each case is a fixture text, so that a failing one can be read and pasted into a test. The
//! fixture's own checks cover: same input same log, a rebuilt policy schedules the same, the log
//! folds to the state, bookings add up after every step. The engine verifies every decision: no
//! double booking, gangs whole, bounded decisions. Here: no job is lost.

#[path = "outside/listed_first.rs"]
mod listed_first;

use std::fmt::Write as _;

use hostler_core::policy::PolicyDef;
use hostler_core::registry::Registry;
use hostler_sim::fixture;
use proptest::prelude::*;

/// At least so many; `PROPTEST_CASES` asks for more.
const CASES_MIN: u32 = 1000;

fn config() -> ProptestConfig {
    let asked = ProptestConfig::default();
    ProptestConfig { cases: asked.cases.max(CASES_MIN), ..asked }
}

fn node() -> impl Strategy<Value = String> {
    let gpus = prop::sample::select(vec![0u32, 1, 2, 4, 8]);
    let model = prop::sample::select(vec!["A", "B"]);
    let island = prop::sample::select(vec![0u32, 2, 4]);
    (gpus, model, 4u32..64, 1000u32..9000, 0u32..2, island).prop_map(
        |(gpus, model, cpu, mem, rack, island)| {
            format!("gpus {gpus} model {model} cpu {cpu} mem {mem} rack {rack} island {island}")
        },
    )
}

#[derive(Clone, Debug)]
struct JobText {
    at: u32,
    words: String,
    role: Option<String>,
}

fn job() -> impl Strategy<Value = JobText> {
    let gpus = prop::sample::select(vec!["0", "0.1", "0.25", "0.5", "0.7", "1", "2", "4"]);
    let model = prop::sample::select(vec!["", "", " model A", " model B", " model A|B"]);
    let locality = prop::sample::select(vec!["", "", "", " locality node", " locality rack"]);
    let request = (gpus, 1u32..6, 1u32..5, 0u32..1500, model, locality);
    let time = (0u32..200, 1u32..300, 1u32..400, prop::option::of(100u32..400));
    let state = (0u32..4, 0u32..20, 0u32..20, prop::sample::select(vec![0u32, 10, 50]));
    let gpus = prop::sample::select(vec!["0", "0.5", "1", "2"]);
    let role = (gpus, 1u32..4, 1u32..5, 0u32..800).prop_map(|(gpus, count, cpu, mem)| {
        format!("role gpus {gpus} count {count} cpu {cpu} mem {mem}")
    });
    let role = prop::option::weighted(0.2, role);
    let sharing = prop::sample::select(vec![
        "",
        "",
        " sharing willing group g use 0.1",
        " sharing willing group g use 0.4 mem_use 9000",
        " sharing willing group h use 0.9 gpu_mem 2000",
        " group h use 0.2",
        " gpu_mem 200 saves never",
        " gpu_mem 500 saves never",
        " gpu_mem 500",
        " saves never suspend never",
    ]);
    (request, time, state, role, sharing).prop_map(|(request, time, state, role, sharing)| {
        let (gpus, count, cpu, mem, model, locality) = request;
        let (at, run, estimate, limit) = time;
        let (priority, save, load, every) = state;
        let limit_words = limit.map(|limit| format!(" limit {limit}")).unwrap_or_default();
        let words = format!(
            "gpus {gpus} count {count} cpu {cpu} mem {mem}{model}{locality} for {run} estimate \
{estimate} priority {priority} save {save} load {load} every {every}{limit_words}{sharing}"
        );
        JobText { at, words, role }
    })
}

#[derive(Clone, Debug)]
enum FaultText {
    Node(prop::sample::Index, u32, u32),
    Start(prop::sample::Index, u32),
    Report(prop::sample::Index, &'static str, String),
}

fn fault() -> impl Strategy<Value = FaultText> {
    let index = any::<prop::sample::Index>;
    let node = (index(), 0u32..400, 1u32..300)
        .prop_map(|(at, from, lasts)| FaultText::Node(at, from, lasts));
    let start = (index(), 1u32..4).prop_map(|(at, times)| FaultText::Start(at, times));
    let kind = prop::sample::select(vec!["start", "stop", "finish"]);
    let astray = prop_oneof![
        (1u32..500).prop_map(|by| format!("late {by}")),
        (1u32..500).prop_map(|by| format!("twice {by}")),
        Just("never".to_owned()),
    ];
    let report =
        (index(), kind, astray).prop_map(|(at, kind, how)| FaultText::Report(at, kind, how));
    prop_oneof![node, start, report]
}

/// Times for which nodes are kept, what tenants may use, and what happens that no policy decided:
/// in most cases none.
#[derive(Clone, Debug)]
struct RuleText {
    found: Option<(prop::sample::Index, u32, prop::sample::Index)>,
    kept: Option<(prop::sample::Index, u32, u32)>,
    windows: Vec<(prop::sample::Index, u32, u32, &'static str)>,
    quota: Option<u32>,
    budget: Option<(u32, u32)>,
    suspend: Option<(u32, u32)>,
}

fn rules() -> impl Strategy<Value = RuleText> {
    let evicts = prop::sample::select(vec!["yes", "no"]);
    let window = (any::<prop::sample::Index>(), 0u32..300, 1u32..200, evicts);
    let windows = prop::collection::vec(window, 0..3);
    // The largest job fits: one that never could would wait for good.
    let quota = prop::option::weighted(0.2, 26u32..60);
    let budget = prop::option::weighted(0.2, (1u32..500, 50u32..400));
    let suspend = prop::option::weighted(0.5, (0u32..5, 0u32..20));
    let index = any::<prop::sample::Index>;
    let found = prop::option::weighted(0.3, (index(), 0u32..300, index()));
    let kept = prop::option::weighted(0.2, (index(), 0u32..300, 1u32..200));
    (windows, quota, budget, suspend, found, kept).prop_map(
        |(windows, quota, budget, suspend, found, kept)| RuleText {
            found,
            kept,
            windows,
            quota,
            budget,
            suspend,
        },
    )
}

impl RuleText {
    /// What happens to jobs without a decision.
    fn outside(&self, nodes: usize, jobs: usize) -> String {
        let mut text = String::new();
        if let Some((job, at, node)) = &self.found {
            text += &format!("found j{} at {at} on n{}\n", job.index(jobs), node.index(nodes));
        }
        if let Some((job, at, secs)) = &self.kept {
            text += &format!("kept j{} at {at} for {secs}\n", job.index(jobs));
        }
        text
    }

    fn lines(&self, nodes: usize) -> String {
        let mut text = String::new();
        for (at, (node, from, lasts, evicts)) in self.windows.iter().enumerate() {
            let (node, until) = (node.index(nodes), from + lasts);
            text +=
                &format!("window w{at} nodes n{node} from {from} until {until} evicts {evicts}\n");
        }
        if let Some(gpus) = self.quota {
            text += &format!("tenant red quota {gpus}\n");
        }
        if let Some((secs, every)) = self.budget {
            text += &format!("tenant blue budget {secs} every {every}\n");
        }
        if let Some((fixed, out)) = self.suspend {
            text += &format!("suspend fixed {fixed} out {out} back {fixed}\n");
        }
        text
    }
}

fn scenario() -> impl Strategy<Value = String> {
    let nodes = prop::collection::vec(node(), 1..5);
    let jobs = prop::collection::vec(job(), 1..16);
    let faults = prop::collection::vec(fault(), 0..4);
    (nodes, jobs, faults, rules()).prop_map(|(nodes, mut jobs, faults, rules)| {
        jobs.sort_by_key(|job| job.at);
        let mut text = String::new();
        for (at, node) in nodes.iter().enumerate() {
            writeln!(text, "node n{at} {node}").expect("writing to a string");
        }
        text += &rules.lines(nodes.len());
        for (at, job) in jobs.iter().enumerate() {
            let tenant = ["red", "blue"][at % 2];
            writeln!(text, "job j{at} at {} tenant {tenant} {}", job.at, job.words)
                .expect("writing to a string");
            if let Some(role) = &job.role {
                writeln!(text, "{role}").expect("writing to a string");
            }
        }
        text += &rules.outside(nodes.len(), jobs.len());
        for fault in &faults {
            text.push_str(&fault_line(fault, nodes.len(), jobs.len()));
        }
        text
    })
}

/// The same with jobs of two kinds that are willing to share whole GPUs; some of what they do
/// beside each other is slower than to take turns, and some cannot be.
fn with_pairs((text, parts, observed): (String, [u32; 3], bool)) -> String {
    let pair = |(names, part): (&str, u32)| {
        let rate = f64::from(part) / 10.0;
        format!("pair {names} {rate} {rate}\n")
    };
    let pairs = ["p p", "p q", "q q"].into_iter().zip(parts).map(pair).collect::<String>();
    let told = if observed { "speeds observed\n" } else { "" };
    let mut head = format!("profile p\nprofile q\n{pairs}{told}");
    let mut with_kinds = String::new();
    for (at, line) in text.lines().enumerate() {
        let job = line.starts_with("job ");
        if job {
            with_kinds += &std::mem::take(&mut head);
        }
        let shares = job && !line.contains("sharing") && !line.contains("group");
        let kind = ["p", "q"][at % 2];
        let words = if shares { format!(" profile {kind} sharing willing") } else { String::new() };
        with_kinds += &format!("{line}{words}\n");
    }
    with_kinds
}

/// Scenarios in which pairs are of use.
fn scenario_with_pairs() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![0u32, 3, 5, 6, 9]);
    let parts = [part.clone(), part.clone(), part];
    (scenario(), parts, any::<bool>()).prop_map(with_pairs)
}

fn fault_line(fault: &FaultText, nodes: usize, jobs: usize) -> String {
    match fault {
        FaultText::Node(at, from, lasts) => {
            format!("fault node-down n{} at {from} for {lasts}\n", at.index(nodes))
        }
        FaultText::Start(at, times) => {
            format!("fault start-fails j{} times {times}\n", at.index(jobs))
        }
        FaultText::Report(at, kind, how) => {
            // Up to as often as makes a node silent.
            let times = 1 + at.index(jobs * 3) % 3;
            format!("fault {kind} j{} {how}\n", at.index(jobs)).repeat(times)
        }
    }
}

/// The policies of the crate, and one that is no part of it.
fn registry() -> Registry {
    let mut registry = hostler_policies::builtin();
    let outside = listed_first::def("listed-first".to_owned(), &["j3", "j1"]);
    registry.register(outside).expect("the name is free");
    registry
}

/// Every policy as it comes, and with each of the settings that change its passes.
fn variants(registry: &Registry) -> Vec<(&PolicyDef, toml::Table)> {
    let table = |text: &str| text.parse::<toml::Table>().expect("settings of a test");
    let mut variants = Vec::new();
    for def in registry.all() {
        let has = |name: &str| def.settings.iter().any(|setting| setting.name == name);
        variants.push((def, toml::Table::new()));
        if has("preempt") {
            variants.push((def, table("preempt = true")));
            variants.push((def, table("preempt = false")));
        }
        if has("preempt") && has("head") {
            variants.push((def, table("preempt = true\nhead = 'blocks'")));
            variants.push((def, table("preempt = true\nplace = 'consolidate'")));
        }
        if has("fair_share_days") {
            // Weighed about twice a minute.
            variants.push((def, table("fair_share_days = 0.02")));
        }
        if has("quantum_gpu_secs") {
            variants.push((def, table("quantum_gpu_secs = 300")));
        }
        if has("limits_gpu_secs") {
            variants.push((def, table("limits_gpu_secs = [60, 300, 900]")));
            variants.push((def, table("limits_gpu_secs = [60, 300]\npromote = 0.5")));
        }
        if has("lease_secs") {
            for mode in ["plain", "aligned", "reserve"] {
                variants.push((def, table(&format!("mode = '{mode}'\nlease_secs = 20"))));
            }
        }
        if has("packed") {
            variants.push((def, table("packed = true\nround_secs = 60")));
        }
        if has("migrate") {
            variants.push((def, table("round_secs = 20\ngap_secs = 0")));
            variants.push((def, table("round_secs = 20\nplace = 'spread'")));
        }
        if has("ends_min") {
            let soon = "ends_min = 2\nspan_gpu_secs = 200\nquantum_gpu_secs = 60";
            variants.push((def, table(soon)));
        }
        if has("sharing") {
            variants.push((def, table("sharing = 'packed'")));
            variants.push((def, table("sharing = 'off'")));
        }
        if has("head") && has("place") {
            variants.push((def, table("head = 'skips'\nplace = 'spread'")));
        }
    }
    variants
}

/// Says which policy it was, should a check of it panic.
struct Named(String);

impl Drop for Named {
    #[allow(clippy::disallowed_macros, reason = "what a failing test prints is for people")]
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("policy: {}", self.0);
        }
    }
}

/// Runs a scenario under a policy, with all checks that come with it.
fn keeps_the_rules(def: &PolicyDef, settings: &toml::Table, text: &str) {
    let build = || def.build(settings).expect("defaults are valid");
    let name = format!("{} {settings:?}", def.kind);
    let _named = Named(name.clone());
    let checked = fixture::check(&build, text);
    let jobs = text.lines().filter(|line| line.starts_with("job")).count();
    assert_eq!(checked.endings.len(), jobs, "{name} lost a job");
    assert_eq!(checked.state.job_count(), 0, "{name} left a job behind");
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_policy_keeps_the_rules_of_the_cluster(text in scenario()) {
        let registry = registry();
        for (def, settings) in variants(&registry) {
            keeps_the_rules(def, &settings, &text);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: config().cases / 5, ..config() })]

    #[test]
    fn policies_that_put_jobs_in_pairs_keep_the_rules_of_the_cluster(
        text in scenario_with_pairs()
    ) {
        let registry = registry();
        let variants = variants(&registry).into_iter();
for (def, settings) in variants.filter(|(_, settings)| settings.contains_key("round_secs")) {
            keeps_the_rules(def, &settings, &text);
        }
    }
}
