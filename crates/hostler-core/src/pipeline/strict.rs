//! The strict pass: jobs start in order until one does not fit.

use super::{Pipeline, explain};
use crate::id::JobId;
use crate::pipeline::backlog::BacklogChanges;
use crate::plan::Plan;
use crate::reason::Reason;
use crate::stage::place_job;
use crate::view::View;

/// The job that blocks, and at most how many of its tasks fit since it was last tried.
pub(super) struct Blocked {
    head: JobId,
    fit: u32,
}

impl Pipeline {
    /// Starts jobs in order. `known` is what was found at the last question.
    pub(super) fn strict(
        &mut self,
        view: &View<'_>,
        news: &BacklogChanges,
        mut known: Option<Blocked>,
        plan: &mut Plan<'_>,
    ) {
        let mut head = None;
        for rank in self.cache.backlog.iter() {
            if plan.has_job(rank.1) {
                continue;
            }
            let spec = self.cache.backlog.spec(view, rank.1);
            let blocked = known.take().filter(|known| known.head == rank.1);
            let hopeful = blocked.filter(|_| !news.all && spec.gangs.len() == 1).map(|known| {
                let freed = news.freed.iter();
                let gained =
                    freed.map(|node| plan.free().slots(*node, &spec.gangs[0].demand, u32::MAX));
                gained.fold(known.fit, u32::saturating_add)
            });
            let fit = match hopeful {
                Some(fit) if fit < spec.gangs[0].count => fit,
                Some(_) | None => match place_job(&*self.place, plan, spec) {
                    Ok(placement) => {
                        plan.start(rank.1, placement).expect("a waiting job starts on free nodes");
                        continue;
                    }
                    Err(short) => short.fit,
                },
            };
            self.cache.blocked = Some(Blocked { head: rank.1, fit });
            explain(view, plan, &rank, Reason::NoCapacity { tasks: spec.tasks(), fit });
            head = Some(rank.1);
            break;
        }
        let Some(head) = head else { return };
        for rank in news.came.iter().filter(|rank| self.cache.backlog.contains(rank)) {
            explain(view, plan, rank, Reason::Behind { head });
        }
    }
}
