//! The house rules that `clippy` checks: a small crate under the lints and settings of the pure
//! zone breaks each of them, and each line that does is found.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use std::collections::BTreeSet;
use std::path::Path;
use std::process::Command;

/// Lines that break a rule say so.
const MARK: &str = "// refused";

const CODE: &str = r#"//! A crate that does what it must not.

use std::collections::{BTreeMap, HashMap, HashSet}; // refused
use std::{fs, net, time::Instant}; // refused

/// Order differs from run to run.
pub fn hashes(fine: &BTreeMap<u8, u8>) -> usize {
    let map: HashMap<u8, u8> = HashMap::new(); // refused
    let set: HashSet<u8> = HashSet::new(); // refused
    fine.len() + map.len() + set.len()
}

/// Time does not arrive with an event.
pub fn clock() -> bool {
    let now = Instant::now(); // refused
    now.elapsed().as_secs() > 0
        || std::time::SystemTime::now() > std::time::UNIX_EPOCH // refused
}

/// The world is looked at.
pub fn world() -> bool {
    std::thread::sleep(std::time::Duration::ZERO); // refused
    std::thread::spawn(|| ()).join().is_ok() // refused
        && fs::read("a").is_ok() // refused
        && fs::File::open("a").is_ok() // refused
        && std::path::Path::new("a").exists() // refused
        && std::env::var_os("A").is_some() // refused
        && net::TcpStream::connect("localhost:1").is_ok() // refused
        && std::process::Command::new("a").spawn().is_ok() // refused
}

/// Results are not returned but told.
pub fn printing() {
    println!("a"); // refused
    eprintln!("a"); // refused
    print!("a"); // refused
    eprint!("a"); // refused
}

/// Platforms do not agree.
pub fn floats(number: f64) -> f64 {
    let speed = number.exp() // refused
        + number.ln() // refused
        + number.powf(0.5) // refused
        + number.powi(2); // refused
    speed + number.sqrt()
}

/// Not done yet.
pub fn unfinished(number: Option<u8>) -> u8 {
    match number {
        Some(0) => todo!(), // refused
        Some(1) => unimplemented!(), // refused
        Some(2) => dbg!(2), // refused
        _ => number.unwrap(), // refused
    }
}

pub fn undocumented() {} // refused

#[allow(dead_code)] // refused
fn unused() {}

/// Longer than a screen.
pub fn long(mut number: u8) -> u8 { // refused
"#;

fn fixture() -> String {
    let lines = |count: usize| "    number += 1;\n".repeat(count);
    let short =
        format!("\n/// Just short enough.\npub fn short(mut number: u8) -> u8 {{\n{}", lines(69));
    format!("{CODE}{}    number\n}}\n{short}    number\n}}\n", lines(70))
}

/// The manifest of the fixture, with the lints of the workspace.
fn manifest(root: &Path) -> String {
    let workspace = std::fs::read_to_string(root.join("Cargo.toml")).unwrap();
    let workspace: toml::Table = workspace.parse().unwrap();
    let mut manifest = toml::Table::new();
    manifest.insert("lints".to_owned(), workspace["workspace"]["lints"].clone());
    let package = "[package]\nname = 'fixture'\nedition = '2024'\n[workspace]\n";
    format!("{package}{manifest}")
}

#[test]
fn each_rule_that_is_left_to_clippy_bites() {
    let root =
        Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where")).join("..");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::create_dir(folder.join("src")).unwrap();
    std::fs::write(folder.join("Cargo.toml"), manifest(&root)).unwrap();
    std::fs::write(folder.join("src/lib.rs"), fixture()).unwrap();
    std::fs::copy(root.join("crates/hostler-core/clippy.toml"), folder.join("clippy.toml"))
        .unwrap();
    let clippy = Command::new(env!("CARGO"))
        .args(["clippy", "--offline", "--message-format", "short", "--target-dir", "target"])
        .current_dir(folder)
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .unwrap();
    let told = String::from_utf8(clippy.stderr).unwrap();
    let at = |line: &str| line.strip_prefix("src/lib.rs:")?.split(':').next()?.parse().ok();
    let found: BTreeSet<usize> = told.lines().filter_map(at).collect();
    let refused = fixture();
    let refused = refused.lines().enumerate().filter(|(_, line)| line.ends_with(MARK));
    let refused: BTreeSet<usize> = refused.map(|(index, _)| index + 1).collect();
    assert_eq!(found, refused, "{told}");
}
