//! A pass over those who may fill a gap, best first: one of each kind at a time, and what was found
//! out about one spares others. No policy of its own.
//!
//! Where one does not fit, nobody does who asks for the same GPUs and for as many tasks, cores and
//! memory, and runs for as long. So a pass costs the kinds of GPUs that are asked for and the best
//! of each, not as many sizes of cores and memory as there are.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

use hostler_core::job::JobSpec;
use hostler_core::pipeline::Rank;
use hostler_core::units::{Mib, Milli, Span};

use super::gap_queues::{GapQueues, Kind, mem_of};
use super::line::RuledOut;

/// Those who are still to be looked at.
#[derive(Default)]
pub(super) struct Candidates {
    heap: BinaryHeap<Candidate>,
    /// What was found out, by family.
    ruled_out: Vec<Vec<Rule>>,
    /// Memory for a look at a line, used again.
    here: Vec<RuledOut>,
}

/// The next job of a kind.
pub(super) struct Candidate {
    pub(super) rank: Rank,
    pub(super) kind: Kind,
    /// Of one role the family, a number that those have who differ in sizes only, and the cores
    /// that each task asks for; none where it is looked at by itself.
    family: Option<(usize, Milli)>,
    /// What was found out about its kind alone.
    ruled_out: Vec<RuledOut>,
    is_alone: bool,
}

/// Jobs of a family with about as many tasks and with so many cores or more are not worth a look if
/// they ask for so much memory and run so long.
struct Rule {
    least_count: u32,
    most_count: u32,
    least_cpu: Milli,
    ruled_out: RuledOut,
}

impl Rule {
    fn concerns(&self, count: u32, cpu: Milli) -> bool {
        (self.least_count..=self.most_count).contains(&count) && self.least_cpu <= cpu
    }

    fn implies(&self, other: &Rule) -> bool {
        self.least_count <= other.least_count
            && self.most_count >= other.most_count
            && self.least_cpu <= other.least_cpu
            && self.ruled_out.implies(&other.ruled_out)
    }
}

impl Candidate {
    pub(super) fn new(rank: Rank, kind: Kind, family: Option<(usize, Milli)>) -> Candidate {
        Candidate { rank, kind, family, ruled_out: Vec::new(), is_alone: false }
    }

    /// One that is looked at whatever was found out about others, and for which no other stands in.
    pub(super) fn alone(rank: Rank, kind: Kind) -> Candidate {
        Candidate { is_alone: true, ..Candidate::new(rank, kind, None) }
    }

    pub(super) fn is_alone(&self) -> bool {
        self.is_alone
    }

    /// Jobs of its kind with as much memory do not start now if they run for so long.
    pub(super) fn rule_out_alike(&mut self, spec: &JobSpec, least_run: Span) {
        let mem = mem_of(spec);
        self.ruled_out.push(RuledOut { least_mem: mem, most_mem: mem, least_run });
    }
}

impl Candidates {
    /// The best of all that are left.
    pub(super) fn pop(&mut self, queues: &GapQueues) -> Option<Candidate> {
        while let Some(candidate) = self.heap.pop() {
            let rank = self.look(queues, &candidate, true);
            if rank == Some(candidate.rank) {
                return Some(candidate);
            }
            self.heap.extend(rank.map(|rank| Candidate { rank, ..candidate }));
        }
        None
    }

    /// Goes on with the next of a kind that nothing is known against.
    pub(super) fn go_on(&mut self, queues: &GapQueues, candidate: Candidate) {
        let next = self.look(queues, &candidate, false);
        self.heap.extend(next.map(|rank| Candidate { rank, ..candidate }));
    }

    /// Has another looked at as well.
    pub(super) fn push(&mut self, candidate: Candidate) {
        self.heap.push(candidate);
    }

    /// A job does not fit: nor does any that asks for as much.
    pub(super) fn does_not_fit(&mut self, candidate: &mut Candidate, spec: &JobSpec) {
        self.rule_out(candidate, spec, u32::MAX, Span::ZERO);
    }

    /// A job does not start now: nor does any with as many tasks, up to some, that asks for as much
    /// and runs for so long.
    pub(super) fn rule_out(
        &mut self,
        candidate: &mut Candidate,
        spec: &JobSpec,
        most_count: u32,
        least_run: Span,
    ) {
        let (Kind::One { count, .. }, Some((family, cpu))) = (&candidate.kind, candidate.family)
        else {
            return candidate.rule_out_alike(spec, least_run);
        };
        let (least_mem, most_mem) = (mem_of(spec), Mib(u32::MAX));
        let ruled_out = RuledOut { least_mem, most_mem, least_run };
        let most_count = most_count.max(*count);
        let rule = Rule { least_count: *count, most_count, least_cpu: cpu, ruled_out };
        if self.ruled_out.len() <= family {
            self.ruled_out.resize_with(family + 1, Vec::new);
        }
        let known = &mut self.ruled_out[family];
        known.retain(|known| !rule.implies(known));
        known.push(rule);
    }

    /// The first of a kind behind a job, or from it on, that nothing is known against.
    fn look(&mut self, queues: &GapQueues, candidate: &Candidate, itself: bool) -> Option<Rank> {
        let Candidate { rank, kind, family, ruled_out, .. } = candidate;
        self.here.clear();
        self.here.extend_from_slice(ruled_out);
        if let (Kind::One { count, .. }, Some((family, cpu))) = (kind, family) {
            let rules = self.ruled_out.get(*family).into_iter().flatten();
            let concern = rules.filter(|rule| rule.concerns(*count, *cpu));
            self.here.extend(concern.map(|rule| rule.ruled_out));
        }
        if itself && self.here.is_empty() {
            return Some(*rank);
        }
        queues.next(kind, *rank, itself, &self.here)
    }
}

impl FromIterator<Candidate> for Candidates {
    fn from_iter<I: IntoIterator<Item = Candidate>>(candidates: I) -> Candidates {
        Candidates { heap: candidates.into_iter().collect(), ..Candidates::default() }
    }
}

/// The best is the greatest, as the heap has it.
impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> Ordering {
        other.rank.cmp(&self.rank)
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.rank == other.rank
    }
}

impl Eq for Candidate {}
