//! Run times from many ways to look at like jobs, each heard by how right it was before.
//!
//! Jobs may be alike in who sends them, what they repeat, where they were sent, how long their user
//! says they take, and what they ask for to the last core. Each such likeness, with the latest 5,
//! 20 or 50 run times of it, is a voice, and what it says is these run times. A voice counts
//! by how far the middle of its run times was off before: for jobs of just this likeness, and, as
//! long as there were few, for all jobs of this kind of likeness. A closer likeness counts more
//! among equals.
//!
//! What all say, weighted, makes an estimate, and there are two purposes. To rank jobs, one that
//! may be long must not pass for a short one: jobs would be done soonest in the order of their
//! expected run times, were these not a matter of the few longest; the square of the mean root is
//! between that and the median, and orders better than both. To be right about a job as often as
//! can be, there are two guesses (`guess`), and the one is taken that was right more often for
//! such jobs. The spread is half the distance between the quartiles, scaled so that half of the
//! truths are within.
//!
//! So nobody has to say which column of a trace predicts. Where users repeat themselves, the
//! closest voices win; where they do not, the wide ones do; and a change is noticed by the short
//! windows.
//!
//! A voice is judged by what it said when a job was submitted, not by what it would say when the
//! job ends: jobs of one burst end together, and by then the last of them foretell the next. Errors
//! are those of logarithms: a job of a minute and one of a day count alike. Learns only from jobs
//! that are over. What the user said counts when nobody has finished yet.

mod guess;
mod likeness;
mod memory;

use std::collections::BTreeMap;

use hostler_core::id::JobId;
use hostler_core::job::{Estimate, JobSpec};
use hostler_core::predict::{Predict, UserEstimate};
use hostler_core::units::Span;

use crate::features::{Features, Learner};
use crate::limits::{KEYS_MAX, NOTED_MAX, RUN_MAX};
use crate::waiting::Waiting;
use guess::{Points, hits};
use likeness::{KINDS, Likeness};
use memory::{GUESSES, Memory, Record, WINDOWS};

/// The largest loss: beyond a factor of seven, worse is not worse for an order.
const LOSS_MAX: f64 = 2.0;

/// How much a loss tells: a voice that was off by a factor of 1.28 more counts e times less.
const SHARPNESS: f64 = 4.0;

/// What is left of a loss after the next one, over all jobs: some five hundred count.
const FADE_OF_KIND: f64 = 0.998;

/// The same, over jobs of one likeness: some fifty count.
const FADE_OF_LIKENESS: f64 = 0.98;

/// Losses of a likeness that count as much as those of its kind.
const KIND_COUNTS: f64 = 20.0;

/// A guess that missed this much less often is better; less is chance, or one burst of equal jobs.
const BETTER_MIN: f64 = 0.005;

/// Weights are whole numbers of this part of the largest, so that sums do not depend on order.
const WEIGHT_UNIT: f64 = (1 << 20) as f64;

/// Step of the logarithm of the scale of spreads: settles within some hundred jobs.
const SCALE_STEP: f64 = 0.01;

/// Bound of that logarithm: a factor of seven either way.
const SCALE_MAX: f64 = 2.0;

/// What an estimate is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Purpose {
    /// To rank jobs by.
    #[default]
    Order,
    /// To be close to the truth as often as can be.
    Closeness,
}

/// Many ways to look at like jobs, each heard by how right it was before.
#[derive(Clone, Debug)]
pub struct BlendRun {
    purpose: Purpose,
    memory: Memory,
    records: [[Record; WINDOWS.len()]; KINDS],
    /// How often each guess missed, over all jobs.
    misses: [Record; GUESSES],
    /// What was said of jobs that are not over.
    noted: BTreeMap<JobId, Note>,
    noted_max: usize,
    /// Logarithm of the factor on spreads.
    scale: f64,
    waiting: Waiting,
}

/// What was said of a job when it was submitted.
#[derive(Clone, Debug)]
struct Note {
    said: Option<Said>,
    voices: Box<[Voice]>,
}

/// All that is said of a job.
#[derive(Clone, Copy, Debug)]
struct Said {
    estimate: Estimate,
    guesses: [u32; GUESSES],
}

/// What a likeness said, by windows.
#[derive(Clone, Copy, Debug)]
struct Voice {
    at: u32,
    kind: u8,
    windows: u8,
    born: u64,
    middles: [u32; WINDOWS.len()],
}

impl Default for BlendRun {
    fn default() -> BlendRun {
        BlendRun::remembering(KEYS_MAX, NOTED_MAX)
    }
}

impl BlendRun {
    /// A predictor whose estimates are for this.
    pub fn meant_for(purpose: Purpose) -> BlendRun {
        BlendRun { purpose, ..BlendRun::default() }
    }

