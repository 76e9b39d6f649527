//! Least recently used: one queue, a hit moves a block to its newest end, the oldest block leaves.
//!
//! The rule of vLLM's free queue, `LMCache`'s default and most KV caches. With the tail-to-head pass the
//! head of a path is its most recent block, so contents are ancestor-closed without further care.

use super::parts::Queue;
use super::runs::{Order, store_run};
use super::spec::Args;
use super::{Build, Move, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::Result;
use crate::trace::Run;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "lru",
    doc: "evicts the block that was used longest ago",
    parameters: &[],
    source: "classic; vLLM free queue, LMCache LRU",
    build: |_: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        Ok(Box::new(Lru { slots: vec![0; build.blocks()], queue: Queue::new() }))
    },
};

struct Lru {
    slots: Vec<u32>,
    queue: Queue,
}

impl Policy for Lru {
    #[inline]
    fn hit(&mut self, block: u32, room: &Room<'_>) {
        self.queue.renew(&mut self.slots, block, room.exposed(block));
    }

    #[inline]
    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        if room.is_full() {
            victim = self.queue.evict(&self.slots, room);
            if victim.is_none() {
                return Stored::NoRoom;
            }
        }
        self.queue.push(&mut self.slots, block, room.exposed(block));
        Stored::Done { victim }
    }

    fn hit_run(&mut self, run: Run, order: Order, room: &mut Room<'_>) {
        self.queue.renew_run(&mut self.slots, run, order, room.exposed_run(run, order));
    }

    fn insert_run(&mut self, run: Run, order: Order, room: &mut Room<'_>, moves: &mut Vec<Move>) {
        let evict = |lru: &mut Self, next: Run, room: &Room<'_>| {
            lru.queue.evict_run(&lru.slots, room, next.len, order)
        };
        let push = |lru: &mut Self, run, exposed| lru.queue.push_run(&mut lru.slots, run, order, exposed);
        store_run(self, run, order, room, moves, evict, push);
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        self.queue.remove(&self.slots, block);
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        self.queue.expose(&self.slots, block, exposed);
    }

    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        self.queue.oldest(&self.slots, room)
    }

    /// A pass touches a parent after its child, and guards all of a path's blocks above a guarded one: the oldest
    /// block that is not guarded never has a resident child.
    fn closes_itself(&self) -> bool {
        true
    }

    fn content(&self) -> Vec<u32> {
        self.queue.iter().collect()
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        validate_content(&self.content(), room)
    }
}
