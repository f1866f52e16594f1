//! Commands of Slurm, for hands and scripts that know them: this program under the names `sbatch`,
//! `squeue`, `scancel`, `sinfo` and `srun`.
//!
//! They take the usual options and refuse the others. `packaging/slurm-links` has the links.

mod batch;
mod lists;

use std::path::Path;

use anyhow::{Result, bail};

use crate::say::print;

/// A command of Slurm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    Batch,
    Queue,
    Cancel,
    Info,
    Run,
}

impl Command {
    fn named(name: &str) -> Option<Command> {
        Some(match name {
            "sbatch" => Command::Batch,
            "squeue" => Command::Queue,
            "scancel" => Command::Cancel,
            "sinfo" => Command::Info,
            "srun" => Command::Run,
            _ => return None,
        })
    }

    fn help(self) -> &'static str {
        match self {
            Command::Batch => {
                "sbatch [OPTIONS] SCRIPT [ARGUMENTS]\nsbatch [OPTIONS] --wrap COMMAND\n\n\
                 Options are those of docs/slurm.md. A look-alike of Hostler: `hostler submit`."
            }
            Command::Queue => {
                "squeue [--me] [-u USER] [-j JOB,..] [-t STATE] [-h]\n\n\
                 A look-alike of Hostler: `hostler queue` shows more."
            }
            Command::Cancel => {
                "scancel [--me] [-u USER] [-t STATE] [-n NAME] [JOB..]\n\n\
                 A look-alike of Hostler: `hostler cancel`."
            }
            Command::Info => {
                "sinfo [-h] [-N]\n\nA look-alike of Hostler: `hostler nodes` shows more."
            }
            Command::Run => {
                "srun [OPTIONS] COMMAND [ARGUMENTS]\n\n\
                 In a job it runs the command; elsewhere it submits a job, follows its output and \
                 ends with its exit code; with `--pty` it is attached to it. A look-alike of Hostler: \
                 `hostler run`."
            }
        }
    }
}

/// The command that this program is called by, and its words; none by any other name.
pub fn asked() -> Option<(Command, Vec<String>)> {
    let mut words = std::env::args();
    let called = words.next()?;
    let name = Path::new(&called).file_name()?.to_str()?;
    Some((Command::named(name)?, words.collect()))
}

/// Runs it.
pub fn run(command: Command, words: &[String]) -> Result<()> {
    match words.first().map(String::as_str) {
        Some("--help" | "--usage") => return Ok(print(command.help())?),
        Some("--version" | "-V") => {
            return Ok(print(format_args!("hostler {}", env!("CARGO_PKG_VERSION")))?);
        }
        _ => {}
    }
    match command {
        Command::Batch => batch::submit(words),
        Command::Run => batch::run(words),
        Command::Queue => lists::queue(words),
        Command::Cancel => lists::cancel(words),
        Command::Info => lists::info(words),
    }
}

/// Long names of options, with their values.
type Options = Vec<(String, String)>;

/// Options of a list: each with a value or without, and what is no option.
fn options(
    words: &[String],
    bare: &[(&str, &str)],
    valued: &[(&str, &str)],
) -> Result<(Options, Vec<String>)> {
    let (mut options, mut rest) = (Vec::new(), Vec::new());
    let mut words = words.iter();
    while let Some(word) = words.next() {
        if !word.starts_with('-') || word.len() < 2 {
            rest.push(word.clone());
            continue;
        }
        let (name, given) = match word.split_once('=') {
            Some((name, value)) if word.starts_with("--") => (name, Some(value.to_owned())),
            _ if word.starts_with("--") => (word.as_str(), None),
            _ => {
                let end = word.char_indices().nth(2).map_or(word.len(), |(at, _)| at);
                let value = &word[end..];
                (&word[..end], (!value.is_empty()).then(|| value.to_owned()))
            }
        };
        let is = |known: &&(&str, &str)| known.0 == name || known.1 == name;
        if let Some((_, long)) = bare.iter().find(is) {
            options.push(((*long).to_owned(), String::new()));
        } else if let Some((_, long)) = valued.iter().find(is) {
            let value = given.or_else(|| words.next().cloned());
            let Some(value) = value else { bail!("`{name}` needs a value") };
            options.push(((*long).to_owned(), value));
        } else {
            bail!("`{word}` is no option that is understood; see --help");
        }
    }
    Ok((options, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_have_short_and_long_names_and_values_in_three_places() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let read = |text: &str| options(&words(text), &[("-h", "--noheader")], &[("-u", "--user")]);
        let user = |name: &str| ("--user".to_owned(), name.to_owned());
        let (found, rest) = read("-h -uada -u bob --user=eve 12_3").unwrap();
        assert_eq!(found[1..], [user("ada"), user("bob"), user("eve")]);
        assert_eq!(rest, ["12_3"]);
        assert!(read("--what").is_err() && read("-u").is_err());
    }
}
