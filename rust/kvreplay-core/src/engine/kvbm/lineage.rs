//! The default inactive order of `kvbm-logical`: only blocks without inactive children leave, oldest first
//! (`inactive/backends/lineage.rs` @14eb663).
//!
//! A block that left may still hold a place in the graph, as a ghost, while blocks hang below it.

use crate::policy::parts::NONE;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Which tick a block gets that becomes a leaf again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Releaf {
    /// The one it came with, so that it usually is the next to leave.
    Tick,
    /// A new one: it goes behind all others.
    Fifo,
}

/// The graph of inactive blocks.
#[derive(Debug, Clone)]
pub(super) struct Lineage {
    releaf: Releaf,
    /// Per node: here or not.
    real: Vec<bool>,
    tick: Vec<u64>,
    parent: Vec<u32>,
    /// Whether the node is one of its parent's children.
    linked: Vec<bool>,
    children: Vec<u32>,
    /// Leaves by tick; entries that are no leaf with that tick any more are stale.
    leaves: BinaryHeap<Reverse<(u64, u32)>>,
    now: u64,
    len: usize,
}

impl Lineage {
    /// An empty graph over so many nodes.
    pub(super) fn new(nodes: u32, releaf: Releaf) -> Self {
        let nodes = nodes as usize;
        Self {
            releaf,
            real: vec![false; nodes],
            tick: vec![0; nodes],
            parent: vec![NONE; nodes],
            linked: vec![false; nodes],
            children: vec![0; nodes],
            leaves: BinaryHeap::new(),
            now: 0,
            len: 0,
        }
    }

    /// One more node.
    pub(super) fn add(&mut self) {
        self.real.push(false);
        self.tick.push(0);
        self.parent.push(NONE);
        self.linked.push(false);
        self.children.push(0);
    }

    /// A block becomes inactive, below a node or ([`NONE`]) at the root.
    pub(super) fn insert(&mut self, node: u32, parent: u32) {
        let at = node as usize;
        self.now += 1;
        (self.real[at], self.tick[at]) = (true, self.now);
        self.len += 1;
        if parent != NONE && !self.linked[at] {
            (self.linked[at], self.parent[at]) = (true, parent);
            // A parent that was a leaf is none now; its entry goes stale.
            self.children[parent as usize] += 1;
        }
        if self.children[at] == 0 {
            self.push(node);
        }
    }

    fn push(&mut self, node: u32) {
        self.leaves.push(Reverse((self.tick[node as usize], node)));
        if self.leaves.len() > 2 * self.len + 64 {
            let leaves = std::mem::take(&mut self.leaves);
            self.leaves =
                leaves.into_iter().filter(|&Reverse((tick, node))| self.is_leaf(node, tick)).collect();
        }
    }

    fn is_leaf(&self, node: u32, tick: u64) -> bool {
        let at = node as usize;
        self.real[at] && self.children[at] == 0 && self.tick[at] == tick
    }

    /// A block stops being inactive.
    pub(super) fn remove(&mut self, node: u32) {
        self.real[node as usize] = false;
        self.len -= 1;
        let mut at = node;
        while !self.real[at as usize] && self.children[at as usize] == 0 && self.linked[at as usize] {
            self.linked[at as usize] = false;
            at = self.parent[at as usize];
            self.children[at as usize] -= 1;
            if self.children[at as usize] == 0 && self.real[at as usize] {
                if self.releaf == Releaf::Fifo {
                    self.now += 1;
                    self.tick[at as usize] = self.now;
                }
                self.push(at);
            }
        }
    }

    /// Takes the oldest leaf.
    pub(super) fn evict(&mut self) -> Option<u32> {
        while let Some(Reverse((tick, node))) = self.leaves.pop() {
            if self.is_leaf(node, tick) {
                self.remove(node);
                return Some(node);
            }
        }
        None
    }

    /// Inactive blocks, the last to leave first.
    pub(super) fn last_first(&self) -> Vec<u32> {
        let mut copy = self.clone();
        let mut order: Vec<u32> = std::iter::from_fn(|| copy.evict()).collect();
        order.reverse();
        order
    }

    /// Checks the counts of children.
    pub(super) fn validate(&self) -> Result<(), String> {
        let mut children = vec![0; self.children.len()];
        for (node, _) in self.linked.iter().enumerate().filter(|(_, linked)| **linked) {
            children[self.parent[node] as usize] += 1;
            if !self.real[node] && self.children[node] == 0 {
                return Err(format!("node {node} is a ghost without children"));
            }
        }
        if children != self.children {
            return Err("children are miscounted".to_owned());
        }
        let real = self.real.iter().filter(|real| **real).count();
        if real == self.len { Ok(()) } else { Err(format!("{real} inactive blocks, counted {}", self.len)) }
    }
}
