//! Who runs in a round: teams by how far behind their share they are, model by model.
//!
//! Counts GPUs only. Where the GPUs are, and whether a gang finds enough of them together, is the
//! business of `seats`.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use hostler_core::id::{JobId, ModelId};
use hostler_core::job::Job;
use hostler_core::policy::SettingType;
use hostler_core::target::{Team, Turn};
use hostler_core::twister::Twister;
use hostler_core::units::Span;
use hostler_core::view::View;
use serde::{Deserialize, Serialize};

use super::roster::{Roster, Row};

/// In which order GPU models are dealt out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ModelOrder {
    /// The highest tier first.
    #[default]
    Tier,
    /// As the cluster lists them.
    Listed,
    /// In a new order each round, from the seed.
    Shuffled,
}

impl SettingType for ModelOrder {
    const TAKES: &'static str = "\"tier\" | \"listed\" | \"shuffled\"";
}

impl ModelOrder {
    /// The models in their order of a round.
    pub(super) fn models(
        self,
        view: &View<'_>,
        number: u64,
        shuffles: &mut Shuffles,
    ) -> Vec<ModelId> {
        let mut models: Vec<ModelId> = (0..view.models().len() as u32).map(ModelId).collect();
        match self {
            ModelOrder::Listed => {}
            ModelOrder::Tier => {
                models.sort_by_key(|model| (u32::MAX - view.model(*model).tier, model.0));
            }
            ModelOrder::Shuffled => {
                let has = |model: &ModelId| {
                    view.nodes().iter().any(|node| node.spec.gpu_model == Some(*model))
                };
                models.retain(has);
                models = shuffles.of_round(number, &models);
            }
        }
        models
    }
}

/// The shuffled orders of all rounds, drawn one after the other as published results were. Follows
/// from the seed; only a cache.
pub(super) struct Shuffles {
    seed: u64,
    /// Rounds drawn.
    drawn: u64,
    twister: Twister,
    last: Vec<ModelId>,
}

/// What the published simulator adds to its seed for the order of GPU types.
const SEED_OF_ORDER: u64 = 5;

impl Shuffles {
    pub(super) fn new(seed: u64) -> Shuffles {
        let twister = Twister::new(seed.wrapping_add(SEED_OF_ORDER) as u32);
        Shuffles { seed, drawn: 0, twister, last: Vec::new() }
    }

    fn of_round(&mut self, number: u64, models: &[ModelId]) -> Vec<ModelId> {
        if number + 1 < self.drawn {
            *self = Shuffles::new(self.seed);
        }
        while self.drawn <= number {
            self.last = models.to_vec();
            self.twister.shuffle(&mut self.last);
            self.drawn += 1;
        }
        self.last.clone()
    }
}

/// A team that may run on a model.
#[derive(Clone, Copy, Debug)]
pub(super) struct Candidate {
    pub(super) turn: Turn,
    /// Thousandths of GPUs that it takes.
    pub(super) gpu_milli: u64,
    urgency: f64,
    deficit: i64,
    share: u64,
}

impl Candidate {
    /// Whether it was solved for.
    pub(super) fn is_solved(&self, view: &View<'_>) -> bool {
        self.turn.team.members().all(|job| view.standing(job).is_some())
    }

    /// Most urgent first; equals in order of submission.
    fn before(&self, other: &Candidate) -> Ordering {
        other
            .urgency
            .total_cmp(&self.urgency)
            .then(other.deficit.cmp(&self.deficit))
            .then(other.share.cmp(&self.share))
            .then(self.turn.team.cmp(&other.turn.team))
    }
}

/// How candidates are ranked.
pub(super) struct Ranking {
    /// Half a round: what everybody is taken to have had, so that the first round of a new
    /// solution is not decided by a division by zero.
    pub(super) head_start: Span,
    /// Whether teams without a share may take what is left.
    pub(super) fillers: bool,
}

impl Ranking {
    /// The candidates, model by model in the given order, most urgent first.
    pub(super) fn candidates(
        &self,
        view: &View<'_>,
        roster: &Roster,
        models: &[ModelId],
    ) -> Vec<Candidate> {
        let jobs: Vec<(&Job, &Row)> = roster.rows(view).collect();
        self.rank(view, roster, models, &jobs, &self.pairs(view))
    }

    /// The same for jobs that wait, each by itself.
    pub(super) fn waiting(
        &self,
        view: &View<'_>,
        roster: &Roster,
        models: &[ModelId],
    ) -> Vec<Candidate> {
        let jobs: Vec<(&Job, &Row)> = roster.waiting(view).collect();
        self.rank(view, roster, models, &jobs, &[])
    }

    fn rank(
        &self,
        view: &View<'_>,
        roster: &Roster,
        models: &[ModelId],
        jobs: &[(&Job, &Row)],
        pairs: &[Turn],
    ) -> Vec<Candidate> {
        let mut all = Vec::new();
        for model in models {
            let jobs = jobs.iter().filter(|(_, row)| row.rates[model.index()] > 0.0);
            let alone = jobs.map(|(job, row)| (Team::alone(job.id), row.gpu_milli));
            let pairs = pairs.iter().filter(|turn| turn.model == *model);
            let pairs =
                pairs.filter_map(|turn| Some((turn.team, roster.row(turn.team.first)?.gpu_milli)));
            let begin = all.len();
            for (team, gpu_milli) in alone.chain(pairs) {
                let candidate = self.candidate(view, Turn { team, model: *model }, gpu_milli);
                if self.fillers || candidate.share > 0 {
                    all.push(candidate);
                }
            }
            all[begin..].sort_by(Candidate::before);
        }
        all
    }

    fn candidate(&self, view: &View<'_>, turn: Turn, gpu_milli: u64) -> Candidate {
        let account = view.account(turn.team, turn.model);
        let urgency = match account.share {
            0 => 0.0,
            _ => view.urgency(turn.team, turn.model, self.head_start),
        };
        let (deficit, share) = (account.deficit, account.share);
        Candidate { turn, gpu_milli, urgency, deficit, share }
    }

    /// Pairs that have an account.
    fn pairs(&self, view: &View<'_>) -> Vec<Turn> {
        let accounts = view.pair_accounts().filter(|(_, _, account)| account.share > 0);
        accounts.map(|(team, model, _)| Turn { team, model }).collect()
    }
}

/// Walks down the candidates and takes those for which GPUs are left.
pub(super) struct Walk {
    /// Thousandths of GPUs that are left, by model.
    pub(super) left: Vec<u64>,
    /// Jobs that have a turn.
    pub(super) taken: BTreeSet<JobId>,
}

impl Walk {
    /// Whether the candidate can have a turn.
    pub(super) fn admits(&self, candidate: &Candidate) -> bool {
        let model = candidate.turn.model.index();
        candidate.gpu_milli <= self.left[model]
            && candidate.turn.team.members().all(|job| !self.taken.contains(&job))
    }

    /// Gives the candidate a turn.
    pub(super) fn take(&mut self, candidate: &Candidate) {
        self.left[candidate.turn.model.index()] -= candidate.gpu_milli;
        self.taken.extend(candidate.turn.team.members());
    }

    /// Takes the turn back.
    pub(super) fn give_back(&mut self, candidate: &Candidate) {
        self.left[candidate.turn.model.index()] += candidate.gpu_milli;
        candidate.turn.team.members().for_each(|job| _ = self.taken.remove(&job));
    }
}
