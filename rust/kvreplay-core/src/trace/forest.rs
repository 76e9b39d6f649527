//! The forest of blocks: every trace is stored as chains, and a request is one node of the forest.
//!
//! Blocks carry dense numbers in order of first appearance. A request is a known prefix followed by
//! blocks nobody has seen (under a new block everything is new), so the new blocks of a request are one
//! consecutive run of numbers: a *chain*, hung below the last known block. A whole path is therefore
//! named by its last block, `(chain, how many blocks of the chain)`, in eight bytes.

/// No chain: the parent of a root, and the node of an empty path.
pub const NO_CHAIN: u32 = u32::MAX;

/// A place in the forest: the first `len` blocks of a chain and everything above them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Node {
    /// Index of the chain, [`NO_CHAIN`] for the empty path.
    pub chain: u32,
    /// How many blocks of the chain belong to the path (at least 1 unless the path is empty).
    pub len: u32,
}

impl Node {
    /// The empty path.
    pub const EMPTY: Self = Self { chain: NO_CHAIN, len: 0 };

    /// Whether this is the empty path.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.chain == NO_CHAIN
    }
}

/// Consecutive dense block numbers of a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The first block.
    pub start: u32,
    /// The number of blocks, at least 1.
    pub len: u32,
}

/// All chains of a trace. Chain `c` holds the blocks `first(c) .. first(c) + len(c)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Forest {
    /// First block per chain, then the number of blocks: `chains + 1` entries.
    pub(crate) start: Vec<u32>,
    /// The node a chain hangs below; empty for a root chain.
    pub(crate) parent: Vec<Node>,
    /// Number of blocks above a chain's first block.
    pub(crate) depth: Vec<u32>,
    /// Namespace per chain; empty when there is only one.
    pub(crate) namespace: Vec<u32>,
}

impl Default for Forest {
    fn default() -> Self {
        Self { start: vec![0], parent: Vec::new(), depth: Vec::new(), namespace: Vec::new() }
    }
}

impl Forest {
    /// Number of chains.
    #[must_use]
    pub fn chains(&self) -> usize {
        self.parent.len()
    }

    /// Number of distinct blocks.
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.start[self.parent.len()]
    }

    /// First block of a chain.
    #[must_use]
    pub fn first(&self, chain: u32) -> u32 {
        self.start[chain as usize]
    }

    /// Number of blocks of a chain.
    #[must_use]
    pub fn chain_len(&self, chain: u32) -> u32 {
        self.start[chain as usize + 1] - self.start[chain as usize]
    }

    /// The node a chain hangs below.
    #[must_use]
    pub fn parent(&self, chain: u32) -> Node {
        self.parent[chain as usize]
    }

    /// Number of blocks above a chain's first block.
    #[must_use]
    pub fn depth(&self, chain: u32) -> u32 {
        self.depth[chain as usize]
    }

    /// Namespace of a chain.
    #[must_use]
    pub fn namespace(&self, chain: u32) -> u32 {
        self.namespace.get(chain as usize).copied().unwrap_or(0)
    }

    /// Whether there is more than one namespace.
    #[must_use]
    pub fn has_namespaces(&self) -> bool {
        !self.namespace.is_empty()
    }

    /// Number of blocks on the path of a node.
    #[must_use]
    pub fn path_len(&self, node: Node) -> u32 {
        if node.is_empty() { 0 } else { self.depth(node.chain) + node.len }
    }

    /// The pieces `(chain, len)` of a node's path, root first. `out` is cleared.
    pub fn segments(&self, node: Node, out: &mut Vec<Node>) {
        out.clear();
        let mut at = node;
        while !at.is_empty() {
            out.push(at);
            at = self.parent(at.chain);
        }
        out.reverse();
    }

    /// The blocks of a node's path as runs, root first, neighbours merged. `out` is cleared.
    pub fn runs(&self, node: Node, out: &mut Vec<Run>) {
        out.clear();
        let mut at = node;
        while !at.is_empty() {
            let run = Run { start: self.first(at.chain), len: at.len };
            match out.last_mut() {
                Some(below) if run.start + run.len == below.start => {
                    below.start = run.start;
                    below.len += run.len;
                }
                _ => out.push(run),
            }
            at = self.parent(at.chain);
        }
        out.reverse();
    }

    /// The blocks of a node's path, root first. `out` is cleared.
    pub fn path(&self, node: Node, out: &mut Vec<u32>) {
        out.clear();
        out.resize(self.path_len(node) as usize, 0);
        let mut at = node;
        let mut end = out.len();
        while !at.is_empty() {
            let first = self.first(at.chain);
            let begin = end - at.len as usize;
            for (slot, block) in out[begin..end].iter_mut().zip(first..) {
                *slot = block;
            }
            end = begin;
            at = self.parent(at.chain);
        }
    }

    /// The ancestor of `node` whose path has `len` blocks (`node` itself when its path is not longer).
    #[must_use]
    pub fn truncate(&self, node: Node, len: u32) -> Node {
        let mut at = node;
        while !at.is_empty() {
            let depth = self.depth(at.chain);
            if len > depth {
                return Node { chain: at.chain, len: at.len.min(len - depth) };
            }
            at = self.parent(at.chain);
        }
        Node::EMPTY
    }

    /// The forest with every block cut into `parts` blocks.
    ///
    /// # Panics
    /// When block numbers overflow.
    #[must_use]
    pub fn stretched(&self, parts: u32) -> Self {
        let times = |number: &u32| number.checked_mul(parts).expect("checked by the caller");
        Self {
            start: self.start.iter().map(times).collect(),
            parent: self.parent.iter().map(|node| Node { len: node.len * parts, ..*node }).collect(),
            depth: self.depth.iter().map(times).collect(),
            namespace: self.namespace.clone(),
        }
    }

    /// The chain that holds a block.
    #[must_use]
    pub fn chain_of(&self, block: u32) -> u32 {
        self.start.partition_point(|&first| first <= block) as u32 - 1
    }

    /// The block above, or `None` for a root.
    #[must_use]
    pub fn parent_block(&self, block: u32) -> Option<u32> {
        let chain = self.chain_of(block);
        if block > self.first(chain) {
            return Some(block - 1);
        }
        let parent = self.parent(chain);
        (!parent.is_empty()).then(|| self.first(parent.chain) + parent.len - 1)
    }
}
