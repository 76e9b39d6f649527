//! SIEVE: a FIFO queue whose hand passes over blocks used since it last came by.
//!
//! Zhang, Yang, Yue, Vigfusson, Rashmi, "SIEVE is Simpler than LRU: an Efficient Turn-Key Eviction Algorithm
//! for Web Caches", NSDI 2024. One queue, a bit per block. The hand starts at the oldest end and moves to
//! newer blocks; a visited block loses its bit and stays where it is, the first unvisited one leaves, and the
//! hand rests on its newer neighbour. Guarded and protected blocks are passed over with their bit unchanged.

use super::parts::{Arrivals, BitSet};
use super::runs::{Order, store_run};
use super::spec::Args;
use super::{Build, Move, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::Result;
use crate::trace::Run;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "sieve",
    doc: "one FIFO queue; a hand evicts the first block not used since it last passed",
    parameters: &[],
    source: "Zhang et al., NSDI 2024",
    build: |_: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        let visited = BitSet::new(build.topology.blocks());
        Ok(Box::new(Sieve { queue: Arrivals::new(build.blocks()), visited }))
    },
};

struct Sieve {
    queue: Arrivals,
    visited: BitSet,
}

impl Policy for Sieve {
    #[inline]
    fn hit(&mut self, block: u32, _: &Room<'_>) {
        self.visited.set(block);
    }

    fn hit_run(&mut self, run: Run, _: Order, _: &mut Room<'_>) {
        self.visited.set_range(run.start, run.len);
    }

    #[inline]
    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        if room.is_full() {
            victim = self.queue.evict_swept(&mut self.visited, room);
            if victim.is_none() {
                return Stored::NoRoom;
            }
        }
        self.queue.push(block, room.exposed(block));
        Stored::Done { victim }
    }

    fn insert_run(&mut self, run: Run, order: Order, room: &mut Room<'_>, moves: &mut Vec<Move>) {
        let evict = |sieve: &mut Self, next: Run, room: &Room<'_>| {
            sieve.queue.evict_swept_run(&mut sieve.visited, room, next.len, order)
        };
        let push = |sieve: &mut Self, run, exposed| sieve.queue.push_run(run, order, exposed);
        store_run(self, run, order, room, moves, evict, push);
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        self.queue.remove(block);
        self.visited.clear(block);
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        self.queue.expose(block, exposed);
    }

    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        self.queue.at_hand(room)
    }

    fn content(&self) -> Vec<u32> {
        self.queue.content()
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        if let Some(block) = self.visited.iter().find(|&block| !room.holds(block)) {
            return Err(format!("block {block} is marked as visited and not resident"));
        }
        validate_content(&self.content(), room)
    }
}
