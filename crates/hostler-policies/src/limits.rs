//! Every bound of the policies in one place, with the reason for the number.

use hostler_core::units::{Milli, Span};

/// Jobs that get a reservation at one question though nobody behind them could start: about as many
/// as come between two questions, so that where all goes as planned each is looked at once; where
/// reservations are void at every question, more of them would be in vain.
pub const PLACED_AHEAD_MAX: usize = 8;

/// Sizes of which a calendar knows before which time they find no place, for demands that differ in
/// size only. All of them are compared with each that is asked for: as long as they are so few that
/// costs less than a search over nodes.
pub const KNOWN_SIZES_MAX: usize = 128;

/// Part of a calendar that is looked at first for a gang that needs several nodes; each further
/// look is over four times as much. Six looks reach the end, and who finds room soon, as most do,
/// has cost a thousandth of that.
pub const FIRST_LOOK_PART: u64 = 1024;

/// Parts of the time to come for which a calendar knows the most that is free on each node: so many
/// that few nodes have room in one of them, so few that to go through them costs less than to look
/// at the nodes.
pub const CALENDAR_PARTS: usize = 64;

/// Times that tell where these parts begin: some tens for each.
pub const PART_SAMPLES_MAX: usize = 1 << 12;

/// Changes for which these parts are kept at least: to make them anew costs as much as some tens of
/// searches.
pub const PARTS_KEPT_MIN: usize = 1 << 10;

/// Nodes times tasks of a gang that are weighed against each other when it is divided among nodes:
/// some milliseconds.
pub const SEATINGS_MAX: usize = 1 << 20;

/// A job that outlasts its estimate is believed to need another tenth of what it has run: the
/// longer it has been wrong, the longer it may go on being so.
pub const OVERDUE_PART: u64 = 10;

/// At least this much more: a belief that ends now would promise its room at once.
pub const OVERDUE_MIN: Span = Span::from_secs(1);

/// Kinds of old jobs that are found at one question to need what is not there: each costs a search
/// with all that runs lifted. Beyond them nobody is held back for older jobs: what is down for so
/// many kinds must not hold up the rest of the cluster.
pub const SET_ASIDE_MAX: usize = 16;

/// Old jobs that are looked at for the one that others may not overtake any further. One whose kind
/// was found to need what is not there costs about a microsecond: all of them some milliseconds.
pub const LOOKED_AT_MAX: usize = 1 << 12;

/// Changes that lines of waiting jobs note before they are made anew: nobody looks at them while
/// something is being stopped.
pub const LINE_CHANGES_MAX: usize = 1 << 16;

/// Jobs that are over which a roster of jobs may hold, besides as many as there are.
pub const ROSTER_OVER_MIN: usize = 64;

/// What a constraint of an allocation may be broken by: shares are doubles that went through sums
/// over thousands of jobs.
pub const FEASIBLE_MAX: f64 = 1e-6;

/// Run time at reference speed of a job of which nobody said anything: in published traces the
/// median training job takes minutes and the mean one hours.
pub const UNKNOWN_RUN: Span = Span::from_secs(3600);

/// A job that has outlasted its estimate is believed to have this part of its work still to do.
pub const STEPS_LEFT_PART: f64 = 0.1;

/// What an answer of a linear programme may break a row by, relative to its size: a hundred times
/// what the solvers aim for.
pub const LP_FEASIBLE_MAX: f64 = 1e-6;

/// Columns of a linear programme: the normal equations of as many rows as that takes are seconds.
pub const LP_COLUMNS_MAX: usize = 4_000_000;

/// Steps of the interior-point method; it needs ten to thirty.
pub const LP_ITERATIONS_MAX: u32 = 100;

/// Part of the largest share of a job below which a share is nothing: what an interior-point method
/// leaves of a 0.
pub const SHARE_MIN: f64 = 1e-7;

/// Columns up to which a stuck solver is followed by the simplex method; beyond, it takes minutes.
pub const SECOND_CHANCE_COLUMNS_MAX: usize = 20_000;

/// Classes of jobs that may be put in pairs: their programme has the square of that in columns.
pub const PACKED_CLASSES_MAX: usize = 256;

/// Levels of water filling beyond one for each class: rounding may split one into two.
pub const EXTRA_LEVELS_MAX: usize = 8;

/// Programmes solved for one finish-time allocation; it needs three to six.
pub const FINISH_TIME_SOLVES_MAX: usize = 40;

/// Halvings of an interval that hold a root: a double has 53 bits.
pub const HALVINGS_MAX: usize = 200;

/// Classes of the strategy-proof policy: it solves once for each.
pub const STRATEGY_PROOF_CLASSES_MAX: usize = 512;

/// Costs that an assignment may look at: rows times rows times columns, some seconds.
pub const ASSIGNMENT_STEPS_MAX: usize = 4_000_000_000;

/// Costs that an assignment may look at for GPUs that are in use; with more, only those count that
/// are free.
pub const ASSIGNMENT_AHEAD_MAX: usize = 200_000_000;

/// Queues by attained service: with more of them than that, jobs are stopped for next to nothing.
pub const QUEUES_MAX: usize = 64;

/// Skew up to which a job may be spread over nodes: of the models that were published some have at
/// most 0.14 and the others at least 0.61.
pub const SKEW_SPREAD_MAX: Milli = Milli(300);

/// By how much finish-time fairness of a job must be worse than that of another for a claim to its
/// place: less would take it back as soon as both have run for a while.
pub const CLAIM_MARGIN: f64 = 0.1;

/// Times in a lease at which a job that waits is looked at for whether it has a claim by now. What
/// is due to it moves with the crowd, so that the time cannot be told for certain.
pub const CLAIM_LOOKS_PER_LEASE: u64 = 20;

/// How many times as fast a job must be elsewhere to be moved there: less is within what a speed
/// that was measured is wrong by.
pub const SPEED_GAIN_MIN: f64 = 1.05;

/// Nodes that are looked at for one that all jobs could leave, for each turn that found no room:
/// those with the most free come first, and if the jobs of none of these fit elsewhere, the cluster
/// is full rather than in pieces.
pub const NODES_EMPTIED_ON_TRIAL: usize = 4;

/// Turns in a round for which such a node is sought in vain: after so many the cluster is full.
pub const EMPTYING_TRIES_MAX: usize = 4;

/// Part of the jobs that may be in pairs which nobody has seen: what is learnt of them serves the
/// others, who must not all be slowed at once to learn it.
pub const TRIALS_PART: usize = 20;

/// Rounds after which a stay may be stopped whatever it cost to begin and costs to end.
pub const PAYING_OFF_ROUNDS: u64 = 3;
