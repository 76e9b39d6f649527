//! Blocks in order of arrival, as FIFO and SIEVE keep them: as runs while whole runs come and go, else block by
//! block.
//!
//! In object mode nobody asks for a single block, so runs do, at a fraction of the time and memory. The first
//! call that needs the place of a block turns the order into a [`Queue`] with a slot per distinct block; from then
//! on it stays one.

use super::{BitSet, Queue, Room, RunQueue};
use crate::policy::Order;
use crate::trace::Run;

/// The order. A block is in it once.
#[derive(Debug)]
pub struct Arrivals {
    runs: RunQueue,
    /// Slot per distinct block; empty while the order is kept as runs.
    slots: Vec<u32>,
    queue: Queue,
    /// Number of distinct blocks.
    blocks: usize,
}

impl Arrivals {
    /// An empty order of blocks below `blocks`.
    #[must_use]
    pub fn new(blocks: usize) -> Self {
        Self { runs: RunQueue::default(), slots: Vec::new(), queue: Queue::new(), blocks }
    }

    /// The order block by block.
    #[inline]
    fn by_block(&mut self) -> (&mut [u32], &mut Queue) {
        if self.slots.is_empty() {
            self.turn();
        }
        (&mut self.slots, &mut self.queue)
    }

    #[cold]
    fn turn(&mut self) {
        self.slots = vec![0; self.blocks];
        let hand = self.runs.hand();
        for run in self.runs.iter() {
            // Where whole runs came and went, nothing protects a block.
            self.queue.push_run(&mut self.slots, run, Order::Forward, run.len);
        }
        if let Some(block) = hand {
            self.queue.set_mark(&self.slots, block);
        }
        self.runs = RunQueue::default();
    }

    /// Appends a block at the newest end.
    #[inline]
    pub fn push(&mut self, block: u32, exposed: bool) {
        let (slots, queue) = self.by_block();
        queue.push(slots, block, exposed);
    }

    /// Takes a block out; a hand that rests on it moves to its newer neighbour.
    pub fn remove(&mut self, block: u32) {
        let (slots, queue) = self.by_block();
        queue.remove_keeping_mark(slots, block);
    }

    /// See [`Queue::expose`].
    pub fn expose(&mut self, block: u32, exposed: bool) {
        let (slots, queue) = self.by_block();
        queue.expose(slots, block, exposed);
    }

    /// Takes out the oldest block that may leave.
    #[inline]
    pub fn evict(&mut self, room: &Room<'_>) -> Option<u32> {
        let (slots, queue) = self.by_block();
        queue.evict(slots, room)
    }

    /// The oldest block that may leave.
    pub fn oldest(&mut self, room: &Room<'_>) -> Option<u32> {
        let (slots, queue) = self.by_block();
        queue.oldest(slots, room)
    }

    /// Takes out the first block from the hand on that may leave and is not in `visited`, round and round; those
    /// passed are taken out of `visited`. The hand rests on its newer neighbour.
    #[inline]
    pub fn evict_swept(&mut self, visited: &mut BitSet, room: &Room<'_>) -> Option<u32> {
        let (slots, queue) = self.by_block();
        queue.evict_swept(slots, room, |block| {
            let was = visited.get(block);
            if was {
                visited.clear(block);
            }
            was
        })
    }

    /// The first block from the hand on that may leave, visited or not.
    pub fn at_hand(&mut self, room: &Room<'_>) -> Option<u32> {
        let (slots, queue) = self.by_block();
        queue.sweep(slots, room, |_| false)
    }

    /// Whether a step can be taken by runs.
    #[inline]
    fn by_runs(&self, order: Order) -> bool {
        order == Order::Forward && self.slots.is_empty()
    }

    /// See [`Queue::push_run`].
    #[inline]
    pub fn push_run(&mut self, run: Run, order: Order, exposed: u32) {
        if self.by_runs(order) {
            return self.runs.push(run);
        }
        let (slots, queue) = self.by_block();
        queue.push_run(slots, run, order, exposed);
    }

    /// Takes out the oldest blocks that may leave, as far as they are a run of at most `most`.
    #[inline]
    pub fn evict_run(&mut self, room: &Room<'_>, most: u32, order: Order) -> Option<Run> {
        if self.by_runs(order) {
            return self.runs.evict(most);
        }
        let (slots, queue) = self.by_block();
        queue.evict_run(slots, room, most, order)
    }

    /// Takes out what [`Arrivals::evict_swept`] would take one after the other while as many come in, as far as
    /// that is a run of at most `most`.
    #[inline]
    pub fn evict_swept_run(
        &mut self,
        visited: &mut BitSet,
        room: &Room<'_>,
        most: u32,
        order: Order,
    ) -> Option<Run> {
        if self.by_runs(order) {
            return self.runs.evict_swept(visited, most);
        }
        let (slots, queue) = self.by_block();
        queue.evict_swept_run(slots, room, visited, most, order)
    }

    /// Blocks from the newest to the oldest.
    #[must_use]
    pub fn content(&self) -> Vec<u32> {
        if !self.slots.is_empty() {
            return self.queue.iter().collect();
        }
        let mut blocks: Vec<u32> = self.runs.iter().flat_map(|run| run.start..run.start + run.len).collect();
        blocks.reverse();
        blocks
    }
}
