//! What backfilling policies have in common: jobs start in the order of their submission, or of
//! what their tenants used before, until one does not fit; which of those behind it start all the
//! same is the policy's own rule.

use hostler_core::id::JobId;
use hostler_core::job::Job;
use hostler_core::pipeline::{HalfLifeDays, weigh_in_time};
use hostler_core::plan::Plan;
use hostler_core::policy::{Policy, Wake};
use hostler_core::predict::EstimateSource;
use hostler_core::stage::Place;
use hostler_core::units::Span;
use hostler_core::view::View;

use super::hopeless::Hopeless;
use super::outlook::{News, Started, blocked, explain_no_capacity, explain_rest};
use crate::place::PlaceRule;

/// A policy that backfills.
pub(super) struct Backfill<Rule> {
    place: Box<dyn Place>,
    depth: usize,
    estimate: EstimateSource,
    /// After how long what a tenant used counts half; none when the past does not count.
    half_life: Option<Span>,
    news: News,
    rule: Rule,
}

/// Who may start behind a job that does not fit. Holds memory for the search and nothing else.
pub(super) trait FillGaps: Default + Send + 'static {
    /// Starts those in line that may, and tells the others why not.
    fn fill<'a>(&mut self, waiting: Waiting<'a>, line: Line<'a>, plan: &mut Plan<'_>);
}

/// The first job that does not fit, and what is known by then.
pub(super) struct Waiting<'a> {
    pub(super) view: &'a View<'a>,
    pub(super) place: &'a dyn Place,
    pub(super) hopeless: &'a mut Hopeless,
    pub(super) head: &'a Job,
    /// Jobs that this question started before it came to the head.
    pub(super) started: &'a [Started],
}

/// The jobs behind the head, and how many of them may be passed over.
pub(super) struct Line<'a> {
    view: &'a View<'a>,
    ids: Box<dyn Iterator<Item = JobId> + 'a>,
    depth: usize,
}

impl<'a> Line<'a> {
    /// Asks for each job whether it starts, until too many did not.
    pub(super) fn offer(
        self,
        plan: &mut Plan<'_>,
        mut starts: impl FnMut(&mut Plan<'_>, &'a Job) -> bool,
    ) {
        let mut left = self.depth;
        for id in self.ids {
            if left == 0 {
                break;
            }
            if plan.has_job(id) {
                continue;
            }
            let job = self.view.job(id).expect("a waiting job is not over");
            if !starts(plan, job) {
                left -= 1;
            }
        }
    }
}

impl<Rule: FillGaps> Backfill<Rule> {
    pub(super) fn new(
        place: PlaceRule,
        depth: u32,
        estimate: EstimateSource,
        fair_share: HalfLifeDays,
    ) -> Box<Backfill<Rule>> {
        Box::new(Backfill {
            place: place.build(),
            depth: depth as usize,
            estimate,
            half_life: fair_share.span(),
            news: News::default(),
            rule: Rule::default(),
        })
    }
}

impl<Rule: FillGaps> Policy for Backfill<Rule> {
    fn estimates(&self) -> EstimateSource {
        self.estimate
    }

    fn decide(&mut self, view: &View<'_>, _: Wake, plan: &mut Plan<'_>) {
        let came = self.news.follow(view, plan, &*self.place);
        let hopeless = &mut self.news.hopeless;
        let place = &*self.place;
        let mut started = Vec::new();
        let mut ids = in_order(view, self.half_life.is_some());
        let head = ids.find_map(|id| blocked(place, hopeless, view, plan, id, &mut started));
        if let Some(half_life) = self.half_life {
            weigh_in_time(view, half_life, plan);
        }
        let Some(head) = head else { return };
        explain_no_capacity(plan, head);
        let waiting = Waiting { view, place, hopeless, head, started: &started };
        self.rule.fill(waiting, Line { view, ids, depth: self.depth }, plan);
        explain_rest(view, plan, &came, head.id);
    }
}

/// Waiting jobs by submission; where the past counts, those first whose tenants used less than
/// their due.
fn in_order<'a>(view: &View<'a>, past_counts: bool) -> Box<dyn Iterator<Item = JobId> + 'a> {
    let ids = view.pending().iter().copied();
    if !past_counts {
        return Box::new(ids);
    }
    let level = |id: JobId| view.job(id).map(|job| view.tenant_account(job.spec.tenant).level);
    let mut ids: Vec<JobId> = ids.collect();
    ids.sort_by_key(|id| level(*id));
    Box::new(ids.into_iter())
}
