//! What a job does not get: rights, descriptors and habits of whoever started its agent, and a word
//! in the program that starts it.

use std::path::{Path, PathBuf};
use std::process::Command;

use hostler_live::wire::{Stream, ToAgent};

use crate::daemon::{Fake, order};

/// A library that says into which program it was loaded, and whether that can still gain rights.
const LIBRARY: &str = r#"
#include <stdio.h>
#include <sys/prctl.h>
#include <unistd.h>

__attribute__((constructor)) static void loaded(void) {
    char path[4096] = {0};
    if (readlink("/proc/self/exe", path, sizeof path - 1) < 0) return;
    dprintf(1, "%s %d\n", path, prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
}
"#;

/// Builds the library; none without a compiler.
fn library(folder: &Path) -> Option<PathBuf> {
    let (source, library) = (folder.join("loaded.c"), folder.join("loaded.so"));
    std::fs::write(&source, LIBRARY).unwrap();
    let mut compiler = Command::new("cc");
    let built = compiler.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(&source).status();
    built.ok()?.success().then_some(library)
}

#[test]
fn a_library_of_a_job_is_loaded_into_its_command_alone() {
    let mut fake = Fake::new(&[]);
    let Some(library) = library(fake.folder()) else {
        println!("skipped: there is no C compiler");
        return;
    };
    let mut order = order(1, &["/bin/sleep", "0"]);
    order.env.insert("LD_PRELOAD".into(), library.display().to_string());
    fake.say(ToAgent::Start(Box::new(order)));
    assert_eq!(fake.ended(1), "0:0");
    let (_, text) = fake.output(1, Stream::Stdout, 0);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len(), 1, "it was loaded elsewhere, too: {text}");
    assert!(!lines[0].contains("hostler"), "{text}");
    assert!(lines[0].ends_with(" 1"), "the command can gain rights: {text}");
}

#[test]
fn a_job_inherits_neither_descriptors_nor_ignored_signals_nor_capabilities() {
    let mut fake = Fake::after("trap '' QUIT INT HUP USR1; exec 7</dev/null 9</dev/null");
    // The shell reads by itself: it blocks signals while it starts a program.
    let masks = "SigIgn:|SigBlk:|CapInh:|CapPrm:|CapEff:|CapAmb:|NoNewPrivs:";
    let read = format!("while read -r n v; do case $n in {masks}) echo $n $v;; esac; done");
    fake.start(1, &format!("ls /proc/$$/fd; {read} < /proc/$$/status"));
    assert_eq!(fake.ended(1), "0:0");
    let (_, text) = fake.output(1, Stream::Stdout, 0);
    let words: Vec<&str> = text.split_whitespace().collect();
    assert_eq!(words[..3], ["0", "1", "2"], "{text}");
    let masks: Vec<&[&str]> = words[3..].chunks(2).collect();
    assert_eq!(masks.len(), 7, "{text}");
    for mask in masks {
        // Signals 32 and 33 belong to the C library, which lets no program change them.
        let value = u64::from_str_radix(mask[1], 16).unwrap() & !(3 << 31);
        assert_eq!(value, u64::from(mask[0] == "NoNewPrivs:"), "{text}");
    }
}

#[test]
fn a_large_environment_arrives_whole() {
    let mut fake = Fake::new(&[]);
    let mut order = order(1, &["sh", "-c", "echo ${#LARGE}"]);
    order.env.insert("LARGE".into(), "\u{1}".repeat(60_000));
    fake.say(ToAgent::Start(Box::new(order)));
    assert_eq!(fake.ended(1), "0:0");
    assert_eq!(fake.output(1, Stream::Stdout, 0).1, "60000\n");
}
