//! The product's own stages, put together as the original does.

use hostler_core::pipeline::{Cache, Head, Pipeline, Preempt, ShareRule};
use hostler_core::policy::{Cadence, Policy};
use hostler_core::predict::EstimateSource;
use hostler_core::stage::{Order, Place};
use hostler_policies::order::{fifo, sjf};
use hostler_policies::place::balance::Balance;
use hostler_policies::place::first_fit::FirstFit;
use hostler_sim::analyze::Rank;

/// The policy of a rank, on nodes that are filled in order or kept in balance.
pub(super) fn policy(rank: Rank, pack: bool) -> Box<dyn Policy> {
    let place: Box<dyn Place> = match pack {
        true => Box::new(FirstFit),
        false => Box::new(Balance { with_gpus: false }),
    };
    let order: Box<dyn Order> = match rank {
        Rank::Submit => Box::new(fifo::BySubmission),
        Rank::Duration | Rank::User | Rank::Group | Rank::GroupGpu => Box::new(sjf::ByTotal),
    };
    Box::new(Pipeline {
        order,
        place,
        head: Head::Skips,
        preempt: Preempt::Never,
        sharing: ShareRule::Requests,
        cadence: Cadence::EveryEvent,
        estimates: EstimateSource::User,
        half_life: None,
        cache: Cache::default(),
    })
}