    /// A predictor that remembers at most so many likenesses, and what it said of so many jobs.
    fn remembering(likenesses_max: usize, noted_max: usize) -> BlendRun {
        BlendRun {
            purpose: Purpose::default(),
            memory: Memory::new(likenesses_max),
            records: [[Record::default(); WINDOWS.len()]; KINDS],
            misses: [Record::default(); GUESSES],
            noted: BTreeMap::new(),
            noted_max,
            scale: 0.0,
            waiting: Waiting::default(),
        }
    }

    /// All that have something to say of a job.
    fn voices(&self, features: &Features) -> Vec<Voice> {
        let mut voices = Vec::with_capacity(KINDS);
        for likeness in Likeness::of(features) {
            let Some(at) = self.memory.find(&likeness) else { continue };
            let entry = self.memory.entry(at);
            voices.push(Voice {
                at,
                kind: likeness.kind() as u8,
                windows: entry.windows() as u8,
                born: entry.born,
                middles: entry.middles(),
            });
        }
        voices
    }

    /// How much each window of each voice counts, relative to the one that counts most.
    fn weights(&self, voices: &[Voice]) -> Vec<[f64; WINDOWS.len()]> {
        let mut weights = Vec::with_capacity(voices.len());
        let mut most = 0.0_f64;
        for voice in voices {
            let (entry, usual) =
                (self.memory.entry(voice.at), &self.records[usize::from(voice.kind)]);
            // A step closer counts twice among voices that were equally right.
            let closer = f64::from(1_u32 << entry.likeness.closeness());
            let count = entry.oldest_first.len();
            let mut of_windows = [0.0; WINDOWS.len()];
            for window in 0..usize::from(voice.windows) {
                // Before anything was judged, all are taken to be as wrong as can be.
                let usual = usual[window].mean(LOSS_MAX, 1.0);
                let loss = entry.records[window].mean(usual, KIND_COUNTS);
                // Few run times say less than many.
                let samples = count.min(WINDOWS[window]) as f64;
                let weight = closer * libm::exp(-SHARPNESS * loss) * samples / (samples + 1.0);
                of_windows[window] = weight;
                most = most.max(weight);
            }
            weights.push(of_windows);
        }
        for weight in weights.iter_mut().flatten() {
            *weight /= most;
        }
        weights
    }

    /// What all say together.
    fn blend(&self, voices: &[Voice]) -> Option<Said> {
        let weights = self.weights(voices);
        let mut points = Points::with_room_for(voices.len() * WINDOWS[WINDOWS.len() - 1]);
        for (voice, weights) in voices.iter().zip(&weights) {
            let runs = &self.memory.entry(voice.at).oldest_first;
            let share = |window: usize| {
                let samples = runs.len().min(WINDOWS[window]) as f64;
                (weights[window] * WEIGHT_UNIT / samples) as u64
            };
            let shares = [share(0), share(1), share(2)];
            for (age, run) in runs.iter().rev().enumerate() {
                let within = WINDOWS.iter().zip(shares).filter(|(window, _)| age < **window);
                points.add(*run, within.map(|(_, share)| share).sum());
            }
        }
        points.sort();
        let [low, middle, high] = points.quartiles()?;
        let guesses = points.guesses(middle);
        let run = match self.purpose {
            Purpose::Order => self.squared_mean_root(voices, &weights),
            Purpose::Closeness => micros(guesses[self.better_guess(voices)]),
        };
        let half = (micros(high) - micros(low)) / 2.0 * libm::exp(self.scale);
        let estimate = Estimate { run: span(run).max(Span(1)), spread: span(half) };
        Some(Said { estimate, guesses })
    }

    /// The square of the weighted mean root of all run times, in microseconds.
    fn squared_mean_root(&self, voices: &[Voice], weights: &[[f64; WINDOWS.len()]]) -> f64 {
        let (mut sum, mut total) = (0.0, 0.0);
        for (voice, weights) in voices.iter().zip(weights) {
            for (root, weight) in self.memory.entry(voice.at).mean_roots().iter().zip(weights) {
                sum += weight * root;
                total += weight;
            }
        }
        libm::pow(sum / total, 2.0)
    }

    /// Which guess missed less often: for jobs of the same sender, place and request, and, while
    /// there were few, for all.
    fn better_guess(&self, voices: &[Voice]) -> usize {
        let asked_alike = voices.iter().find(|voice| voice.kind == Likeness::ASKED_ALIKE);
        let misses = |guess: usize| {
            let usual = self.misses[guess].mean(1.0, 1.0);
            let of_alike = asked_alike.map(|voice| self.memory.entry(voice.at).misses[guess]);
            of_alike.map_or(usual, |misses| misses.mean(usual, KIND_COUNTS))
        };
        // The middle, unless the other is better.
        usize::from(misses(1) < misses(0) - BETTER_MIN)
    }

