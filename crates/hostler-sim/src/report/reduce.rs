//! Fewer points and cells, same picture: keeps a report small.
//!
//! The sizes below are what a screen can show; nothing that is computed rests on thinned data.

use super::chart::ChartGroup;
use super::data::{DOWN, Heat, Series};
use std::collections::BTreeSet;

/// Points of one distribution.
pub const CDF_POINTS_MAX: usize = 400;
/// Points of one line over time; a desktop plot is about twice as wide in pixels.
pub const SERIES_POINTS_MAX: usize = 300;
/// Rows of a heat map; more would be thinner than two pixels.
pub const HEAT_ROWS_MAX: usize = 240;
/// Cells of a heat map: ten policies of this size stay below two thirds of a megabyte.
pub const HEAT_CELLS_MAX: usize = 40_000;

/// Keeps at most `max` points of a rising distribution, the first and the last among them.
///
/// Half of the points are spread evenly over the jobs and half evenly over the logarithm of time,
/// so that both the steep middle and the long tail keep their shape.
pub fn thin(points: &[(f64, f64)], max: usize) -> Vec<(f64, f64)> {
    if points.len() <= max {
        return points.to_vec();
    }
    let last = points.len() - 1;
    let Some(steps) = (max / 2).checked_sub(1).filter(|steps| *steps > 0) else {
        return points[last + 1 - max..].to_vec();
    };
    let mut kept: BTreeSet<usize> = (0..=steps).map(|step| step * last / steps).collect();
    let low = points.iter().map(|point| point.0).find(|time| *time > 0.0).unwrap_or(1.0).ln();
    let high = points[last].0.max(f64::MIN_POSITIVE).ln();
    for step in 0..=steps {
        let time = (low + (high - low) * step as f64 / steps as f64).exp();
        let index = points.partition_point(|point| point.0 < time);
        kept.insert(index.min(last));
    }
    kept.into_iter().map(|index| points[index]).collect()
}

/// Averages neighbouring times until at most `max` remain.
pub fn thin_series(series: &Series, max: usize) -> Series {
    let per_bucket = series.times_s.len().div_ceil(max.max(1)).max(1);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let means = |values: &[f64]| values.chunks(per_bucket).map(mean).map(short).collect();
    let starts = series.times_s.chunks(per_bucket).map(|bucket| short(bucket[0]));
    Series {
        times_s: starts.collect(),
        queue: means(&series.queue),
        allocated: means(&series.allocated),
        used: means(&series.used),
        saved: means(&series.saved),
    }
}

/// Five significant digits, which no plot can tell from all of them.
pub fn short(value: f64) -> f64 {
    if value == 0.0 || !value.is_finite() {
        return value;
    }
    let digits = 4 - value.abs().log10().floor() as i32;
    let factor = 10_f64.powi(digits.clamp(0, 12));
    (value * factor).round() / factor
}

/// A heat map whose rows are sorted by group and merged to the limits above.
pub struct Merged {
    /// Start of each column in seconds.
    pub times_s: Vec<f64>,
    /// Name of each row.
    pub rows: Vec<String>,
    /// Runs of rows that belong together.
    pub groups: Vec<ChartGroup>,
    /// Row by row; missing cells count as down.
    pub cells: Vec<u8>,
}

/// Brings rows of one group together, then averages neighbours until the limits hold.
pub fn merge(heat: &Heat) -> Merged {
    let group_of = |row: usize| heat.groups.get(row).map_or("", String::as_str);
    let mut names: Vec<&str> = Vec::new();
    for row in 0..heat.machines.len() {
        if !names.contains(&group_of(row)) {
            names.push(group_of(row));
        }
    }
    let per_row = heat.machines.len().div_ceil(HEAT_ROWS_MAX).max(1);
    let columns_max = HEAT_CELLS_MAX / heat.machines.len().clamp(1, HEAT_ROWS_MAX);
    let per_column = heat.times_s.len().div_ceil(columns_max).max(1);
    let columns: Vec<usize> = (0..heat.times_s.len()).collect();
    let mut merged = Merged {
        times_s: heat.times_s.chunks(per_column).map(|bucket| short(bucket[0])).collect(),
        rows: Vec::new(),
        groups: Vec::new(),
        cells: Vec::new(),
    };
    for name in names {
        let members: Vec<usize> =
            (0..heat.machines.len()).filter(|row| group_of(*row) == name).collect();
        let rows = members.len().div_ceil(per_row);
        merged.groups.push(ChartGroup { name: name.to_owned(), rows });
        for rows in members.chunks(per_row) {
            merged.rows.push(row_name(heat, rows));
            let cells = columns.chunks(per_column).map(|columns| mean_cell(heat, rows, columns));
            merged.cells.extend(cells);
        }
    }
    merged
}

