//! Scripts: the text that travels with the job, and the lines in it that say what it needs.

use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use clap::{CommandFactory as _, FromArgMatches as _};
use hostler_live::job::JobRequest;
use hostler_live::limits::COMMAND_BYTES_MAX;

use super::{Submission, apply, sbatch, words};
use crate::cli::{Cli, Submit};

/// What begins a line of options.
const OURS: &str = "#HOSTLER";
const SLURMS: &str = "#SBATCH";

/// Reads a script and its lines.
pub fn read(file: &Path, text: String) -> Result<Submission> {
    read_with(file, text, None)
}

/// The same, with options of Slurm from a command line, which beat those of the lines.
pub fn read_with(file: &Path, text: String, more: Option<&[String]>) -> Result<Submission> {
    let name = file.display();
    check(file, &text)?;
    let mut request = JobRequest::default();
    let (mut notes, mut wait, mut export) = (Vec::new(), false, None);
    let mut slurm = lines_of(&text, SLURMS).with_context(|| format!("`{name}`"))?;
    slurm.extend(more.map(|words| (0, words.to_vec())));
    if !slurm.is_empty() {
        let flags = sbatch::flags_of(&slurm).with_context(|| format!("`{name}`"))?;
        let parsed = parse(&flags.words).with_context(|| format!("`{name}`"))?;
        apply(&mut request, &parsed);
        export = parsed.export;
        request.slurm = true;
        submitted_here(&mut request);
        notes = flags.notes;
        wait = flags.wait;
    }
    let ours = lines_of(&text, OURS).with_context(|| format!("`{name}`"))?;
    let all: Vec<String> = ours.iter().flat_map(|(_, words)| words.clone()).collect();
    let flags = parse(&all).map_err(|fault| at_line(&ours, fault));
    let flags = flags.with_context(|| format!("`{name}`"))?;
    apply(&mut request, &flags);
    wait |= flags.wait;
    export = flags.export.or(export);
    let called = file.file_name().map_or_else(|| name.to_string(), |n| n.to_string_lossy().into());
    request.command = vec![called];
    request.script = text;
    Ok(Submission { request, notes, wait, export })
}

/// Whether a text can travel as a script.
fn check(file: &Path, text: &str) -> Result<()> {
    let name = file.display();
    if !text.starts_with("#!") {
        bail!("`{name}` is no script; the first line names the program that reads it: #!/bin/bash");
    }
    if text.len() > COMMAND_BYTES_MAX {
        bail!(
            "`{name}` has {} bytes; a script travels with the job and has at most \
             {COMMAND_BYTES_MAX}: let it start a program that nodes have",
            text.len()
        );
    }
    if text.contains("\r\n") {
        bail!("`{name}` has line ends of Windows; take them away, as by `sed -i 's/\\r$//'`");
    }
    Ok(())
}

/// Notes where a job was submitted, as Slurm does.
pub fn submitted_here(request: &mut JobRequest) {
    let here = std::env::current_dir().ok().and_then(|here| here.to_str().map(str::to_owned));
    if let Some(here) = here {
        request.env.entry("SLURM_SUBMIT_DIR".to_owned()).or_insert(here);
    }
}

/// The words of all lines with a mark, with the number of each, up to the first command.
fn lines_of(text: &str, mark: &str) -> Result<Vec<(usize, Vec<String>)>> {
    let mut lines = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if !line.trim_start().is_empty() && !line.trim_start().starts_with('#') {
            break;
        }
        let Some(rest) = line.strip_prefix(mark) else { continue };
        if !rest.is_empty() && !rest.starts_with([' ', '\t']) {
            continue;
        }
        let words = words::split(rest);
        let words = words.ok_or_else(|| anyhow!("line {}: a quote is not closed", number + 1))?;
        lines.push((number + 1, words));
    }
    Ok(lines)
}

/// The fault of the first line that has one by itself; else of all of them together.
fn at_line(lines: &[(usize, Vec<String>)], of_all: anyhow::Error) -> anyhow::Error {
    let wrong =
        lines.iter().find_map(|(number, words)| parse(words).err().map(|fault| (*number, fault)));
    match wrong {
        Some((number, fault)) => anyhow!("line {number}: {fault}"),
        None => of_all.context(format!("its {OURS} lines")),
    }
}

/// Flags as the command line has them.
pub fn parse(words: &[String]) -> Result<Submit> {
    let mut command = Cli::command();
    let submit = command.find_subcommand_mut("submit").context("there is `hostler submit`")?;
    let submit = submit.clone().no_binary_name(true).disable_help_flag(true);
    let matches = submit.try_get_matches_from(words).map_err(|fault| {
        let text = fault.to_string();
        let first = text.lines().take_while(|line| !line.is_empty());
        let first: Vec<&str> = first.map(str::trim).collect();
        anyhow!("{}", first.join(" ").trim_start_matches("error: ").to_owned())
    })?;
    let flags = Submit::from_arg_matches(&matches)?;
    let elsewhere = flags.file.is_some() || !flags.command.is_empty() || flags.print || flags.json;
    if elsewhere {
        bail!("only options of the job stand in such lines, no file, command, --print or --json");
    }
    Ok(flags)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(text: &str) -> Result<Submission> {
        read(Path::new("job.sh"), text.to_owned())
    }

    #[test]
    fn lines_before_the_first_command_count() {
        let text = "#!/bin/bash\n# comment\n#HOSTLER --gpus 2 --max-time 12h\n\
                    #HOSTLER --env 'A=b c'  # why\n\ntrue\n#HOSTLER --gpus 4\n";
        let job = request(text).unwrap().request;
        assert_eq!((job.gpus, job.max_secs, job.env["A"].as_str()), (2.0, Some(43_200), "b c"));
        assert_eq!(
            (job.command, job.script.as_str(), job.slurm),
            (vec!["job.sh".into()], text, false)
        );
    }

    #[test]
    fn ours_beat_those_of_slurm_and_mistakes_are_told() {
        let job = request("#!/bin/sh\n#SBATCH -G 4 -J slow\n#HOSTLER --gpus 1\n").unwrap().request;
        assert_eq!((job.gpus, job.name.as_str(), job.slurm), (1.0, "slow", true));
        let fault = |text: &str| format!("{:#}", request(text).unwrap_err());
        let wrong = fault("#!/bin/sh\n#HOSTLER --gpus 1\n\n#HOSTLER --gpu 1\n");
        assert!(wrong.contains("line 4: unexpected argument '--gpu'"), "{wrong}");
        let wrong = fault("#!/bin/sh\n#HOSTLER --max-time soon --name x\n");
        assert!(wrong.contains("line 2: "), "{wrong}");
        let wrong = fault("#!/bin/sh\n#HOSTLER --tasks 2\n#HOSTLER --nodes 2\n");
        assert!(wrong.contains("its #HOSTLER lines"), "{wrong}");
        assert!(fault("#!/bin/sh\n#HOSTLER --name 'x\n").contains("line 2: a quote is not closed"));
        assert!(fault("#!/bin/sh\n#HOSTLER -- true\n").contains("only options of the job"));
        assert!(fault("#!/bin/sh\r\ntrue\r\n").contains("line ends of Windows"));
        assert!(fault(&format!("#!/bin/sh\n{}", "x".repeat(65_536))).contains("at most 65536"));
    }
}
