//! A world that goes on from any state: a running cluster, real or simulated, at any time.
//!
//! Jobs that run go on from what is believed done; how long they really take is up to the `Truth`
//! that is given. Nothing goes wrong there that the state does not know of.

use std::sync::Arc;

use hostler_core::cluster::Health;
use hostler_core::decision::StopHow;
use hostler_core::event::{Event, Outcome};
use hostler_core::limits::STOP_TIMEOUT;
use hostler_core::placement::Lease;
use hostler_core::state::ClusterState;
use hostler_core::units::{Span, Time};

use super::queue::Coming;
use super::stay::Stay;
use super::{Arrivals, Site, Truth, World};
use crate::physics::Physics;

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
        }
        for job in state.jobs() {
            world.specs.insert(job.id.0, Arc::clone(&job.spec));
            if job.ledger.first_start.is_some() {
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
        let (spec, placement) = (Arc::clone(&job.spec), Arc::clone(&lease.placement));
        let stay = Stay::new(lease.id, lease.job, spec, placement, lease.base);
        self.stays.insert(lease.id.0, stay);
        let Some(started) = lease.started else {
            let at = (lease.since + self.site.physics.start_delay).max(self.now);
            return self.queue.push(at, Coming::Start(lease.id));
        };
        self.begin_work(lease.id);
        let stay = self.stays.get_mut(lease.id.0).expect("inserted above");
        let worked = lease.believed_done(self.now).saturating_sub(lease.base);
        stay.resume(worked, self.now.max(started + lease.load));
        let (finish, version) = (stay.finish_at(self.truth.run(lease.job)), stay.version);
        self.queue.push(finish.max(self.now), Coming::Finish(lease.id, version));
        if let Some(stop) = lease.stop {
            self.go_on_stopping(lease, stop.how, stop.deadline);
        }
    }

    /// A stay that was told to stop before is saved in time, or gone.
    fn go_on_stopping(&mut self, lease: &Lease, how: StopHow, deadline: Time) {
        let stay = self.stays.get_mut(lease.id.0).expect("it was taken over");
        match how {
            StopHow::Checkpoint => {
                stay.save(self.now);
                let saved = Time(deadline.0.saturating_sub(STOP_TIMEOUT.0)).max(self.now);
                self.queue.push(saved, Coming::Saved(lease.id));
            }
            StopHow::Kill => {
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
