//! `hostler predict`: trains predictors of run times and judges them.

use std::io::Write;

use anyhow::{Context, Result, bail};
use hostler_core::job::Estimate;
use hostler_core::predict::Predict;
use hostler_core::registry::Registry;
use hostler_predict::blend::Purpose;
use hostler_predict::cart::CartSettings;
use hostler_predict::evaluate::{self, Parted, Past, Score};
use hostler_predict::limits::TRAINED_MAX;
use hostler_predict::trained::ModelKind;
use hostler_predict::{BlendRun, CartRun, FeatureSet, Frozen, Learner, MedianRun, ModelFile};
use hostler_sim::history;
use hostler_sim::report::format::grouped;
use serde::Serialize;

use super::predict_order::{self, Ends, Judge};
use super::rejected;
use crate::cli::{Experience, Input, Model, PredictCommand, PredictEval, PredictTrain};
use crate::input::{self, Loaded};
use crate::{pool, progress};

/// Jobs that come before those that predictors are judged by, in per cent.
const FIRST_PERCENT: u32 = 80;

/// Runs one of the commands.
pub fn run(command: &PredictCommand, registry: &Registry) -> Result<()> {
    match command {
        PredictCommand::Train(args) => train(args),
        PredictCommand::Eval(args) => eval(args, registry),
    }
}

fn load(experience: &Experience) -> Result<Loaded> {
    let Experience { trace, cluster, any_gpu, .. } = experience;
    let (trace, cluster, any_gpu) = (trace.clone(), cluster.clone(), *any_gpu);
    input::load(&Input { trace, cluster, any_gpu, ..Input::default() })
}

fn train(args: &PredictTrain) -> Result<()> {
    let workload = load(&args.experience)?.workload;
    let past = history::history(&workload);
    if past.is_empty() {
        bail!("the trace has no jobs to learn from");
    }
    let kind = match args.model {
        Model::Median => ModelKind::Median,
        Model::Cart => ModelKind::Cart,
        Model::Blend => ModelKind::Blend,
    };
    let spinner = progress::spinner("learning");
    let learnt = evaluate::part(&past, 100).learnt;
    let samples_min = args.experience.min_samples as usize;
    let model = ModelFile::train(kind, samples_min, learnt, &history::names(&workload));
    spinner.finish_and_clear();
    let name = args.out.display();
    std::fs::write(&args.out, model.to_json()).with_context(|| format!("cannot write `{name}`"))?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "learnt from {} jobs, in {name}", count(model.jobs))?;
    Ok(())
}

/// A judged predictor.
#[derive(Serialize)]
struct Judged {
    learning: &'static str,
    model: &'static str,
    features: &'static str,
    #[serde(flatten)]
    score: Score,
    /// Mean completion time of the judged jobs in a simulation by its estimates.
    avg_jct_s: f64,
    /// How much of what the truth would gain it gains; none where that is hardly anything.
    gap_closed: Option<f64>,
}

/// All that was found out.
#[derive(Serialize)]
struct Judgement {
    jobs: usize,
    learnt: usize,
    judged: usize,
    min_samples: u32,
    /// Offered load of the simulations.
    load: f64,
    simulated: Ends,
    results: Vec<Judged>,
}

