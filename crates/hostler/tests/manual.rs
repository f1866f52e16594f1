//! The pages of the manual that follow from the code: made again and compared.
//!
//! `UPDATE_EXPECT=1` writes them. Pages that people write (`formats.md`, `metrics.md`) are not
//! touched.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use hostler_core::metrics::{Metrics, Summary};
use hostler_core::policy::{PolicyDef, Setting};
use hostler_core::record::Record;
use hostler_sim::lower::Workload;
use hostler_sim::run;
use hostler_sim::scenario::Scenario;
use hostler_sim::trace::error::Faults;
use hostler_sim::trace::throughputs::{read_pair_table, read_throughput_table};
use hostler_sim::trace::{Cluster, ReadOptions, Throughputs};

/// Columns of the help texts, as wide as the widest line of the manual.
const COLUMNS: &str = "100";

const ADVICE: &str =
    "run `UPDATE_EXPECT=1 cargo test -p hostler --test manual` and review `git diff -- docs`";

/// Compares a page with what the code says, or writes it.
fn check(name: &str, text: &str) {
    let path: PathBuf = Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where"))
        .join("../../docs")
        .join(name);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, text).expect("the manual can be written");
        return;
    }
    let written = std::fs::read_to_string(&path).unwrap_or_default();
    let same = written.lines().zip(text.lines()).take_while(|(old, new)| old == new).count();
    assert!(written == text, "docs/{name} is stale from line {}; {ADVICE}", same + 1);
}

#[test]
fn the_schema_of_job_files_is_what_the_program_prints() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_hostler"));
    let printed = program.args(["submit", "--schema"]).stdin(Stdio::null()).output();
    let printed = printed.expect("the program can be started");
    check("job.schema.json", &String::from_utf8(printed.stdout).expect("the schema is text"));
}

#[test]
fn the_page_of_policies_is_what_the_registry_says() {
    check("policies.md", &policies());
}

fn policies() -> String {
    let mut page = "\
# Policies

Made from the registry by `crates/hostler/tests/manual.rs`; do not edit.

A policy is chosen with `--policy KIND --set KEY=VALUE`, in a comparison with
`--policies KIND:KEY=VALUE,..`, and in a log or a configuration file with

```toml
[policy]
kind = \"sjf\"
preempt = true
```

Unknown settings are errors. `hostler policies KIND` prints what stands here.

| policy | what it does |
|---|---|
"
    .to_owned();
    let registry = hostler_policies::builtin();
    for def in registry.all() {
        writeln!(page, "| [`{kind}`](#{kind}) | {} |", cell(&def.summary), kind = def.kind)
            .expect("writing to a string");
    }
    for def in registry.all() {
        page += &policy(def);
    }
    page
}

fn policy(def: &PolicyDef) -> String {
    let mut section = format!("\n## {}\n\n", def.kind);
    for need in &def.needs {
        writeln!(section, "Left out of a comparison by default when {need}.\n")
            .expect("writing to a string");
    }
    section += "| setting | default | takes | what it means |\n|---|---|---|---|\n";
    for Setting { name, takes, help } in def.settings.iter() {
        let default = def.defaults.get(&**name).map_or("none".to_owned(), toml::Value::to_string);
        let (takes, help) = (cell(takes), cell(help));
        writeln!(section, "| `{name}` | `{default}` | `{takes}` | {help} |")
            .expect("writing to a string");
    }
    section
}

/// Text that may stand in a table.
fn cell(text: &str) -> String {
    text.trim().replace('|', "\\|").replace('\n', " ")
}

#[test]
fn the_page_of_commands_is_what_the_program_says() {
    let mut page = "\
# Command line

Made from the program's help by `crates/hostler/tests/manual.rs`; do not edit.

Results go to stdout, everything else to stderr. The exit code is 0 when all went well, 1 when
something failed and 2 when the command line is wrong.
"
    .to_owned();
    command(&[], &mut page);
    check("cli.md", &page);
}

