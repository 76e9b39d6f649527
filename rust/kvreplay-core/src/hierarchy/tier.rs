//! One tier: its room, policy, filter and books.

use super::ledger::Ledger;
use super::space::{Path, part};
use super::{Fill, TierSpec, Touch};
use crate::admission::{self, Filter};
use crate::error::{Error, Result};
use crate::policy::{self, Build, Closure, Move, Policy, Room, Stored, Stretch, Topology};
use crate::trace::{Run, Trace};

pub(super) struct Tier<'a> {
    pub(super) space: usize,
    pub(super) chunk_blocks: u32,
    pub(super) room: Room<'a>,
    pub(super) policy: Box<dyn Policy>,
    pub(super) filter: Box<dyn Filter>,
    pub(super) fill: Fill,
    pub(super) touch: Touch,
    pub(super) ledger: Ledger,
    /// The first `m` units of the request's path: those that may come, be touched and are guarded.
    pub(super) runs: Vec<Run>,
    pub(super) m: u32,
    /// Blocks this tier serves to the request, as positions.
    pub(super) served: (u32, u32),
}

/// What became of a unit of the path in the verdicts of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    NotOffered,
    Admitted,
    Rejected,
}

/// Buffers used again by every request.
#[derive(Debug, Default)]
pub(super) struct Scratch {
    pub(super) moves: Vec<Move>,
    pub(super) verdicts: Vec<Verdict>,
    pub(super) stretches: Vec<Stretch>,
    pub(super) rejected: Vec<u32>,
}

impl<'a> Tier<'a> {
    pub(super) fn new(
        trace: &Trace,
        spec: &TierSpec,
        k: usize,
        space: usize,
        topology: &'a Topology<'a>,
        residence: bool,
    ) -> Result<Self> {
        let build = Build {
            topology,
            capacity: spec.capacity_units(),
            block_tokens: trace.block_tokens.saturating_mul(spec.chunk_blocks),
            timed: trace.requests.arrival_us.is_some(),
        };
        let named = |error| match error {
            Error::Config { message, hint } => Error::config(format!("{}: {message}", spec.name), hint),
            other => other,
        };
        let policy = policy::build(&spec.policy, &build).map_err(named)?;
        let filter = admission::build(&spec.admission, &build).map_err(named)?;
        // Tier 1 without a filter takes the head of every path whole; lower tiers see parts of paths.
        let needless = k == 0 && filter.is_always() && policy.closes_itself();
        let closure = if needless { Closure::None } else { spec.closure };
        Ok(Self {
            space,
            chunk_blocks: spec.chunk_blocks,
            room: Room::new(topology, build.capacity, closure),
            policy,
            filter,
            // Tier 1 takes and refreshes whatever the request holds; its rules are those of no choice.
            fill: if k == 0 { Fill::WriteThrough } else { spec.fill },
            touch: if k == 0 { Touch::Path } else { spec.touch },
            ledger: Ledger::new(topology.blocks(), residence),
            runs: Vec::new(),
            m: 0,
            served: (0, 0),
        })
    }

    /// Keeps the head of the path that the tier could hold.
    pub(super) fn clip(&mut self, path: &Path) {
        self.m = path.units.min(self.room.capacity());
        self.runs.clear();
        if self.m == path.units {
            self.runs.extend_from_slice(&path.runs);
        } else {
            self.runs.extend(part(&path.runs, 0, self.m));
        }
    }

    /// Whether a block of the unit at `position` of the path is served by this tier.
    pub(super) fn serves(&self, position: u32) -> bool {
        let (from, to) = self.served;
        from < to && (position + 1) * self.chunk_blocks > from && position * self.chunk_blocks < to
    }

    /// Takes a resident unit away without an eviction.
    pub(super) fn take(&mut self, unit: u32) {
        policy::take(&mut *self.policy, &mut self.room, unit);
    }

    /// A unit past its time.
    pub(super) fn expired(&mut self) -> Option<u32> {
        self.policy.expired(&self.room)
    }

    /// Stores an absent unit.
    pub(super) fn put(&mut self, unit: u32) -> Stored {
        policy::store(&mut *self.policy, &mut self.room, unit)
    }

    pub(super) fn validate(&self) -> std::result::Result<(), String> {
        if self.room.len() > self.room.capacity() {
            return Err(format!("{} units in a tier of {}", self.room.len(), self.room.capacity()));
        }
        if self.room.residents().count() != u64::from(self.room.len()) {
            return Err("the count of resident units is wrong".to_owned());
        }
        let counters = self.ledger.finish(&self.room);
        let gone = counters.evicted + counters.moved();
        if counters.admitted != counters.inserted() || counters.admitted != gone + counters.resident {
            return Err(format!("what came is not what left and stayed: {counters:?}"));
        }
        let refused = counters.rejected() + counters.no_room;
        if counters.offered != counters.admitted + refused {
            return Err(format!("offers do not add up: {counters:?}"));
        }
        self.policy.validate(&self.room)
    }
}