fn eval(args: &PredictEval, registry: &Registry) -> Result<()> {
    let loaded = load(&args.experience)?;
    let past = history::history(&loaded.workload);
    let parted = evaluate::part(&past, FIRST_PERCENT);
    if parted.learnt.is_empty() || parted.judged.is_empty() {
        bail!("{} jobs are too few to learn from some and judge by others", past.len());
    }
    let alone = loaded.behind(past.len() - parted.judged.len(), args.load)?;
    let spinner = progress::spinner("learning");
    let judge = Judge::new(registry, &alone)?;
    let (ends, counts) = judge.ends()?;
    let before = predict_order::renamed(&parted.learnt, &loaded.workload, &alone);
    let samples_min = args.experience.min_samples as usize;
    let ways = [Learning::Before, Learning::Online];
    let all: Vec<(Learning, Candidate)> = ways
        .into_iter()
        .flat_map(|way| candidates(args).into_iter().map(move |who| (way, who)))
        .collect();
    let of = |at: usize, _: &mut ()| -> Result<Judged> {
        let (way, who) = all[at];
        spinner.set_message(format!("{} {} {}", way.name(), who.model(), who.features()));
        let said = way.said(who, samples_min, &past, &parted);
        let pairs = said.into_iter().zip(parted.judged.iter().map(|job| job.run));
        let score = evaluate::score(pairs);
        let avg_jct_s = judge.jct_s(way.predictor(who, samples_min, &before))?;
        Ok(Judged {
            learning: way.name(),
            model: who.model(),
            features: who.features(),
            score,
            avg_jct_s,
            gap_closed: ends.share(avg_jct_s),
        })
    };
    let results = pool::run(all.len(), None, of).into_iter().collect::<Result<Vec<_>>>()?;
    spinner.finish_and_clear();
    let judgement = Judgement {
        jobs: past.len(),
        learnt: parted.learnt.len(),
        judged: parted.judged.len(),
        min_samples: args.experience.min_samples,
        load: loaded.load_of(&alone),
        simulated: ends,
        results,
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&judgement)?)?;
    } else {
        write!(out, "{}", table(&judgement))?;
    }
    rejected::refuse_most([(hostler_policies::BY_SUBMISSION, counts)])
}

/// A predictor that is judged.
#[derive(Clone, Copy)]
enum Candidate {
    Median(FeatureSet),
    Cart,
    Blend,
}

fn candidates(args: &PredictEval) -> Vec<Candidate> {
    let asked = |model: Model| args.model.is_none_or(|asked| asked == model);
    let mut list = Vec::new();
    if asked(Model::Median) {
        list.extend(FeatureSet::ALL.map(Candidate::Median));
    }
    if asked(Model::Cart) {
        list.push(Candidate::Cart);
    }
    if asked(Model::Blend) {
        list.push(Candidate::Blend);
    }
    list
}

impl Candidate {
    fn model(self) -> &'static str {
        match self {
            Candidate::Median(_) => "median",
            Candidate::Cart => "cart",
            Candidate::Blend => "blend",
        }
    }

    fn features(self) -> &'static str {
        match self {
            Candidate::Median(set) => set.name(),
            Candidate::Cart | Candidate::Blend => "all",
        }
    }

    /// One that learns as jobs end, and knows nothing yet.
    fn fresh(self, samples_min: usize, purpose: Purpose) -> Box<dyn Online> {
        match self {
            Candidate::Median(set) => Box::new(MedianRun::new(samples_min).going_by(set)),
            Candidate::Cart => Box::new(CartRun::new(settings(samples_min))),
            Candidate::Blend => Box::new(BlendRun::meant_for(purpose)),
        }
    }

    /// One that has learnt from jobs that were over before, and learns nothing more.
    fn taught(self, samples_min: usize, purpose: Purpose, before: &[Past]) -> Frozen {
        fn learn<Taught: Learner>(mut learner: Taught, before: &[Past]) -> Taught {
            evaluate::teach(&mut learner, before);
            learner
        }
        match self {
            Candidate::Median(set) => {
                Frozen(Box::new(learn(MedianRun::new(samples_min).going_by(set), before)))
            }
            Candidate::Cart => {
                let settings = settings(samples_min);
                let once = CartSettings { window_max: TRAINED_MAX, by_itself: false, ..settings };
                let mut cart = learn(CartRun::new(once), before);
                cart.grow();
                Frozen(Box::new(cart))
            }
            Candidate::Blend => Frozen(Box::new(learn(BlendRun::meant_for(purpose), before))),
        }
    }
}

/// What learns and can be simulated with.
trait Online: Learner + Predict {}
impl<Both: Learner + Predict> Online for Both {}

/// When a predictor learns.
#[derive(Clone, Copy)]
enum Learning {
    /// Once, from jobs that were over before.
    Before,
    /// As jobs end, from the first on.
    Online,
}

