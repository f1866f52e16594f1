//! Jobs and nodes in a few words.

use super::facts::{gang, job, node_spec};
use crate::cluster::NodeSpec;
use crate::gate::{After, AfterWhen, ArrayLimit};
use crate::id::{Features, GroupId, JobId, ModelId, ModelSet, ProfileKey, TenantId, WindowId};
use crate::job::{Elastic, JobSpec, Locality, Models, Sharing};
use crate::units::{Mib, Milli, Span};

/// A job, as in `gpus 2 tasks 3 near rack after 0:started`. A role is one task with one core,
/// unless words say otherwise; `+` begins the next role.
pub(crate) fn asks(text: &str) -> JobSpec {
    let mut spec = job("", 0);
    let mut gangs = vec![gang(1, 0)];
    let mut words = text.split_whitespace();
    while let Some(word) = words.next() {
        if word == "+" {
            gangs.push(gang(1, 0));
            continue;
        }
        if word == "willing" {
            spec.sharing = Sharing::Willing;
            continue;
        }
        let value = words.next().unwrap_or_else(|| panic!("`{word}` without a value"));
        let role = gangs.last_mut().unwrap();
        match word {
            "gpus" => role.demand.gpu = Milli(number(value) * 1000),
            "gpu" => role.demand.gpu = Milli(number(value)),
            "gpu-mem" => role.demand.gpu_mem = Mib(number(value)),
            "tasks" => role.count = number(value),
            "cores" => role.demand.cpu = Milli(number(value) * 1000),
            "mem" => role.demand.mem = Mib(number(value)),
            "window" => role.demand.window = Some(WindowId(number(value))),
            "needs" => role.demand.needs = Features(number(value).into()),
            "near" => role.demand.locality = locality(value),
            "on" => {
                let models = numbers(value).map(|id| ModelSet::one(ModelId(id)));
                role.demand.models = Models::OneOf(models.fold(ModelSet::NONE, ModelSet::with));
            }
            "prefers" => {
                role.demand.models = Models::Ordered(numbers(value).map(ModelId).collect())
            }
            _ => of_job(&mut spec, word, value),
        }
    }
    spec.gangs = gangs.into();
    spec
}

fn of_job(spec: &mut JobSpec, word: &str, value: &str) {
    let span = || Some(Span::from_secs(number(value).into()));
    let pair = || value.split_once(':').unwrap_or((value, ""));
    match word {
        "tenant" => spec.tenant = TenantId(number(value)),
        "group" => spec.group = Some(GroupId(number(value))),
        "profile" => spec.profile = Some(ProfileKey(number(value))),
        "priority" => spec.priority = value.parse().unwrap(),
        "lasts" => spec.user_estimate = span(),
        "limit" => spec.time_limit = span(),
        "saves" if value == "never" => spec.checkpoint.never = true,
        "saves" if value == "unsuspended" => spec.checkpoint.no_suspend = true,
        "saves" => spec.checkpoint.save = span().unwrap(),
        "loads" => spec.checkpoint.load = span().unwrap(),
        "every" => spec.checkpoint.every = span().unwrap(),
        "elastic" => {
            let (min, max) = pair();
            spec.elastic = Some(Elastic { min: number(min), max: number(max) });
        }
        "after" => {
            let (job, when) = pair();
            let after = After { job: JobId(number(job)), when: when_of(when) };
            spec.after = spec.after.iter().copied().chain([after]).collect();
        }
        "array" => {
            let (first, most) = pair();
            spec.array = Some(ArrayLimit { first: JobId(number(first)), most: number(most) });
        }
        _ => panic!("a job has no `{word}`"),
    }
}

fn number(text: &str) -> u32 {
    text.parse().unwrap_or_else(|_| panic!("`{text}` is no number"))
}

fn numbers(text: &str) -> impl Iterator<Item = u32> {
    text.split(',').map(number)
}

fn locality(text: &str) -> Locality {
    match text {
        "rack" => Locality::Rack,
        "node" => Locality::Node,
        "island" => Locality::Island,
        "apart" => Locality::Apart,
        _ => panic!("no locality is called `{text}`"),
    }
}

fn when_of(text: &str) -> AfterWhen {
    match text {
        "" | "finished" => AfterWhen::Finished,
        "over" => AfterWhen::Over,
        "failed" => AfterWhen::Failed,
        "started" => AfterWhen::Started,
        _ => panic!("no moment is called `{text}`"),
    }
}

/// Nodes, as in `4 | 8 island 4 rack 1 | 2 model 1 | 0 cores 8`: each begins with its GPUs.
pub(crate) fn nodes(text: &str) -> Vec<NodeSpec> {
    let node = |(id, text): (usize, &str)| {
        let mut words = text.split_whitespace();
        let mut spec = node_spec(id as u32, number(words.next().unwrap()));
        while let Some(word) = words.next() {
            let value = number(words.next().unwrap());
            match word {
                "model" => spec.gpu_model = Some(ModelId(value)),
                "island" => spec.island_gpus = value,
                "rack" => spec.rack = value,
                "cores" => spec.cpu = Milli(value * 1000),
                "mem" => spec.mem = Mib(value),
                "features" => spec.features = Features(value.into()),
                _ => panic!("a node has no `{word}`"),
            }
        }
        spec
    };
    text.split('|').enumerate().map(node).collect()
}
