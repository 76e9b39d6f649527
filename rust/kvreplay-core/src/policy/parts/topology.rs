//! Who is above and below whom: what closure and the parent rule ask, in a fraction of a byte per block.
//!
//! Inside a chain the parent of a block is the number before it; only heads of chains need a look-up, by
//! rank in a bit set. Likewise a block has children other than the next of its chain only where a chain
//! hangs below it (a *fork*), and only forks need a counter.

use super::{BitSet, NONE};
use crate::trace::{Forest, Node, Run};

/// Parents and forks of a forest.
#[derive(Debug)]
pub struct Topology<'a> {
    forest: &'a Forest,
    heads: BitSet,
    head_ranks: Vec<u32>,
    forks: BitSet,
    fork_ranks: Vec<u32>,
    /// The block a fork is.
    fork_block: Vec<u32>,
    /// The fork each chain hangs below, [`NONE`] for a root chain.
    fork_of_chain: Vec<u32>,
}

impl<'a> Topology<'a> {
    /// Reads the forest once: O(chains + blocks / 64).
    #[must_use]
    pub fn new(forest: &'a Forest) -> Self {
        let blocks = forest.blocks();
        let (mut heads, mut forks) = (BitSet::new(blocks), BitSet::new(blocks));
        for chain in 0..forest.chains() as u32 {
            if forest.chain_len(chain) > 0 {
                heads.set(forest.first(chain));
            }
            if let Some(parent) = last_block(forest, forest.parent(chain)) {
                forks.set(parent);
            }
        }
        let (head_ranks, fork_ranks) = (heads.ranks(), forks.ranks());
        let fork_of_chain = (0..forest.chains() as u32)
            .map(|chain| {
                last_block(forest, forest.parent(chain)).map_or(NONE, |p| forks.rank(&fork_ranks, p))
            })
            .collect();
        let fork_block = forks.iter().collect();
        Self { forest, heads, head_ranks, forks, fork_ranks, fork_block, fork_of_chain }
    }

    /// The forest it describes.
    #[must_use]
    pub fn forest(&self) -> &'a Forest {
        self.forest
    }

    /// Number of blocks.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.forest.blocks()
    }

    /// The chain that holds a block.
    #[must_use]
    pub fn chain_of(&self, block: u32) -> u32 {
        // Chains are never empty in a forest, so the rank among heads is the chain.
        self.heads.rank(&self.head_ranks, block) - u32::from(!self.heads.get(block))
    }

    /// The block above, `None` for a root.
    #[inline]
    #[must_use]
    pub fn parent(&self, block: u32) -> Option<u32> {
        if self.heads.get(block) { self.head_parent(block) } else { Some(block - 1) }
    }

    fn head_parent(&self, block: u32) -> Option<u32> {
        last_block(self.forest, self.forest.parent(self.heads.rank(&self.head_ranks, block)))
    }

    /// Place on its path, from 1.
    #[must_use]
    pub fn depth(&self, block: u32) -> u32 {
        let chain = self.chain_of(block);
        self.forest.depth(chain) + (block - self.forest.first(chain)) + 1
    }

    /// Whether the block starts a chain.
    #[inline]
    #[must_use]
    pub fn is_head(&self, block: u32) -> bool {
        self.heads.get(block)
    }

    /// Number of forks.
    #[must_use]
    pub fn fork_count(&self) -> usize {
        self.fork_block.len()
    }

    /// The block a fork is.
    #[must_use]
    pub fn fork_block(&self, fork: usize) -> u32 {
        self.fork_block[fork]
    }

    /// The fork that the chain of a head hangs below, `None` for a root.
    #[inline]
    #[must_use]
    pub fn fork_above_head(&self, head: u32) -> Option<usize> {
        let fork = self.fork_of_chain[self.heads.rank(&self.head_ranks, head) as usize];
        (fork != NONE).then_some(fork as usize)
    }

    /// The number of the fork a block is, if chains hang below it.
    #[inline]
    #[must_use]
    pub fn fork(&self, block: u32) -> Option<usize> {
        self.forks.get(block).then(|| self.forks.rank(&self.fork_ranks, block) as usize)
    }

    /// How many of the last blocks of a run hang one below the other with nothing else beside them: no chain hangs
    /// below one of them but the last, and none starts a chain but the first. At least 1.
    #[inline]
    #[must_use]
    pub fn linked(&self, run: Run) -> u32 {
        let chain = (self.heads.trailing_absent(run.start, run.len) + 1).min(run.len);
        let above = chain - 1;
        1 + self.forks.trailing_absent(run.start + run.len - chain, above)
    }

    /// The child of a block in its own chain.
    #[inline]
    #[must_use]
    pub fn next_in_chain(&self, block: u32) -> Option<u32> {
        let next = block + 1;
        (next < self.blocks() && !self.heads.get(next)).then_some(next)
    }
}

fn last_block(forest: &Forest, node: Node) -> Option<u32> {
    (!node.is_empty()).then(|| forest.first(node.chain) + node.len - 1)
}
