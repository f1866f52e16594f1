//! The border to the world: a simulator, agents, or another cluster manager.

use crate::decision::Decision;
use crate::engine::Engine;
use crate::event::Event;
use crate::units::Time;
use crate::verify::Violation;
use crate::watch::Watch;

/// Everything that touches the world.
pub trait Executor {
    /// The next facts, all of one instant. When none comes before `wake`, the answer is that
    /// instant without facts. None when nothing can happen any more.
    fn next(&mut self, wake: Option<Time>) -> Option<(Time, Vec<Event>)>;

    /// Does what was decided; the outcome comes back as a fact.
    fn submit(&mut self, at: Time, decision: &Decision);
}

/// Runs until the world has nothing more to tell, or the policy breaks a rule.
pub fn run<Watcher: Watch>(
    executor: &mut impl Executor,
    engine: &mut Engine<Watcher>,
) -> Result<(), Violation> {
    run_with(executor, engine, |_| {})
}

/// The same; `before` is called with the engine before each step.
///
/// Solvers answer at the instant of the question.
pub fn run_with<Watcher: Watch>(
    executor: &mut impl Executor,
    engine: &mut Engine<Watcher>,
    mut before: impl FnMut(&mut Engine<Watcher>),
) -> Result<(), Violation> {
    while let Some((at, events)) = executor.next(engine.wake()) {
        let mut facts = Some(events);
        while let Some(events) = facts.take() {
            before(engine);
            for decision in engine.step(at, events)? {
                executor.submit(at, &decision);
            }
            facts = engine.solve()?.map(|solved| vec![solved]);
        }
    }
    Ok(())
}
