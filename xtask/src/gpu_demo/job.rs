//! One run of the training loop, and what it says of itself.

use std::collections::BTreeMap;
use std::str::FromStr;

use anyhow::{Context, Result, bail};

/// What a run is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Task {
    pub gib: u32,
    pub steps: u64,
    pub seed: u32,
}

/// What a run printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Said {
    /// When its first step was done, in seconds since the epoch.
    pub first_step: f64,
    /// The last loss, as it was printed.
    pub loss: String,
    /// The sum over all that it had in memory.
    pub memory: u64,
    /// How often it stood still.
    pub pauses: u32,
    /// Seconds from the first step to the last, without pauses.
    pub worked: f64,
}

/// A run that is over.
#[derive(Clone, Debug)]
pub struct Run {
    pub job: u32,
    pub task: Task,
    /// When it was submitted, started and over, in seconds since the epoch.
    pub submitted: f64,
    pub started: f64,
    pub ended: f64,
    pub restarts: u64,
    pub said: Said,
}

impl Said {
    /// Reads the output. A loop that began twice says its words twice, which is an error.
    pub fn parse(output: &str) -> Result<Said> {
        let mut words = BTreeMap::new();
        for line in output.lines() {
            let (word, value) = line.split_once(' ').context("a line without a value")?;
            if words.insert(word, value).is_some() {
                bail!("it says `{word}` twice: it was started again");
            }
        }
        Ok(Said {
            first_step: value(&words, "first-step")?,
            loss: value(&words, "loss")?,
            memory: value(&words, "memory")?,
            pauses: value(&words, "pauses")?,
            worked: value(&words, "worked")?,
        })
    }
}

fn value<T: FromStr>(words: &BTreeMap<&str, &str>, word: &str) -> Result<T> {
    let text = words.get(word).with_context(|| format!("it does not say `{word}`"))?;
    text.parse().ok().with_context(|| format!("`{word}` is `{text}`"))
}

impl Run {
    /// Steps a second while it was on the GPU.
    pub fn rate(&self) -> f64 {
        // The first step is not in the time.
        self.task.steps.saturating_sub(1) as f64 / self.said.worked
    }

    /// Fails unless it came to what another run of the same came to, in one go.
    pub fn must_equal(&self, undisturbed: &Run) -> Result<()> {
        assert_eq!(self.task, undisturbed.task, "only runs of the same can be compared");
        let (job, said, wanted) = (self.job, &self.said, &undisturbed.said);
        if self.restarts != 0 {
            bail!("job {job} was started again: {} times", self.restarts);
        }
        if said.loss != wanted.loss {
            bail!("job {job} ended with the loss {}, not {}", said.loss, wanted.loss);
        }
        if said.memory != wanted.memory {
            bail!("the memory of job {job} adds up to {}, not {}", said.memory, wanted.memory);
        }
        Ok(())
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;

    const OUTPUT: &str = "\
begins 1795000000.5
first-step 1795000006.25
loss 0.123456789
memory 4123456789
pauses 2
worked 20.000
";

    pub fn run(job: u32, loss: &str) -> Run {
        let said = Said { loss: loss.to_owned(), ..Said::parse(OUTPUT).unwrap() };
        let task = Task { gib: 20, steps: 4001, seed: job };
        let (submitted, started, ended) = (1_795_000_000.0, 1_795_000_000.5, 1_795_000_030.0);
        Run { job, task, submitted, started, ended, restarts: 0, said }
    }

    #[test]
    fn the_output_of_a_run_is_read() {
        let said = Said::parse(OUTPUT).unwrap();
        assert_eq!(
            (said.loss.as_str(), said.memory, said.pauses),
            ("0.123456789", 4_123_456_789, 2)
        );
        assert!((run(1, "0.5").rate() - 200.0).abs() < 1e-9);
        assert_eq!(
            Said::parse("loss 0.5\n").unwrap_err().to_string(),
            "it does not say `first-step`"
        );
    }

    #[test]
    fn a_run_that_begins_twice_is_noticed() {
        let fault = Said::parse(&format!("begins 1795000000.1\n{OUTPUT}")).unwrap_err();
        assert_eq!(fault.to_string(), "it says `begins` twice: it was started again");
    }

    #[test]
    fn another_loss_other_memory_and_restarts_are_noticed() {
        let undisturbed = run(1, "0.123456789");
        let mut other = undisturbed.clone();
        assert!(other.must_equal(&undisturbed).is_ok());
        other.said.memory += 1;
        assert!(other.must_equal(&undisturbed).is_err());
        other = run(1, "0.123456788");
        let fault = other.must_equal(&undisturbed).unwrap_err().to_string();
        assert_eq!(fault, "job 1 ended with the loss 0.123456788, not 0.123456789");
        other = Run { restarts: 1, ..undisturbed.clone() };
        assert!(other.must_equal(&undisturbed).is_err());
    }
}
