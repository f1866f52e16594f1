//! `hostler backup` and `hostler restore`.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use hostler_live::client::ClientError;
use hostler_live::store::{self, BackupFacts, Place, Restored};
use serde_json::{Value, json};

use crate::cli::{Backup, Restore};
use crate::live::{client, moment, print_json};
use crate::say::{print, say};

/// The longest silence of the daemon in the middle of a backup.
const PAUSE: Duration = Duration::from_secs(60);

/// Takes a backup, from the daemon or from its data folder.
pub fn run(args: &Backup) -> Result<()> {
    let file = &args.file;
    if let Place::Server(_) = Place::parse(&file.to_string_lossy()) {
        bail!("`{}` is no file; a database server has `pg_dump` for backups", file.display());
    }
    if file.exists() && !args.force {
        bail!("`{}` is there already; choose another name, or add `--force`", file.display());
    }
    let facts = match &args.data {
        Some(folder) => store::back_up(folder, file)?,
        None => fetch(file)?,
    };
    if args.json {
        return print_json(&shown(file, &facts));
    }
    print(told(&facts))?;
    Ok(())
}

/// Makes a backup the store of a data folder.
pub fn restore(args: &Restore) -> Result<()> {
    let Restored { facts, aside } = store::restore(&args.file, &args.data, args.force)?;
    if args.json {
        let mut value = shown(&args.file, &facts);
        value["aside"] = json!(aside);
        return print_json(&value);
    }
    print(told(&facts))?;
    if let Some(aside) = aside {
        say(format_args!("what was there before is in {}", aside.display()));
    }
    if facts.files.is_empty() {
        say("it has no certificate: clients log in again unless one is in the folder");
    }
    say(format_args!("start the daemon: hostler serve --data {}", args.data.display()));
    Ok(())
}

/// Has the daemon send one; the file gets its name when it is whole.
fn fetch(file: &Path) -> Result<BackupFacts> {
    let mut draft = file.as_os_str().to_owned();
    draft.push(".partial");
    let draft = PathBuf::from(draft);
    let fetched = fetch_into(&draft);
    let kept = fetched.and_then(|facts| {
        fs::rename(&draft, file).with_context(|| format!("cannot write `{}`", file.display()))?;
        Ok(facts)
    });
    if kept.is_err() {
        // The first fault tells more.
        let _ = fs::remove_file(&draft);
    }
    kept
}

fn fetch_into(draft: &Path) -> Result<BackupFacts> {
    let mut client = client()?;
    let cannot = || format!("cannot write `{}`", draft.display());
    let _ = fs::remove_file(draft);
    let made = OpenOptions::new().write(true).create_new(true).mode(0o600).open(draft);
    let mut out = made.with_context(cannot)?;
    client.fetch("/backup", PAUSE, |piece| {
        out.write_all(piece).map_err(|fault| ClientError::File {
            path: draft.display().to_string(),
            fault: fault.to_string(),
        })
    })?;
    out.sync_all().with_context(cannot)?;
    Ok(store::inspect(draft)?)
}

fn told(facts: &BackupFacts) -> String {
    let BackupFacts { jobs, last_record, bytes, made, .. } = facts;
    let size = format!("{:.1} MiB", *bytes as f64 / f64::from(1 << 20));
    let made = made.map_or(String::new(), |at| format!(", as of {}", moment(at as f64 / 1e6)));
    format!("{jobs} jobs, {last_record} records, {size}{made}")
}

fn shown(file: &Path, facts: &BackupFacts) -> Value {
    json!({
        "file": file,
        "cluster": facts.cluster,
        "jobs": facts.jobs,
        "records": facts.last_record,
        "bytes": facts.bytes,
        "made": facts.made.map(|at| at as f64 / 1e6),
        "files": facts.files,
    })
}
