//! The ceiling: hits of an endless cache, which are simply the blocks seen before.
//!
//! Kept apart from the pass on purpose: it needs no stack, and the two are held against each other in tests.

use crate::trace::{Forest, Node, Trace};

/// Which blocks of a forest were seen: per chain, how many of its first blocks.
#[derive(Debug)]
pub struct Seen {
    blocks: Vec<u32>,
}

impl Seen {
    /// Nothing seen.
    #[must_use]
    pub fn new(forest: &Forest) -> Self {
        Self { blocks: vec![0; forest.chains()] }
    }

    /// Sees a path and returns how many of its first blocks were seen before.
    ///
    /// What was seen is closed under ancestors, so the walk ends at the first chain with a seen block.
    pub fn add(&mut self, forest: &Forest, node: Node) -> u32 {
        let mut at = node;
        while !at.is_empty() {
            let seen = &mut self.blocks[at.chain as usize];
            let before = *seen;
            *seen = before.max(at.len);
            if before > 0 {
                return forest.depth(at.chain) + before.min(at.len);
            }
            at = forest.parent(at.chain);
        }
        0
    }
}

/// Hit blocks per request with an endless cache: the blocks of its path that an earlier request held.
#[must_use]
pub fn ceiling(trace: &Trace) -> Vec<u32> {
    let mut seen = Seen::new(&trace.forest);
    trace.requests.node.iter().map(|&node| seen.add(&trace.forest, node)).collect()
}
