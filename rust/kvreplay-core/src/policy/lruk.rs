//! LRU-K: the block whose k-th last use is longest ago leaves; fewer than k uses count as never.
//!
//! O'Neil, O'Neil, Weikum, "The LRU-K Page Replacement Algorithm for Database Disk Buffering", SIGMOD 1993.
//! One tournament by (k-th last use, last use), with 4 bytes per use. Where we differ: no history is kept of
//! blocks that left (the retained information period is zero), and there is no correlated reference period.

use super::parts::{Ranked, Stamps, Tournament};
use super::spec::{Args, Param};
use super::{Build, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::{Error, Result};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "lruk",
    doc: "evicts the block whose k-th last use is longest ago",
    parameters: &[Param { name: "k", default: "2", doc: "which use counts, from the last, 1 to 4" }],
    source: "O'Neil et al., SIGMOD 1993",
    build: |args: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        let uses_most: usize = args.number("k", 1..=4)?;
        // Times of use are told apart by 32 bits; half of them stay free, so that renumbering is rare.
        if uses_most * build.blocks().min(build.capacity as usize) > 1 << 31 {
            return Err(Error::config(
                format!("lruk: k={uses_most} uses of each of so many blocks are too many"),
                "k times the blocks of the tier is at most 2,147,483,648: lower k or the capacity",
            ));
        }
        Ok(match uses_most {
            1 => Box::new(LruK::<1>::new(build.blocks(), u32::BITS)),
            2 => Box::new(LruK::<2>::new(build.blocks(), u32::BITS)),
            3 => Box::new(LruK::<3>::new(build.blocks(), u32::BITS)),
            _ => Box::new(LruK::<4>::new(build.blocks(), u32::BITS)),
        })
    },
};

/// The last uses, latest first; 0 = none.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Uses<const K: usize>([u32; K]);

impl<const K: usize> Default for Uses<K> {
    fn default() -> Self {
        Self([0; K])
    }
}

impl<const K: usize> Ranked for Uses<K> {
    type Key = u64;

    #[inline]
    fn key(&self) -> u64 {
        u64::from(self.0[K - 1]) << 32 | u64::from(self.0[0])
    }
}

struct LruK<const K: usize> {
    order: Tournament<Uses<K>>,
    stamps: Stamps,
}

impl<const K: usize> LruK<K> {
    fn new(blocks: usize, stamp_bits: u32) -> Self {
        Self { order: Tournament::new(blocks), stamps: Stamps::new(stamp_bits) }
    }

    /// The stamp of a use. What is kept may be renumbered by this.
    #[inline]
    fn stamp(&mut self) -> u32 {
        if self.stamps.are_spent() {
            let items = self.order.items_mut();
            self.stamps.renumber(items, K, |uses, i| uses.0[i], |uses, i, stamp| uses.0[i] = stamp);
        }
        self.stamps.take()
    }
}

impl<const K: usize> Policy for LruK<K> {
    fn hit(&mut self, block: u32, _: &Room<'_>) {
        let now = self.stamp();
        let mut uses = self.order.get(block);
        uses.0.rotate_right(1);
        uses.0[0] = now;
        self.order.update(block, uses);
    }

    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        if room.is_full() {
            let Some(least) = self.order.smallest(room) else { return Stored::NoRoom };
            self.order.remove(least);
            victim = Some(least);
        }
        let mut uses = Uses::default();
        uses.0[0] = self.stamp();
        self.order.push(block, uses, room.exposed(block));
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
pub(super) fn bytes<const K: usize>(blocks: usize) -> usize {
    LruK::<K>::new(blocks, u32::BITS).order.bytes()
}

/// With stamps of few bits.
#[cfg(test)]
pub(super) fn with_stamps<const K: usize>(blocks: usize, stamp_bits: u32) -> Box<dyn Policy> {
    Box::new(LruK::<K>::new(blocks, stamp_bits))
}
