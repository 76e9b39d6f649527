//! A queue of runs in order of arrival, oldest to newest, with a hand: what FIFO and SIEVE need where any block
//! may leave at any time (object mode).
//!
//! Requests list runs of consecutive block numbers, which come in together and mostly leave together, so the
//! queue holds runs and not blocks: 12 bytes each, and nothing per distinct block. There is no way to find a
//! block in it; whoever needs one turns the queue into a [`super::Queue`].

use super::{BitSet, NONE};
use crate::trace::Run;

#[derive(Debug, Clone, Copy)]
struct Node {
    run: Run,
    /// The next newer run, [`NONE`] at the newest end.
    newer: u32,
}

/// The queue.
#[derive(Debug, Clone)]
pub struct RunQueue {
    nodes: Vec<Node>,
    /// The first unused node.
    free: u32,
    oldest: u32,
    newest: u32,
    /// The last run the hand has passed; [`NONE`] when it rests at the oldest end.
    passed: u32,
}

impl Default for RunQueue {
    fn default() -> Self {
        Self { nodes: Vec::new(), free: NONE, oldest: NONE, newest: NONE, passed: NONE }
    }
}

impl RunQueue {
    /// Whether there is no block.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.oldest == NONE
    }

    /// Appends the blocks of a run.
    pub fn push(&mut self, run: Run) {
        if self.newest != NONE {
            let last = &mut self.nodes[self.newest as usize].run;
            if last.start + last.len == run.start {
                last.len += run.len;
                return;
            }
        }
        let node = self.take_node(run, NONE);
        match self.newest {
            NONE => self.oldest = node,
            newest => self.nodes[newest as usize].newer = node,
        }
        self.newest = node;
    }

    /// Takes out the oldest blocks as far as they are a run, at most `most`.
    pub fn evict(&mut self, most: u32) -> Option<Run> {
        if self.oldest == NONE {
            return None;
        }
        let run = self.nodes[self.oldest as usize].run;
        self.cut(NONE, self.oldest, run.len.min(most));
        Some(Run { start: run.start, len: run.len.min(most) })
    }

    /// Takes out the first blocks from the hand on, round and round, that are not in `visited`, as far as they
    /// are a run, at most `most`; those passed are taken out of `visited`. What SIEVE would evict one by one,
    /// provided that as many blocks are pushed before the next call.
    pub fn evict_swept(&mut self, visited: &mut BitSet, most: u32) -> Option<Run> {
        loop {
            let at = match self.passed {
                NONE => self.oldest,
                passed => self.nodes[passed as usize].newer,
            };
            if at == NONE {
                if self.oldest == NONE {
                    return None;
                }
                self.passed = NONE;
                continue;
            }
            let run = self.nodes[at as usize].run;
            let passed = visited.leading_range(run.start, run.len);
            if passed > 0 {
                visited.clear_range(run.start, passed);
                self.split(at, passed);
                self.passed = at;
                continue;
            }
            let mut len = visited.leading_absent(run.start, run.len.min(most));
            if len > 1 && at == self.newest && len == run.len {
                // What comes in for the others will lie behind the newest block, and the hand moves on to it.
                len -= 1;
            }
            self.cut(self.passed, at, len);
            if self.passed == self.newest {
                self.passed = NONE; // behind the newest block is the oldest end
            }
            return Some(Run { start: run.start, len });
        }
    }

    /// The runs from the oldest to the newest.
    pub fn iter(&self) -> impl Iterator<Item = Run> + '_ {
        std::iter::successors(self.nodes.get(self.oldest as usize), |node| {
            self.nodes.get(node.newer as usize)
        })
        .map(|node| node.run)
    }

    /// The block the hand rests on, `None` at the oldest end.
    #[must_use]
    pub fn hand(&self) -> Option<u32> {
        let at = self.nodes.get(self.passed as usize)?.newer;
        Some(self.nodes.get(at as usize)?.run.start)
    }

    fn take_node(&mut self, run: Run, newer: u32) -> u32 {
        let node = Node { run, newer };
        if self.free == NONE {
            self.nodes.push(node);
            return self.nodes.len() as u32 - 1;
        }
        let at = self.free;
        self.free = self.nodes[at as usize].newer;
        self.nodes[at as usize] = node;
        at
    }

    /// Makes what follows the first `len` blocks of a run a run of its own.
    fn split(&mut self, at: u32, len: u32) {
        let Node { run, newer } = self.nodes[at as usize];
        if len == run.len {
            return;
        }
        let rest = self.take_node(Run { start: run.start + len, len: run.len - len }, newer);
        let node = &mut self.nodes[at as usize];
        node.run.len = len;
        node.newer = rest;
        if self.newest == at {
            self.newest = rest;
        }
    }

    /// Takes out the first `len` blocks of the run `at`, which follows `older`.
    fn cut(&mut self, older: u32, at: u32, len: u32) {
        let node = &mut self.nodes[at as usize];
        if len < node.run.len {
            node.run.start += len;
            node.run.len -= len;
            return;
        }
        let newer = std::mem::replace(&mut node.newer, self.free);
        self.free = at;
        match older {
            NONE => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
        if self.newest == at {
            self.newest = older;
        }
    }
}

#[cfg(test)]
mod tests;
