//! The room of one tier: which blocks are resident, and which of them may not leave now.

use super::{BitSet, NONE, Topology};
use crate::trace::Run;

/// Whether a tier keeps prefixes whole (`semantics.md` section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Closure {
    /// A resident block with a resident child in the same tier counts as protected.
    #[default]
    Leaf,
    /// The policy is left alone.
    None,
}

impl Closure {
    /// `leaf` or `none`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Leaf => "leaf",
            Self::None => "none",
        }
    }
}

/// What a policy may ask about its tier. Only the tier changes it.
#[derive(Debug)]
pub struct Room<'a> {
    topology: &'a Topology<'a>,
    resident: BitSet,
    guard: BitSet,
    /// Whether `guard` has members: never in object mode, which then need not look.
    guarding: bool,
    /// Resident heads of chains below each fork; empty without closure.
    children: Vec<u32>,
    closed: bool,
    /// A block known to have a resident child: the pass comes from below.
    covered: u32,
    epoch: u64,
    len: u32,
    capacity: u32,
}

#[allow(clippy::inline_always, reason = "a few instructions each, in the inner loop of every policy")]
impl<'a> Room<'a> {
    /// An empty tier of `capacity` blocks.
    #[must_use]
    pub fn new(topology: &'a Topology<'a>, capacity: u32, closure: Closure) -> Self {
        let closed = closure == Closure::Leaf;
        Self {
            topology,
            resident: BitSet::new(topology.blocks()),
            guard: BitSet::new(topology.blocks()),
            guarding: false,
            children: vec![0; if closed { topology.fork_count() } else { 0 }],
            closed,
            covered: NONE,
            epoch: 0,
            len: 0,
            capacity,
        }
    }

    /// Parents and depths of the blocks.
    #[must_use]
    pub fn topology(&self) -> &'a Topology<'a> {
        self.topology
    }

    /// Number of resident blocks.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether nothing is resident.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Most blocks that fit.
    #[must_use]
    pub fn capacity(&self) -> u32 {
        self.capacity
    }

    /// Whether an insertion needs a victim.
    #[inline]
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.len >= self.capacity
    }

    /// Whether the tier keeps prefixes whole.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.closed
    }

    /// The blocks that are resident.
    #[must_use]
    pub fn residents(&self) -> &BitSet {
        &self.resident
    }

    /// Whether a block is resident.
    #[inline(always)]
    #[must_use]
    pub fn holds(&self, block: u32) -> bool {
        self.resident.get(block)
    }

    /// Changes whenever the guard does: whoever set guarded blocks aside looks at them again.
    #[inline]
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Whether the request now served holds the block (among its first `m`).
    #[inline(always)]
    #[must_use]
    pub fn guards(&self, block: u32) -> bool {
        self.guarding && self.guard.get(block)
    }

    /// Whether any resident block may leave now: no closure, no request guarded.
    #[inline]
    #[must_use]
    pub fn is_plain(&self) -> bool {
        !self.closed && !self.guarding
    }

    /// Whether no resident child protects the block (always so without closure).
    #[inline(always)]
    #[must_use]
    pub fn exposed(&self, block: u32) -> bool {
        !self.closed || (block != self.covered && !self.has_child(block))
    }

    /// Whether the block may be a victim now: neither guarded nor protected by a child.
    #[inline]
    #[must_use]
    pub fn may_leave(&self, block: u32) -> bool {
        !self.guards(block) && self.exposed(block)
    }

    #[inline]
    fn has_child(&self, block: u32) -> bool {
        self.has_next(block) || self.has_branch(block)
    }

    /// Whether the child in the block's own chain is resident.
    #[inline(always)]
    fn has_next(&self, block: u32) -> bool {
        self.topology.next_in_chain(block).is_some_and(|next| self.resident.get(next))
    }

    /// Whether a child that heads another chain is resident.
    #[inline(always)]
    fn has_branch(&self, block: u32) -> bool {
        self.topology.fork(block).is_some_and(|fork| self.children[fork] > 0)
    }

    /// Says that a block has a resident child, so that nobody needs to look; [`Room::uncover`] ends it.
    #[inline]
    pub(crate) fn cover(&mut self, block: u32) {
        debug_assert!(!self.closed || self.has_child(block));
        self.covered = block;
    }

    /// Ends [`Room::cover`].
    pub(crate) fn uncover(&mut self) {
        self.covered = NONE;
    }

    /// Guards the runs of a path until [`Room::unguard`].
    pub(crate) fn guard(&mut self, runs: &[Run]) {
        self.epoch += 1;
        self.guarding = true;
        for run in runs {
            self.guard.set_range(run.start, run.len);
        }
    }

    /// Lifts the guard of [`Room::guard`], called with the same runs.
    pub(crate) fn unguard(&mut self, runs: &[Run]) {
        self.epoch += 1;
        self.guarding = false;
        for run in runs {
            self.guard.clear_range(run.start, run.len);
        }
    }

    /// A block is resident from now on. Returns the resident block it protects anew, with closure.
    #[inline(always)]
    pub(crate) fn enter(&mut self, block: u32) -> Option<u32> {
        debug_assert!(!self.holds(block));
        self.resident.set(block);
        self.len += 1;
        if !self.closed {
            return None;
        }
        let parent = if self.topology.is_head(block) {
            let fork = self.topology.fork_above_head(block)?;
            self.children[fork] += 1;
            if self.children[fork] > 1 {
                return None; // protected already
            }
            self.topology.fork_block(fork)
        } else {
            block - 1
        };
        self.holds(parent).then_some(parent)
    }

    /// Absent blocks are resident from now on, and as many others no more. Without closure only.
    pub(crate) fn exchange(&mut self, came: Run, left: Option<Run>) {
        debug_assert!(self.is_plain());
        self.resident.set_range(came.start, came.len);
        self.len += came.len;
        if let Some(left) = left {
            self.resident.clear_range(left.start, left.len);
            self.len -= left.len;
        }
    }

    /// A block is resident no more. Returns the resident block that has lost its last child, with closure.
    #[inline(always)]
    pub(crate) fn leave(&mut self, block: u32) -> Option<u32> {
        debug_assert!(self.holds(block));
        self.resident.clear(block);
        self.len -= 1;
        if !self.closed {
            return None;
        }
        // Which kind of child left is known, so only the other kind can still protect the parent.
        let (parent, protected) = if self.topology.is_head(block) {
            let fork = self.topology.fork_above_head(block)?;
            self.children[fork] -= 1;
            if self.children[fork] > 0 {
                return None;
            }
            let parent = self.topology.fork_block(fork);
            (parent, self.has_next(parent))
        } else {
            (block - 1, self.has_branch(block - 1))
        };
        (!protected && parent != self.covered && self.holds(parent)).then_some(parent)
    }
}