/// Adds the help of a command and of those below it.
fn command(words: &[&str], page: &mut String) {
    let help = help(words);
    let name = ["hostler"].iter().chain(words).copied().collect::<Vec<_>>().join(" ");
    write!(page, "\n## {name}\n\n```text\n{help}```\n").expect("writing to a string");
    for below in commands_in(&help) {
        command(&[words, &[below]].concat(), page);
    }
}

fn help(words: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_hostler"))
        .args(words)
        .arg("--help")
        .env("COLUMNS", COLUMNS)
        .stdin(Stdio::null())
        .output()
        .expect("the program starts");
    assert!(output.status.success(), "{words:?} has no help");
    let text = String::from_utf8(output.stdout).expect("the help is text");
    text.lines().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// Commands that a help text lists, but for `help` itself.
fn commands_in(help: &str) -> impl Iterator<Item = &str> {
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| !line.is_empty());
    // Deeper indentation goes on with the description above.
    let named = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    named.filter_map(|line| line.split_whitespace().next()).filter(|name| *name != "help")
}

#[test]
fn the_page_of_metrics_defines_every_figure() {
    let page = include_str!("../../../docs/metrics.md");
    let summary = serde_json::to_value(Summary::default()).unwrap();
    for name in summary.as_object().unwrap().keys() {
        assert!(page.contains(&format!("`{name}`")), "docs/metrics.md does not define `{name}`");
    }
}

const FORMATS: &str = include_str!("../../../docs/formats.md");

/// The block of `formats.md` that opens with this fence.
fn block(fence: &str) -> &'static str {
    let (_, rest) = FORMATS.split_once(&format!("```{fence}\n")).expect("the page has the block");
    rest.split_once("```\n").expect("the block ends").0
}

fn throughputs() -> Throughputs {
    let (mut tables, mut faults) = (Throughputs::default(), Faults::default());
    let [alone, pairs] = ["throughputs.csv", "pairs.csv"].map(|name| block(&format!("csv {name}")));
    read_throughput_table(&mut alone.as_bytes(), "throughputs.csv", &mut tables, &mut faults);
    read_pair_table(&mut pairs.as_bytes(), "pairs.csv", &mut tables, &mut faults);
    faults.or(tables).expect("the tables of the page are valid")
}

#[test]
fn the_examples_of_the_page_of_formats_run() {
    let folder = tempfile::tempdir().unwrap();
    for table in ["jobs.csv", "tasks.csv"] {
        std::fs::write(folder.path().join(table), block(&format!("csv {table}"))).unwrap();
    }
    let trace = hostler_sim::trace::read(folder.path(), ReadOptions::default());
    let cluster = Cluster::parse(block("toml cluster"), "cluster.toml").unwrap();
    let speeds = throughputs();
    let mut workload = Workload::with_throughputs(trace.unwrap(), &cluster, Some(&speeds)).unwrap();
    Scenario::parse(block("toml scenario")).unwrap().apply(&mut workload).unwrap();
    let policy = hostler_policies::builtin().from_toml("kind = 'fifo'").unwrap();
    let finished = run::simulate(&workload, policy, Metrics::default(), None).unwrap();
    assert_eq!(finished.watch.summary(&finished.state).jobs_done, 2);
    for line in block("json log").lines() {
        let record: Record = serde_json::from_str(line).unwrap();
        assert_eq!(serde_json::to_string(&record).unwrap(), line);
    }
}

#[test]
fn what_the_page_of_formats_calls_required_is_required_and_nothing_else() {
    let cluster = |text: &str| Cluster::parse(text, "cluster.toml");
    let least = block("toml least cluster");
    cluster(least).unwrap();
    let full = block("toml cluster");
    let without = |line: &str| full.replacen(line, "", 1);
    let required: Vec<&str> = full.lines().filter(|line| line.contains("# required")).collect();
    assert_eq!(required.len(), 8, "{required:#?}");
    for line in required {
        assert!(cluster(&without(line)).is_err(), "it is not required: {line}");
    }
    for line in full.lines().filter(|line| line.contains('=') && !line.contains("# required")) {
        // The second model says the same as the first, without the marks.
        let unmarked = ["name = \"T4\"", "mem_mib = 16384", "tier = 1"].contains(&line);
        assert!(unmarked || cluster(&without(line)).is_ok(), "it is required: {line}");
    }
}
