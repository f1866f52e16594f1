//! Published traces, read where they lie and never copied, against their known numbers.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use super::super::convert::{ConvertOptions, Converted, import};
use super::super::error::Faults;
use super::super::import::{ImportOptions, Imported, importer, read_helios_gpus};
use super::super::{NodeRow, Status, Trace};
use crate::fixture::published_data;

/// The folder of published data, or nothing with a word about it.
fn published(test: &str) -> Option<PathBuf> {
    published_data(test).map(|data| data.join("theirs"))
}

fn imported(path: &Path, name: &str) -> (Trace, Converted) {
    let found = importer(None, path).unwrap();
    assert_eq!(found.name, name, "{}", path.display());
    import(found, path, &ConvertOptions::default(), &mut |_, _| {}).unwrap()
}

fn counted<K: Ord>(keys: impl Iterator<Item = K>) -> BTreeMap<K, u32> {
    let mut counts = BTreeMap::new();
    for key in keys {
        *counts.entry(key).or_default() += 1;
    }
    counts
}

#[test]
fn openb_default_list_has_its_published_numbers() {
    let Some(data) = published("openb_default_list_has_its_published_numbers") else { return };
    let (trace, report) = imported(&data.join("pai/openb"), "openb");
    assert_eq!(report.dropped, BTreeMap::new());
    assert_eq!((trace.jobs.len(), trace.tasks.len()), (8152, 8152));
    let gpus = counted(trace.tasks.iter().map(|task| task.gpu_milli.or(0).div_ceil(1000)));
    assert_eq!(gpus, BTreeMap::from([(0, 1088), (1, 6989), (2, 16), (4, 15), (8, 44)]));
    let parts = trace.tasks.iter().filter(|task| (1..1000).contains(&task.gpu_milli.or(0)));
    assert_eq!(parts.count(), 3078);
    let demand: u64 = trace.tasks.iter().map(|task| u64::from(task.gpu_milli.or(0))).sum();
    assert_eq!((demand + 50) / 100, 60_868, "thousandths: {demand}");
    assert_eq!(trace.nodes.iter().map(|node| node.gpu_count).sum::<u32>(), 6212);
    let with_gpus = trace.nodes.iter().filter(|node| node.gpu_count > 0).count();
    assert_eq!((trace.nodes.len(), with_gpus), (1523, 1213));
    let classes = counted(trace.jobs.iter().map(|job| trace.str(job.priority_class)));
    let expected = [("LS", 4647), ("BE", 3398), ("Burstable", 100), ("Guaranteed", 7)];
    assert_eq!(classes, BTreeMap::from(expected));
    let phase = |status| trace.jobs.iter().filter(|job| job.status_in_trace == status).count();
    let phases = [Status::Running, Status::Failed, Status::Waiting, Status::Completed].map(phase);
    assert_eq!(phases, [5193, 1870, 897, 192]);
    println!("openb: demand {demand} thousandths, noted {:?}", report.noted);
}

#[test]
fn other_openb_lists_import_without_drops() {
    let Some(data) = published("other_openb_lists_import_without_drops") else { return };
    for list in ["gpushare100", "gpuspec33", "cpu250"] {
        let path = data.join(format!("pai/openb/openb_pod_list_{list}.csv.gz"));
        let (trace, report) = imported(&path, "openb");
        assert_eq!((trace.nodes.len(), &report.dropped), (1523, &BTreeMap::new()));
        println!("{list}: {} pods", trace.jobs.len());
    }
}

#[test]
fn the_philly_table_has_all_its_jobs() {
    let Some(data) = published("the_philly_table_has_all_its_jobs") else { return };
    let (trace, report) = imported(&data.join("philly/philly_82k.csv.gz"), "philly-table");
    assert_eq!((trace.jobs.len(), &report.dropped), (82_247, &BTreeMap::new()));
    let gpus =
        |task: &super::super::TaskRow| u64::from(task.gpu_milli.or(0)) * u64::from(task.count);
    let total: u64 = trace.tasks.iter().map(gpus).sum();
    // Sum of num_gpus over the rows.
    let by_size = [(76_627, 1), (1818, 2), (1870, 4), (1643, 8), (7, 12), (199, 16), (7, 24)];
    let large = [(67, 32), (6, 64), (3, 128)];
    let expected: u64 = by_size.iter().chain(&large).map(|(jobs, gpus)| jobs * gpus).sum();
    assert_eq!(total, 1000 * expected);
    println!("philly: {total} thousandths, time 0 is {}", trace.meta.time_origin);
}

#[test]
fn gpus_of_earth_by_day_are_met_by_its_machines() {
    let Some(data) = published("gpus_of_earth_by_day_are_met_by_its_machines") else { return };
    let text = std::fs::read(data.join("helios/earth_gpu_number.csv")).unwrap();
    let (mut imported, mut faults) = (Imported::default(), Faults::default());
    read_helios_gpus(&mut &text[..], "gpus", &ImportOptions::default(), &mut imported, &mut faults);
    let Imported { trace, rows_read, dropped, .. } = faults.or(imported).unwrap();
    assert_eq!((rows_read["gpus"], dropped), (181, BTreeMap::new()));
    let text = String::from_utf8(text).unwrap();
    let names: Vec<&str> = text.lines().next().unwrap().split(',').collect();
    // 2020-04-01 is day 18,353 since 1970; the table has a row for every day.
    for (day, line) in text.lines().skip(1).enumerate() {
        let noon = (18_353 + day as u64) * 86_400 + 43_200;
        let up = trace
            .nodes
            .iter()
            .filter(|node| node.up_from_s.or(0) <= noon && noon < node.up_to_s.or(u64::MAX));
        let mut by_pool: BTreeMap<&str, u32> = BTreeMap::new();
        up.for_each(|node| *by_pool.entry(trace.str(node.pool)).or_default() += node.gpu_count);
        for (pool, gpus) in names.iter().zip(line.split(',')).skip(1) {
            let total = by_pool.values().sum();
            let has =
                if *pool == "total" { total } else { by_pool.get(pool).copied().unwrap_or(0) };
            assert_eq!(has, gpus.parse::<u32>().unwrap(), "{pool} in {line}");
        }
    }
    // Of 281 machines that leave a virtual cluster nearly all join another.
    let node = |row: &NodeRow| (row.node_id, row.up_from_s.or(0));
    let begins: BTreeSet<_> = trace.nodes.iter().map(node).collect();
    let ends = trace.nodes.iter().filter_map(|row| Some((row.node_id, row.up_to_s.get()?)));
    let (moves, leaves): (Vec<_>, Vec<_>) = ends.partition(|end| begins.contains(end));
    assert_eq!((moves.len() + leaves.len(), leaves.len()), (281, 13));
    println!("helios: {} intervals of machines", trace.nodes.len());
}

#[test]
fn published_gavel_traces_import_without_drops() {
    let Some(data) = published("published_gavel_traces_import_without_drops") else { return };
    let (mut files, mut jobs) = (0, 0);
    for entry in std::fs::read_dir(data.join("gavel/traces")).unwrap() {
        let (trace, report) = imported(&entry.unwrap().path(), "gavel");
        assert_eq!(report.dropped, BTreeMap::new());
        assert_eq!(report.rows["jobs"], report.rows_read.values().sum::<u64>());
        (files, jobs) = (files + 1, jobs + trace.jobs.len());
    }
    assert!(files > 0, "no traces");
    println!("gavel: {files} files, {jobs} jobs");
}
