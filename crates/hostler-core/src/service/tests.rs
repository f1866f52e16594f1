//! What is learnt, and when.

use super::{Service, Services};
use crate::id::TenantId;
use crate::limits::{SERVICE_STRIDE_MAX, SERVICES_LEARNT_MAX};

fn after(ends: u64) -> Services {
    let mut services = Services::default();
    for gpu_time in 1..=ends {
        services.note(Service { tenant: TenantId(0), group: None, gpu_time });
        services.audit();
    }
    services
}

fn learnt(ends: u64) -> Vec<u64> {
    after(ends).learnt().map(|service| service.gpu_time).collect()
}

#[test]
fn each_of_the_first_ends_counts_at_once() {
    assert!(Services::default().is_empty());
    assert_eq!(learnt(0), []);
    for ends in 1..16 {
        assert_eq!(learnt(ends), (1..=ends).collect::<Vec<_>>());
    }
}

#[test]
fn later_ends_count_in_steps_of_an_eighth() {
    for (ends, counted) in [(16, 16), (17, 16), (18, 18), (63, 60), (64, 64), (71, 64), (72, 72)] {
        assert_eq!(after(ends).learnt_count(), counted, "{ends}");
        assert_eq!(learnt(ends), (1..=counted).collect::<Vec<_>>(), "{ends}");
    }
}

#[test]
fn the_window_follows_the_last_ends() {
    let (most, stride) = (SERVICES_LEARNT_MAX as u64, SERVICE_STRIDE_MAX);
    let boundary = 4 * most;
    for ends in [boundary, boundary + 1, boundary + stride - 1] {
        let window: Vec<u64> = (boundary - most + 1..=boundary).collect();
        assert_eq!(learnt(ends), window, "{ends}");
    }
    assert_eq!(learnt(boundary + stride).last(), Some(&(boundary + stride)));
}
