//! Watching the state change: metrics, time lines and heat maps are folds of these calls.
//!
//! A watcher sees simulated and real clusters through the same calls and decides nothing.

use crate::cluster::Node;
use crate::job::Job;
use crate::placement::Lease;
use crate::state::ClusterState;
use crate::units::Time;

/// Something that looks on.
pub trait Watch {
    /// A job was submitted.
    fn submitted(&mut self, at: Time, job: &Job) {
        let _ = (at, job);
    }

    /// A job got resources.
    fn began(&mut self, at: Time, state: &ClusterState, job: &Job, lease: &Lease) {
        let _ = (at, state, job, lease);
    }

    /// A job gave its resources back; its ledger counts the stay already.
    fn ended(&mut self, at: Time, state: &ClusterState, job: &Job, lease: &Lease) {
        let _ = (at, state, job, lease);
    }

    /// A stay goes on at another size, place or share; its ledger counts it up to now.
    fn moved(&mut self, at: Time, state: &ClusterState, job: &Job, from: &Lease, to: &Lease) {
        let _ = (at, state, job, from, to);
    }

    /// A job is over.
    fn retired(&mut self, at: Time, state: &ClusterState, job: &Job) {
        let _ = (at, state, job);
    }

    /// A node joined, left, or changed its health or power.
    fn node_changed(&mut self, at: Time, state: &ClusterState, node: &Node) {
        let _ = (at, state, node);
    }
}

impl Watch for () {}

impl<First: Watch, Second: Watch> Watch for (First, Second) {
    fn submitted(&mut self, at: Time, job: &Job) {
        self.0.submitted(at, job);
        self.1.submitted(at, job);
    }

    fn began(&mut self, at: Time, state: &ClusterState, job: &Job, lease: &Lease) {
        self.0.began(at, state, job, lease);
        self.1.began(at, state, job, lease);
    }

    fn ended(&mut self, at: Time, state: &ClusterState, job: &Job, lease: &Lease) {
        self.0.ended(at, state, job, lease);
        self.1.ended(at, state, job, lease);
    }

    fn moved(&mut self, at: Time, state: &ClusterState, job: &Job, from: &Lease, to: &Lease) {
        self.0.moved(at, state, job, from, to);
        self.1.moved(at, state, job, from, to);
    }

    fn retired(&mut self, at: Time, state: &ClusterState, job: &Job) {
        self.0.retired(at, state, job);
        self.1.retired(at, state, job);
    }

    fn node_changed(&mut self, at: Time, state: &ClusterState, node: &Node) {
        self.0.node_changed(at, state, node);
        self.1.node_changed(at, state, node);
    }
}
