//! What a model says it did: counters, events and the row of a request.

use super::request::EngineRequest;
use crate::hierarchy::{Counters, EventKind, Events, TierSpec};

/// Why a unit was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cause {
    /// The request computed it.
    Compute,
    /// A tier below served it.
    Promotion,
    /// The tier above evicted it.
    Demotion,
}

/// What one request got from one tier.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Row {
    /// Blocks served.
    pub blocks: u32,
    /// Prompt tokens served.
    pub tokens: u64,
}

/// Records what a model does. A *unit* is what a tier stores whole: a block, or a chunk named by its last
/// block. Counters are kept in units and turned into blocks at the end.
#[derive(Debug)]
pub struct Recorder {
    counters: Vec<Counters>,
    chunk_blocks: Vec<u32>,
    /// Per tier, a bit per block: stored and not served since.
    unread: Vec<Vec<u64>>,
    /// Per tier, resident units without a name: nobody can ask for them.
    unnamed: Vec<u64>,
    events: Events,
    rows: Vec<Row>,
    stranded_blocks: u32,
    request: u32,
}

impl Recorder {
    /// A recorder for `tiers` over `blocks` distinct blocks.
    #[must_use]
    pub fn new(tiers: &[TierSpec], blocks: u32, events: bool) -> Self {
        Self {
            counters: vec![Counters::default(); tiers.len()],
            chunk_blocks: tiers.iter().map(|tier| tier.chunk_blocks.max(1)).collect(),
            unread: tiers.iter().map(|_| vec![0; (blocks as usize).div_ceil(64)]).collect(),
            unnamed: vec![0; tiers.len()],
            events: Events::new(events),
            rows: vec![Row::default(); tiers.len()],
            stranded_blocks: 0,
            request: 0,
        }
    }

    /// Starts a request.
    pub fn begin(&mut self, index: u32) {
        self.request = index;
        self.rows.fill(Row::default());
        self.stranded_blocks = 0;
    }

    /// Ends a request: what no upper tier served was asked of the next one.
    pub fn end(&mut self, request: &EngineRequest<'_>) {
        let mut blocks = request.listed.len() as u64;
        let mut tokens = request.prompt_tokens;
        for (counters, row) in self.counters.iter_mut().zip(&self.rows) {
            counters.asked += blocks;
            counters.asked_tokens += tokens;
            counters.hit_requests += u64::from(row.tokens > 0);
            counters.served += u64::from(row.blocks);
            counters.served_tokens += row.tokens;
            blocks = blocks.saturating_sub(u64::from(row.blocks));
            tokens = tokens.saturating_sub(row.tokens);
        }
    }

    /// Tier `tier` serves `blocks` blocks and `tokens` prompt tokens of the request out of `units`.
    ///
    /// Tokens of all tiers must not exceed the prompt. Blocks and tokens are what counts as this tier's hit;
    /// the units are what was read (a chunk may overlap what an upper tier served).
    pub fn serve(&mut self, tier: usize, units: &[u32], blocks: u32, tokens: u64) {
        self.rows[tier].blocks += blocks;
        self.rows[tier].tokens += tokens;
        for &unit in units {
            self.unread[tier][unit as usize / 64] &= !(1 << (unit % 64));
            self.log(tier, EventKind::Hit, unit);
        }
    }

    /// A unit is stored.
    pub fn insert(&mut self, tier: usize, unit: u32, cause: Cause) {
        self.count_insert(tier, 1, cause);
        self.unread[tier][unit as usize / 64] |= 1 << (unit % 64);
        self.log(tier, EventKind::Insert, unit);
    }

    /// A unit that the trace does not name is stored: it takes room and is counted, but has no event.
    pub fn insert_unnamed(&mut self, tier: usize, cause: Cause) {
        self.insert_unnamed_run(tier, 1, cause);
    }

    /// `units` units that the trace does not name are stored.
    pub fn insert_unnamed_run(&mut self, tier: usize, units: u64, cause: Cause) {
        self.count_insert(tier, units, cause);
        self.unnamed[tier] += units;
    }

    fn count_insert(&mut self, tier: usize, units: u64, cause: Cause) {
        let counters = &mut self.counters[tier];
        counters.offered += units;
        counters.admitted += units;
        match cause {
            Cause::Compute => counters.inserted_compute += units,
            Cause::Promotion => counters.inserted_promotion += units,
            Cause::Demotion => counters.inserted_demotion += units,
        }
        counters.resident += units;
        counters.peak = counters.peak.max(counters.resident);
    }

