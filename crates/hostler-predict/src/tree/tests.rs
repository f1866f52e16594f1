//! Trees worked out by hand.

use expect_test::{Expect, expect};
use hostler_core::random::Random;

use super::*;

/// Rows of two numbers with a value.
fn samples(rows: &[(i64, i64, i64)]) -> Vec<Sample<2>> {
    let sample = |&(first, second, value): &(i64, i64, i64)| Sample { row: [first, second], value };
    rows.iter().map(sample).collect()
}

fn check(rows: &[(i64, i64, i64)], growth: Growth, expected: Expect) {
    let tree = Tree::fit(&samples(rows), growth).unwrap();
    assert_eq!(tree.fault(2), None);
    let mut text = String::new();
    draw(&tree, 0, 0, &mut text);
    expected.assert_eq(&text);
}

fn draw(tree: &Tree, at: usize, depth: usize, text: &mut String) {
    *text += &"  ".repeat(depth);
    match tree.nodes[at] {
        Node::Leaf(Leaf { middle, spread }) => *text += &format!("{middle} ± {spread}\n"),
        Node::Split { feature, at_most, below, above } => {
            *text += &format!("number {feature} at most {at_most}?\n");
            draw(tree, below as usize, depth + 1, text);
            draw(tree, above as usize, depth + 1, text);
        }
    }
}

#[test]
fn a_cut_leaves_the_least_distance_from_the_medians() {
    // Cut after the first, 0 + 40 are left; after the second 10 + 20; after the third 20 + 10;
    // after the fourth 40 + 0. The first of equals wins.
    let rows = [(1, 0, 0), (2, 0, 10), (3, 0, 20), (4, 0, 30), (5, 0, 40)];
    check(
        &rows,
        Growth { depth_max: 1, leaf_min: 1 },
        expect![[r#"
            number 0 at most 2?
              5 ± 5
              30 ± 10
        "#]],
    );
}

#[test]
fn the_number_that_tells_more_is_asked_first() {
    // The first number parts 10 from 20 and 1000 from 2000, the second the short from the long.
    let rows = [(1, 1, 10), (2, 1, 20), (1, 9, 1000), (2, 9, 2000)];
    check(
        &rows,
        Growth { depth_max: 5, leaf_min: 1 },
        expect![[r#"
            number 1 at most 5?
              number 0 at most 1?
                10 ± 0
                20 ± 0
              number 0 at most 1?
                1000 ± 0
                2000 ± 0
        "#]],
    );
}

#[test]
fn a_leaf_keeps_enough_samples_and_what_cannot_be_told_apart_stays_together() {
    // Alone, the first would leave less error than with the second.
    let rows = [(1, 0, 10), (2, 0, 900), (3, 0, 1000), (4, 0, 1100)];
    check(
        &rows,
        Growth { depth_max: 5, leaf_min: 2 },
        expect![[r#"
            number 0 at most 2?
              455 ± 445
              1050 ± 50
        "#]],
    );
    let rows = [(7, 7, 10), (7, 7, 20), (7, 7, 1000)];
    check(
        &rows,
        Growth { depth_max: 5, leaf_min: 1 },
        expect![[r#"
            20 ± 495
        "#]],
    );
}

#[test]
fn a_cut_that_does_not_help_is_not_made() {
    let rows = [(1, 0, 60), (2, 0, 60), (3, 0, 60), (4, 0, 60)];
    check(
        &rows,
        Growth { depth_max: 5, leaf_min: 1 },
        expect![[r#"
            60 ± 0
        "#]],
    );
}

#[test]
fn the_order_of_samples_does_not_matter() {
    let mut random = Random::new(3);
    let mut draw = |most: u64| (random.uniform() * most as f64) as u64;
    let mut rows: Vec<(i64, i64, i64)> = (0..500)
        .map(|_| (draw(20) as i64, draw(1000) as i64 - 500, draw(100) as i64 - 50))
        .collect();
    let growth = Growth { depth_max: 8, leaf_min: 3 };
    let tree = Tree::fit(&samples(&rows), growth).unwrap();
    assert!(tree.len() > 50, "{}", tree.len());
    rows.reverse();
    rows.rotate_left(123);
    assert_eq!(Tree::fit(&samples(&rows), growth).unwrap(), tree);
}

#[test]
fn every_cut_is_as_good_as_the_best_found_by_trying_all() {
    let mut random = Random::new(5);
    let mut draw = |most: u64| (random.uniform() * most as f64) as u64;
    let growth = Growth { depth_max: 1, leaf_min: 2 };
    for _ in 0..50 {
        let rows: Vec<(i64, i64, i64)> =
            (0..12).map(|_| (draw(6) as i64, draw(6) as i64, draw(50) as i64)).collect();
        let samples = samples(&rows);
        let error_of = |side: &[&Sample<2>]| {
            let mut logs: Vec<i64> = side.iter().map(|sample| sample.value).collect();
            logs.sort_unstable();
            logs.iter().map(|log| (log - logs[(logs.len() - 1) / 2]).abs()).sum::<i64>()
        };
        let error_at = |feature: usize, at_most: i64| {
            let (low, high): (Vec<&Sample<2>>, Vec<&Sample<2>>) =
                samples.iter().partition(|sample| sample.row[feature] <= at_most);
            (low.len() >= 2 && high.len() >= 2).then(|| error_of(&low) + error_of(&high))
        };
        let whole = error_of(&samples.iter().collect::<Vec<_>>());
        let tried = (0..2).flat_map(|feature| (0..6).map(move |at_most| (feature, at_most)));
        let best = tried.filter_map(|(feature, at_most)| error_at(feature, at_most)).min();
        let found = match Tree::fit(&samples, growth).unwrap().nodes[0] {
            Node::Split { feature, at_most, .. } => error_at(feature as usize, at_most).unwrap(),
            Node::Leaf(_) => whole,
        };
        assert_eq!(found, best.unwrap_or(whole).min(whole), "{rows:?}");
    }
}
