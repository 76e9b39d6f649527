//! LRU-K: the block whose k-th last use is longest ago leaves; fewer than k uses count as never.
//!
//! O'Neil, O'Neil, Weikum, "The LRU-K Page Replacement Algorithm for Database Disk Buffering", SIGMOD 1993.
//! One heap by (k-th last use, last use). Where we differ: no history is kept of blocks that left (the
//! retained information period is zero), and there is no correlated reference period.

use super::parts::Heap;
use super::spec::{Args, Param};
use super::{Build, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::Result;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "lruk",
    doc: "evicts the block whose k-th last use is longest ago",
    parameters: &[Param { name: "k", default: "2", doc: "which use counts, from the last, 1 to 4" }],
    source: "O'Neil et al., SIGMOD 1993",
    build: |args: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        Ok(Box::new(LruK { heap: Heap::new(build.blocks()), k: args.number("k", 1..=MOST)?, clock: 0 }))
    },
};

/// The last four uses, latest first; -1 = none.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Uses {
    times: [i64; MOST],
    k: usize,
}

const MOST: usize = 4;

impl PartialOrd for Uses {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        (self.times[self.k - 1], self.times[0]).partial_cmp(&(other.times[other.k - 1], other.times[0]))
    }
}

struct LruK {
    heap: Heap<Uses>,
    k: usize,
    clock: i64,
}

impl LruK {
    fn use_now(&mut self, before: [i64; MOST]) -> Uses {
        let mut times = [self.clock; MOST];
        times[1..].copy_from_slice(&before[..MOST - 1]);
        self.clock += 1;
        Uses { times, k: self.k }
    }
}

impl Policy for LruK {
    fn hit(&mut self, block: u32, _: &Room<'_>) {
        let uses = self.use_now(self.heap.key(block).times);
        self.heap.update(block, uses);
    }

    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        if room.is_full() {
            let Some(least) = self.heap.smallest(room) else { return Stored::NoRoom };
            self.heap.remove(least);
            victim = Some(least);
        }
        let uses = self.use_now([-1; MOST]);
        self.heap.push(block, uses, room.exposed(block));
        Stored::Done { victim }
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        self.heap.remove(block);
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        self.heap.expose(block, exposed);
    }

    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        self.heap.smallest(room)
    }

    fn content(&self) -> Vec<u32> {
        self.heap.content()
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        validate_content(&self.content(), room)
    }
}
