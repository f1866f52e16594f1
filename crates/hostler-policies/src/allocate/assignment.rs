//! The cheapest way to give each row a column of its own: shortest augmenting paths.
//!
//! Costs are asked for, not stored: the matrix of a long queue would be larger than the cluster.

/// The column of each row. There must be as many columns as rows, and all costs finite.
///
/// Takes one augmenting path for each row, each of at most `rows` steps over all columns. Several
/// answers may cost the same; which of them is given follows from the order in which columns are
/// looked at, last one first, and from preferring free columns. Queues of equal GPUs have many such
/// ties, and the widely used implementation breaks them this way (Crouse, "On implementing 2D
/// rectangular assignment algorithms", 2016).
pub(super) fn cheapest(
    rows: usize,
    columns: usize,
    cost: impl Fn(usize, usize) -> f64,
) -> Vec<usize> {
    assert!(rows <= columns, "{rows} rows need as many columns, not {columns}");
    let mut prices = Prices { row: vec![0.0; rows], column: vec![0.0; columns] };
    let mut owner: Vec<Option<usize>> = vec![None; columns];
    let mut answer = vec![usize::MAX; rows];
    for row in 0..rows {
        let path = Path::search(row, &prices, &owner, &cost);
        path.reprice(row, &mut prices, &answer);
        let mut column = path.end;
        loop {
            let from = path.from[column];
            owner[column] = Some(from);
            std::mem::swap(&mut answer[from], &mut column);
            if from == row {
                break;
            }
        }
    }
    answer
}

struct Prices {
    row: Vec<f64>,
    column: Vec<f64>,
}

/// The cheapest way from a row to a free column, through columns that others own.
struct Path {
    /// Cost of the way to each column.
    least: Vec<f64>,
    /// Row from which each column is reached.
    from: Vec<usize>,
    rows: Vec<usize>,
    columns: Vec<usize>,
    end: usize,
    cost: f64,
}

impl Path {
    fn search(
        start: usize,
        prices: &Prices,
        owner: &[Option<usize>],
        cost: &impl Fn(usize, usize) -> f64,
    ) -> Path {
        let mut left: Vec<usize> = (0..owner.len()).rev().collect();
        let (least, from) = (vec![f64::INFINITY; owner.len()], vec![start; owner.len()]);
        let (rows, columns) = (Vec::new(), Vec::new());
        let mut path = Path { least, from, rows, columns, end: 0, cost: 0.0 };
        let mut row = start;
        loop {
            path.rows.push(row);
            let (mut best, mut lowest) = (0, f64::INFINITY);
            for (at, &column) in left.iter().enumerate() {
                let way = path.cost + cost(row, column) - prices.row[row] - prices.column[column];
                if way < path.least[column] {
                    path.least[column] = way;
                    path.from[column] = row;
                }
                let reached = path.least[column];
                if reached < lowest || (reached == lowest && owner[column].is_none()) {
                    (best, lowest) = (at, reached);
                }
            }
            let column = left.swap_remove(best);
            path.cost = lowest;
            path.columns.push(column);
            match owner[column] {
                Some(other) => row = other,
                None => {
                    path.end = column;
                    return path;
                }
            }
        }
    }

    /// Prices under which the path costs nothing and nothing costs less.
    fn reprice(&self, start: usize, prices: &mut Prices, answer: &[usize]) {
        prices.row[start] += self.cost;
        for &row in self.rows.iter().filter(|&&row| row != start) {
            prices.row[row] += self.cost - self.least[answer[row]];
        }
        for &column in &self.columns {
            prices.column[column] -= self.cost - self.least[column];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_workers_take_the_cheapest_jobs_together() {
        let costs = [[4.0, 1.0, 3.0], [2.0, 0.0, 5.0], [3.0, 2.0, 2.0]];
        assert_eq!(cheapest(3, 3, |row, column| costs[row][column]), [1, 0, 2]);
    }

    #[test]
    fn columns_may_stay_free() {
        assert_eq!(cheapest(1, 3, |_, column| [7.0, 2.0, 9.0][column]), [1]);
    }
}
