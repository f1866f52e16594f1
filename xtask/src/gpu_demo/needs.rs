//! What the demonstration finds on a machine, and what it misses.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::tools::on_path;

/// The first driver that suspends.
const DRIVER_MIN: u32 = 570;

/// Prints the version of PyTorch where that finds a GPU.
const LOOK_FOR_TORCH: &str =
    "import torch; torch.zeros(1, device='cuda'); print(torch.__version__)";

/// A machine on which it can be shown.
pub struct Machine {
    /// A line about it for the report.
    pub words: String,
    pub python: PathBuf,
    pub gpus: u32,
    pub pretend: bool,
}

impl Machine {
    /// Looks; an error says what is missing.
    pub fn look(pretend: bool) -> Result<Machine> {
        let python = on_path("python3").context("`python3` is missing")?;
        if pretend {
            let words = "A made-up GPU: nothing is moved.".to_owned();
            return Ok(Machine { words, python, gpus: 1, pretend });
        }
        if std::fs::metadata("/proc/self")?.uid() != 0 {
            bail!("jobs run as somebody else, as they do in production: start it as root");
        }
        let query = ["--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"];
        let said = output(Path::new("nvidia-smi"), &query)
            .context("no NVIDIA GPU here: `nvidia-smi` does not find one")?;
        let (gpus, words) = gpus(&said)?;
        let torch = output(&python, &["-c", LOOK_FOR_TORCH])
            .context("`python3` has no PyTorch that finds the GPU")?;
        let words = format!("{words}, PyTorch {}", torch.trim());
        Ok(Machine { words, python, gpus, pretend })
    }
}

/// How many GPUs `nvidia-smi` tells of, and what kind they are.
fn gpus(said: &str) -> Result<(u32, String)> {
    let first = said.lines().next().unwrap_or_default();
    let [name, driver, mem] = first.split(", ").collect::<Vec<_>>()[..] else {
        bail!("`nvidia-smi` tells of no GPU: `{first}`");
    };
    let major: u32 = driver.split('.').next().unwrap_or_default().parse().unwrap_or(0);
    if major < DRIVER_MIN {
        bail!("the driver of the GPU is `{driver}`; it suspends from {DRIVER_MIN} on");
    }
    Ok((u32::try_from(said.lines().count())?, format!("{name} ({mem}), driver {driver}")))
}

/// What a program prints when it ends well.
pub fn output(program: &Path, words: &[&str]) -> Result<String> {
    let output = Command::new(program).args(words).output()?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        bail!("{}", said.lines().last().unwrap_or("it says nothing"));
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_driver_that_cannot_suspend_is_told() {
        let said = "NVIDIA H200, 580.159.04, 143771 MiB\nNVIDIA H200, 580.159.04, 143771 MiB\n";
        let words = "NVIDIA H200 (143771 MiB), driver 580.159.04";
        assert_eq!(gpus(said).unwrap(), (2, words.to_owned()));
        let fault = gpus("Tesla V100, 550.54.15, 32768 MiB\n").unwrap_err().to_string();
        assert_eq!(fault, "the driver of the GPU is `550.54.15`; it suspends from 570 on");
        assert!(gpus("No devices were found\n").is_err());
    }
}
