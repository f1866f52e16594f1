//! `hostler shim`, which agents start for every job; people do not, and no help shows it.
//!
//! `hostler shim FOLDER` keeps the lease of a folder, `hostler shim --task PID ORDER -- COMMAND..`
//! becomes a task of the shim with that process number, as the order says.

use std::path::Path;

use anyhow::{Context as _, Result, bail};
use hostler_live::agent::shim;

/// What the program was told, if it is to be a shim.
pub fn asked() -> Option<Vec<String>> {
    let mut words = std::env::args().skip(1);
    (words.next()? == "shim").then(|| words.collect())
}

/// Keeps a lease, or becomes one of its tasks.
pub fn run(words: &[String]) -> Result<()> {
    match words {
        [task, parent, order, end, command @ ..] if task == "--task" && end == "--" => {
            let parent = parent.parse().context("the number of the shim makes no sense")?;
            // Comes here only when the command could not be run; the code says why.
            std::process::exit(shim::task(parent, order, command))
        }
        [folder] => shim::main(Path::new(folder))
            .with_context(|| format!("cannot keep the lease of `{folder}`")),
        _ => bail!("`hostler shim` is started by agents"),
    }
}
