//! Help, lists and completions; results on stdout, everything else on stderr.

use hostler_sim::trace;

use crate::program::Folder;

/// Commands as `--help` lists them, below the given ones.
fn subcommands(folder: &Folder, path: &str) -> Vec<String> {
    let help = folder.quiet(&format!("{path} --help"));
    let listed = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = listed.take_while(|line| line.starts_with("  "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.filter(|name| *name != "help").map(|name| format!("{path} {name}")).collect()
}

#[test]
fn every_command_shows_examples() {
    let folder = Folder::new();
    let mut left = vec![String::new()];
    let mut leaves = 0;
    while let Some(path) = left.pop() {
        let below = subcommands(&folder, &path);
        let help = folder.quiet(&format!("{path} --help"));
        assert!(help.contains("Examples:\n  hostler"), "`{path}` shows no examples");
        assert!(help.contains("Usage: hostler"), "`{path}`: {help}");
        leaves += usize::from(below.is_empty());
        left.extend(below);
    }
    assert!(leaves >= 8, "only {leaves} commands were found");
}

#[test]
fn examples_of_the_help_are_command_lines_that_parse() {
    let folder = Folder::new();
    let mut left = vec![String::new()];
    while let Some(path) = left.pop() {
        let help = folder.quiet(&format!("{path} --help"));
        let examples = help.lines().skip_while(|line| *line != "Examples:").skip(1);
        for line in examples.filter_map(|line| line.strip_prefix("  hostler ")) {
            let command = line.split(" && ").next().unwrap_or(line);
            let command = command.split("   ").next().unwrap_or(command);
            let command = command.split(['<', '>']).next().unwrap_or(command);
            // What follows belongs to another program.
            let command = command.split(" -- ").next().unwrap_or(command);
            let format = command.split_once("--from ").filter(|_| command.starts_with("trace"));
            let from = format.map(|(_, name)| name.trim());
            let known = |name: &str| trace::IMPORTERS.iter().any(|known| known.name == name);
            assert!(from.is_none_or(known), "`{command}` names no format");
            // An option that does not exist is found even when help is asked for last.
            let ran = folder.run(&format!("{command} --no-such-option"));
            let expected = "unexpected argument '--no-such-option'";
            assert!(ran.stderr.contains(expected), "`{command}`: {}", ran.stderr);
        }
        left.extend(subcommands(&folder, &path));
    }
}

#[test]
fn a_node_cannot_be_given_up_while_a_shim_may_sleep_through_the_fence() {
    let folder = Folder::new();
    // No certificate is there: what gets past the times fails all the same.
    let serve = "serve --data data --cert none.pem --key none.key --fence-secs 10 --dead-secs";
    folder.run(&format!("{serve} 16")).fails(1, &["`--dead-secs` is 16", "need 7 s more"]);
    folder.run(&format!("{serve} 17")).fails(1, &["none.pem"]);
}

#[test]
fn the_version_is_printed() {
    let expected = format!("hostler {}\n", env!("CARGO_PKG_VERSION"));
    assert_eq!(Folder::new().quiet("--version"), expected);
}

#[test]
fn command_lines_without_sense_are_usage_errors() {
    let folder = Folder::new();
    for line in [
        "",
        "fly",
        "policies --fly",
        "policies fito",
        "simulate --policy",
        "trace",
        "trace gen",
        "trace gen pai-like",
        "trace gen pai-like --jobs -1 --out out",
        "trace gen pai-like --jobs 0 --out out",
        "trace gen pai-like --per-hour nan --out out",
        "trace gen pai-like --per-hour 0 --out out",
        "trace gen pai-like --load -1 --out out",
        "trace gen pai-like --load nan --out out",
        "trace gen pai-like --load 1 --per-hour 3 --out out",
        "trace gen pai-like --scale 0 --out out",
        "trace gen pai-like --format excel --out out",
        "trace gen pai-like --compress rar --out out",
        "trace convert a b --compress rar",
        "trace convert . b --from excel",
        "parity",
        "parity pai2020 --trace missing --policy fito",
        "parity pai2020 --trace missing --policy fifo,fito",
        "parity pai2020 --trace missing --policy fifo --cluster huge",
        "parity pai2020 --trace missing --policy fifo --nodes random",
        "parity pai2020 --trace missing --policy fifo --arrivals-per-minute 0",
        "completions tcsh",
        "compare --threads many",
    ] {
        let ran = folder.run(line);
        assert_eq!(ran.code, Some(2), "`{line}`: {}", ran.stderr);
        assert_eq!(ran.stdout, "", "`{line}`");
        assert!(!ran.stderr.is_empty(), "`{line}`");
        assert!(!folder.path("out").exists(), "`{line}` wrote something");
    }
}

#[test]
fn policies_are_listed_and_shown() {
    let folder = Folder::new();
    let list = folder.quiet("policies");
    let registry = hostler_policies::builtin();
    let all: Vec<&str> = registry.all().map(|def| &*def.kind).collect();
    let names: Vec<&str> = list.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, all);
    let sjf = folder.quiet("policies sjf");
    assert!(sjf.starts_with("sjf: "), "{sjf}");
    assert!(sjf.contains("preempt = false"), "{sjf}");
}

#[test]
fn policies_are_shown_to_machines() {
    let folder = Folder::new();
    let list = folder.json("policies --json");
    assert_eq!(list.as_array().map(Vec::len), Some(hostler_policies::builtin().all().count()));
    let sjf = folder.json("policies sjf --json");
    assert_eq!(sjf["kind"], "sjf");
    let settings = sjf["settings"].as_array().expect("settings are a list");
    let preempt = settings.iter().find(|setting| setting["name"] == "preempt");
    assert_eq!(preempt.map(|setting| setting["default"] == false), Some(true));
    assert!(list.as_array().is_some_and(|list| list.contains(&sjf)));
}

#[test]
fn completions_know_every_command() {
    let folder = Folder::new();
    for shell in ["bash", "zsh", "fish"] {
        let script = folder.quiet(&format!("completions {shell}"));
        for command in ["compare", "simulate", "policies", "trace", "replay", "pai-like"] {
            assert!(script.contains(command), "{shell} does not know `{command}`");
        }
    }
}
