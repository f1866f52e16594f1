//! What jobs really use of their GPUs: chances of the PAI-like generator, from a stream of their
//! own, so that a trace with them is otherwise the same.
//!
//! Published of PAI: half of the instances use at most 0.042 of a GPU, and two to three in a
//! hundred use more than they asked for. All other numbers here are ours, not PAI's: how the rest
//! of the use is spread, how much memory jobs declare and how much they use.

use hostler_core::job::Sharing;
use libm::{exp, round};

use super::draw::{Draws, Template};
use super::tables::quantile;
use crate::trace::random::Random;
use crate::trace::table::{OptU32, Trace};

/// Quantiles of real use over request.
const USE: [(f64, f64); 7] =
    [(0.0, 0.005), (0.25, 0.05), (0.5, 0.14), (0.75, 0.4), (0.9, 0.75), (0.975, 1.0), (1.0, 2.0)];

/// Spread of the use of one template's jobs (of the logarithm).
const USE_SIGMA: f64 = 0.1;

/// Memory that a part of a GPU is declared to need, over its share of [`DEVICE_MIB`].
const DECLARED: [(f64, f64); 3] = [(0.25, 0.3), (0.5, 0.4), (1.0, 0.3)];

/// Memory of the smallest device: what is declared fits every model.
const DEVICE_MIB: f64 = 12_288.0;

/// Quantiles of memory used over memory declared.
const MEMORY: [(f64, f64); 4] = [(0.0, 0.1), (0.5, 0.6), (0.9, 1.0), (1.0, 1.5)];

/// What the jobs of a template use.
#[derive(Clone, Copy)]
struct Used {
    gpu_milli: f64,
    mem_mib: Option<u32>,
    mem_use_mib: u32,
}

/// Gives tasks on GPUs their real use, and parts of GPUs their memory and the will to share.
pub(super) fn fill(draws: &Draws, trace: &mut Trace) {
    let mut random = Random::stream(draws.options.seed, 3);
    let templates: Vec<Used> =
        draws.templates.iter().map(|template| used(template, &mut random)).collect();
    let rows = trace.jobs.iter_mut().zip(trace.tasks.iter_mut()).zip(&draws.jobs);
    for ((job, task), drawn) in rows {
        let spread = exp(USE_SIGMA * random.normal());
        let asked = task.gpu_milli.or(0);
        if asked == 0 {
            continue;
        }
        let used = templates[drawn.template as usize];
        let most = f64::from(asked.div_ceil(1000) * 1000);
        let gpu = round(used.gpu_milli * spread).clamp(1.0, most);
        task.gpu_use_milli = OptU32::some(gpu as u32);
        task.gpu_mem_use_mib = OptU32::some(used.mem_use_mib);
        task.gpu_mem_mib = used.mem_mib.into();
        let part = asked < 1000;
        job.sharing = Some(if part { Sharing::Willing } else { Sharing::Never });
    }
}

fn used(template: &Template, random: &mut Random) -> Used {
    let gpu_milli = f64::from(template.gpu_milli) * quantile(&USE, random.uniform());
    let declared = random.pick(&DECLARED);
    let ratio = quantile(&MEMORY, random.uniform());
    if template.gpu_milli >= 1000 {
        let mem_use_mib = round(DEVICE_MIB * ratio.min(1.0)) as u32;
        return Used { gpu_milli, mem_mib: None, mem_use_mib };
    }
    let part = f64::from(template.gpu_milli) / 1000.0;
    let mem_mib = round(DEVICE_MIB * part * declared).max(1.0);
    let mem_use_mib = round(mem_mib * ratio) as u32;
    Used { gpu_milli, mem_mib: Some(mem_mib as u32), mem_use_mib }
}
