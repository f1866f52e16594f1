//! How well a few measurements of a workload tell its speed in pairs, on whole tables.

use std::path::Path;

use hostler_core::id::{ModelId, ProfileKey};
use hostler_core::random::Random;
use hostler_predict::PairTable;

use super::super::throughputs::read_throughputs;
use crate::fixture::published_data;

/// Speed in the pair over speed alone, by workload; columns are (model, partner). A workload that
/// does not fit somewhere has 0 there.
fn shares(path: &Path) -> Vec<Vec<f64>> {
    let tables = read_throughputs(path).unwrap();
    let names: Vec<&str> = tables.gpu_models().iter().map(|name| &**name).collect();
    let profiles = tables.profiles(&super::throughputs::models(&names));
    let columns = || {
        let models = (0..names.len()).map(|model| ModelId(model as u32));
        models.flat_map(|model| (0..profiles.len()).map(move |other| (model, other)))
    };
    let share = |own: usize, (model, other): (ModelId, usize)| {
        let alone = profiles[own].steps_per_sec(model, 1, false);
        let pair = profiles[own].pair_rates(ProfileKey(other as u32), model, 1);
        match (pair, alone > 0.0) {
            (Some((pair, _)), true) => (pair / alone).clamp(0.0, 1.0),
            _ => 0.0,
        }
    };
    let row = |own| columns().map(|column| share(own, column)).collect();
    (0..profiles.len()).map(row).collect()
}

/// Mean absolute error over hidden entries when each row in turn is hidden but for every third
/// column: of the filled row, of the nearest row, and of the mean of each column.
fn errors(rows: &[Vec<f64>]) -> [f64; 3] {
    let (mut sums, mut count) = ([0.0; 3], 0.0);
    for hidden in 0..rows.len() {
        let measured = |row: usize, column: usize| row != hidden || column.is_multiple_of(3);
        let entry = |row: usize, column: usize| measured(row, column).then_some(rows[row][column]);
        let columns = rows[hidden].len();
        let known = |row: usize| (0..columns).map(|column| entry(row, column)).collect();
        let table = PairTable::new((0..rows.len()).map(known).collect()).unwrap();
        let (filled, estimated) = (table.fill(), table.estimate());
        for column in (0..columns).filter(|column| column % 3 != 0) {
            let others = (0..rows.len()).filter(|row| *row != hidden);
            let mean = others.map(|row| rows[row][column]).sum::<f64>() / (rows.len() - 1) as f64;
            let nearest = estimated[hidden][column].expect("the others know it");
            for (sum, guess) in sums.iter_mut().zip([filled[hidden][column], nearest, mean]) {
                *sum += (guess - rows[hidden][column]).abs();
            }
            count += 1.0;
        }
    }
    sums.map(|sum| sum / count)
}

/// The same over all entries of pairs of which both sides are hidden, this part of all, by chance.
/// What nobody else was measured with is left out.
fn errors_scattered(rows: &[Vec<f64>], part: f64) -> [f64; 3] {
    let (count, columns) = (rows.len(), rows[0].len());
    let mut random = Random::new(1);
    let mut known: Vec<Vec<Option<f64>>> =
        rows.iter().map(|row| row.iter().copied().map(Some).collect()).collect();
    for (model, own, other) in (0..columns).flat_map(|column| {
        let (model, other) = (column / count, column % count);
        (0..=other).map(move |own| (model, own, other))
    }) {
        if random.uniform() < part {
            known[own][model * count + other] = None;
            known[other][model * count + own] = None;
        }
    }
    let table = PairTable::new(known.clone()).unwrap();
    let (filled, estimated) = (table.fill(), table.estimate());
    let (mut sums, mut hidden) = ([0.0; 3], 0.0);
    for (row, column) in (0..count).flat_map(|row| (0..columns).map(move |at| (row, at))) {
        let others: Vec<f64> = known.iter().filter_map(|row| row[column]).collect();
        let (None, Some(lent)) = (known[row][column], estimated[row][column]) else { continue };
        let mean = others.iter().sum::<f64>() / others.len() as f64;
        for (sum, guess) in sums.iter_mut().zip([filled[row][column], lent, mean]) {
            *sum += (guess - rows[row][column]).abs();
        }
        hidden += 1.0;
    }
    assert!(hidden > 0.0, "nothing is hidden");
    sums.map(|sum| sum / hidden)
}

fn say(name: &str, [filled, nearest, mean]: [f64; 3]) {
    println!("{name}: filled {filled:.3}, nearest row {nearest:.3}, column mean {mean:.3}");
}

#[test]
fn a_hidden_row_of_a_small_table_is_recovered() {
    let errors = errors(&shares(&super::testdata("../gavel/own_throughputs.json")));
    say("own table", errors);
    let [filled, nearest, mean] = errors;
    assert!(filled < 0.03, "{filled}");
    assert!(nearest < 0.06, "{nearest}");
    assert!(filled < mean, "no better than the mean of the others: {filled}, {mean}");
}

#[test]
fn half_of_the_pairs_of_a_small_table_tell_the_other_half() {
    let errors = errors_scattered(&shares(&super::testdata("../gavel/own_throughputs.json")), 0.5);
    say("half of the own table", errors);
    let [_, lent, mean] = errors;
    assert!(lent < 0.05, "{lent}");
    assert!(lent < mean, "no better than the mean of the others: {lent}, {mean}");
}

#[test]
fn a_hidden_row_of_the_published_table_is_recovered() {
    let Some(folder) = published_data("a_hidden_row_of_the_published_table_is_recovered") else {
        return;
    };
    let path = folder.join("theirs/gavel/simulation_throughputs.json.gz");
    let errors = errors(&shares(&path));
    say("published table", errors);
    let [filled, nearest, mean] = errors;
    assert!(filled < mean, "no better than the mean of the others: {filled}, {mean}");
    assert!(nearest < mean, "no better than the mean of the others: {nearest}, {mean}");
    for part in [0.1, 0.3, 0.5] {
        let errors = errors_scattered(&shares(&path), part);
        say(&format!("{part} of the published table"), errors);
        let [_, lent, mean] = errors;
        assert!(lent < mean, "no better than the mean of the others: {lent}, {mean}");
    }
}
