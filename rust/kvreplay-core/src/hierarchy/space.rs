//! Spaces: the units a tier stores. The trace's own blocks, or chunks of n blocks named by their last one.
//!
//! Chunks of a forest form a forest themselves: chain by chain, the blocks whose depth is a multiple of n.
//! A tier of chunks is therefore replayed by the same code on another forest.

use crate::trace::{Forest, NO_CHAIN, Node, Run};
use std::borrow::Cow;

/// Units of one size.
#[derive(Debug)]
pub struct Space<'a> {
    base: &'a Forest,
    forest: Cow<'a, Forest>,
    chunk_blocks: u32,
    /// Chain of chunks per chain of blocks, [`NO_CHAIN`] where none ends in it; empty for blocks.
    chunked: Vec<u32>,
    /// Chain of blocks per chain of chunks; empty for blocks.
    origin: Vec<u32>,
}

impl<'a> Space<'a> {
    /// The units of `chunk_blocks` blocks of a forest.
    #[must_use]
    pub fn new(base: &'a Forest, chunk_blocks: u32) -> Self {
        if chunk_blocks <= 1 {
            let forest = Cow::Borrowed(base);
            return Self { base, forest, chunk_blocks: 1, chunked: Vec::new(), origin: Vec::new() };
        }
        let mut space = Self {
            base,
            forest: Cow::Owned(Forest::default()),
            chunk_blocks,
            chunked: Vec::with_capacity(base.chains()),
            origin: Vec::new(),
        };
        let mut forest = Forest::default();
        for chain in 0..base.chains() as u32 {
            let above = base.depth(chain) / chunk_blocks;
            let chunks = (base.depth(chain) + base.chain_len(chain)) / chunk_blocks - above;
            if chunks == 0 {
                space.chunked.push(NO_CHAIN);
                continue;
            }
            // Parents come before their children, so the map of the parent is known.
            let parent = space.node(base.parent(chain));
            space.chunked.push(forest.chains() as u32);
            space.origin.push(chain);
            forest.start.push(forest.blocks() + chunks);
            forest.parent.push(parent);
            forest.depth.push(above);
        }
        space.forest = Cow::Owned(forest);
        space
    }

    /// The forest of the units.
    #[must_use]
    pub fn forest(&self) -> &Forest {
        &self.forest
    }

    /// Blocks per unit.
    #[must_use]
    pub fn chunk_blocks(&self) -> u32 {
        self.chunk_blocks
    }

    /// The units of a path: whole chunks only.
    #[must_use]
    pub fn node(&self, node: Node) -> Node {
        if self.chunk_blocks == 1 {
            return node;
        }
        let whole = self.base.path_len(node) / self.chunk_blocks;
        let at = self.base.truncate(node, whole * self.chunk_blocks);
        if whole == 0 || at.is_empty() {
            return Node::EMPTY;
        }
        let above = self.base.depth(at.chain) / self.chunk_blocks;
        Node { chain: self.chunked[at.chain as usize], len: whole - above }
    }

    /// The last block of a unit.
    #[must_use]
    pub fn block_of(&self, unit: u32) -> u32 {
        if self.chunk_blocks == 1 {
            return unit;
        }
        let chunks = self.forest.chain_of(unit);
        let chain = self.origin[chunks as usize];
        let depth = (self.forest.depth(chunks) + unit - self.forest.first(chunks) + 1) * self.chunk_blocks;
        self.base.first(chain) + depth - self.base.depth(chain) - 1
    }

    /// The unit whose last block is `block`, if a unit ends there.
    #[must_use]
    pub fn unit_ending_at(&self, block: u32) -> Option<u32> {
        if self.chunk_blocks == 1 {
            return Some(block);
        }
        let chain = self.base.chain_of(block);
        let depth = self.base.depth(chain) + block - self.base.first(chain) + 1;
        if !depth.is_multiple_of(self.chunk_blocks) {
            return None;
        }
        let chunks = self.chunked[chain as usize];
        Some(self.forest.first(chunks) + depth / self.chunk_blocks - self.forest.depth(chunks) - 1)
    }
}

/// The path of the request now served, in one space.
#[derive(Debug, Default)]
pub(super) struct Path {
    pub(super) runs: Vec<Run>,
    /// Unit by unit, where that is needed.
    pub(super) list: Vec<u32>,
    pub(super) units: u32,
}

impl Path {
    pub(super) fn read(&mut self, space: &Space<'_>, node: Node, expand: bool) {
        let node = space.node(node);
        self.units = space.forest().path_len(node);
        space.forest().runs(node, &mut self.runs);
        if expand {
            self.list.clear();
            for run in &self.runs {
                self.list.extend(run.start..run.start + run.len);
            }
        }
    }
}

/// The part of `runs` at positions `from..to`.
pub(super) fn part(runs: &[Run], from: u32, to: u32) -> impl Iterator<Item = Run> + '_ {
    let mut at = 0;
    runs.iter().filter_map(move |run| {
        let (begin, end) = (from.clamp(at, at + run.len), to.clamp(at, at + run.len));
        let piece = Run { start: run.start + (begin - at), len: end.saturating_sub(begin) };
        at += run.len;
        (piece.len > 0).then_some(piece)
    })
}
