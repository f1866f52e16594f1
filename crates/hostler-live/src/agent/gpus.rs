//! The GPUs of a machine: read through NVML, or made up for machines without.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;

/// Memory of a made-up GPU in MiB.
const FAKE_MEM_MIB: u32 = 16 << 10;

/// Where the GPUs of a machine come from.
#[derive(Debug)]
pub enum Gpus {
    /// NVIDIA's library, which is loaded when the agent starts.
    Nvml(Box<Nvml>),
    /// Made up.
    Fake(FakeGpus),
    /// There are none.
    None,
}

/// Made-up GPUs, as in `8xV100` or `8xV100:32768@300`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FakeGpus {
    /// How many.
    pub count: u32,
    /// Their model.
    pub model: String,
    /// Memory of each in MiB.
    pub mem_mib: u32,
    /// Power that each pretends to take in watts; none tells any when zero.
    pub watts: u32,
}

/// A text that names no made-up GPUs.
#[derive(Debug, thiserror::Error)]
#[error("invalid GPUs `{0}`; write a number, `x`, a model and perhaps MiB, as in `8xV100:32768`")]
pub struct InvalidFakeGpus(String);

/// What the GPUs of a machine are; alike, since a node has one model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuKind {
    /// How many.
    pub count: u32,
    /// Their model.
    pub model: String,
    /// Memory of each in MiB.
    pub mem_mib: u32,
}

/// Present use of a GPU.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeviceUse {
    /// Of all of it, in per cent.
    pub percent: u8,
    /// Of its compute by processes that did something lately, in per cent.
    pub by_process: BTreeMap<u32, u32>,
}

/// What a GPU tells of its energy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Energy {
    /// All of it since the driver was loaded.
    Counted {
        /// How much.
        millijoules: u64,
    },
    /// What it takes now, where it does not count.
    Power {
        /// How much.
        milliwatts: u32,
    },
}

impl Gpus {
    /// Those that NVML knows; none when there is no such library or no driver.
    pub fn find() -> Gpus {
        match Nvml::init() {
            Ok(nvml) => Gpus::Nvml(Box::new(nvml)),
            Err(fault) => {
                tracing::info!(%fault, "no GPUs: NVML cannot be used");
                Gpus::None
            }
        }
    }

    /// Number, model and memory.
    pub fn kind(&self) -> GpuKind {
        match self {
            Gpus::Nvml(nvml) => read_kind(nvml).unwrap_or_else(|fault| {
                tracing::warn!(%fault, "the GPUs cannot be read and are left out");
                GpuKind::default()
            }),
            Gpus::Fake(FakeGpus { count, model, mem_mib, .. }) => {
                GpuKind { count: *count, model: model.clone(), mem_mib: *mem_mib }
            }
            Gpus::None => GpuKind::default(),
        }
    }

    /// Present use of each; empty where it cannot be read. What processes used is told since the
    /// look before, whose times are in `seen`.
    pub fn used(&self, seen: &mut Vec<u64>) -> Vec<DeviceUse> {
        match self {
            Gpus::Nvml(nvml) => read_use(nvml, seen).unwrap_or_default(),
            Gpus::Fake(_) | Gpus::None => Vec::new(),
        }
    }

    /// What each tells of its energy.
    pub fn energy(&self) -> Vec<Option<Energy>> {
        match self {
            Gpus::Nvml(nvml) => {
                let count = nvml.device_count().unwrap_or(0);
                (0..count).map(|index| read_energy(nvml, index)).collect()
            }
            Gpus::Fake(FakeGpus { count, watts, .. }) if *watts > 0 => {
                let milliwatts = watts.saturating_mul(1000);
                vec![Some(Energy::Power { milliwatts }); *count as usize]
            }
            Gpus::Fake(_) | Gpus::None => Vec::new(),
        }
    }
}

fn read_kind(nvml: &Nvml) -> Result<GpuKind, NvmlError> {
    let count = nvml.device_count()?;
    let (mut models, mut mem_mib) = (BTreeSet::new(), u32::MAX);
    for index in 0..count {
        let device = nvml.device_by_index(index)?;
        models.insert(model_of(&device.name()?));
        let total = device.memory_info()?.total >> 20;
        mem_mib = mem_mib.min(u32::try_from(total).unwrap_or(u32::MAX));
    }
    if models.len() > 1 {
        tracing::warn!(?models, "GPUs of several models in a node are treated as the first");
    }
    let model = models.pop_first().unwrap_or_default();
    Ok(GpuKind { count, model, mem_mib: if count > 0 { mem_mib } else { 0 } })
}

