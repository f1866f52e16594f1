//! A regression tree over integers: splits that leave the least absolute error, medians as leaves.
//!
//! All numbers and sums are integers: the same samples give the same tree on every machine. What
//! the numbers mean is left to `cart`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use hostler_core::metrics::percentile;
use serde::{Deserialize, Serialize};

/// Numbers that a tree may split on.
pub type FeatureRow<const WIDTH: usize> = [i64; WIDTH];

/// Numbers, and what followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample<const WIDTH: usize> {
    /// What is known beforehand.
    pub row: FeatureRow<WIDTH>,
    /// What is to be told from it.
    pub value: i64,
}

/// The values of like samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Leaf {
    /// Their median; of an even number the mean of the two in the middle.
    pub middle: i64,
    /// Half the distance between their quartiles.
    pub spread: i64,
}

/// How far a tree grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Growth {
    /// Most splits on the way to a leaf.
    pub depth_max: usize,
    /// Fewest samples of a leaf.
    pub leaf_min: usize,
}

/// A regression tree; the first node is its root.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tree {
    nodes: Vec<Node>,
}

/// A question, or an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Node {
    /// Rows whose number `feature` is `at_most` go to `below`, others to `above`.
    Split { feature: u32, at_most: i64, below: u32, above: u32 },
    /// What is believed of rows that arrive here.
    Leaf(Leaf),
}

impl Tree {
    /// Grows a tree; none from no samples.
    pub fn fit<const WIDTH: usize>(samples: &[Sample<WIDTH>], growth: Growth) -> Option<Tree> {
        assert!(growth.leaf_min > 0, "a leaf needs a sample");
        if samples.is_empty() {
            return None;
        }
        let mut grower = Grower { samples, growth, nodes: Vec::new() };
        let mut all: Vec<u32> = (0..samples.len() as u32).collect();
        grower.grow(&mut all, growth.depth_max);
        Some(Tree { nodes: grower.nodes })
    }

    /// What is believed of a row.
    pub fn belief<const WIDTH: usize>(&self, row: &FeatureRow<WIDTH>) -> Leaf {
        let mut at = 0;
        loop {
            match self.nodes[at] {
                Node::Leaf(leaf) => return leaf,
                Node::Split { feature, at_most, below, above } => {
                    let side = if row[feature as usize] <= at_most { below } else { above };
                    at = side as usize;
                }
            }
        }
    }

    /// The first node that does not belong in a tree over `width` numbers. Branches lead onwards
    /// only, so that every walk ends.
    pub fn fault(&self, width: usize) -> Option<usize> {
        if self.nodes.is_empty() {
            return Some(0);
        }
        let count = self.nodes.len();
        let sound = |at: usize, node: &Node| match *node {
            Node::Leaf(_) => true,
            Node::Split { feature, below, above, .. } => {
                let onwards = |to: u32| (at + 1..count).contains(&(to as usize));
                (feature as usize) < width && onwards(below) && onwards(above)
            }
        };
        let mut nodes = self.nodes.iter().enumerate();
        nodes.find(|(at, node)| !sound(*at, node)).map(|(at, _)| at)
    }

    /// Number of nodes.
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether it has no node; only one from a file can be so.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

struct Grower<'a, const WIDTH: usize> {
    samples: &'a [Sample<WIDTH>],
    growth: Growth,
    nodes: Vec<Node>,
}

/// A way to part samples.
struct Cut {
    feature: usize,
    at_most: i64,
    error: i64,
}

