//! Habits of users: kinds of work that they come back to, names of jobs, and queues.
//!
//! A kind of work is what a user asks for and about how long it takes. A new group of jobs often
//! is of a kind that its user has done before: a sweep, a next version. Recorded (1,990 jobs of one
//! instance from the PAI trace), sets of five jobs and more of one user with one request have a
//! spread of run times of 1.05 (median over sets; standard deviation of the logarithm). In as large
//! a sample of generated jobs it is 2.1 without habits, nearly that of all jobs, and 1.7 with them;
//! `docs/pai.md` has more.

use crate::trace::random::Random;

/// Chance that a new group is of a kind that its user did before. With more, generated users come
/// closer to recorded ones, but few kinds make up so many jobs that sizes and run times of all jobs
/// differ from seed to seed: with this one already up to twice as much as without habits.
pub(super) const FOLLOWS: f64 = 0.6;

/// Most jobs of one kind, as a share of all: the same reason.
pub(super) const KIND_SHARE_MAX: f64 = 0.005;

/// Width of the ranks of a kind's groups among the run times of all groups: a standard deviation
/// of 0.95 of the logarithm in the middle of the table, which with that inside groups makes 1.05.
const RANK_WIDTH: f64 = 0.5;

/// Shares of jobs by virtual cluster, as recorded on Philly (82,247 jobs; the smallest four of its
/// fifteen have a thousandth together).
const QUEUES: [(usize, f64); 11] = [
    (0, 0.501),
    (1, 0.196),
    (2, 0.121),
    (3, 0.090),
    (4, 0.024),
    (5, 0.018),
    (6, 0.017),
    (7, 0.014),
    (8, 0.009),
    (9, 0.005),
    (10, 0.005),
];

/// First words of names.
const WORDS: [&str; 8] =
    ["train", "tune", "finetune", "eval", "embed", "rank", "speech", "translate"];

/// A kind of work.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    /// Where its run time is among those of all groups, from 0 to 1.
    pub(super) rank: f64,
    /// Jobs so far.
    pub(super) uses: u32,
}

impl Kind {
    /// Where another group of this kind is. All ranks stay equally likely: what would leave the
    /// scale is reflected.
    pub(super) fn next_rank(&self, random: &mut Random) -> f64 {
        let rank = self.rank + RANK_WIDTH * (random.uniform() - 0.5);
        if rank > 1.0 { 2.0 - rank } else { rank.abs() }
    }
}

/// The name of jobs of a kind, without what tells them apart: `train-bq`.
pub(super) fn name(kind: u32) -> String {
    let mut letters = Vec::new();
    let mut rest = kind;
    loop {
        letters.push(char::from(b'a' + (rest % 26) as u8));
        rest /= 26;
        if rest == 0 {
            break;
        }
    }
    let letters: String = letters.iter().rev().collect();
    format!("{}-{letters}", WORDS[kind as usize % WORDS.len()])
}

/// The queue of each user, from a stream of chance of its own.
pub(super) fn queues(seed: u64, users: usize) -> Vec<usize> {
    let mut random = Random::stream(seed, 4);
    (0..users).map(|_| random.pick(&QUEUES)).collect()
}
