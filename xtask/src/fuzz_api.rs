//! `cargo xtask fuzz-api`: a real daemon against schemathesis, which makes requests from the
//! OpenAPI document and checks every answer against it.
//!
//! Not part of `cargo xtask test`: it takes minutes and wants a package from PyPI.

mod daemon;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use anyhow::{Context, Result, bail};

use crate::tools::{cargo, command, ensure_c_compiler, on_path, succeed};
use daemon::Daemon;

/// Another version may check other things; a change of it is a change of the test.
const SCHEMATHESIS: &str = "schemathesis==4.32.5";

/// Requests that are made when no number is given.
const REQUESTS: u64 = 20_000;

/// Cases for each operation and run.
const EXAMPLES: u32 = 150;

/// Rounds that are made at most; one makes thousands of requests.
const ROUNDS_MAX: u64 = 100;

/// Who asks at the same time, and for what. A token that enrols is good for nothing else, and once.
///
/// A stream of changes does not end by itself, so nobody asks for it. Tokens are revoked at the
/// end, by one who does nothing else: they would be those of the others.
const ROLES: &[(&str, &[&str])] = &[
    ("admin", &["--exclude-operation-id", "revoke_token"]),
    ("user", &[]),
    ("viewer", &[]),
    ("admin", &["--exclude-operation-id", "revoke_token"]),
    ("user", &[]),
    ("agent", &["--include-operation-id", "enrol"]),
    ("node", &[]),
];

/// What schemathesis has to be told, since a schema cannot say it: which text is a policy, that a
/// key was used before, that a job has another version. Versions are in quotation marks, as the
/// pattern says; it leaves them out where it takes the shortest text. Output is waited for but a
/// moment. A body that is too large is refused as such. It asks for no WebSocket.
const SETTINGS: &str = r#"
[checks.negative_data_rejection]
expected-statuses = ["400", "401", "403", "404", "405", "409", "412", "413", "415", "422", "429"]

[[operations]]
include-operation-id = "set_policy"
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "429"]

[[operations]]
include-operation-id = "submit"
checks.positive_data_acceptance.expected-statuses = ["2xx", "401", "403", "404", "409", "422", "429"]

[[operations]]
include-operation-id = ["cancel", "hold", "release"]
checks.positive_data_acceptance.expected-statuses = ["2xx", "400", "401", "403", "404", "409", "412", "429"]

[[operations]]
include-operation-id = "connect"
checks.positive_data_acceptance.expected-statuses = ["401", "403", "426", "429"]

[[operations]]
include-operation-id = "output"
parameters = { wait_secs = 1 }
"#;

/// Runs the check: `[--requests N] [--seed N]`.
pub fn run(root: &Path, words: &[&str]) -> Result<()> {
    let (requests, seed) = options(words)?;
    let program = schemathesis(root)?;
    ensure_c_compiler(root)?;
    succeed(&mut cargo(root, &["build", "-p", "hostler"]))?;
    let daemon = Daemon::start(root)?;
    let settings = daemon.folder().join("schemathesis.toml");
    fs::write(&settings, SETTINGS)?;
    let document = daemon.document()?;
    let (program, settings, document) = (&program, &settings, &document);
    let fuzzer = Fuzzer { root, program, settings, document, daemon: &daemon };
    let mut failed = Vec::new();
    let mut rounds = 0;
    while total(&daemon.answers()?) < requests && rounds < ROUNDS_MAX {
        let seed = seed.wrapping_add(rounds);
        let mut runs = Vec::new();
        for (number, (role, filter)) in ROLES.iter().enumerate() {
            runs.push(fuzzer.start(&format!("{role}-{number}"), role, seed, filter)?);
        }
        for run in runs {
            failed.extend(run.end()?);
        }
        daemon.cancel_all()?;
        rounds += 1;
    }
    let filter = ["--include-operation-id", "revoke_token"];
    failed.extend(fuzzer.start("admin-last", "admin", seed, &filter)?.end()?);
    let answers = daemon.answers()?;
    report(&answers);
    if !failed.is_empty() {
        bail!("answers that the document does not promise: {}", failed.join(", "));
    }
    daemon.stop()?;
    if total(&answers) < requests {
        bail!("{rounds} rounds made {} requests, not {requests}", total(&answers));
    }
    Ok(())
}

