//! SIEVE: a FIFO queue whose hand passes over blocks used since it last came by.
//!
//! Zhang, Yang, Yue, Vigfusson, Rashmi, "SIEVE is Simpler than LRU: an Efficient Turn-Key Eviction Algorithm
//! for Web Caches", NSDI 2024. One queue, a bit per block. The hand starts at the oldest end and moves to
//! newer blocks; a visited block loses its bit and stays where it is, the first unvisited one leaves, and the
//! hand rests on its newer neighbour. Guarded and protected blocks are passed over with their bit unchanged.

use super::parts::{BitSet, Queue};
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
        let queue = Queue::new();
        Ok(Box::new(Sieve {
            slots: vec![0; build.blocks()],
            queue,
            visited: BitSet::new(build.topology.blocks()),
        }))
    },
};

struct Sieve {
    slots: Vec<u32>,
    queue: Queue,
    visited: BitSet,
}

impl Sieve {
    /// Takes out the first unvisited block from the hand on, round and round; bits on the way are cleared.
    #[inline]
    fn evict(&mut self, room: &Room<'_>) -> Option<u32> {
        let visited = &mut self.visited;
        self.queue.evict_swept(&self.slots, room, |block| {
            let was = visited.get(block);
            if was {
                visited.clear(block);
            }
            was
        })
    }
}

impl Policy for Sieve {
    #[inline]
    fn hit(&mut self, block: u32, _: &Room<'_>) {
        self.visited.set(block);
    }

    fn hit_run(&mut self, run: Run, _: &Room<'_>) {
        self.visited.set_range(run.start, run.len);
    }

    #[inline]
    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        if room.is_full() {
            victim = self.evict(room);
            if victim.is_none() {
                return Stored::NoRoom;
            }
        }
        self.queue.push(&mut self.slots, block, room.exposed(block));
        Stored::Done { victim }
    }

    fn insert_run(&mut self, run: Run, room: &mut Room<'_>, moves: &mut Vec<Move>) {
        let visited = &mut self.visited;
        let evict = |queue: &mut Queue, most| queue.evict_swept_run(visited, most);
        self.queue.store_run(&mut self.slots, run, room, moves, evict);
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        self.queue.remove_keeping_mark(&self.slots, block);
        self.visited.clear(block);
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        self.queue.expose(&self.slots, block, exposed);
    }

    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        self.queue.sweep(&self.slots, room, |_| false)
    }

    fn content(&self) -> Vec<u32> {
        self.queue.iter().collect()
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        if let Some(block) = self.visited.iter().find(|&block| !room.holds(block)) {
            return Err(format!("block {block} is marked as visited and not resident"));
        }
        validate_content(&self.content(), room)
    }
}
