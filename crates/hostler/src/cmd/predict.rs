//! `hostler predict`: trains predictors of run times and judges them.

use std::io::Write;

use anyhow::{Context, Result, bail};
use hostler_core::job::Estimate;
use hostler_predict::cart::CartSettings;
use hostler_predict::evaluate::{self, Parted, Past, Score};
use hostler_predict::limits::TRAINED_MAX;
use hostler_predict::trained::ModelKind;
use hostler_predict::{CartRun, FeatureSet, Learner, MedianRun, ModelFile};
use hostler_sim::history;
use hostler_sim::report::format::grouped;
use serde::Serialize;

use crate::cli::{Experience, Input, Model, PredictCommand, PredictEval, PredictTrain};
use crate::input::{self, Loaded};
use crate::progress;

/// Jobs that come before those that predictors are judged by, in per cent.
const FIRST_PERCENT: u32 = 80;

/// Runs one of the commands.
pub fn run(command: &PredictCommand) -> Result<()> {
    match command {
        PredictCommand::Train(args) => train(args),
        PredictCommand::Eval(args) => eval(args),
    }
}

fn load(experience: &Experience) -> Result<Loaded> {
    let Experience { trace, cluster, .. } = experience;
    let (trace, cluster) = (trace.clone(), cluster.clone());
    input::load(&Input { trace, cluster, ..Input::default() })
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
}

/// All that was found out.
#[derive(Serialize)]
struct Judgement {
    jobs: usize,
    learnt: usize,
    judged: usize,
    min_samples: u32,
    results: Vec<Judged>,
}

fn eval(args: &PredictEval) -> Result<()> {
    let workload = load(&args.experience)?.workload;
    let past = history::history(&workload);
    let parted = evaluate::part(&past, FIRST_PERCENT);
    if parted.learnt.is_empty() || parted.judged.is_empty() {
        bail!("{} jobs are too few to learn from some and judge by others", past.len());
    }
    let spinner = progress::spinner("learning");
    let mut results = Vec::new();
    for way in [trained, online] {
        for candidate in candidates(args) {
            spinner.set_message(format!("{} {}", candidate.model(), candidate.features()));
            results.push(way(candidate, args.experience.min_samples as usize, &past, &parted));
        }
    }
    spinner.finish_and_clear();
    let judgement = Judgement {
        jobs: past.len(),
        learnt: parted.learnt.len(),
        judged: parted.judged.len(),
        min_samples: args.experience.min_samples,
        results,
    };
    let mut out = std::io::stdout().lock();
    if args.json {
        writeln!(out, "{}", serde_json::to_string_pretty(&judgement)?)?;
    } else {
        write!(out, "{}", table(&judgement))?;
    }
    Ok(())
}

/// A predictor that is judged.
#[derive(Clone, Copy)]
enum Candidate {
    Median(FeatureSet),
    Cart,
}

fn candidates(args: &PredictEval) -> Vec<Candidate> {
    let mut list = Vec::new();
    if args.model != Some(Model::Cart) {
        list.extend(FeatureSet::ALL.map(Candidate::Median));
    }
    if args.model != Some(Model::Median) {
        list.push(Candidate::Cart);
    }
    list
}

impl Candidate {
    fn model(self) -> &'static str {
        match self {
            Candidate::Median(_) => "median",
            Candidate::Cart => "cart",
        }
    }

    fn features(self) -> &'static str {
        match self {
            Candidate::Median(set) => set.name(),
            Candidate::Cart => "all",
        }
    }

    fn judged(self, learning: &'static str, said: Vec<Option<Estimate>>, by: &[Past]) -> Judged {
        let pairs = said.into_iter().zip(by.iter().map(|job| job.run));
        let (model, features) = (self.model(), self.features());
        Judged { learning, model, features, score: evaluate::score(pairs) }
    }
}

/// Learns once, from jobs that were over before.
fn trained(who: Candidate, samples_min: usize, _: &[Past], parted: &Parted<'_>) -> Judged {
    let learn = |learner: &mut dyn Learner| {
        parted.learnt.iter().for_each(|job| learner.learn(&job.features, job.run));
    };
    let ask = |learner: &dyn Learner| {
        parted.judged.iter().map(|job| learner.belief(&job.features)).collect()
    };
    let said = match who {
        Candidate::Median(set) => {
            let mut median = MedianRun::new(samples_min).going_by(set);
            learn(&mut median);
            ask(&median)
        }
        Candidate::Cart => {
            let once =
                CartSettings { window_max: TRAINED_MAX, by_itself: false, ..settings(samples_min) };
            let mut cart = CartRun::new(once);
            learn(&mut cart);
            cart.grow();
            ask(&cart)
        }
    };
    who.judged("trained", said, parted.judged)
}

/// Learns as jobs end, from the first on.
fn online(who: Candidate, samples_min: usize, past: &[Past], parted: &Parted<'_>) -> Judged {
    let mut said = match who {
        Candidate::Median(set) => {
            evaluate::online(&mut MedianRun::new(samples_min).going_by(set), past)
        }
        Candidate::Cart => evaluate::online(&mut CartRun::new(settings(samples_min)), past),
    };
    let said = said.split_off(past.len() - parted.judged.len());
    who.judged("online", said, parted.judged)
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
            "{:8}  {:6}  {:14}  {:8.1} %  {:10.1} %  {:>8} s  {:7.1} %\n",
            row.learning,
            row.model,
            row.features,
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
        text += &format!("{:8}  {:6}  {:14}", row.learning, row.model, row.features);
        for (_, share) in &row.score.cdf {
            text += &format!("{:7.1} %", share * 100.0);
        }
        text += "\n";
    }
    text
}

fn count(number: usize) -> String {
    grouped(number as f64, 0)
}
