//! The border to the world: a simulator, agents, or another cluster manager.

use crate::decision::Decision;
use crate::engine::Engine;
use crate::event::Event;
use crate::units::Time;
use crate::watch::Watch;

/// Everything that touches the world.
pub trait Executor {
    /// The next facts, all of one instant. When none comes before `wake`, the answer is that
    /// instant without facts. None when nothing can happen any more.
    fn next(&mut self, wake: Option<Time>) -> Option<(Time, Vec<Event>)>;

    /// Does what was decided; the outcome comes back as a fact.
    fn submit(&mut self, at: Time, decision: &Decision);
}

/// Runs until the world has nothing more to tell. Solvers answer at the instant of the question.
pub fn run(executor: &mut impl Executor, engine: &mut Engine<impl Watch>) {
    while let Some((at, events)) = executor.next(engine.wake()) {
        let mut facts = Some(events);
        while let Some(events) = facts.take() {
            for decision in engine.step(at, events) {
                executor.submit(at, &decision);
            }
            facts = engine.solve().map(|solved| vec![solved]);
        }
    }
}