    /// A unit is evicted (or dropped for another reason).
    pub fn evict(&mut self, tier: usize, unit: u32) {
        self.counters[tier].evicted += 1;
        self.depart(tier, unit);
        self.log(tier, EventKind::Evict, unit);
    }

    /// A unit that the trace does not name is evicted.
    pub fn evict_unnamed(&mut self, tier: usize) {
        self.evict_unnamed_run(tier, 1);
    }

    /// `units` units that the trace does not name are evicted.
    pub fn evict_unnamed_run(&mut self, tier: usize, units: u64) {
        let counters = &mut self.counters[tier];
        counters.evicted += units;
        counters.resident -= units;
        counters.dead_on_arrival += units;
        self.unnamed[tier] -= units;
    }

    /// `units` units that the trace does not name come one by one, each in the place of one before it.
    pub fn replace_unnamed_run(&mut self, tier: usize, units: u64, cause: Cause) {
        let peak = self.counters[tier].peak;
        self.insert_unnamed_run(tier, units, cause);
        self.evict_unnamed_run(tier, units);
        self.counters[tier].peak = peak;
    }

    /// A unit leaves an exclusive tier because this tier served it.
    pub fn move_up(&mut self, tier: usize, unit: u32) {
        self.counters[tier].moved_up += 1;
        self.depart(tier, unit);
        self.log(tier, EventKind::Move, unit);
    }

    /// A unit leaves an exclusive tier because the request computed it again above.
    pub fn supersede(&mut self, tier: usize, unit: u32) {
        self.counters[tier].superseded += 1;
        self.depart(tier, unit);
        self.log(tier, EventKind::Move, unit);
    }

    /// The filter refuses a unit.
    pub fn reject(&mut self, tier: usize, unit: u32) {
        self.counters[tier].offered += 1;
        self.counters[tier].rejected_filter += 1;
        self.log(tier, EventKind::Reject, unit);
    }

    /// The filter refuses a unit that the trace does not name.
    pub fn reject_unnamed(&mut self, tier: usize) {
        self.counters[tier].offered += 1;
        self.counters[tier].rejected_filter += 1;
    }

    /// `units` absent units find no room.
    pub fn no_room(&mut self, tier: usize, units: u64) {
        self.counters[tier].offered += units;
        self.counters[tier].no_room += units;
    }

    /// `units` units handed to a tier were there already.
    pub fn already_held(&mut self, tier: usize, units: u64) {
        self.counters[tier].already_held += units;
    }

    /// `blocks` blocks are resident behind the end of the request's run in this tier.
    pub fn strand(&mut self, tier: usize, blocks: u32) {
        self.counters[tier].stranded += u64::from(blocks);
        self.stranded_blocks += blocks;
    }

    /// The counters so far, per tier, in units.
    #[must_use]
    pub fn counters(&self) -> &[Counters] {
        &self.counters
    }

    /// What the request got from each tier so far.
    #[must_use]
    pub fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Blocks a tier holds now, those without a name among them.
    #[must_use]
    pub fn resident_blocks(&self, tier: usize) -> u64 {
        self.counters[tier].resident * u64::from(self.chunk_blocks[tier])
    }

    /// Blocks resident behind the end of the request's run, all tiers.
    #[must_use]
    pub fn stranded_blocks(&self) -> u32 {
        self.stranded_blocks
    }

    /// Events so far.
    #[must_use]
    pub fn events(&self) -> &Events {
        &self.events
    }

    /// The events, and the counters in blocks; `content` lists the units resident at the end, per tier.
    #[must_use]
    pub fn finish(self, content: &[Vec<u32>]) -> (Events, Vec<Counters>) {
        let tiers = self.counters.into_iter().zip(&self.unread).zip(content).zip(&self.unnamed);
        let counters = tiers
            .zip(&self.chunk_blocks)
            .map(|((((mut counters, unread), content), unnamed), &chunk_blocks)| {
                let is_unread = |unit: &&u32| unread[**unit as usize / 64] >> (**unit % 64) & 1 == 1;
                counters.unread_at_end = content.iter().filter(is_unread).count() as u64 + unnamed;
                counters.scaled(u64::from(chunk_blocks))
            })
            .collect();
        (self.events, counters)
    }

    fn depart(&mut self, tier: usize, unit: u32) {
        self.counters[tier].resident -= 1;
        let word = &mut self.unread[tier][unit as usize / 64];
        self.counters[tier].dead_on_arrival += *word >> (unit % 64) & 1;
        *word &= !(1 << (unit % 64));
    }

    fn log(&mut self, tier: usize, kind: EventKind, unit: u32) {
        if self.events.on {
            self.events.push(self.request, tier, kind, unit);
        }
    }
}
