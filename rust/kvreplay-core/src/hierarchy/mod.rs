//! Tiers, fill rules and the cascade of `semantics.md` section 5.
//!
//! A [`Hierarchy`] is a value: build it, show it requests in order, read its counters. It holds no global
//! state, so a fleet is N of them. The order of operations inside a request is fixed and exact:
//!
//! 1. look up all tiers (`look_up`);
//! 2. blocks that move out of victim tiers leave (`look_up`);
//! 3. the pass of tier 1, each eviction handed down at once, then the passes of tiers 2, 3, .. (`pass`).

mod counters;
mod events;
mod fill;
mod ledger;
mod look_up;
mod object;
mod pass;
mod space;
mod spec;
mod tier;

pub use counters::Counters;
pub use events::{EventKind, Events};
pub use fill::{FILLS, Fill, FillInfo, TOUCHES, Touch};
pub use space::Space;
pub use spec::TierSpec;

use crate::error::{Error, Result};
use crate::policy::Topology;
use crate::trace::{Node, Trace};
use space::Path;
use tier::Tier;

/// One request as the tiers see it.
#[derive(Debug, Clone, Copy)]
pub struct Request {
    /// Position in replay order.
    pub index: u32,
    /// Path whose blocks may hit and stay.
    pub node: Node,
    /// Blocks of `node`.
    pub blocks: u32,
    /// Blocks the trace lists, at least `blocks`.
    pub listed_blocks: u32,
    /// Most blocks a hit may cover.
    pub limit_blocks: u32,
    /// Input length.
    pub input_tokens: u64,
    /// Tokens per block.
    pub block_tokens: u32,
    /// Arrival, in a trace with times.
    pub now_us: Option<i64>,
}

impl Request {
    /// Tokens of the first `blocks` blocks.
    #[must_use]
    pub fn tokens(&self, blocks: u32) -> u64 {
        (u64::from(blocks) * u64::from(self.block_tokens)).min(self.input_tokens)
    }
}

/// What the tiers have in common: the spaces (blocks, and chunks of each size in use) with their topologies.
#[derive(Debug)]
pub struct Ground<'a> {
    spaces: Vec<Space<'a>>,
}

impl<'a> Ground<'a> {
    /// The spaces that `tiers` need.
    #[must_use]
    pub fn new(trace: &'a Trace, tiers: &[TierSpec]) -> Self {
        let mut sizes: Vec<u32> = tiers.iter().map(|t| t.chunk_blocks.max(1)).collect();
        sizes.sort_unstable();
        sizes.dedup();
        Self { spaces: sizes.into_iter().map(|size| Space::new(&trace.forest, size)).collect() }
    }

    /// Parents and depths per space, to be kept beside the ground.
    #[must_use]
    pub fn topologies(&self) -> Vec<Topology<'_>> {
        self.spaces.iter().map(|space| Topology::new(space.forest())).collect()
    }
}

/// Tiers 1..K, fastest first.
pub struct Hierarchy<'a> {
    spaces: &'a [Space<'a>],
    tiers: Vec<Tier<'a>>,
    paths: Vec<Path>,
    /// Whether paths are needed block by block, not only as runs.
    expand: bool,
    arrivals_us: Option<&'a [i64]>,
    /// End of the run of hits over all tiers, in blocks, without and with the request's limit.
    open: u32,
    hit: u32,
    stranded: u32,
    /// Object mode: hit blocks and tokens of the request.
    object_hits: (u32, u64),
    scratch: tier::Scratch,
}

