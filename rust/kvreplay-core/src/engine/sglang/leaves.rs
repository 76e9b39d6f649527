//! The leaves of a tree in the order in which they would be evicted.

use super::strategy::Rank;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A heap of (rank, node) with the smallest on top. Entries may be outdated: the tree asks whether what comes
/// to the top still holds, and puts a node in again when its rank changes.
#[derive(Debug, Default)]
pub(super) struct Leaves(BinaryHeap<Reverse<(Rank, u32)>>);

impl Leaves {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn push(&mut self, rank: Rank, node: u32) {
        self.0.push(Reverse((rank, node)));
    }

    pub(super) fn pop(&mut self) -> Option<(Rank, u32)> {
        self.0.pop().map(|Reverse(entry)| entry)
    }
}
