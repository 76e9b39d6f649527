//! The room of one tier: which blocks are resident, and which of them may not leave now.

use super::{BitSet, NONE, Topology};
use crate::policy::Order;
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
    /// Whether the block the pass came to last is resident.
    below: bool,
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
            below: false,
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

    /// The pass comes to the next block, which the one before hangs below: nobody needs to look whether it has a
    /// resident child. [`Room::end_pass`] ends that.
    #[inline]
    pub(crate) fn come_to(&mut self, block: u32) {
        if self.below {
            debug_assert!(!self.closed || self.has_child(block));
            self.covered = block;
        }
        self.below = true;
    }

    /// The block the pass came to was not stored.
    #[inline]
    pub(crate) fn pass_by(&mut self) {
        self.below = false;
    }

    /// The pass is over.
    pub(crate) fn end_pass(&mut self) {
        self.covered = NONE;
        self.below = false;
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
        if self.closed { self.protected_by(block) } else { None }
    }

    /// A block is resident no more. Returns the resident block that has lost its last child, with closure.
    #[inline(always)]
    pub(crate) fn leave(&mut self, block: u32) -> Option<u32> {
        debug_assert!(self.holds(block));
        self.resident.clear(block);
        self.len -= 1;
        if self.closed { self.freed_by(block) } else { None }
    }

    /// [`Room::enter`] for a run that [`Room::linked`] allows.
    #[inline]
    pub(crate) fn enter_run(&mut self, run: Run) -> Option<u32> {
        debug_assert_eq!(self.resident.count_range(run.start, run.len), 0);
        self.resident.set_range(run.start, run.len);
        self.len += run.len;
        if self.closed { self.protected_by(run.start) } else { None }
    }

    /// [`Room::leave`] for a run that [`Room::leaving`] allows.
    #[inline]
    pub(crate) fn leave_run(&mut self, run: Run) -> Option<u32> {
        debug_assert_eq!(self.resident.count_range(run.start, run.len), run.len);
        self.resident.clear_range(run.start, run.len);
        self.len -= run.len;
        if self.closed { self.freed_by(run.start) } else { None }
    }

    /// How many blocks of a run may come in at once: with closure those whose protection only the ends of
    /// the run change.
    #[inline]
    pub(crate) fn linked(&self, run: Run, order: Order) -> u32 {
        debug_assert!(order == Order::Back || self.is_plain());
        if self.closed { self.topology.linked(run) } else { run.len }
    }

    /// How many of the first blocks of a run that come in are exposed then: with closure at most the last of the
    /// run, the others have their child beside them.
    #[inline]
    pub(crate) fn exposed_run(&self, run: Run, order: Order) -> u32 {
        debug_assert!(order == Order::Back || self.is_plain());
        if self.closed { u32::from(self.exposed(run.start + run.len - 1)) } else { run.len }
    }

    /// What of a run may leave block after block, each exposing the next, if the first may.
    #[inline]
    pub(crate) fn leaving(&self, run: Run, order: Order) -> Run {
        let mut len = run.len;
        if order == Order::Forward || self.is_plain() {
            return run;
        }
        if self.guarding {
            len = self.guard.trailing_absent(run.start, len);
        }
        if self.closed {
            len = self.topology.linked(order.first(run, len));
        }
        order.first(run, len)
    }

    /// The resident parent to which a block that came is the first child.
    #[inline(always)]
    fn protected_by(&mut self, block: u32) -> Option<u32> {
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

    /// The resident parent to which a block that left was the last child.
    #[inline(always)]
    fn freed_by(&mut self, block: u32) -> Option<u32> {
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