/// How runs are started.
struct Fuzzer<'a> {
    root: &'a Path,
    program: &'a Path,
    settings: &'a Path,
    document: &'a Path,
    daemon: &'a Daemon,
}

/// A run of schemathesis.
struct Run {
    name: String,
    child: Child,
    said: PathBuf,
}

impl Fuzzer<'_> {
    fn start(&self, name: &str, role: &str, seed: u64, filter: &[&str]) -> Result<Run> {
        let name = format!("{name}-{seed}");
        let token = self.daemon.token(role)?;
        let mut run = command(self.root, self.program, &["--config-file"]);
        run.arg(self.settings).arg("run").arg(self.document);
        run.args(["--url", self.daemon.server(), "--checks", "all"]);
        run.args(["--header", &format!("Authorization: Bearer {token}")]);
        run.args(["--max-examples", &EXAMPLES.to_string(), "--seed", &seed.to_string()]);
        run.args(["--continue-on-failure", "--generation-database", "none", "--no-color"]);
        // With several threads its generator fails now and then.
        run.args(["--workers", "1", "--max-response-time", "60"]);
        run.args(["--exclude-path", "/api/v1/events"]).args(filter);
        // A proxy is for what lies outside.
        run.env("NO_PROXY", "127.0.0.1").env("no_proxy", "127.0.0.1");
        let said = self.daemon.folder().join(format!("{name}.txt"));
        run.current_dir(self.daemon.folder()).stdout(File::create(&said)?);
        run.stderr(File::options().append(true).open(&said)?);
        let child = run.spawn().context("cannot start schemathesis")?;
        Ok(Run { name, child, said })
    }
}

impl Run {
    /// Waits for the end; its name when it found something, which is printed then.
    fn end(mut self) -> Result<Option<String>> {
        let is_well = self.child.wait()?.success();
        let said = fs::read_to_string(&self.said)?;
        let cases = said.lines().find(|line| line.contains(" generated, "));
        println!("{}: {}", self.name, cases.unwrap_or("no cases").trim());
        if is_well {
            return Ok(None);
        }
        println!("{said}");
        Ok(Some(self.name))
    }
}

fn options(words: &[&str]) -> Result<(u64, u64)> {
    let (mut requests, mut seed) = (REQUESTS, 1);
    let mut rest = words.iter();
    while let Some(word) = rest.next() {
        let place = match *word {
            "--requests" => &mut requests,
            "--seed" => &mut seed,
            _ => bail!("unknown argument `{word}`; known: --requests N, --seed N"),
        };
        let number = rest.next().with_context(|| format!("`{word}` needs a number"))?;
        *place = number.parse().with_context(|| format!("invalid number `{number}`"))?;
    }
    Ok((requests, seed))
}

/// The program, installed in the cache folder of the user when it is not there yet.
fn schemathesis(root: &Path) -> Result<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = cache.or_else(home).context("neither XDG_CACHE_HOME nor HOME is set")?;
    let folder = cache.join("hostler").join(SCHEMATHESIS.replace("==", "-"));
    let (program, done) = (folder.join("bin/st"), folder.join("installed"));
    if done.is_file() {
        return Ok(program);
    }
    if on_path("python3").is_none() {
        bail!("`python3` is missing; install it, with its `venv` module");
    }
    eprintln!("installing {SCHEMATHESIS} into {}", folder.display());
    let folder = folder.to_string_lossy();
    succeed(&mut command(root, "python3", &["-m", "venv", "--clear", &folder]))?;
    let pip = Path::new(&*folder).join("bin/pip");
    let mut install: Command = command(root, pip, &["install", "--quiet", SCHEMATHESIS]);
    succeed(&mut install)?;
    fs::write(done, "")?;
    Ok(program)
}

fn total(answers: &BTreeMap<u16, u64>) -> u64 {
    answers.values().sum()
}

fn report(answers: &BTreeMap<u16, u64>) {
    println!("{} requests, as the daemon counted them:", total(answers));
    for class in 1..=5 {
        let of_class = answers.iter().filter(|(status, _)| *status / 100 == class);
        let each: Vec<String> =
            of_class.clone().map(|(s, count)| format!("{s}: {count}")).collect();
        let sum: u64 = of_class.map(|(_, count)| count).sum();
        if sum > 0 {
            println!("  {class}xx {sum:>7}  ({})", each.join(", "));
        }
    }
}
