//! A world that goes on from any state: a running cluster, real or simulated, at any time.
//!
//! Jobs that run go on from what is believed done; how long they really take is up to the `Truth`
//! that is given. Nothing goes wrong there that the state does not know of.

use std::sync::Arc;

use hostler_core::cluster::{Health, Power};
use hostler_core::decision::StopHow;
use hostler_core::event::{Event, Outcome};
use hostler_core::limits::STOP_TIMEOUT;
use hostler_core::placement::{Lease, Stop};
use hostler_core::state::ClusterState;
use hostler_core::units::{Span, Time};

use super::queue::Coming;
use super::stay::{Before, Doing, SimulatedStay};
use super::suspended::Suspended;
use super::{Arrivals, Site, Truth, World};
use crate::physics::Physics;

/// A stay that is on its way out.
#[derive(Clone, Copy)]
struct Leaves {
    doing: Doing,
    since: Time,
    until: Time,
}

impl<Source: Arrivals> World<Source> {
    /// The world that `state` tells of, from its present instant on.
    ///
    /// The engine that is run in it has to be [restored](hostler_core::engine::Engine::restore)
    /// from the same state; new jobs are numbered from the state's next one.
    pub fn from_state(
        state: &ClusterState,
        physics: Physics,
        arrivals: Source,
        truth: Truth,
    ) -> World<Source> {
        let site = Site {
            models: state.models().to_vec(),
            tenants: state.tenants().to_vec(),
            nodes: state.nodes().iter().map(|node| node.spec.clone()).collect(),
            physics,
            abilities: state.abilities(),
            ..Site::default()
        };
        let mut world = World::new(site, arrivals, truth);
        (world.opened, world.now) = (true, state.now());
        for node in state.nodes() {
            world.down[node.id.index()] = u32::from(node.health == Health::Down);
            if node.power == Power::Waking {
                let up = Event::PowerChanged { node: node.id, power: Power::On };
                let at = state.now() + world.site.physics.wake_delay;
                world.queue.push(at, Coming::Deliver(Box::new(up)));
            }
        }
        for job in state.jobs() {
            world.specs.insert(job.id.0, Arc::clone(job.asked()));
            if let Some(parked) = job.parked.as_ref().filter(|_| job.lease().is_none()) {
                let (done, placement) = (parked.done, Arc::clone(&parked.placement));
                world.suspended.insert(job.id, Suspended { done, placement });
            }
            // Whoever starts again has to load what it saved.
            let stays = u32::from(job.ledger.first_start.is_some()) + job.ledger.restarts;
            if stays > u32::from(job.lease().is_some()) {
                world.safe.insert(job.id, job.ledger.done);
            }
        }
        for lease in state.leases() {
            world.take_over(state, lease);
        }
        world
    }

    /// Goes on with a stay where it is.
    fn take_over(&mut self, state: &ClusterState, lease: &Lease) {
        let job = state.job(lease.job).expect("a lease belongs to a job");
        let (spec, placement) = (Arc::clone(job.asked()), Arc::clone(&lease.placement));
        let before = Before { done: lease.base, safe: job.ledger.done.min(lease.base) };
        let stay =
            SimulatedStay::new(lease.id, lease.job, spec, placement, before).after(lease.load);
        self.stays.insert(lease.id.0, stay);
        let Some(started) = lease.started else {
            if lease.stop.is_some() {
                // It has not begun, so there is nothing to save.
                return self.stop(lease.id, StopHow::Kill);
            }
            let at = (lease.since + self.site.physics.start_delay).max(self.now);
            return self.queue.push(at, Coming::Start(lease.id));
        };
        self.begin_work(lease.id);
        let leaves = lease.stop.and_then(|stop| self.leaves_at(state, lease, stop));
        // Whoever saves does not work any more.
        let works_until = leaves.map_or(self.now, |leaves| leaves.since);
        let stay = self.stays.get_mut(lease.id.0).expect("inserted above");
        let checkpoint = stay.spec.checkpoint;
        let (seen, worked) = lease.believed_work(checkpoint, works_until.min(self.now));
        let seen = if leaves.is_some() { self.now } else { seen };
        stay.resume(worked, seen.max(started + lease.load));
        let (finish, version) = (stay.finish_at(self.truth.run(lease.job)), stay.version);
        self.queue.push(finish.max(self.now), Coming::Finish(lease.id, version));
        if lease.stop.is_some() {
            self.go_on_stopping(lease, leaves);
        }
    }

    /// Since when a stay saves itself or leaves its GPUs, and when that is done; none when it is
    /// just ended.
    fn leaves_at(&self, state: &ClusterState, lease: &Lease, stop: Stop) -> Option<Leaves> {
        let stay = self.stays.get(lease.id.0)?;
        let (doing, takes) = match stop.how {
            StopHow::Checkpoint => (Doing::Saving, stay.spec.checkpoint.save),
            StopHow::Suspend => {
                let moved = self.moved(&stay.spec, &stay.placement);
                (Doing::Suspending, self.site.physics.suspend.out(moved))
            }
            StopHow::Kill => return None,
        };
        let patience = STOP_TIMEOUT + state.stop_patience(lease, stop.how);
        let since = Time(stop.deadline.0.saturating_sub(patience.0));
        Some(Leaves { doing, since, until: since + takes })
    }

    /// A stay that was told to stop before is saved in time, or gone.
    fn go_on_stopping(&mut self, lease: &Lease, leaves: Option<Leaves>) {
        let stay = self.stays.get_mut(lease.id.0).expect("it was taken over");
        match leaves {
            Some(Leaves { doing, until, .. }) => {
                stay.pause(self.now, doing);
                let gone = match doing {
                    Doing::Suspending => Coming::Suspended(lease.id),
                    Doing::Starting | Doing::Working | Doing::Saving => Coming::Saved(lease.id),
                };
                self.queue.push(until.max(self.now), gone);
            }
            None => {
                let (done, safe) = stay.done_and_safe();
                self.safe.insert(lease.job, safe);
                self.leave(lease.id);
                let lost: Span = done.saturating_sub(safe);
                let (id, outcome) = (lease.id, Outcome::Interrupted);
                let word = Event::Stopped { lease: id, outcome, done: safe, lost };
                self.queue.push(self.now, Coming::Deliver(Box::new(word)));
            }
        }
    }
}
