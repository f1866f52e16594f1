//! Times for which nodes are kept, as people ask for them and as they are told of them.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What somebody wants to have kept.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct ReservationRequest {
    /// What jobs call it.
    #[schema(
        min_length = 1,
        max_length = 128,
        pattern = r"^[^/\u0000-\u001f\u007f-\u009f]+$",
        required = true
    )]
    pub name: String,
    /// Which nodes; chosen by `gpus` when empty.
    #[schema(max_items = 1000)]
    pub nodes: Vec<String>,
    /// As many whole nodes as have so many GPUs, those first that are believed to be free first.
    #[schema(minimum = 1)]
    pub gpus: Option<u32>,
    /// When it begins, in seconds since the epoch; now when not given.
    #[schema(minimum = 0)]
    pub from: Option<f64>,
    /// How long it lasts.
    #[schema(minimum = 1, maximum = 3162240000u64, required = true)]
    pub secs: u64,
    /// Tenants whose jobs may run in it.
    pub tenants: Vec<String>,
    /// Users whose jobs may run in it. With neither, nobody's: the nodes are left alone.
    pub users: Vec<String>,
    /// Whether other jobs that still run there when it begins are stopped, and wait again.
    pub stops_jobs: bool,
    /// Why, for people.
    #[schema(max_length = 256)]
    pub reason: String,
}

/// A time for which nodes are kept.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Reservation {
    /// What jobs call it; the name of the node for one that is drained.
    pub name: String,
    /// Its number in the log.
    pub window: u32,
    /// Whether it is only a note about a node that a person lets take nothing new.
    #[serde(default)]
    pub drains: bool,
    /// The nodes.
    pub nodes: Vec<String>,
    /// When it begins, in seconds since the epoch; never for a drained node without a deadline.
    pub from: Option<f64>,
    /// When it is over; when a person says so, for a drained node.
    pub until: Option<f64>,
    /// Tenants whose jobs may run in it.
    pub tenants: Vec<String>,
    /// Users whose jobs may run in it.
    pub users: Vec<String>,
    /// Whether other jobs that still run there when it begins are stopped.
    pub stops_jobs: bool,
    /// Why, for people.
    pub reason: String,
}

impl Reservation {
    /// Whether jobs of a user may run in it.
    pub fn admits(&self, user: &str, tenant: &str) -> bool {
        self.users.iter().any(|known| known == user)
            || self.tenants.iter().any(|known| known == tenant)
    }

    /// Whether it is over by a time.
    pub fn is_over(&self, now: f64) -> bool {
        self.until.is_some_and(|until| until <= now)
    }

    /// Whether some of it is in a span of time.
    pub fn overlaps(&self, from: f64, until: f64) -> bool {
        let begins = self.from.is_some_and(|own| own < until);
        begins && self.until.is_none_or(|own| own > from)
    }
}

/// How a node is drained.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct DrainRequest {
    /// Why, for people.
    #[schema(max_length = 256)]
    pub reason: String,
    /// Seconds after which jobs that still run there are stopped, and wait again; they end by
    /// themselves when not given.
    #[schema(maximum = 3162240000u64)]
    pub deadline_secs: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reservation(from: Option<f64>, until: Option<f64>) -> Reservation {
        Reservation {
            name: "r".to_owned(),
            window: 0,
            drains: false,
            nodes: Vec::new(),
            from,
            until,
            tenants: vec!["vision".to_owned()],
            users: vec!["ada".to_owned()],
            stops_jobs: false,
            reason: String::new(),
        }
    }

    #[test]
    fn users_and_tenants_are_admitted_and_nobody_else() {
        let kept = reservation(Some(1.0), Some(2.0));
        assert!(kept.admits("ada", "other") && kept.admits("bob", "vision"));
        assert!(!kept.admits("vision", "ada"));
    }

    #[test]
    fn spans_that_touch_do_not_overlap() {
        let kept = reservation(Some(10.0), Some(20.0));
        let tried = [(0.0, 10.0), (0.0, 10.5), (19.0, 30.0), (20.0, 30.0)];
        assert_eq!(
            tried.map(|(from, until)| kept.overlaps(from, until)),
            [false, true, true, false]
        );
        assert!(reservation(Some(10.0), None).overlaps(99.0, 100.0));
        assert!(!reservation(None, None).overlaps(0.0, 100.0));
        assert!(kept.is_over(20.0) && !kept.is_over(19.9));
    }
}
