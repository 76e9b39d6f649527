//! Least frequently used, in-cache counts: the block with the fewest uses leaves, ties by last use.
//!
//! A block counts 1 when it comes in and one more with each hit; its count is forgotten when it leaves.
//! One heap by (uses, last use).

use super::parts::Heap;
use super::spec::Args;
use super::{Build, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::Result;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "lfu",
    doc: "evicts the block with the fewest uses since it came in, ties by last use",
    parameters: &[],
    source: "classic; LMCache LFU",
    build: |_: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        Ok(Box::new(Lfu { heap: Heap::new(build.blocks()), clock: 0 }))
    },
};

struct Lfu {
    heap: Heap<(u32, u64)>,
    clock: u64,
}

impl Lfu {
    fn now(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }
}

impl Policy for Lfu {
    fn hit(&mut self, block: u32, _: &Room<'_>) {
        let key = (self.heap.key(block).0.saturating_add(1), self.now());
        self.heap.update(block, key);
    }

    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        if room.is_full() {
            let Some(least) = self.heap.smallest(room) else { return Stored::NoRoom };
            self.heap.remove(least);
            victim = Some(least);
        }
        let key = (1, self.now());
        self.heap.push(block, key, room.exposed(block));
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
