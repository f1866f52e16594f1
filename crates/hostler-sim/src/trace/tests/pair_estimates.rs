//! How well a few measurements of a workload tell its speed in pairs, on whole tables.

use std::path::{Path, PathBuf};

use hostler_core::id::{ModelId, ProfileKey};
use hostler_predict::PairTable;

use super::super::throughputs::read_throughputs;

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
        let others: Vec<Vec<f64>> =
            (0..rows.len()).filter(|at| *at != hidden).map(|at| rows[at].clone()).collect();
        let mean =
            |column: usize| others.iter().map(|row| row[column]).sum::<f64>() / others.len() as f64;
        let means: Vec<f64> = (0..rows[hidden].len()).map(mean).collect();
        let truth = &rows[hidden];
        let measured: Vec<(usize, f64)> =
            truth.iter().copied().enumerate().filter(|(column, _)| column % 3 == 0).collect();
        let table = PairTable::new(others).unwrap();
        let guesses = [table.fill(&measured), table.estimate(&measured).1, means];
        for column in (0..truth.len()).filter(|column| column % 3 != 0) {
            for (sum, guess) in sums.iter_mut().zip(&guesses) {
                *sum += (guess[column] - truth[column]).abs();
            }
            count += 1.0;
        }
    }
    sums.map(|sum| sum / count)
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
fn a_hidden_row_of_the_published_table_is_recovered() {
    let Some(folder) = std::env::var_os("HOSTLER_PARITY_DATA") else {
        println!("skipped: a_hidden_row_of_the_published_table_is_recovered");
        return;
    };
    let path = PathBuf::from(folder).join("theirs/gavel/simulation_throughputs.json.gz");
    let errors = errors(&shares(&path));
    say("published table", errors);
    let [filled, nearest, mean] = errors;
    assert!(filled < mean, "no better than the mean of the others: {filled}, {mean}");
    assert!(nearest < mean, "no better than the mean of the others: {nearest}, {mean}");
}