fn row_name(heat: &Heat, rows: &[usize]) -> String {
    match rows {
        [only] => heat.machines[*only].clone(),
        [first, .., last] => format!("{} to {}", heat.machines[*first], heat.machines[*last]),
        [] => String::new(),
    }
}

fn mean_cell(heat: &Heat, rows: &[usize], columns: &[usize]) -> u8 {
    let width = heat.times_s.len();
    let cell = |row: &usize, column: &usize| heat.cells.get(row * width + column).copied();
    let cells = rows.iter().flat_map(|row| columns.iter().map(move |column| cell(row, column)));
    let (mut sum, mut count) = (0_u32, 0_u32);
    for percent in cells.flatten().filter(|percent| *percent != DOWN) {
        sum += u32::from(percent.min(100));
        count += 1;
    }
    sum.checked_add(count / 2)
        .and_then(|sum| sum.checked_div(count))
        .map_or(DOWN, |mean| mean as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_ends_order_and_shape() {
        let points: Vec<(f64, f64)> = (0..5_000)
            .map(|rank| ((f64::from(rank) / 400.0).exp(), f64::from(rank + 1) / 5e3))
            .collect();
        let thinned = thin(&points, 400);
        assert!(thinned.len() <= 400, "{} points", thinned.len());
        assert_eq!(thinned.first(), points.first());
        assert_eq!(thinned.last(), points.last());
        let widest = thinned.windows(2).map(|pair| pair[1].1 - pair[0].1).fold(0.0, f64::max);
        assert!(widest <= 0.011, "a step of {widest} of the jobs");
        assert!(thinned.windows(2).all(|pair| pair[0].0 < pair[1].0), "points out of order");
    }

    #[test]
    fn thinning_takes_any_limit_and_any_values() {
        let points = [(0.0, 0.25), (0.0, 0.5), (f64::NAN, 0.75), (9.0, 1.0)];
        for max in 0..=5 {
            let kept = thin(&points, max).len();
            assert!(kept <= max, "{kept} points where {max} are allowed");
        }
        assert!(thin(&[], 3).is_empty());
    }

    #[test]
    fn series_are_averaged_over_neighbours() {
        let series = Series {
            times_s: vec![0.0, 1.0, 2.0],
            queue: vec![2.0, 4.0, 9.0],
            allocated: vec![0.5, 1.0, 0.25],
            ..Series::default()
        };
        let thinned = thin_series(&series, 2);
        assert_eq!(thinned.times_s, [0.0, 2.0]);
        assert_eq!(thinned.queue, [3.0, 9.0]);
        assert_eq!(thinned.allocated, [0.75, 0.25]);
    }

    #[test]
    fn heat_map_rows_of_one_model_stand_together_and_holes_are_down() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<String>>();
        let heat = Heat {
            times_s: vec![0.0, 60.0],
            machines: words("a b c"),
            groups: words("x y x"),
            cells: vec![10, 20, 30, 255, 50],
        };
        let merged = merge(&heat);
        assert_eq!(merged.rows, ["a", "c", "b"]);
        assert_eq!(merged.cells, [10, 20, 50, 255, 30, 255]);
        let groups: Vec<(&str, usize)> =
            merged.groups.iter().map(|group| (group.name.as_str(), group.rows)).collect();
        assert_eq!(groups, [("x", 2), ("y", 1)]);
    }

    #[test]
    fn large_heat_maps_are_merged_to_a_size_that_can_be_mailed() {
        let (rows, columns) = (1_000, 500);
        let heat = Heat {
            times_s: (0..columns).map(f64::from).collect(),
            machines: (0..rows).map(|row| format!("m{row}")).collect(),
            groups: vec!["x".to_owned(); rows],
            cells: vec![40; rows * columns as usize],
        };
        let merged = merge(&heat);
        assert!(merged.rows.len() <= HEAT_ROWS_MAX, "{} rows", merged.rows.len());
        assert!(merged.cells.len() <= HEAT_CELLS_MAX, "{} cells", merged.cells.len());
        assert_eq!(merged.cells.len(), merged.rows.len() * merged.times_s.len());
        assert!(merged.cells.iter().all(|cell| *cell == 40), "a mean of equal cells is that cell");
        assert_eq!(merged.rows[0], "m0 to m4");
    }
}
