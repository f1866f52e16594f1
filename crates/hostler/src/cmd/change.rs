//! `hostler cancel`, `hold` and `release`: what people do to jobs.

use anyhow::Result;
use hostler_live::job::JobView;

use crate::cli::Jobs;
use crate::live::{client, print_json, state_name};

/// Does the same to each job; stops at the first that refuses.
pub fn run(args: &Jobs, what: &str) -> Result<()> {
    let mut client = client()?;
    let mut changed: Vec<JobView> = Vec::new();
    for id in &args.jobs {
        let job: JobView = client.post(&format!("/jobs/{id}/{what}"), &())?;
        if !args.json {
            println!("job {id} is {}", state_name(job.state));
        }
        changed.push(job);
    }
    if args.json { print_json(&changed) } else { Ok(()) }
}
