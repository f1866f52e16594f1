//! The throughput table of the Gavel simulator, as JSON.
//!
//! `{worker type: {"('workload', gpus)": {"null": t, "('other', gpus)": [t, t of other]}}}`. A
//! worker type whose name ends in `_unconsolidated` holds gangs over several servers; of those
//! only the runs alone are read. Reading stops at the first fault: the parser knows its line.

use std::fmt;
use std::io::{BufReader, Read};

use hostler_core::units::Pace;
use serde::de::{DeserializeSeed, Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::{Alone, Pair, Throughputs};
use crate::trace::error::{Fault, Faults, Problem, quote};
use crate::trace::limits::{COUNT_MAX, FIELD_BYTES_MAX, THROUGHPUT_BYTES_MAX};

const SPREAD: &str = "_unconsolidated";

/// Reads a table from any stream; `file` is only for messages.
pub fn read_gavel_throughputs(
    input: &mut dyn Read,
    file: &str,
    tables: &mut Throughputs,
    faults: &mut Faults,
) {
    let limited = BufReader::with_capacity(1 << 16, input.take(THROUGHPUT_BYTES_MAX));
    let mut json = serde_json::Deserializer::from_reader(limited);
    let read = Level { tables, place: Place::Top }.deserialize(&mut json).and_then(|()| json.end());
    tables.mirror_pairs();
    if let Err(error) = read {
        let problem = Problem::Unreadable(words(&error));
        let (line, column) = (error.line() as u64, String::new());
        faults.push(Fault { file: file.to_owned(), line, column, value: String::new(), problem });
    }
}

/// What the parser says, without the place that a fault has anyway.
fn words(error: &serde_json::Error) -> String {
    let words = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    words.strip_suffix(&place).unwrap_or(&words).to_owned()
}

/// Where in the document a map stands.
#[derive(Clone, Copy)]
enum Place {
    /// Worker types.
    Top,
    /// Workloads on a worker type.
    Type { gpu_model: u32, spread: bool },
    /// Speeds of a workload.
    Workload(Alone),
}

struct Level<'t> {
    tables: &'t mut Throughputs,
    place: Place,
}

impl<'de> DeserializeSeed<'de> for Level<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Level<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.place {
            Place::Top => "worker types with their workloads",
            Place::Type { .. } => "workloads like `('name', 1)` with their speeds",
            Place::Workload(_) => "`null` and other workloads with speeds",
        })
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<(), M::Error> {
        let Level { tables, place } = self;
        while let Some(key) = map.next_key::<String>()? {
            if key.is_empty() || key.len() > FIELD_BYTES_MAX {
                return Err(M::Error::custom("a name is empty or too long"));
            }
            match place {
                Place::Top => {
                    let name = key.strip_suffix(SPREAD).unwrap_or(&key);
                    let gpu_model = tables.gpu_models.number(name);
                    let place = Place::Type { gpu_model, spread: name.len() < key.len() };
                    map.next_value_seed(Level { tables, place })?;
                }
                Place::Type { gpu_model, spread } => {
                    let (name, gpus) = workload(&key)?;
                    let workload = tables.workloads.number(name);
                    let run = Alone { workload, gpu_model, gpus, spread };
                    map.next_value_seed(Level { tables, place: Place::Workload(run) })?;
                }
                Place::Workload(run) if key == "null" => {
                    let steps = map.next_value()?;
                    pace(steps)?;
                    if !tables.add(run, steps) {
                        return Err(M::Error::custom("the speed alone is there twice"));
                    }
                }
                Place::Workload(run) => pair(tables, run, &key, map.next_value()?)?,
            }
        }
        Ok(())
    }
}

#[derive(Deserialize)]
struct Both(f64, f64);

fn pair<E: Error>(tables: &mut Throughputs, run: Alone, key: &str, speeds: Both) -> Result<(), E> {
    let (name, gpus) = workload(key)?;
    let (own, others) = (pace(speeds.0)?, pace(speeds.1)?);
    if gpus != run.gpus {
        let (quoted, own) = (quote(key.as_bytes()), run.gpus);
        return Err(E::custom(format!("pair `{quoted}` with a workload on {own} GPUs")));
    }
    if run.spread {
        return Ok(());
    }
    let other = tables.workloads.number(name);
    let pair = Pair { workload: run.workload, other, gpu_model: run.gpu_model, gpus };
    match tables.add_pair(pair, own, others) {
        true => Ok(()),
        false => Err(E::custom(format!("pair `{}` is there twice", quote(key.as_bytes())))),
    }
}

/// Name and gang of `('name', 2)`.
fn workload<E: Error>(key: &str) -> Result<(&str, u32), E> {
    let inside = key.strip_prefix("('").and_then(|rest| rest.strip_suffix(')'));
    let parts = inside.and_then(|inside| inside.rsplit_once("', "));
    let parsed = parts.and_then(|(name, gpus)| Some((name, gpus.parse::<u32>().ok()?)));
    let sane = |(name, gpus): &(&str, u32)| {
        !name.is_empty() && (1..=COUNT_MAX).contains(&u64::from(*gpus))
    };
    parsed.filter(sane).ok_or_else(|| {
        E::custom(format!("`{}` is no workload like `('name', 1)`", quote(key.as_bytes())))
    })
}

fn pace<E: Error>(steps: f64) -> Result<Pace, E> {
    let wanted = "a speed is a number of steps per second from 0 to a million";
    Pace::from_steps_per_sec(steps).ok_or_else(|| E::custom(format!("{steps}: {wanted}")))
}
