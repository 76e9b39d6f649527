//! Jobs on threads: order, errors, cancellation.

use super::{curve_points, each};
use crate::error::Error;
use crate::progress::Progress;
use crate::replay::testing::full_blocks;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn results_come_in_order_for_any_number_of_threads() {
    for threads in [0, 1, 2, 7, 100] {
        let got = each(20, threads, &Progress::default(), |job, _| Ok(job * job)).unwrap();
        assert_eq!(got, (0..20).map(|job| job * job).collect::<Vec<_>>());
    }
    assert!(each(0, 4, &Progress::default(), |job, _| Ok(job)).unwrap().is_empty());
}

#[test]
fn the_error_of_a_job_ends_the_others() {
    let started = AtomicUsize::new(0);
    let got = each(1000, 2, &Progress::default(), |job, progress| {
        started.fetch_add(1, Ordering::Relaxed);
        if job == 1 {
            return Err::<(), _>(Error::config("job 1", ""));
        }
        // A long job looks at its progress now and then; here until it is told to stop.
        while progress.advance_to(0).is_ok() {
            std::thread::yield_now();
        }
        Err(Error::Cancelled)
    });
    let Err(Error::Config { message, .. }) = got else { panic!("{got:?}") };
    assert_eq!((message.as_str(), started.load(Ordering::Relaxed) < 1000), ("job 1", true));
}

#[test]
fn a_cancelled_call_cancels_its_jobs() {
    let progress = Progress::default();
    progress.cancel();
    let got = each(3, 2, &progress, |_, part| {
        while part.advance_to(1).is_ok() {
            std::thread::yield_now();
        }
        Err::<(), _>(Error::Cancelled)
    });
    assert!(matches!(got, Err(Error::Cancelled)));
}

#[test]
fn a_curve_is_the_same_on_any_number_of_threads() {
    let paths: Vec<Vec<u64>> = (0..60).map(|i| (i % 7 * 10..i % 7 * 10 + i % 5).collect()).collect();
    let trace = full_blocks(&paths);
    let capacities = [9, 1, 4, 4, 1000];
    for policy in ["lru", "opt", "fifo", "wtinylfu", "random(seed=3)"] {
        let curve = |threads| {
            curve_points(&trace, policy, &capacities, Some(20), threads, &Progress::default()).unwrap()
        };
        let one = curve(1);
        assert_eq!(one.iter().map(|point| point.capacity_blocks).collect::<Vec<_>>(), capacities);
        assert_eq!(one[2], one[3]);
        assert!(one.iter().all(|p| p.warm_hit_tokens.is_some_and(|warm| warm <= p.hit_tokens)), "{policy}");
        assert_eq!(curve(3), one, "{policy}");
    }
    let unknown = curve_points(&trace, "lruu", &capacities, None, 2, &Progress::default());
    assert!(matches!(unknown, Err(Error::Config { .. })));
    assert_eq!(curve_points(&trace, "fifo", &[], None, 2, &Progress::default()).unwrap(), []);
}
