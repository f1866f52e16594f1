//! Throughput tables: steps per second of workloads by GPU model, gang and reach, and in pairs.
//!
//! Two sources fill one type: a folder or file of CSV tables (`table`) and the JSON of the Gavel
//! simulator (`gavel`). What the speeds mean for a cluster is decided where profiles are made of
//! them; which jobs use them, where a trace is lowered.

mod gavel;
mod table;

use std::collections::BTreeMap;
use std::path::Path;

use hostler_core::cluster::GpuModel;
use hostler_core::id::{ModelId, ProfileKey};
use hostler_core::profile::{PairPace, PairRun, Profile, Run};
use hostler_core::units::Pace;

pub use gavel::read_gavel_throughputs;
pub use table::{read_pair_table, read_throughput_table};

use super::error::{Faults, TraceError};
use super::source::{self, Meter};

/// Speeds of workloads, by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Throughputs {
    workloads: Names,
    gpu_models: Names,
    /// Steps per second, to the last bit.
    alone: BTreeMap<Alone, f64>,
    pairs: BTreeMap<Pair, (Pace, Pace)>,
}

/// Names in order of appearance; upper and lower case do not differ.
#[derive(Clone, Debug, Default, PartialEq)]
struct Names {
    list: Vec<Box<str>>,
    numbers: BTreeMap<String, u32>,
}

impl Names {
    fn number(&mut self, name: &str) -> u32 {
        let next = self.list.len() as u32;
        let number = *self.numbers.entry(name.to_lowercase()).or_insert(next);
        if number == next {
            self.list.push(name.into());
        }
        number
    }

    fn find(&self, name: &str) -> Option<u32> {
        self.numbers.get(&name.to_lowercase()).copied()
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Alone {
    workload: u32,
    gpu_model: u32,
    gpus: u32,
    spread: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pair {
    workload: u32,
    other: u32,
    gpu_model: u32,
    gpus: u32,
}

/// Reads a table: a folder with `throughputs.csv` and perhaps `pairs.csv`, a file like the former,
/// or a JSON file of the Gavel simulator; packed or not.
pub fn read_throughputs(path: &Path) -> Result<Throughputs, TraceError> {
    let mut tables = Throughputs::default();
    let mut faults = Faults::default();
    if path.is_dir() {
        let alone = source::need(path, "throughputs.csv")?;
        read_file(&alone, read_throughput_table, &mut tables, &mut faults)?;
        if let Some(pairs) = source::find(path, "pairs.csv")? {
            read_file(&pairs, read_pair_table, &mut tables, &mut faults)?;
        }
    } else if is_json(path) {
        read_file(path, read_gavel_throughputs, &mut tables, &mut faults)?;
    } else {
        read_file(path, read_throughput_table, &mut tables, &mut faults)?;
    }
    faults.or(tables)
}

type Reader = fn(&mut dyn std::io::Read, &str, &mut Throughputs, &mut Faults);

fn read_file(
    path: &Path,
    reader: Reader,
    tables: &mut Throughputs,
    faults: &mut Faults,
) -> Result<(), TraceError> {
    let mut silent = |_, _| {};
    let mut meter = Meter::new(source::size(path), &mut silent);
    let mut input = source::open(path, &mut meter)?;
    reader(&mut *input, &source::file_name(path), tables, faults);
    Ok(())
}

fn is_json(path: &Path) -> bool {
    let name = source::file_name(path).to_lowercase();
    [".json", ".json.gz", ".json.zst"].iter().any(|suffix| name.ends_with(suffix))
}

impl Throughputs {
    /// Names of the workloads, in order of appearance; the position of each is its profile key.
    pub fn workloads(&self) -> &[Box<str>] {
        &self.workloads.list
    }

    /// Names of the GPU models, in order of appearance.
    pub fn gpu_models(&self) -> &[Box<str>] {
        &self.gpu_models.list
    }

    /// Profile key of a workload.
    pub fn key(&self, workload: &str) -> Option<ProfileKey> {
        self.workloads.find(workload).map(ProfileKey)
    }

    /// Steps per second of a workload as the table has it.
    pub fn steps_per_sec(
        &self,
        workload: &str,
        gpu_model: &str,
        gpus: u32,
        spread: bool,
    ) -> Option<f64> {
        let workload = self.workloads.find(workload)?;
        let gpu_model = self.gpu_models.find(gpu_model)?;
        let key = Alone { workload, gpu_model, gpus, spread };
        self.alone.get(&key).copied()
    }

    /// Rows: runs alone and pairs.
    pub fn rows(&self) -> (usize, usize) {
        (self.alone.len(), self.pairs.len())
    }

    /// A profile for each workload on a cluster with these GPU models, under its key. Models of
    /// the table that the cluster lacks are left out.
    pub fn profiles(&self, models: &[GpuModel]) -> Vec<Profile> {
        let named = |name: &str| {
            let at = models.iter().position(|model| model.name.to_lowercase() == name);
            at.map(|at| ModelId(at as u32))
        };
        let ids: Vec<Option<ModelId>> =
            self.gpu_models.list.iter().map(|name| named(&name.to_lowercase())).collect();
        let mut profiles = vec![Profile::default(); self.workloads.list.len()];
        for (key, steps) in &self.alone {
            if let Some(model) = ids[key.gpu_model as usize] {
                let pace = Pace::from_steps_per_sec(*steps).expect("readers keep to sane speeds");
                let run = Run(model, key.spread, key.gpus);
                profiles[key.workload as usize].measured.set(run, pace);
            }
        }
        for (key, (own, others)) in &self.pairs {
            if let Some(model) = ids[key.gpu_model as usize].filter(|_| !self.is_known_unfit(key)) {
                let run = PairRun(ProfileKey(key.other), model, key.gpus);
                profiles[key.workload as usize].measured.set_pair(run, PairPace(*own, *others));
            }
        }
        profiles
    }

    /// Whether a pair does not fit on several GPUs and a profile knows so without being told,
    /// since the pair is there on one GPU.
    fn is_known_unfit(&self, pair: &Pair) -> bool {
        pair.gpus > 1
            && self.pairs.get(pair) == Some(&(Pace::ZERO, Pace::ZERO))
            && self.pairs.contains_key(&Pair { gpus: 1, ..*pair })
    }

    /// Takes in a run alone; false when it is there already.
    fn add(&mut self, run: Alone, steps: f64) -> bool {
        self.alone.insert(run, steps).is_none()
    }

    /// Takes in a pair, seen from one side; false when that is there already.
    fn add_pair(&mut self, run: Pair, own: Pace, others: Pace) -> bool {
        self.pairs.insert(run, (own, others)).is_none()
    }

    /// Completes pairs that were only told from one side.
    fn mirror_pairs(&mut self) {
        let known: Vec<(Pair, (Pace, Pace))> = self.pairs.iter().map(|(k, v)| (*k, *v)).collect();
        for (pair, (own, others)) in known {
            let mirrored = Pair { workload: pair.other, other: pair.workload, ..pair };
            self.pairs.entry(mirrored).or_insert((others, own));
        }
    }
}
