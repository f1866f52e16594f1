//! The tour of `README.md`, typed as it stands there into a shell with a home of its own: once by
//! whoever runs the tests, and, when that is root, once more by somebody who is not.

#![allow(clippy::unwrap_used, reason = "helpers of tests stop with the fault, as tests do")]

#[path = "../harness/mod.rs"]
mod harness;
mod terminal;

use std::os::unix::fs::MetadataExt as _;

use harness::wait_for;
use terminal::Terminal;

/// A number that the tour does not know beforehand is written like this.
const LEFT_OPEN: &str = "..";

/// The commands of the tour, in order.
fn tour() -> Vec<String> {
    let package = std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where");
    let text = std::fs::read_to_string(format!("{package}/../../README.md")).unwrap();
    let blocks = text.split("\n```").filter(|block| block.contains("$ hostler serve"));
    let block = blocks.last().expect("the tour is a block of its own");
    let commands = block.lines().filter_map(|line| line.strip_prefix("$ "));
    commands.map(str::to_owned).collect()
}

fn walk(mut terminal: Terminal) {
    let commands = tour();
    assert!(commands.len() > 6, "{commands:#?}");
    for command in &commands {
        let words: Vec<&str> = command.split_whitespace().collect();
        if words.starts_with(&["hostler", "login"]) && command.contains(LEFT_OPEN) {
            let printed = terminal.line("hostler login ");
            terminal.types(&printed);
        } else if words.starts_with(&["hostler", "logs"]) && words.contains(&"-f") {
            terminal.types_and_breaks_off(command, "1");
        } else {
            terminal.types(command);
        }
    }
    assert!(commands.iter().any(|command| command == "hostler cancel 1"), "{commands:#?}");
    wait_for("the end of the job", || {
        terminal.types("hostler show 1").contains("cancelled").then_some(())
    });
}

#[test]
fn the_tour_can_be_typed_as_it_stands() {
    let terminal = Terminal::open(None);
    let home = terminal.home();
    walk(terminal);
    assert!(!home.exists());
}

#[test]
fn the_tour_can_be_typed_by_an_ordinary_user() {
    if !rustix::process::geteuid().is_root() {
        println!("skipped: the other test is by an ordinary user");
        return;
    }
    let terminal = Terminal::open(Some(65534));
    assert_eq!(std::fs::metadata(terminal.home()).unwrap().uid(), 65534);
    walk(terminal);
}
