//! Whole runs of blocks in one step, for policies whose queues can move them.

use super::{Move, Policy, Room};
use crate::trace::Run;

/// Which block of a run is used first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// From the first to the last: accesses of object mode, where any block may leave at any time.
    Forward,
    /// From the last to the first: a pass.
    Back,
}

impl Order {
    /// The `len` blocks of a run that are used first.
    #[inline]
    #[must_use]
    pub fn first(self, run: Run, len: u32) -> Run {
        match self {
            Self::Forward => Run { start: run.start, len },
            Self::Back => Run { start: run.start + run.len - len, len },
        }
    }

    /// What is left of a run without the `len` blocks used first.
    #[inline]
    #[must_use]
    pub fn rest(self, run: Run, len: u32) -> Run {
        match self {
            Self::Forward => Run { start: run.start + len, len: run.len - len },
            Self::Back => Run { start: run.start, len: run.len - len },
        }
    }

    /// The blocks of a run as they are used.
    pub fn each(self, run: Run) -> impl Iterator<Item = u32> {
        (0..run.len).map(move |i| match self {
            Self::Forward => run.start + i,
            Self::Back => run.start + run.len - 1 - i,
        })
    }
}

/// Stores absent blocks of a run one after the other, a stretch at a time.
///
/// `evict` is told what comes in next and takes out the next to leave, at most as many, as far as they are a run
/// whose blocks leave one after the other whatever comes in meanwhile. `push` appends a run of which the first so many blocks
/// to come are exposed. The room and the protection of parents are brought up to date here.
#[inline]
pub(super) fn store_run<P: Policy>(
    policy: &mut P,
    mut run: Run,
    order: Order,
    room: &mut Room<'_>,
    moves: &mut Vec<Move>,
    mut evict: impl FnMut(&mut P, Run, &Room<'_>) -> Option<Run>,
    mut push: impl FnMut(&mut P, Run, u32),
) {
    while run.len > 0 {
        let next = order.first(run, room.linked(run, order));
        let free = room.capacity() - room.len();
        let left = if free > 0 { None } else { evict(policy, next, room) };
        let len = left.map_or(free.min(next.len), |left| left.len);
        if len == 0 {
            return; // a tier of no blocks
        }
        let came = order.first(run, len);
        push(policy, came, room.exposed_run(came, order));
        let freed = left.and_then(|left| room.leave_run(left));
        if let Some(parent) = room.enter_run(came) {
            policy.expose(parent, false);
        }
        // What came may be a child of the parent that was freed: look again.
        if let Some(parent) = freed
            && room.exposed(parent)
        {
            policy.expose(parent, true);
        }
        moves.push(Move { block: came.start, victim: left.map(|left| left.start), len });
        run = order.rest(run, len);
    }
}
