//! NVIDIA's multi-process service, which keeps jobs that share a GPU to their parts of it.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::folder;

/// Starts the control daemon, unless it runs, and gives where it listens. Whole GPUs are used
/// without it: only tasks with a fraction are told where it is.
pub(super) fn start(data: &Path) -> io::Result<PathBuf> {
    let (pipes, logs) = (data.join("mps/pipes"), data.join("mps/logs"));
    folder::make(&pipes, 0o755)?;
    folder::make(&logs, 0o755)?;
    // It refuses to run twice on the same pipes, which is as good as having started.
    let started = Command::new("nvidia-cuda-mps-control")
        .arg("-d")
        .env("CUDA_MPS_PIPE_DIRECTORY", &pipes)
        .env("CUDA_MPS_LOG_DIRECTORY", &logs)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()?;
    tracing::info!(%started, "multi-process service");
    Ok(pipes)
}