impl<'a> Hierarchy<'a> {
    /// Empty tiers.
    ///
    /// # Errors
    /// [`Error::Config`] for specs that are not valid, see [`TierSpec`].
    pub fn new(
        trace: &'a Trace,
        specs: &[TierSpec],
        ground: &'a Ground<'a>,
        topologies: &'a [Topology<'a>],
        residence: bool,
    ) -> Result<Self> {
        spec::check(specs)?;
        let mut tiers = Vec::with_capacity(specs.len());
        for (k, spec) in specs.iter().enumerate() {
            let space = ground.spaces.iter().position(|s| s.chunk_blocks() == spec.chunk_blocks);
            let space = space.ok_or_else(|| {
                Error::config(format!("no ground for chunks of {} blocks", spec.chunk_blocks), "")
            })?;
            tiers.push(Tier::new(trace, spec, k, space, &topologies[space], residence)?);
        }
        let filtered = tiers.iter().any(|t| !t.filter.is_always());
        Ok(Self {
            spaces: &ground.spaces,
            expand: tiers.len() > 1 || filtered,
            tiers,
            paths: ground.spaces.iter().map(|_| Path::default()).collect(),
            arrivals_us: trace.requests.arrival_us.as_deref(),
            open: 0,
            hit: 0,
            stranded: 0,
            object_hits: (0, 0),
            scratch: tier::Scratch::default(),
        })
    }

    /// Number of tiers.
    #[must_use]
    pub fn len(&self) -> usize {
        self.tiers.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tiers.is_empty()
    }

    /// Serves a request in prefix mode and updates the tiers.
    pub fn serve(&mut self, request: &Request, events: &mut Events) {
        self.enter(request, events);
        self.look_up(request, events);
        self.leave_victim_tiers(request, events);
        for tier in &mut self.tiers {
            tier.room.guard(&tier.runs);
        }
        self.first_pass(request, events);
        for k in 1..self.tiers.len() {
            self.lower_pass(k, request, events);
        }
        for tier in &mut self.tiers {
            tier.room.unguard(&tier.runs);
        }
    }

    /// Reads the path, tells the policies, and lets go what is past its time.
    fn enter(&mut self, request: &Request, events: &mut Events) {
        for (space, path) in self.spaces.iter().zip(&mut self.paths) {
            path.read(space, request.node, self.expand);
        }
        for k in 0..self.tiers.len() {
            let tier = &mut self.tiers[k];
            let path = &self.paths[tier.space];
            tier.policy.begin(path.units, request.now_us);
            tier.clip(path);
            while let Some(unit) = self.tiers[k].expired() {
                self.tiers[k].take(unit);
                self.tiers[k].ledger.counters.evicted += 1;
                self.tiers[k].ledger.counters.expired += 1;
                self.depart(k, unit, request);
                self.log(events, request, k, EventKind::Evict, unit);
            }
        }
    }

    /// A unit has left tier `k`: was it ever read, and how long was it there.
    fn depart(&mut self, k: usize, unit: u32, request: &Request) {
        let residence = self.tiers[k].ledger.depart(unit, request.index);
        if let (Some(inserted), Some(arrivals)) = (residence, self.arrivals_us) {
            let stay = arrivals[request.index as usize].saturating_sub(arrivals[inserted as usize]);
            let total = &mut self.tiers[k].ledger.counters.residence_us;
            *total = total.saturating_add(stay);
        }
    }

    #[inline]
    fn log(&self, events: &mut Events, request: &Request, k: usize, kind: EventKind, unit: u32) {
        if events.on {
            events.push(request.index, k, kind, self.spaces[self.tiers[k].space].block_of(unit));
        }
    }

    /// `(from, to)`: the blocks of the request that tier `k` served, as positions on its path.
    #[must_use]
    pub fn served(&self, k: usize) -> (u32, u32) {
        self.tiers[k].served
    }

    /// Object mode: hit blocks and hit tokens of the request, wherever on its path.
    #[must_use]
    pub fn object_hits(&self) -> (u32, u64) {
        self.object_hits
    }

    /// Resident blocks behind the end of the run, all tiers.
    #[must_use]
    pub fn stranded(&self) -> u32 {
        self.stranded
    }

    /// Counters of tier `k` up to now, in blocks.
    #[must_use]
    pub fn counters(&self, k: usize) -> Counters {
        let tier = &self.tiers[k];
        tier.ledger.finish(&tier.room).scaled(u64::from(self.spaces[tier.space].chunk_blocks()))
    }

    /// The blocks resident in tier `k` (of a chunk its last block), most recent first where the policy
    /// has an order.
    #[must_use]
    pub fn content(&self, k: usize) -> Vec<u32> {
        let tier = &self.tiers[k];
        let space = &self.spaces[tier.space];
        tier.policy.content().into_iter().map(|unit| space.block_of(unit)).collect()
    }

    /// Resident blocks (of chunks, whole) of tier `k`.
    #[must_use]
    pub fn resident_blocks(&self, k: usize) -> u64 {
        u64::from(self.tiers[k].room.len()) * u64::from(self.spaces[self.tiers[k].space].chunk_blocks())
    }

    /// Checks the invariants of every tier.
    ///
    /// # Errors
    /// The invariant that does not hold.
    pub fn validate(&self) -> std::result::Result<(), String> {
        for (k, tier) in self.tiers.iter().enumerate() {
            tier.validate().map_err(|what| format!("tier {}: {what}", k + 1))?;
        }
        Ok(())
    }
}
