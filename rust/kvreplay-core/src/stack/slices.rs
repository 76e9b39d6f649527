//! Hit blocks of every request at a few capacities.

use super::pass::pass;
use super::{Recorder, ReuseRun};
use crate::error::Result;
use crate::progress::Progress;
use crate::trace::Trace;

/// Records the LRU hits of every request at given capacities (4 bytes per request and capacity).
#[derive(Debug)]
pub struct Slices {
    capacities: Vec<u64>,
    /// Per capacity, per request.
    hits: Vec<Vec<u32>>,
    now: Vec<u32>,
}

impl Slices {
    /// For capacities in blocks, in any order.
    #[must_use]
    pub fn new(capacities: &[u64]) -> Self {
        let hits = vec![Vec::new(); capacities.len()];
        Self { capacities: capacities.to_vec(), hits, now: vec![0; capacities.len()] }
    }

    /// Hit blocks per capacity and request, in the order of the capacities.
    #[must_use]
    pub fn into_hits(self) -> Vec<Vec<u32>> {
        self.hits
    }
}

impl Recorder for Slices {
    fn run(&mut self, run: ReuseRun) {
        for (&capacity, now) in self.capacities.iter().zip(&mut self.now) {
            *now += hits_of(run, capacity);
        }
    }

    fn request(&mut self, _: u32, _: u32) {
        for (hits, now) in self.hits.iter_mut().zip(&mut self.now) {
            hits.push(std::mem::take(now));
        }
    }
}

/// How many blocks of a run hit at a capacity.
pub(super) fn hits_of(run: ReuseRun, capacity_blocks: u64) -> u32 {
    capacity_blocks.saturating_sub(u64::from(run.above)).min(u64::from(run.len)) as u32
}

/// LRU hit blocks per capacity and request. With the cumulative capacities of [`super::exact_slices`] tier `k`
/// serves `hits[k][r] - hits[k - 1][r]` blocks of request `r`.
///
/// # Errors
/// As [`pass`].
pub fn slices(trace: &Trace, capacities: &[u64], progress: &Progress) -> Result<Vec<Vec<u32>>> {
    let mut slices = Slices::new(capacities);
    pass(trace, &mut slices, progress)?;
    Ok(slices.into_hits())
}
