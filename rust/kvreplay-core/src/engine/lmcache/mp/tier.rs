//! One tier of the multi-process server: L1 in memory or an L2 adapter.

use super::order::Order;
use crate::engine::parts::Member;
use crate::engine::{Cause, Recorder};
use crate::policy::parts::BitSet;

/// When a tier evicts, and how much.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Watermark {
    /// Share of the capacity in use from which the loop evicts.
    pub trigger: f64,
    /// Share of the chunks it evicts then.
    pub ratio: f64,
}

/// The chunks of a tier.
#[derive(Debug)]
pub(super) struct Tier {
    /// Position among the tiers of the replay.
    at: usize,
    capacity_chunks: u64,
    /// `None` under `noop`.
    watermark: Option<Watermark>,
    resident: BitSet,
    pub(super) order: Order,
}

impl Tier {
    pub(super) fn new(
        at: usize,
        capacity_chunks: u64,
        watermark: Option<Watermark>,
        order: Order,
        blocks: u32,
    ) -> Self {
        Self { at, capacity_chunks, watermark, resident: BitSet::new(blocks), order }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    #[inline]
    pub(super) fn has(&self, chunk: u32) -> bool {
        self.resident.get(chunk)
    }

    /// Chunks that fit beside those resident.
    pub(super) fn free(&self) -> u64 {
        self.capacity_chunks - self.order.len()
    }

    /// Adds absent chunks, `unnamed` ones behind them, tail to head.
    pub(super) fn add(
        &mut self,
        chunks: &[u32],
        unnamed: u64,
        frequent_if_ghost: bool,
        cause: Cause,
        out: &mut Recorder,
    ) {
        self.order.create_unnamed(unnamed);
        out.insert_unnamed_run(self.at, unnamed, cause);
        for &chunk in chunks.iter().rev() {
            self.order.create(chunk, frequent_if_ghost);
            self.resident.set(chunk);
            out.insert(self.at, chunk, cause);
        }
    }

    /// Chunks that were staged stay.
    pub(super) fn keep(&mut self, staged: &[u32], out: &mut Recorder) {
        for &chunk in staged {
            self.resident.set(chunk);
            out.insert(self.at, chunk, Cause::Promotion);
        }
    }

    /// Deletes what [`Self::add`] has just added.
    pub(super) fn take_back(&mut self, chunks: &[u32], unnamed: u64, out: &mut Recorder) {
        for &chunk in chunks {
            self.order.delete(chunk);
            self.resident.clear(chunk);
            out.evict(self.at, chunk);
        }
        self.order.delete_newest_unnamed(unnamed);
        out.evict_unnamed_run(self.at, unnamed);
    }

    /// One turn of the eviction loop.
    pub(super) fn tick(&mut self, out: &mut Recorder) {
        let Some(watermark) = self.watermark else { return };
        let used = self.order.len();
        if used == 0 || (used as f64 / self.capacity_chunks as f64) < watermark.trigger {
            return;
        }
        let share = (used as f64 * watermark.ratio) as u64;
        let count = if watermark.ratio > 0.0 { share.max(1) } else { 0 };
        let (at, resident) = (self.at, &mut self.resident);
        self.order.evict(count, |member| match member {
            Member::Named(chunk) => {
                resident.clear(chunk);
                out.evict(at, chunk);
            }
            Member::Unnamed(count) => out.evict_unnamed_run(at, count),
        });
    }

    /// Checks the tier between requests.
    pub(super) fn validate(&self) -> Result<(), String> {
        let mut content = self.order.content();
        content.sort_unstable();
        if self.order.len() > self.capacity_chunks || self.resident.iter().ne(content) {
            return Err(format!("tier {}: the order does not list what is resident", self.at));
        }
        self.order.validate()
    }
}
