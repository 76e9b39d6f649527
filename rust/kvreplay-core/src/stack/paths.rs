//! Which stack of intervals a piece of a path lies on: chains joined to long paths.
//!
//! A session of a thousand turns is a thousand chains, each hung on (or near) the end of the one before,
//! and walking all of them per request would make a trace of one session quadratic. So a chain may
//! *adopt* one child chain as its continuation: the child that most requests go through, where that is
//! at least half of the chain's own requests, or where it hangs at the very end. What is left of the chain below the
//! place where the adopted child hangs becomes a path of its own (its *tail*). Every step from a path
//! to one hung below it, other than into a tail, at least halves the number of requests, so a path of the
//! forest crosses O(log requests) of them whatever its depth (heavy paths, after Sleator and Tarjan 1983).
//!
//! There are as many paths as chains: a chain that is not adopted heads a path under its own number, and
//! the number of an adopted chain is free to name the tail of the chain that adopted it. Either way the path
//! starts at that chain's depth.

use crate::trace::{Bits, Forest, NO_CHAIN, Node};

/// No path.
pub(super) const NO_PATH: u32 = u32::MAX;

/// The paths of a forest, by number.
#[derive(Debug)]
pub(super) struct Paths {
    /// The path each path hangs below, [`NO_PATH`] for a root.
    link: Vec<u32>,
    /// The chain each chain adopted, [`NO_CHAIN`] if none.
    heir: Vec<u32>,
    adopted: Bits,
}

impl Paths {
    /// Joins the chains of a forest for the given requests.
    pub(super) fn new(forest: &Forest, nodes: &[Node]) -> Self {
        let heir = heirs(forest, nodes);
        let mut paths = Self { link: vec![NO_PATH; forest.chains()], heir, adopted: Bits::default() };
        for chain in 0..forest.chains() as u32 {
            let parent = forest.parent(chain);
            if parent.is_empty() {
                continue;
            }
            debug_assert!(parent.chain < chain, "a chain hangs below an earlier one");
            paths.link[chain as usize] = if paths.heir[parent.chain as usize] == chain {
                paths.adopted.set(chain);
                paths.head(parent.chain)
            } else {
                paths.of(forest, parent)
            };
        }
        paths
    }

    /// The path that holds the first blocks of a chain.
    fn head(&self, chain: u32) -> u32 {
        if self.adopted.get(chain) { self.link[chain as usize] } else { chain }
    }

    /// The path that holds the last block of a (not empty) node.
    pub(super) fn of(&self, forest: &Forest, node: Node) -> u32 {
        let heir = self.heir[node.chain as usize];
        if heir != NO_CHAIN && forest.depth(node.chain) + node.len > forest.depth(heir) {
            heir
        } else {
            self.head(node.chain)
        }
    }

    /// The path a path hangs below, [`NO_PATH`] for a root.
    pub(super) fn above(&self, path: u32) -> u32 {
        self.link[path as usize]
    }
}

/// The child each chain adopts.
fn heirs(forest: &Forest, nodes: &[Node]) -> Vec<u32> {
    let mut requests = vec![0_u32; forest.chains()];
    for node in nodes {
        if !node.is_empty() {
            requests[node.chain as usize] += 1;
        }
    }
    let mut heir = vec![NO_CHAIN; forest.chains()];
    // Children come after their parents: going backwards, a chain's count is complete when it is reached.
    for chain in (0..forest.chains() as u32).rev() {
        let own = requests[chain as usize];
        let best = heir[chain as usize];
        if best != NO_CHAIN
            && 2 * u64::from(requests[best as usize]) < u64::from(own)
            && forest.parent(best).len < forest.chain_len(chain)
        {
            heir[chain as usize] = NO_CHAIN;
        }
        let parent = forest.parent(chain).chain;
        if parent == NO_CHAIN {
            continue;
        }
        requests[parent as usize] += own;
        let rival = heir[parent as usize];
        if rival == NO_CHAIN || own >= requests[rival as usize] {
            heir[parent as usize] = chain;
        }
    }
    heir
}
