//! Network traffic of instances.

use super::Def;
use crate::analyze::figure::{Figure, curve};
use crate::analyze::input::Input;
use crate::analyze::need::Need;
use crate::analyze::stats::{ascending, quantile};
use crate::report::chart::Axis;
use crate::report::data::Format;

/// The figure `network`.
pub const NETWORK: Def = Def {
    key: "network",
    title: "Network",
    meaning: "Instances near the speed of the network are the ones that placement close together \
              helps.",
    published: "",
    needs: &[Need::Network],
    compute,
};

fn compute(input: &Input, figure: &mut Figure) {
    let bits = |read: f32| 8.0 * f64::from(read) / f64::from(1 << 30);
    let speeds = ascending(input.usage.iter().map(|usage| bits(usage.read)));
    for (key, at) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99)] {
        let words = format!("Gbit/s received, {}", key.to_uppercase());
        figure.fact(key, &words, quantile(&speeds, at), Format::Number);
    }
    let axis = Axis::log("Gbit/s over the life of an instance", Format::Number, 1e-4);
    figure.cdf("Network traffic of instances", axis, "instances", vec![curve("read", speeds)]);
}