fn read_energy(nvml: &Nvml, index: u32) -> Option<Energy> {
    let device = nvml.device_by_index(index).ok()?;
    let counted = device.total_energy_consumption();
    let counted = counted.map(|millijoules| Energy::Counted { millijoules });
    let power = || device.power_usage().map(|milliwatts| Energy::Power { milliwatts });
    counted.or_else(|_| power()).ok()
}

fn read_use(nvml: &Nvml, seen: &mut Vec<u64>) -> Result<Vec<DeviceUse>, NvmlError> {
    let count = nvml.device_count()?;
    seen.resize(count as usize, 0);
    let used = |(index, seen): (u32, &mut u64)| {
        let device = nvml.device_by_index(index)?;
        let percent = u8::try_from(device.utilization_rates()?.gpu.min(100)).unwrap_or(100);
        // No samples since then are a fault of their own, and some devices tell of none.
        let samples = device.process_utilization_stats(*seen).unwrap_or_default();
        *seen = samples.iter().map(|sample| sample.timestamp).fold(*seen, u64::max);
        let mut sums: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        for sample in &samples {
            let (sum, count) = sums.entry(sample.pid).or_default();
            (*sum, *count) = (*sum + sample.sm_util.min(100), *count + 1);
        }
        let by_process = sums.into_iter().map(|(pid, (sum, count))| (pid, sum / count)).collect();
        Ok(DeviceUse { percent, by_process })
    };
    (0..count).zip(seen).map(used).collect()
}

/// The model in the name of a product: `NVIDIA A100-SXM4-80GB` is an `A100`.
fn model_of(product: &str) -> String {
    let words = product.split([' ', '-']).filter(|word| {
        let maker = ["NVIDIA", "Tesla", "GeForce", "Quadro"].contains(word);
        let shape = ["SXM", "PCI", "HBM", "NVL"].iter().any(|shape| word.starts_with(shape));
        let memory = word.ends_with("GB") || word.is_empty();
        !maker && !shape && !memory
    });
    words.collect::<Vec<_>>().join("-")
}

impl FromStr for FakeGpus {
    type Err = InvalidFakeGpus;

    fn from_str(text: &str) -> Result<FakeGpus, InvalidFakeGpus> {
        let parse = || {
            let (count, rest) = text.split_once('x')?;
            let (rest, watts) = match rest.split_once('@') {
                Some((rest, watts)) => (rest, watts.parse().ok()?),
                None => (rest, 0),
            };
            let (model, mem_mib) = match rest.split_once(':') {
                Some((model, mem_mib)) => (model, mem_mib.parse().ok()?),
                None => (rest, FAKE_MEM_MIB),
            };
            let count = count.parse().ok()?;
            (!model.is_empty()).then(|| FakeGpus { count, model: model.to_owned(), mem_mib, watts })
        };
        parse().ok_or_else(|| InvalidFakeGpus(text.to_owned()))
    }
}

impl fmt::Display for FakeGpus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}:{}", self.count, self.model, self.mem_mib)?;
        if self.watts > 0 { write!(f, "@{}", self.watts) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_are_known_by_their_model() {
        let products = [
            ("NVIDIA H200", "H200"),
            ("NVIDIA H100 80GB HBM3", "H100"),
            ("NVIDIA A100-SXM4-80GB", "A100"),
            ("Tesla V100-SXM2-32GB", "V100"),
            ("Tesla T4", "T4"),
            ("NVIDIA GeForce RTX 3090", "RTX-3090"),
        ];
        for (product, model) in products {
            assert_eq!(model_of(product), model);
        }
    }

    #[test]
    fn made_up_gpus_are_read_or_refused() {
        for text in ["8xV100:16384", "1xA100:81920", "4xV100:16384@300"] {
            assert_eq!(text.parse::<FakeGpus>().unwrap().to_string(), text);
        }
        assert_eq!("8xV100".parse::<FakeGpus>().unwrap().mem_mib, FAKE_MEM_MIB);
        for text in ["V100", "8x", "axV100", "8xV100:", "8xV100@", ""] {
            assert!(text.parse::<FakeGpus>().is_err(), "{text}");
        }
    }
}
