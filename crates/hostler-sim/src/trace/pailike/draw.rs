//! What each job asks and how long it runs: users, their templates, and repeats of these.

use libm::{exp, log, pow, round, sqrt};

use super::PaiLike;
use super::habits::{FOLLOWS, KIND_SHARE_MAX, Kind};
use super::tables::{
    ASKED, CPU, DURATION_SECS, DURATION_SECS_MAX, GANG, GANG_CAP, GANG_CAP_MIN, GPU_LARGE_GANG,
    GPU_SMALL_GANG, GpuType, LARGE_GANG, MEMORY_GIB, RECENT, REUSE, SIGMA, TYPE, USER_POWER,
    quantile,
};
use crate::trace::random::Random;
use crate::trace::table::Status;

/// The jobs of one run of the generator and the templates they repeat.
#[derive(Clone, Debug)]
pub struct Draws {
    /// Options they were drawn with.
    pub options: PaiLike,
    /// Templates; a job names one by position.
    pub templates: Vec<Template>,
    /// Number of users.
    pub users: usize,
    /// Jobs by arrival.
    pub jobs: Vec<DrawnJob>,
}

/// What the jobs of a recurrence group have in common.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Template {
    /// Instances.
    pub count: u32,
    /// Milli-GPU per instance.
    pub gpu_milli: u32,
    /// Type its jobs ran on.
    pub gpu_type: GpuType,
    /// Whether it asks for that type by name.
    pub is_type_asked: bool,
    /// Milli-CPU per instance.
    pub cpu_milli: u32,
    /// Memory per instance.
    pub mem_mib: u32,
    /// The kind of work that it is; each is one of its own where users have no habits.
    pub kind: u32,
    /// Median run time.
    pub median_secs: f64,
    /// Spread of run times (of the logarithm).
    pub sigma: f64,
    /// Times used.
    pub uses: u32,
}

/// One job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnJob {
    /// Arrival.
    pub submit_secs: u64,
    /// User, from 0; smaller ones are busier.
    pub user: u32,
    /// Its template.
    pub template: u32,
    /// Run time.
    pub duration_secs: u32,
    /// How it ended.
    pub status: Status,
}

/// Draws all but the arrival times.
pub(super) fn bodies(options: &PaiLike) -> Draws {
    let count = f64::from(options.jobs);
    let users = round(1300.0 * sqrt((count / 100_000.0).min(1.0))).max(20.0) as usize;
    let mut maker = Maker {
        random: Random::stream(options.seed, 2),
        habits: options.habits,
        gang_cap: (GANG_CAP / options.scale).max(GANG_CAP_MIN),
        uses_max: round(0.02 * count).max(8.0) as u32,
        kind_uses_max: round(KIND_SHARE_MAX * count).max(8.0) as u32,
        recent: vec![Vec::new(); users],
        templates: Vec::new(),
        kinds: Vec::new(),
    };
    let weights = cumulative_weights(users);
    let jobs = (0..options.jobs).map(|_| maker.job(&weights)).collect();
    Draws { options: *options, templates: maker.templates, users, jobs }
}

fn cumulative_weights(users: usize) -> Vec<f64> {
    let mut sum = 0.0;
    let mut add = |user: usize| {
        sum += pow(user as f64, USER_POWER);
        sum
    };
    (1..=users).map(&mut add).collect()
}

struct Maker {
    random: Random,
    habits: bool,
    gang_cap: u32,
    uses_max: u32,
    kind_uses_max: u32,
    /// Templates of each user, most recently used last.
    recent: Vec<Vec<u32>>,
    templates: Vec<Template>,
    kinds: Vec<Kind>,
}

impl Maker {
    fn job(&mut self, weights: &[f64]) -> DrawnJob {
        let total = weights.last().expect("there are at least 20 users");
        let mark = self.random.uniform() * total;
        let user = weights.partition_point(|sum| *sum < mark).min(weights.len() - 1);
        let template = self.template_of(user);
        let Template { median_secs, sigma, kind, .. } = self.templates[template as usize];
        self.kinds[kind as usize].uses += 1;
        let secs = round(median_secs * exp(sigma * self.random.normal()));
        let status = match self.random.uniform() {
            u if u < 0.795 => Status::Completed,
            u if u < 0.997 => Status::Failed,
            _ => Status::Waiting,
        };
        let duration_secs = secs.clamp(1.0, DURATION_SECS_MAX) as u32;
        DrawnJob { submit_secs: 0, user: user as u32, template, duration_secs, status }
    }

    /// A recent template of the user, or a new one; either becomes the most recent.
    fn template_of(&mut self, user: usize) -> u32 {
        let known = self.recent[user].len();
        if known > 0 && self.random.uniform() < REUSE {
            let place = self.recent_place(known);
            let template = self.recent[user][place];
            if self.templates[template as usize].uses < self.uses_max {
                self.recent[user].remove(place);
                self.recent[user].push(template);
                self.templates[template as usize].uses += 1;
                return template;
            }
        }
        let template = self.templates.len() as u32;
        let made = self.followed(user).unwrap_or_else(|| self.make());
        self.templates.push(made);
        self.recent[user].push(template);
        template
    }

    /// A place among so many templates of a user, the most recent ones most likely.
    fn recent_place(&mut self, known: usize) -> usize {
        let steps = log(1.0 - self.random.uniform()) / log(1.0 - RECENT);
        known - 1 - (steps as usize).min(known - 1)
    }

    /// A template of a kind that the user did lately, where users have habits.
    fn followed(&mut self, user: usize) -> Option<Template> {
        let known = self.recent[user].len();
        if !self.habits || known == 0 || self.random.uniform() >= FOLLOWS {
            return None;
        }
        let place = self.recent_place(known);
        let earlier = self.templates[self.recent[user][place] as usize];
        let kind = self.kinds[earlier.kind as usize];
        if kind.uses >= self.kind_uses_max {
            return None;
        }
        let median_secs = quantile(&DURATION_SECS, kind.next_rank(&mut self.random));
        let sigma = self.random.pick(&SIGMA);
        Some(Template { median_secs, sigma, uses: 1, ..earlier })
    }

    /// A template of a kind of its own.
    fn make(&mut self) -> Template {
        let random = &mut self.random;
        let (count, gpu_milli) = loop {
            let count = random.pick(&GANG);
            let gpu = match count >= LARGE_GANG {
                true => random.pick(&GPU_LARGE_GANG),
                false => random.pick(&GPU_SMALL_GANG),
            };
            if count <= self.gang_cap && count * gpu <= self.gang_cap * 1000 {
                break (count, gpu);
            }
        };
        let gpu_type = loop {
            let kind = if gpu_milli == 0 { GpuType::Cpu } else { random.pick(&TYPE) };
            if gpu_milli <= 2000 || !kind.has_small_machines() {
                break kind;
            }
        };
        let cpu_milli = random.pick(&CPU);
        let mem_mib = round(quantile(&MEMORY_GIB, random.uniform()) * 1024.0) as u32;
        let rank = random.uniform();
        let median_secs = quantile(&DURATION_SECS, rank);
        let sigma = random.pick(&SIGMA);
        let may_ask = gpu_type != GpuType::Cpu && random.uniform() < ASKED;
        let is_type_asked = gpu_type.is_always_asked() || may_ask;
        let kind = self.kinds.len() as u32;
        self.kinds.push(Kind { rank, uses: 0 });
        Template {
            count,
            gpu_milli,
            gpu_type,
            is_type_asked,
            cpu_milli,
            mem_mib,
            kind,
            median_secs,
            sigma,
            uses: 1,
        }
    }
}
