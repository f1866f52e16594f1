//! Tests of the trace module: text in, text out.

mod bad_input;
mod checking;
mod clusters;
mod generating;
mod importing;
mod importing_logs;
mod importing_published;
mod mutated;
mod pair_estimates;
mod reading;
mod rescaling;
mod throughputs;

use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::error::{Faults, TraceError};
use super::read::{read_instances, read_jobs, read_nodes, read_tasks};
use super::table::Trace;

const NODES: &str = "node_id,gpu_model,gpu_count,cpu_milli,mem_mib\nn1,V100,8,96000,524288\n";
const JOBS: &str = "job_id,user,submit_ms\na,ada,0\nb,bob,1000\n";
const TASKS: &str = "job_id,count,gpu_milli,cpu_milli,mem_mib,duration_ms\n\
                     a,1,1000,4000,1024,60000\nb,4,250,1000,512,5000\n";

/// A trace from the text of its tables; an empty text leaves a table out.
fn tables(nodes: &str, jobs: &str, tasks: &str, instances: &str) -> Result<Trace, TraceError> {
    let (mut trace, mut faults) = (Trace::default(), Faults::default());
    let mut read = |text: &str, file, reader: fn(&mut dyn std::io::Read, &_, &mut _, &mut _)| {
        if !text.is_empty() {
            reader(&mut text.as_bytes(), file, &mut trace, &mut faults);
        }
    };
    read(nodes, "nodes.csv", read_nodes);
    read(jobs, "jobs.csv", read_jobs);
    read(tasks, "tasks.csv", read_tasks);
    read(instances, "instances.csv", read_instances);
    trace.arrange();
    faults.or(trace)
}

/// The text of an error.
fn told<T>(result: Result<T, TraceError>) -> String {
    match result {
        Ok(_) => "no error".to_owned(),
        Err(error) => format!("{error}\n"),
    }
}

/// Fixtures of the project.
fn testdata(name: &str) -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where"))
        .join("../../testdata/traces")
        .join(name)
}

/// A folder of its own that goes with the test.
struct Scratch(TempDir);

impl Scratch {
    fn new() -> Scratch {
        Scratch(tempfile::tempdir().unwrap())
    }

    fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, bytes).unwrap();
        path
    }
}
