//! Many replays of one trace at once: threads share the trace, results come in the order asked for.

use super::{ReplaySpec, replay};
use crate::error::{Error, Result};
use crate::hierarchy::TierSpec;
use crate::policy::parse_opt;
use crate::progress::Progress;
use crate::stack::{self, Curve, Point};
use crate::trace::Trace;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How often the waiting thread adds up what the others have done.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// Hits of one cache of a policy at each capacity (blocks), in the order given.
///
/// LRU takes one pass for all of them and `opt` one collection of the next uses; other policies are replayed
/// once per capacity, on up to `threads` threads. The result does not depend on their number.
///
/// # Errors
/// As [`replay`]: [`Error::Config`] for a policy that is not valid, [`Error::Cancelled`].
pub fn curve_points(
    trace: &Trace,
    policy: &str,
    capacities: &[u64],
    warmup_requests: Option<usize>,
    threads: usize,
    progress: &Progress,
) -> Result<Vec<Point>> {
    if policy == "lru" {
        return Ok(Curve::of(trace, warmup_requests, progress)?.at(capacities));
    }
    if parse_opt(policy)? == Some(true) {
        return stack::opt(trace, capacities, warmup_requests, progress);
    }
    progress.start(trace.len() as u64 * capacities.len() as u64);
    each(capacities.len(), threads, progress, |job, progress| {
        replay_point(trace, policy, capacities[job], warmup_requests, progress)
    })
}

fn replay_point(
    trace: &Trace,
    policy: &str,
    capacity_blocks: u64,
    warmup_requests: Option<usize>,
    progress: &Progress,
) -> Result<Point> {
    let tier = TierSpec { policy: policy.to_owned(), ..TierSpec::new("t", capacity_blocks) };
    let spec = ReplaySpec { per_request: warmup_requests.is_some(), ..ReplaySpec::new(vec![tier]) };
    let result = replay(trace, &spec, progress)?;
    let counters = &result.tiers[0].counters;
    let warm = |first: usize| {
        let tokens = result.requests.as_ref().and_then(|requests| requests.hit_tokens[0].get(first..));
        tokens.unwrap_or(&[]).iter().map(|&n| u64::from(n)).sum()
    };
    Ok(Point {
        capacity_blocks,
        hit_blocks: counters.served,
        hit_tokens: counters.served_tokens,
        warm_hit_tokens: warmup_requests.map(warm),
    })
}

/// Runs `jobs` jobs on up to `threads` threads, each with a progress of its own whose sum is told to `progress`.
///
/// # Errors
/// Of the jobs that failed the first one's error; [`Error::Cancelled`] when `progress` was cancelled.
pub fn each<T: Send>(
    jobs: usize,
    threads: usize,
    progress: &Progress,
    work: impl Fn(usize, &Progress) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let parts: Vec<Progress> = (0..jobs).map(|_| Progress::default()).collect();
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut results: Vec<Option<Result<T>>> = (0..jobs).map(|_| None).collect();
    std::thread::scope(|scope| {
        let (sender, receiver) = channel();
        for _ in 0..threads.clamp(1, jobs.max(1)) {
            let sender = sender.clone();
            let (parts, next, stop, work) = (&parts, &next, &stop, &work);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let job = next.fetch_add(1, Ordering::Relaxed);
                    let Some(part) = parts.get(job) else { break };
                    // The receiver lives as long as the scope; nobody else can close it.
                    let _ = sender.send((job, work(job, part)));
                }
            });
        }
        drop(sender);
        collect(&receiver, &parts, &stop, progress, &mut results);
    });
    let mut out = Vec::with_capacity(jobs);
    let mut cancelled = false;
    for result in results {
        match result {
            Some(Ok(value)) => out.push(value),
            None | Some(Err(Error::Cancelled)) => cancelled = true,
            Some(Err(error)) => return Err(error),
        }
    }
    if cancelled { Err(Error::Cancelled) } else { Ok(out) }
}

/// Waits for all jobs; stops the others when one fails or the caller cancels.
fn collect<T>(
    receiver: &Receiver<(usize, Result<T>)>,
    parts: &[Progress],
    stop: &AtomicBool,
    progress: &Progress,
    results: &mut [Option<Result<T>>],
) {
    let halt = || {
        stop.store(true, Ordering::Relaxed);
        parts.iter().for_each(Progress::cancel);
    };
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok((job, result)) => {
                if result.is_err() {
                    halt();
                }
                results[job] = Some(result);
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return,
        }
        if progress.advance_to(parts.iter().map(|part| part.get().0).sum()).is_err() {
            halt();
        }
    }
}

#[cfg(test)]
mod tests;
