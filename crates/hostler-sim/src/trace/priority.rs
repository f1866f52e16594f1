//! Priority classes: what a number or a well-known name is worth.
//!
//! Larger is more important. Numbers stand for themselves; names map to a few steps around 0,
//! which is also what an empty or unknown class gets.

/// Known names in lower case. Kubernetes service classes, cloud purchase classes and the plain
/// words that queues use; names of one step are not told apart.
pub const NAMES: [(&str, i32); 23] = [
    ("be", -1),
    ("besteffort", -1),
    ("best-effort", -1),
    ("free", -1),
    ("low", -1),
    ("opportunistic", -1),
    ("preemptible", -1),
    ("spot", -1),
    ("batch", 0),
    ("burstable", 0),
    ("default", 0),
    ("medium", 0),
    ("normal", 0),
    ("standard", 0),
    ("high", 1),
    ("hp", 1),
    ("latency-sensitive", 1),
    ("ls", 1),
    ("critical", 2),
    ("guaranteed", 2),
    ("prod", 2),
    ("production", 2),
    ("urgent", 2),
];

/// Priority of a class as written; `None` for a name that is not known.
pub fn resolve(class: &str) -> Option<i32> {
    if class.is_empty() {
        return Some(0);
    }
    if let Ok(number) = class.parse() {
        return Some(number);
    }
    NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(class)).map(|(_, value)| *value)
}
