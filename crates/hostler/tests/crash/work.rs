//! People who submit all the time, whatever is being killed, and remember what was acknowledged.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use hostler_live::api::Accepted;
use hostler_live::client::{Access, Ask, Client, ClientError, Method};
use hostler_live::job::{JobRequest, Sharing};
use hostler_live::need::Need;

use crate::harness::{PATIENCE, words};

/// Numbers that look random and follow from a seed.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Chance {
        Chance(seed)
    }

    /// A number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % limit
    }

    pub fn millis_below(&mut self, limit: u64) -> Duration {
        Duration::from_millis(self.below(limit))
    }
}

/// What a job will do when it comes to its end.
#[derive(Clone, Debug)]
pub struct Job {
    pub name: String,
    pub code: i32,
    pub tasks: u32,
    pub gpus: f64,
    /// Its place in an array.
    pub index: Option<u32>,
    /// A job, or a whole array, that has to be over before it begins.
    pub after: Option<u32>,
    array: u32,
    seconds: String,
}

impl Job {
    fn draw(name: String, chance: &mut Chance, before: Option<u32>) -> Job {
        let (tasks, gpus) = match chance.below(8) {
            0 => (1, 0.0),
            1 | 2 => (1, 0.5),
            3 | 4 => (1, 1.0),
            5 => (1, 2.0),
            _ => (2, 1.0),
        };
        let code = i32::try_from(chance.below(10)).unwrap();
        let seconds = format!("0.{:03}", chance.below(300));
        let array = if chance.below(8) == 0 { 2 } else { 0 };
        let after = before.filter(|_| chance.below(6) == 0);
        Job { name, code, tasks, gpus, index: None, after, array, seconds }
    }

    /// The jobs that it is, from this number on.
    fn members(&self, first: u32) -> Vec<(u32, Job)> {
        match self.array {
            0 => vec![(first, self.clone())],
            count => (0..count)
                .map(|index| (first + index, Job { index: Some(index), ..self.clone() }))
                .collect(),
        }
    }

    /// What it calls its notes.
    pub fn notes(&self) -> String {
        match self.index {
            Some(index) => format!("{}_{index}", self.name),
            None => self.name.clone(),
        }
    }

    fn request(&self, script: &Path, notes: &Path) -> JobRequest {
        let (script, notes) = (script.to_str().unwrap(), notes.to_str().unwrap());
        let share = if self.gpus == 0.5 { "half" } else { "whole" };
        let code = self.code.to_string();
        let command = words(&["sh", script, notes, &self.name, &code, &self.seconds, share]);
        let sharing = if self.gpus == 0.5 { Sharing::Willing } else { Sharing::Never };
        JobRequest {
            name: self.name.clone(),
            command,
            gpus: self.gpus,
            tasks: self.tasks,
            array: self.array,
            after: self.after.map(over).into_iter().collect(),
            sharing,
            grace_secs: Some(5),
            ..JobRequest::default()
        }
    }
}

/// Submits until it is told to stop; gives every job with the number it was acknowledged with.
pub struct Submitter {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<(u32, Job)>>,
}

impl Submitter {
    /// Submits at most so many, with pauses of `pause_ms` on average.
    pub fn start(
        access: Access,
        seed: u64,
        (most, pause_ms): (usize, u64),
        (script, notes): (PathBuf, PathBuf),
    ) -> Submitter {
        let stop = Arc::new(AtomicBool::new(false));
        let told = stop.clone();
        let thread = std::thread::spawn(move || {
            let mut chance = Chance::new(seed);
            let mut client = Client::new(access.clone()).unwrap();
            let mut done = Vec::new();
            let mut before = None;
            while done.len() < most && !told.load(Ordering::Relaxed) {
                let job = Job::draw(format!("j{}", done.len()), &mut chance, before);
                let number = submit(&mut client, &job, &job.request(&script, &notes));
                done.extend(job.members(number));
                before = Some(number);
                std::thread::sleep(chance.millis_below(2 * pause_ms));
            }
            done
        });
        Submitter { stop, thread }
    }

    pub fn finish(self) -> Vec<(u32, Job)> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("submitting works in the end")
    }
}

/// That a job, or all of the array that begins with it, is over.
fn over(job: u32) -> Need {
    format!("over:{job}").parse().unwrap()
}

/// Says the same until it is acknowledged; its key makes that one job.
fn submit(client: &mut Client, job: &Job, request: &JobRequest) -> u32 {
    let end = Instant::now() + PATIENCE;
    let body = serde_json::to_vec(request).unwrap();
    loop {
        let headers = [("idempotency-key", job.name.as_str())];
        let body = Some(body.clone());
        let ask = Ask { method: Method::POST, path: "/jobs", headers: &headers, body };
        match client.call::<Accepted>(&ask) {
            Ok(accepted) => return accepted.first,
            Err(ClientError::Refused { status, error, .. }) if status < 500 => {
                panic!("{} is refused: {error}", job.name)
            }
            Err(fault) => assert!(Instant::now() < end, "cannot submit: {fault}"),
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}
