//! Both files say the same.

use ::parquet::record::Field;
use hostler_core::id::{JobId, ModelId};
use hostler_core::job::Ending;
use hostler_core::units::Span;

use super::*;
use crate::trace::{Cluster, PaiLike};

fn line(job: u32, ending: Option<Ending>, first_start: Option<Time>) -> JobLine {
    JobLine {
        job: JobId(job),
        submitted: Time(1_500_000 * u64::from(job)),
        first_start,
        end: Time(98_765_432),
        ending,
        wait: Span(250_000),
        ran: Span(3_600_000_001),
        gpu_time: 7_200_000_000,
        lost_gpu_time: 1,
        model: first_start.map(|_| ModelId(1)),
        restarts: job,
        preemptions: 2,
    }
}

#[test]
fn the_parquet_file_has_the_cells_of_the_csv_file() {
    let cluster = Cluster::pai();
    let options = PaiLike { jobs: 4, seed: 1, ..PaiLike::default() };
    let workload = Workload::new(options.generate().unwrap(), &cluster).unwrap();
    let lines = [
        line(0, Some(Ending::Finished), Some(Time(2_000_000))),
        line(1, Some(Ending::Rejected), None),
        line(2, None, Some(Time(3_141_592))),
        line(3, None, None),
    ];
    let mut csv = Vec::new();
    write_csv(&lines, &workload, &mut csv).unwrap();
    let mut file = tempfile::tempfile().unwrap();
    write_parquet(&lines, &workload, &mut file).unwrap();
    let mut csv = csv::Reader::from_reader(&*csv);
    let names: Vec<String> = csv.headers().unwrap().iter().map(str::to_owned).collect();
    assert_eq!(names, COLUMNS.map(|column| column.name));
    let words = |field: &Field| match field {
        Field::Null => String::new(),
        Field::Str(text) => text.clone(),
        Field::Double(number) => number.to_string(),
        Field::Long(count) => count.to_string(),
        other => panic!("{other:?}"),
    };
    let (rows, _) = crate::parquet::tests::read(file);
    let rows: Vec<Vec<String>> = rows.iter().map(|row| row.iter().map(words).collect()).collect();
    let records = csv.records().map(|record| record.unwrap());
    let records: Vec<Vec<String>> =
        records.map(|record| record.iter().map(str::to_owned).collect()).collect();
    assert_eq!(rows, records);
    assert_eq!(rows.len(), lines.len());
}
