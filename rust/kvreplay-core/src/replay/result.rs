//! What a replay recorded.

use super::{Mode, ReplaySpec};
use crate::hierarchy::{Counters, Events, Hierarchy, Request};

/// One tier at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierResult {
    /// Its counters, in blocks.
    pub counters: Counters,
    /// Dense blocks resident (of a chunk its last block), most recent first where the policy has an order.
    pub content: Vec<u32>,
}

/// Hits per request, one entry per request in every column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PerRequest {
    /// Per tier: blocks it served.
    pub hit_blocks: Vec<Vec<u32>>,
    /// Per tier: tokens it served.
    pub hit_tokens: Vec<Vec<u32>>,
    /// Tokens no tier served.
    pub computed_tokens: Vec<u32>,
    /// Blocks resident behind the end of the run, all tiers.
    pub stranded_blocks: Vec<u32>,
    /// Object mode: blocks in the leading run of hits; empty in prefix mode.
    pub usable_hit_blocks: Vec<u32>,
    /// Per tier: blocks resident after the request; without tiers unless asked for.
    pub resident_blocks: Vec<Vec<u32>>,
    mode: Mode,
}

/// A finished replay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplayResult {
    /// What was asked for.
    pub spec: ReplaySpec,
    /// Per tier, fastest first.
    pub tiers: Vec<TierResult>,
    /// Hits per request, if asked for.
    pub requests: Option<PerRequest>,
    /// Events, if asked for.
    pub events: Events,
    /// Input tokens of all requests.
    pub input_tokens: u64,
}

impl PerRequest {
    pub(super) fn new(spec: &ReplaySpec, requests: usize) -> Self {
        let column = || Vec::with_capacity(requests);
        let per_tier = || spec.tiers.iter().map(|_| column()).collect();
        Self {
            hit_blocks: per_tier(),
            hit_tokens: per_tier(),
            computed_tokens: column(),
            stranded_blocks: column(),
            usable_hit_blocks: if spec.mode == Mode::Object { column() } else { Vec::new() },
            resident_blocks: if spec.occupancy { per_tier() } else { Vec::new() },
            mode: spec.mode,
        }
    }

    pub(super) fn record(&mut self, request: &Request, hierarchy: &Hierarchy<'_>) {
        let mut computed = request.input_tokens;
        let mut usable = 0;
        for k in 0..hierarchy.len() {
            let (from, to) = hierarchy.served(k);
            let (blocks, tokens) = match self.mode {
                Mode::Prefix => (to - from, request.tokens(to) - request.tokens(from)),
                Mode::Object => hierarchy.object_hits(),
            };
            self.push_hits(k, blocks, tokens);
            self.push_resident(k, hierarchy.resident_blocks(k));
            usable = to;
            computed -= tokens;
        }
        self.push_request(computed, hierarchy.stranded(), usable);
    }

    /// Hits of the next request in tier `k`. Tokens of a request fit 32 bits, as its input length does.
    pub(super) fn push_hits(&mut self, k: usize, blocks: u32, tokens: u64) {
        self.hit_blocks[k].push(blocks);
        self.hit_tokens[k].push(tokens as u32);
    }

    /// Blocks resident in tier `k` after the request, if that is kept. No tier holds more than there are.
    pub(super) fn push_resident(&mut self, k: usize, blocks: u64) {
        if let Some(column) = self.resident_blocks.get_mut(k) {
            column.push(blocks as u32);
        }
    }

    /// The rest of a request's row.
    pub(super) fn push_request(
        &mut self,
        computed_tokens: u64,
        stranded_blocks: u32,
        usable_hit_blocks: u32,
    ) {
        self.computed_tokens.push(computed_tokens as u32);
        self.stranded_blocks.push(stranded_blocks);
        if self.mode == Mode::Object {
            self.usable_hit_blocks.push(usable_hit_blocks);
        }
    }
}