impl Learning {
    fn name(self) -> &'static str {
        match self {
            Learning::Before => "trained",
            Learning::Online => "online",
        }
    }

    /// What a predictor says of the judged jobs when they are submitted.
    fn said(
        self,
        who: Candidate,
        samples_min: usize,
        past: &[Past],
        parted: &Parted<'_>,
    ) -> Vec<Option<Estimate>> {
        match self {
            Learning::Before => {
                let mut before: Vec<Past> = parted.learnt.iter().map(|job| **job).collect();
                before.sort_by_key(|job| job.submitted);
                let taught = who.taught(samples_min, Purpose::Closeness, &before);
                parted.judged.iter().map(|job| taught.0.belief(&job.features)).collect()
            }
            Learning::Online => {
                let mut fresh = who.fresh(samples_min, Purpose::Closeness);
                let mut said = evaluate::online(&mut *fresh, past);
                said.split_off(past.len() - parted.judged.len())
            }
        }
    }

    /// A predictor as a simulation of the judged jobs takes it.
    fn predictor(self, who: Candidate, samples_min: usize, before: &[Past]) -> Box<dyn Predict> {
        match self {
            Learning::Before => Box::new(who.taught(samples_min, Purpose::Order, before)),
            Learning::Online => {
                let mut fresh = who.fresh(samples_min, Purpose::Order);
                evaluate::teach(&mut *fresh, before);
                fresh
            }
        }
    }
}

fn settings(samples_min: usize) -> CartSettings {
    CartSettings { samples_min, ..CartSettings::default() }
}

fn table(judgement: &Judgement) -> String {
    let (judged, learnt) = (count(judgement.judged), count(judgement.learnt));
    let mut text = format!("judged by {judged} jobs, trained on {learnt} that ended before\n\n");
    text += "learning  model   features        under 25 %  median error  mean error  in spread\n";
    for row in &judgement.results {
        let Score { share_under_25, median_error, mae_s, within_spread, .. } = &row.score;
        text += &format!(
            "{}  {:8.1} %  {:10.1} %  {:>8} s  {:7.1} %\n",
            row.name(),
            share_under_25 * 100.0,
            median_error * 100.0,
            grouped(*mae_s, 0),
            within_spread * 100.0,
        );
    }
    text += "\nshare of jobs with an error of at most\nlearning  model   features      ";
    let errors = judgement.results.first().map_or(&[][..], |row| &row.score.cdf);
    for (error, _) in errors {
        text += &format!("{:>7} %", error * 100.0);
    }
    text += "\n";
    for row in &judgement.results {
        text += &row.name();
        for (_, share) in &row.score.cdf {
            text += &format!("{:7.1} %", share * 100.0);
        }
        text += "\n";
    }
    text + &order_table(judgement)
}

/// What the order of the estimates is worth.
fn order_table(judgement: &Judgement) -> String {
    let Ends { by_submission_s, by_truth_s, rejected } = judgement.simulated;
    let secs = |secs: f64| format!("{} s", grouped(secs, 0));
    let mut text = format!(
        "\nmean completion of the judged jobs, shortest first, at load {:.2}: between {} in the \
         order of\nsubmission (0 %) and {} by the true run times (100 %)\n\
         learning  model   features        rank correlation   completion  of the gap\n",
        judgement.load,
        secs(by_submission_s),
        secs(by_truth_s),
    );
    for row in &judgement.results {
        let share =
            row.gap_closed.map_or("-".to_owned(), |share| format!("{:.1} %", share * 100.0));
        text += &format!(
            "{}  {:16.3}  {:>11}  {share:>10}\n",
            row.name(),
            row.score.rank_correlation,
            secs(row.avg_jct_s),
        );
    }
    if rejected > 0 {
        text += &format!(
            "{} of {} judged jobs can never run on these machines: the times are of the others\n",
            count(rejected as usize),
            count(judgement.judged),
        );
    }
    if judgement.simulated.share(by_truth_s).is_none() {
        text += "hardly anybody waits here, so that the order does not matter; `--load 1.2` makes \
                 it\n";
    }
    text
}

impl Judged {
    fn name(&self) -> String {
        format!("{:8}  {:6}  {:14}", self.learning, self.model, self.features)
    }
}

fn count(number: usize) -> String {
    grouped(number as f64, 0)
}
