//! Every bound of the policies in one place, with the reason for the number.

use hostler_core::units::Span;

/// Instants at which a look ahead knows what is free. Each is a copy of the cluster's free
/// capacity, and plans beyond a few dozen ends are guesswork anyway.
pub const STEPS_MAX: usize = 64;

/// Instants that the ends of running jobs may take up; the others are for the ends of those that
/// have a reservation.
pub const ENDS_MAX: usize = STEPS_MAX / 2;

/// A job that outlasts its estimate is believed to need another tenth of what it has run: the
/// longer it has been wrong, the longer it may go on being so.
pub const OVERDUE_PART: u64 = 10;

/// At least this much more: a belief that ends now would promise its room at once.
pub const OVERDUE_MIN: Span = Span::from_secs(1);

/// Demands that are remembered as not fitting: jobs that wait differ in few ways that matter, and
/// each costs a look at every node that frees something.
pub const HOPELESS_MAX: usize = 16;

/// Freed nodes that are counted one by one for each shape of job; for more of them a bound over the
/// whole cluster costs less.
pub const FREED_COUNTED_MAX: usize = 64;
