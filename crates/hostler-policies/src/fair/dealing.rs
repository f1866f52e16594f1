//! Where rounds may go otherwise than ours do.

use hostler_core::id::ModelId;
use hostler_core::target::Turn;
use hostler_core::view::View;

/// How a round deals GPUs out.
pub trait Dealing: Send {
    /// GPU models in the order in which the round of this number deals them out.
    fn models(&mut self, view: &View<'_>, number: u64) -> Vec<ModelId>;

    /// Whether a team that won a turn can use it; otherwise its GPUs stay idle.
    fn can_use(&self, view: &View<'_>, turn: Turn) -> bool;
}

/// The highest tier first, and everybody uses the turns that he wins.
pub struct ByTier;

impl Dealing for ByTier {
    fn models(&mut self, view: &View<'_>, _: u64) -> Vec<ModelId> {
        let mut models: Vec<ModelId> = (0..view.models().len() as u32).map(ModelId).collect();
        models.sort_by_key(|model| (u32::MAX - view.models()[model.index()].tier, model.0));
        models
    }

    fn can_use(&self, _: &View<'_>, _: Turn) -> bool {
        true
    }
}
