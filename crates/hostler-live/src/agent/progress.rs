//! How a job tells how far it is, `step N [total M] [saved]`, and what it uses of its GPUs,
//! `gpu-use 0.35`, on the socket that `HOSTLER_SOCKET` names.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::shim::{JobWord, Progress};

/// Seconds that the shim has for an answer.
const ANSWER_SECS_MAX: u64 = 5;

/// Why a report of progress did not get through.
#[derive(Debug, thiserror::Error)]
pub enum ProgressError {
    /// Nobody listens there.
    #[error("cannot report to `{socket}`: {fault}; it is open only while the job runs")]
    Socket {
        /// The socket.
        socket: String,
        /// Why.
        fault: io::Error,
    },
    /// The report was not accepted.
    #[error("the report was not accepted: {answer}")]
    Refused {
        /// What was answered.
        answer: String,
    },
}

/// Tells the shim of this job about it.
pub fn report(socket: &Path, word: JobWord) -> Result<(), ProgressError> {
    let answer = exchange(socket, word)
        .map_err(|fault| ProgressError::Socket { socket: socket.display().to_string(), fault })?;
    let answer = answer.trim().to_owned();
    if answer == "ok" { Ok(()) } else { Err(ProgressError::Refused { answer }) }
}

fn exchange(socket: &Path, word: JobWord) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(ANSWER_SECS_MAX)))?;
    stream.write_all(line(word).as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}

fn line(word: JobWord) -> String {
    match word {
        JobWord::Step(Progress { step, total, saved }) => {
            let total = total.map(|total| format!(" total {total}")).unwrap_or_default();
            format!("step {step}{total}{}\n", if saved { " saved" } else { "" })
        }
        JobWord::GpuUse(milli) => format!("gpu-use {}\n", f64::from(milli) / 1e3),
    }
}

/// Reads a line of the protocol.
pub(super) fn parse(line: &str) -> Result<JobWord, String> {
    let mut words = line.split_whitespace();
    let word = match words.next() {
        Some("step") => JobWord::Step(parse_step(&mut words)?),
        Some("gpu-use") => JobWord::GpuUse(gpu_milli(words.next().unwrap_or_default())?),
        other => {
            let other = other.unwrap_or("");
            return Err(format!("a line begins with `step` or `gpu-use`, not `{other}`"));
        }
    };
    match words.next() {
        Some(word) => Err(format!("nothing comes after that, not `{word}`")),
        None => Ok(word),
    }
}

fn parse_step<'a>(words: &mut impl Iterator<Item = &'a str>) -> Result<Progress, String> {
    let number = |name: &str, word: Option<&str>| {
        let word = word.unwrap_or_default();
        word.parse::<u64>().map_err(|_| format!("`{name}` needs a whole number, not `{word}`"))
    };
    let step = number("step", words.next())?;
    let mut progress = Progress { step, total: None, saved: false };
    while let Some(word) = words.next() {
        match word {
            "total" => progress.total = Some(number("total", words.next())?),
            "saved" => progress.saved = true,
            _ => return Err(format!("unknown word `{word}`; known: total, saved")),
        }
    }
    Ok(progress)
}

/// Thousandths of a part of a GPU, as in `0.35`.
pub fn gpu_milli(text: &str) -> Result<u32, String> {
    let part = text.parse::<f64>().ok().filter(|part| (0.0..=1.0).contains(part));
    let part = part.ok_or_else(|| format!("use of a GPU is from 0 to 1, not `{text}`"))?;
    Ok((part * 1e3).round() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_it_was_made_from_or_what_is_wrong() {
        for (total, saved) in [(None, false), (Some(9), false), (None, true), (Some(9), true)] {
            let word = JobWord::Step(Progress { step: 4, total, saved });
            assert_eq!(parse(&line(word)), Ok(word));
        }
        for milli in [0, 7, 350, 1000] {
            assert_eq!(parse(&line(JobWord::GpuUse(milli))), Ok(JobWord::GpuUse(milli)));
        }
        let faults = [
            "",
            "stop 3",
            "step x",
            "step 3 total",
            "step 3 of 4",
            "gpu-use",
            "gpu-use 35",
            "gpu-use NaN",
            "gpu-use 0.3 step 4",
        ]
        .map(|line| parse(line).expect_err(line));
        expect_test::expect![[r#"
            a line begins with `step` or `gpu-use`, not ``
            a line begins with `step` or `gpu-use`, not `stop`
            `step` needs a whole number, not `x`
            `total` needs a whole number, not ``
            unknown word `of`; known: total, saved
            use of a GPU is from 0 to 1, not ``
            use of a GPU is from 0 to 1, not `35`
            use of a GPU is from 0 to 1, not `NaN`
            nothing comes after that, not `step`"#]]
        .assert_eq(&faults.join("\n"));
    }
}
