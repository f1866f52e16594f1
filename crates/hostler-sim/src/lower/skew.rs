//! How much of a model its largest tensor is, for models that a trace names.

use std::collections::BTreeMap;

use hostler_core::units::Milli;

use crate::trace::table::Trace;
use crate::trace::text::TextId;

/// Largest tensor over size of the model, in thousandths, as published with Tiresias (Gu and
/// others, NSDI 2019).
const PUBLISHED: [(&str, u32); 9] = [
    ("alexnet", 611),
    ("inception3", 138),
    ("inception4", 44),
    ("resnet101", 75),
    ("resnet152", 60),
    ("resnet50", 112),
    ("vgg11", 774),
    ("vgg16", 744),
    ("vgg19", 717),
];

/// Skews of the models that are published, as far as a trace names them.
pub(super) fn published(trace: &Trace) -> BTreeMap<TextId, Milli> {
    let known = PUBLISHED.iter().map(|(name, skew)| (trace.text.find(name), Milli(*skew)));
    known.filter_map(|(name, skew)| Some((name?, skew))).collect()
}

#[cfg(test)]
mod tests {
    use super::{PUBLISHED, published};
    use crate::trace::table::Trace;
    use hostler_core::units::Milli;

    #[test]
    fn models_of_a_trace_have_the_published_skew() {
        let mut trace = Trace::default();
        let [vgg, other] = ["vgg16", "mine"].map(|name| trace.text.intern(name).expect("room"));
        let skews = published(&trace);
        assert_eq!((skews.get(&vgg), skews.get(&other)), (Some(&Milli(744)), None));
        assert_eq!(skews.len(), 1);
    }

    #[test]
    fn a_skew_is_a_part_of_a_model() {
        assert!(PUBLISHED.iter().all(|(_, skew)| (1..1000).contains(skew)));
        assert!(PUBLISHED.is_sorted_by_key(|(name, _)| *name));
    }
}
