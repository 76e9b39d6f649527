//! First in, first out: one queue, a hit changes nothing, the block that came first leaves.
//!
//! The cheapest policy and the baseline of the lazy-promotion ones (S3-FIFO, SIEVE). The pass inserts the
//! tail of a path before its head.

use super::parts::Arrivals;
use super::runs::{Order, store_run};
use super::spec::Args;
use super::{Build, Move, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::Result;
use crate::trace::Run;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "fifo",
    doc: "evicts the block that came first, whatever its use",
    parameters: &[],
    source: "classic; LMCache FIFO",
    build: |_: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        Ok(Box::new(Fifo { queue: Arrivals::new(build.blocks()) }))
    },
};

struct Fifo {
    queue: Arrivals,
}

impl Policy for Fifo {
    #[inline]
    fn hit(&mut self, _: u32, _: &Room<'_>) {}

    fn hit_run(&mut self, _: Run, _: Order, _: &mut Room<'_>) {}

    #[inline]
    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        if room.is_full() {
            victim = self.queue.evict(room);
            if victim.is_none() {
                return Stored::NoRoom;
            }
        }
        self.queue.push(block, room.exposed(block));
        Stored::Done { victim }
    }

    fn insert_run(&mut self, run: Run, order: Order, room: &mut Room<'_>, moves: &mut Vec<Move>) {
        let evict = |fifo: &mut Self, next: Run, room: &Room<'_>| fifo.queue.evict_run(room, next.len, order);
        let push = |fifo: &mut Self, run, exposed| fifo.queue.push_run(run, order, exposed);
        store_run(self, run, order, room, moves, evict, push);
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        self.queue.remove(block);
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        self.queue.expose(block, exposed);
    }

    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        self.queue.oldest(room)
    }

    fn content(&self) -> Vec<u32> {
        self.queue.content()
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        validate_content(&self.content(), room)
    }
}
