//! The default inactive order of `kvbm-logical`: only blocks without inactive children leave, oldest first
//! (`inactive/backends/lineage.rs` @14eb663).
//!
//! A block that left may still hold a place in the graph, as a ghost, while blocks hang below it. Ticks only rise,
//! so a tick is a slot in a row of nodes, and a tree of bits finds the first slot with a leaf.

use crate::policy::parts::{BitTree, NONE};

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
    /// Per node: its slot; [`NONE`] of a node that is not here.
    slot: Vec<u32>,
    parent: Vec<u32>,
    /// Whether the node is one of its parent's children.
    linked: Vec<bool>,
    children: Vec<u32>,
    /// Nodes in the order of their ticks; [`NONE`] where one left.
    row: Vec<u32>,
    /// Slots whose node is a leaf.
    leaves: BitTree,
    len: usize,
}

/// Slots before the first packing.
const SMALLEST: usize = 64;

impl Lineage {
    /// An empty graph over so many nodes.
    pub(super) fn new(nodes: u32, releaf: Releaf) -> Self {
        let nodes = nodes as usize;
        Self {
            releaf,
            slot: vec![NONE; nodes],
            parent: vec![NONE; nodes],
            linked: vec![false; nodes],
            children: vec![0; nodes],
            row: Vec::new(),
            leaves: BitTree::new(SMALLEST),
            len: 0,
        }
    }

    /// One more node.
    pub(super) fn add(&mut self) {
        self.slot.push(NONE);
        self.parent.push(NONE);
        self.linked.push(false);
        self.children.push(0);
    }

    /// A block becomes inactive, below a node or ([`NONE`]) at the root.
    pub(super) fn insert(&mut self, node: u32, parent: u32) {
        let at = node as usize;
        self.append(node);
        self.len += 1;
        if parent != NONE && !self.linked[at] {
            (self.linked[at], self.parent[at]) = (true, parent);
            self.children[parent as usize] += 1;
            if self.children[parent as usize] == 1 && self.is_real(parent) {
                self.leaves.clear(self.slot[parent as usize] as usize);
            }
        }
        if self.children[at] == 0 {
            self.leaves.set(self.slot[at] as usize);
        }
    }

    fn is_real(&self, node: u32) -> bool {
        self.slot[node as usize] != NONE
    }

    /// Gives a node the newest slot.
    fn append(&mut self, node: u32) {
        if self.row.len() == self.leaves.limit() {
            self.pack();
        }
        self.slot[node as usize] = self.row.len() as u32;
        self.row.push(node);
    }

    /// Closes the gaps and leaves as much room again.
    #[cold]
    fn pack(&mut self) {
        let mut leaves = BitTree::new((2 * self.len).max(SMALLEST));
        let mut row = Vec::with_capacity(leaves.limit());
        for (old, &node) in self.row.iter().enumerate().filter(|(_, node)| **node != NONE) {
            if self.leaves.get(old) {
                leaves.set(row.len());
            }
            self.slot[node as usize] = row.len() as u32;
            row.push(node);
        }
        (self.row, self.leaves) = (row, leaves);
    }

    /// Empties the slot of a node.
    fn vacate(&mut self, node: u32) {
        let slot = std::mem::replace(&mut self.slot[node as usize], NONE) as usize;
        self.row[slot] = NONE;
        self.leaves.clear(slot);
    }

    /// A block stops being inactive.
    pub(super) fn remove(&mut self, node: u32) {
        self.vacate(node);
        self.len -= 1;
        let mut at = node;
        while !self.is_real(at) && self.children[at as usize] == 0 && self.linked[at as usize] {
            self.linked[at as usize] = false;
            at = self.parent[at as usize];
            self.children[at as usize] -= 1;
            if self.children[at as usize] == 0 && self.is_real(at) {
                if self.releaf == Releaf::Fifo {
                    self.vacate(at);
                    self.append(at);
                }
                self.leaves.set(self.slot[at as usize] as usize);
            }
        }
    }

    /// Takes the oldest leaf.
    pub(super) fn evict(&mut self) -> Option<u32> {
        let node = self.row[self.leaves.next(0)?];
        self.remove(node);
        Some(node)
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
            if !self.is_real(node as u32) && self.children[node] == 0 {
                return Err(format!("node {node} is a ghost without children"));
            }
        }
        if children != self.children {
            return Err("children are miscounted".to_owned());
        }
        let is_node = |(node, &slot): (usize, &u32)| slot == NONE || self.row[slot as usize] == node as u32;
        if !self.slot.iter().enumerate().all(is_node) {
            return Err("a slot holds another node".to_owned());
        }
        let real = self.slot.iter().filter(|slot| **slot != NONE).count();
        if real == self.len { Ok(()) } else { Err(format!("{real} inactive blocks, counted {}", self.len)) }
    }
}
