//! How a job tells how far it is: `step N [total M] [saved]` on the socket that `HOSTLER_SOCKET`
//! names.

use std::io::{self, BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use super::shim::Progress;

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

/// Tells the shim of this job how far it is.
pub fn report(socket: &Path, progress: Progress) -> Result<(), ProgressError> {
    let answer = exchange(socket, progress)
        .map_err(|fault| ProgressError::Socket { socket: socket.display().to_string(), fault })?;
    let answer = answer.trim().to_owned();
    if answer == "ok" { Ok(()) } else { Err(ProgressError::Refused { answer }) }
}

fn exchange(socket: &Path, progress: Progress) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(Duration::from_secs(ANSWER_SECS_MAX)))?;
    stream.write_all(line(progress).as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}

fn line(Progress { step, total, saved }: Progress) -> String {
    let total = total.map(|total| format!(" total {total}")).unwrap_or_default();
    format!("step {step}{total}{}\n", if saved { " saved" } else { "" })
}

/// Reads a line of the protocol.
pub(super) fn parse(line: &str) -> Result<Progress, String> {
    let mut progress = Progress { step: 0, total: None, saved: false };
    let mut words = line.split_whitespace();
    let number = |name: &str, word: Option<&str>| {
        let word = word.unwrap_or_default();
        word.parse::<u64>().map_err(|_| format!("`{name}` needs a whole number, not `{word}`"))
    };
    match words.next() {
        Some("step") => progress.step = number("step", words.next())?,
        other => return Err(format!("a line begins with `step`, not `{}`", other.unwrap_or(""))),
    }
    while let Some(word) = words.next() {
        match word {
            "total" => progress.total = Some(number("total", words.next())?),
            "saved" => progress.saved = true,
            _ => return Err(format!("unknown word `{word}`; known: total, saved")),
        }
    }
    Ok(progress)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_says_what_it_was_made_from_or_what_is_wrong() {
        for (total, saved) in [(None, false), (Some(9), false), (None, true), (Some(9), true)] {
            let progress = Progress { step: 4, total, saved };
            assert_eq!(parse(&line(progress)), Ok(progress));
        }
        let faults = ["", "stop 3", "step x", "step 3 total", "step 3 of 4"]
            .map(|line| parse(line).expect_err(line));
        expect_test::expect![[r#"
            a line begins with `step`, not ``
            a line begins with `step`, not `stop`
            `step` needs a whole number, not `x`
            `total` needs a whole number, not ``
            unknown word `of`; known: total, saved"#]]
        .assert_eq(&faults.join("\n"));
    }
}
