//! Wrong information of a known kind.

use super::*;
use crate::durations::tests::spec;

/// Says a hundred seconds for job 0, a hundred and one for job 1, and so on.
struct Counting;

impl Predict for Counting {
    fn estimate(&mut self, job: JobId, _: &JobSpec) -> Option<Estimate> {
        let run = Span::from_secs(100 + u64::from(job.0));
        Some(Estimate { run, spread: Span::from_secs(10) })
    }
}

fn said(how: Distortion, jobs: u32) -> Vec<f64> {
    let mut predict = how.before(Box::new(Counting));
    let spec = spec(1, 1, None);
    let mut run = |job| predict.estimate(JobId(job), &spec).unwrap().run.secs_f64();
    (0..jobs).map(&mut run).collect()
}

#[test]
fn scale_is_a_factor_and_nothing_set_changes_nothing() {
    assert_eq!(said(Distortion::default(), 3), [100.0, 101.0, 102.0]);
    assert_eq!(said(Distortion { scale: 0.5, ..Distortion::default() }, 3), [50.0, 50.5, 51.0]);
}

#[test]
fn noise_is_log_normal_and_grows_with_its_setting() {
    let logs = |noise: f64, seed: u64| -> Vec<f64> {
        let told = said(Distortion { noise, seed, ..Distortion::default() }, 4000);
        told.iter().enumerate().map(|(job, run)| libm::log(run / (100.0 + job as f64))).collect()
    };
    let one = logs(0.5, 1);
    let mean = one.iter().sum::<f64>() / 4000.0;
    let deviation = libm::sqrt(one.iter().map(|log| log * log).sum::<f64>() / 4000.0);
    assert!(mean.abs() < 0.03, "{mean}");
    assert!((deviation - 0.5).abs() < 0.02, "{deviation}");
    let twice = logs(1.0, 1);
    assert!(one.iter().zip(&twice).all(|(one, twice)| (one * 2.0 - twice).abs() < 1e-5));
    assert_eq!(one, logs(0.5, 1));
    assert_ne!(one, logs(0.5, 2));
}

#[test]
fn shuffled_jobs_get_what_earlier_ones_were_given() {
    let half = said(Distortion { shuffle: 0.5, seed: 9, ..Distortion::default() }, 2000);
    let own = (0..2000).filter(|job| half[*job] == 100.0 + *job as f64).count();
    assert!((900..1100).contains(&own), "{own}");
    let all = said(Distortion { shuffle: 1.0, seed: 9, ..Distortion::default() }, 2000);
    assert_eq!(all[0], 100.0, "nothing came before the first");
    assert!((1..2000).all(|job| all[job] < 100.0 + job as f64), "none comes from the future");
}
