//! The order of the Greedy-Dual family: value = inflation + uses * worth, smallest leaves first.

use super::{Heap, Room};

/// Value, last use (unique, so no two keys are equal), uses.
type Key = (f64, u64, u32);

/// Resident blocks by value.
#[derive(Debug, Clone)]
pub struct GreedyDual {
    heap: Heap<Key>,
    /// Value of the last victim: what was not used since then ages against what is new.
    inflation: f64,
    clock: u64,
}

impl GreedyDual {
    /// An empty order for blocks below `blocks`.
    #[must_use]
    pub fn new(blocks: usize) -> Self {
        Self { heap: Heap::new(blocks), inflation: 0.0, clock: 0 }
    }

    fn key(&mut self, uses: u32, worth: f64) -> Key {
        self.clock += 1;
        (self.inflation + f64::from(uses) * worth, self.clock, uses)
    }

    /// A resident block is used.
    pub fn hit(&mut self, block: u32, worth: f64) {
        let uses = self.heap.key(block).2.saturating_add(1);
        let key = self.key(uses, worth);
        self.heap.update(block, key);
    }

    /// A block comes in, used once.
    pub fn push(&mut self, block: u32, worth: f64, exposed: bool) {
        let key = self.key(1, worth);
        self.heap.push(block, key, exposed);
    }

    /// Evicts the block of least value among those that may leave.
    pub fn evict(&mut self, room: &Room<'_>) -> Option<u32> {
        let victim = self.heap.smallest(room)?;
        self.inflation = self.heap.remove(victim).0;
        Some(victim)
    }

    /// The block [`GreedyDual::evict`] would take.
    pub fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        self.heap.smallest(room)
    }

    /// Takes a block out without an eviction.
    pub fn remove(&mut self, block: u32) {
        self.heap.remove(block);
    }

    /// See [`Heap::expose`].
    pub fn expose(&mut self, block: u32, exposed: bool) {
        self.heap.expose(block, exposed);
    }

    /// Resident blocks, the most valuable first.
    #[must_use]
    pub fn content(&self) -> Vec<u32> {
        self.heap.content()
    }
}