    /// Judges those who spoke of a job by what it took.
    fn judge(&mut self, voices: &[Voice], run: u32) {
        for voice in voices {
            let mut entry = self.memory.same(voice.at, voice.born);
            let middles = voice.middles.iter().take(usize::from(voice.windows)).enumerate();
            for (window, middle) in middles {
                let loss = (f64::from(middle.abs_diff(run)) / 1e6).min(LOSS_MAX);
                self.records[usize::from(voice.kind)][window].add(loss, FADE_OF_KIND);
                if let Some(entry) = &mut entry {
                    entry.records[window].add(loss, FADE_OF_LIKENESS);
                }
            }
        }
    }

    /// Judges the guesses, whichever was told.
    fn judge_guesses(&mut self, guesses: [u32; GUESSES], voices: &[Voice], run: u32) {
        let asked_alike = voices.iter().find(|voice| voice.kind == Likeness::ASKED_ALIKE);
        let mut entry = asked_alike.and_then(|voice| self.memory.same(voice.at, voice.born));
        for (at, guess) in guesses.into_iter().enumerate() {
            let loss = if hits(guess, run) { 0.0 } else { 1.0 };
            self.misses[at].add(loss, FADE_OF_KIND);
            if let Some(entry) = &mut entry {
                entry.misses[at].add(loss, FADE_OF_LIKENESS);
            }
        }
    }

    /// Widens or narrows spreads, by whether one was wide enough.
    fn judge_spread(&mut self, said: Estimate, run: Span) {
        // All that is alike took the same: no factor would change that.
        if said.spread == Span::ZERO {
            return;
        }
        let within = said.run.0.abs_diff(run.0) <= said.spread.0;
        let step = if within { -SCALE_STEP } else { SCALE_STEP };
        self.scale = (self.scale + step).clamp(-SCALE_MAX, SCALE_MAX);
    }
}

impl Learner for BlendRun {
    fn belief(&self, features: &Features) -> Option<Estimate> {
        self.blend(&self.voices(features)).map(|said| said.estimate)
    }

    /// Of a job that nobody asked about, voices are judged by what they would have said just now.
    fn learn(&mut self, features: &Features, run: Span) {
        let log = log_micro(run);
        let voices = self.voices(features);
        self.judge(&voices, log);
        if let Some(said) = self.blend(&voices) {
            self.judge_guesses(said.guesses, &voices, log);
        }
        self.memory.teach(Likeness::of(features), log);
    }

    fn foretell(&mut self, job: JobId, features: &Features) -> Option<Estimate> {
        let voices = self.voices(features);
        let said = self.blend(&voices);
        if self.noted.len() == self.noted_max && !self.noted.contains_key(&job) {
            self.noted.pop_first();
        }
        // A job that is looked at again is judged by what was said of it first.
        self.noted.entry(job).or_insert(Note { said, voices: voices.into() });
        said.map(|said| said.estimate)
    }

    fn learn_of(&mut self, job: JobId, features: &Features, run: Span) {
        let log = log_micro(run);
        if let Some(Note { said, voices }) = self.noted.remove(&job) {
            self.judge(&voices, log);
            if let Some(Said { estimate, guesses }) = said {
                self.judge_guesses(guesses, &voices, log);
                self.judge_spread(estimate, run);
            }
        }
        self.memory.teach(Likeness::of(features), log);
    }
}

impl Predict for BlendRun {
    fn estimate(&mut self, job: JobId, spec: &JobSpec) -> Option<Estimate> {
        let features = Features::of(spec);
        self.waiting.tell(job, &features);
        let said = self.foretell(job, &features);
        said.or_else(|| UserEstimate.estimate(job, spec))
    }

    fn observe(&mut self, job: JobId, spec: &JobSpec, run: Span) -> Vec<JobId> {
        let features = Features::of(spec);
        self.learn_of(job, &features, run);
        self.waiting.finish(job, &features)
    }
}

/// The logarithm of a run time, in millionths.
fn log_micro(run: Span) -> u32 {
    libm::round(libm::log(run.0.max(1) as f64) * 1e6) as u32
}

/// The microseconds behind a logarithm.
fn micros(log: u32) -> f64 {
    libm::exp(f64::from(log) / 1e6)
}

/// Casts of floats saturate.
fn span(micros: f64) -> Span {
    Span((libm::round(micros) as u64).min(RUN_MAX.0))
}

#[cfg(test)]
mod tests;
