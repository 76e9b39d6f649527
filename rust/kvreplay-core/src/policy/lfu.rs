//! Least frequently used, in-cache counts: the block with the fewest uses leaves, ties by last use.
//!
//! A block counts 1 when it comes in and one more with each hit; its count is forgotten when it leaves.
//! One tournament by (uses, last use).

use super::parts::{Ranked, Stamps, Tournament};
use super::spec::Args;
use super::{Build, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::Result;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "lfu",
    doc: "evicts the block with the fewest uses since it came in, ties by last use",
    parameters: &[],
    source: "classic; LMCache LFU",
    build: |_: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        Ok(Box::new(Lfu::new(build.blocks(), u32::BITS)))
    },
};

/// Uses above the last use.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Count(u64);

impl Ranked for Count {
    type Key = u64;

    #[inline]
    fn key(&self) -> u64 {
        self.0
    }
}

struct Lfu {
    order: Tournament<Count>,
    stamps: Stamps,
}

impl Lfu {
    fn new(blocks: usize, stamp_bits: u32) -> Self {
        Self { order: Tournament::new(blocks), stamps: Stamps::new(stamp_bits) }
    }

    #[inline]
    fn count(&mut self, uses: u32) -> Count {
        if self.stamps.are_spent() {
            let (low, high) = (u64::from(u32::MAX), u64::from(u32::MAX) << 32);
            self.stamps.renumber(
                self.order.items_mut(),
                1,
                |count, _| (count.0 & low) as u32,
                |count, _, stamp| count.0 = count.0 & high | u64::from(stamp),
            );
        }
        Count(u64::from(uses) << 32 | u64::from(self.stamps.take()))
    }
}

impl Policy for Lfu {
    fn hit(&mut self, block: u32, _: &Room<'_>) {
        let uses = (self.order.get(block).0 >> 32) as u32;
        let count = self.count(uses.saturating_add(1));
        self.order.update(block, count);
    }

    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        if room.is_full() {
            let Some(least) = self.order.smallest(room) else { return Stored::NoRoom };
            self.order.remove(least);
            victim = Some(least);
        }
        let count = self.count(1);
        self.order.push(block, count, room.exposed(block));
        Stored::Done { victim }
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        self.order.remove(block);
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        self.order.expose(block, exposed);
    }

    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        self.order.smallest(room)
    }

    fn content(&self) -> Vec<u32> {
        self.order.content()
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        validate_content(&self.content(), room)
    }
}

/// Bytes per tier of so many distinct blocks.
#[cfg(test)]
pub(super) fn bytes(blocks: usize) -> usize {
    Lfu::new(blocks, u32::BITS).order.bytes()
}

/// With stamps of few bits.
#[cfg(test)]
pub(super) fn with_stamps(blocks: usize, stamp_bits: u32) -> Box<dyn Policy> {
    Box::new(Lfu::new(blocks, stamp_bits))
}