impl<const WIDTH: usize> Grower<'_, WIDTH> {
    /// Adds the tree of these samples; the answer is the place of its root.
    fn grow(&mut self, chosen: &mut [u32], depth_left: usize) -> u32 {
        let place = self.nodes.len();
        let leaf = self.leaf(chosen);
        self.nodes.push(Node::Leaf(leaf));
        let cut = if depth_left > 0 { self.best_cut(chosen) } else { None };
        if let Some(Cut { feature, at_most, .. }) = cut {
            let value = |index: &u32| self.samples[*index as usize].row[feature];
            chosen.sort_unstable_by_key(|index| (value(index), *index));
            let middle = chosen.partition_point(|index| value(index) <= at_most);
            let (low, high) = chosen.split_at_mut(middle);
            let below = self.grow(low, depth_left - 1);
            let above = self.grow(high, depth_left - 1);
            self.nodes[place] = Node::Split { feature: feature as u32, at_most, below, above };
        }
        place as u32
    }

    fn leaf(&self, chosen: &[u32]) -> Leaf {
        let mut values: Vec<i64> =
            chosen.iter().map(|index| self.samples[*index as usize].value).collect();
        values.sort_unstable();
        let quartile = |percent| percentile(&values, percent).expect("a leaf has a sample");
        let (below, above) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Leaf { middle: below.midpoint(above), spread: (quartile(75) - quartile(25)) / 2 }
    }

    /// The cut that leaves the least error, if any leaves less than no cut. Among equals the first
    /// feature and the lowest value win.
    fn best_cut(&self, chosen: &mut [u32]) -> Option<Cut> {
        if chosen.len() < 2 * self.growth.leaf_min {
            return None;
        }
        let mut best = self.errors_of_firsts(chosen.iter()).last().copied().expect("not empty");
        let mut cut = None;
        for feature in 0..WIDTH {
            let better = self.best_cut_on(feature, chosen).filter(|found| found.error < best);
            if let Some(found) = better {
                best = found.error;
                cut = Some(found);
            }
        }
        cut
    }

    fn best_cut_on(&self, feature: usize, chosen: &mut [u32]) -> Option<Cut> {
        let value = |index: u32| self.samples[index as usize].row[feature];
        chosen.sort_unstable_by_key(|index| (value(*index), *index));
        let (first, last) = (*chosen.first()?, *chosen.last()?);
        if value(first) == value(last) {
            return None;
        }
        let count = chosen.len();
        let below = self.errors_of_firsts(chosen.iter());
        let above = self.errors_of_firsts(chosen.iter().rev());
        let sizes = self.growth.leaf_min..=count - self.growth.leaf_min;
        let sizes = sizes.filter(|size| value(chosen[size - 1]) < value(chosen[*size]));
        let error = |size: usize| below[size - 1] + above[count - size - 1];
        let size = sizes.min_by_key(|size| (error(*size), *size))?;
        let (low, high) = (value(chosen[size - 1]), value(chosen[size]));
        let at_most = low + (low.abs_diff(high) / 2) as i64;
        Some(Cut { feature, at_most, error: error(size) })
    }

    /// The error that the median leaves for the first sample, the first two, and so on.
    fn errors_of_firsts<'i>(&self, order: impl Iterator<Item = &'i u32>) -> Vec<i64> {
        let mut middle = Middle::default();
        let error = |index: &u32| {
            middle.push(self.samples[*index as usize].value);
            middle.error()
        };
        order.map(error).collect()
    }
}

/// Numbers parted at their median, with the sum of each half.
#[derive(Default)]
struct Middle {
    low: BinaryHeap<i64>,
    high: BinaryHeap<Reverse<i64>>,
    low_sum: i64,
    high_sum: i64,
}

impl Middle {
    fn push(&mut self, value: i64) {
        self.low.push(value);
        self.low_sum += value;
        let most = self.low.pop().expect("one was pushed");
        self.low_sum -= most;
        self.high.push(Reverse(most));
        self.high_sum += most;
        if self.high.len() > self.low.len() {
            let Reverse(least) = self.high.pop().expect("it is the larger half");
            self.high_sum -= least;
            self.low.push(least);
            self.low_sum += least;
        }
    }

    /// The sum of distances from the median.
    fn error(&self) -> i64 {
        let median = self.low.peek().copied().unwrap_or(0);
        let (low, high) = (self.low.len() as i64, self.high.len() as i64);
        median * low - self.low_sum + self.high_sum - median * high
    }
}

#[cfg(test)]
mod tests;
