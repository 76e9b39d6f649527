//! LRU in object mode by owner runs: every counter of the block engine, for tiers without filters and events.
//!
//! Each block is an access of its own, root first, so a request's deepest block ends on top of the stack. Who
//! owns what does not depend on that order (`stack::pass`): a request owns the blocks of its path that no later one
//! lists, which are its last ones. Say owner `o` has `s` blocks left and later requests own `newer` together,
//! both just before request `r`. When `r` comes to a block of `o`, above it lie the blocks of later requests, the
//! deeper blocks of `o`, and the shallower ones of `o`, which `r` has used by then: `newer + s` is the stack distance of
//! every block of the run. So a run hits as a whole or not at all, and the hits of a request are its first blocks.
//!
//! Before `r`, the block at place `j` of the run lies at depth `newer + s - j`: of a run that does not fit, the last
//! blocks may still be resident, and are stranded.

use super::{PerRequest, ReplayResult, ReplaySpec, TierResult};
use crate::error::Result;
use crate::hierarchy::{Counters, Events};
use crate::progress::Progress;
use crate::stack::{Recorder, ReuseRun, pass};
use crate::trace::Trace;

struct References<'a> {
    trace: &'a Trace,
    capacity_blocks: u64,
    counters: Counters,
    blocks: u64,
    /// Hits of each request, its first blocks: the others it stored, unread.
    hits: Vec<u32>,
    /// Blocks of each request that later requests own, its first ones.
    passed_on: Vec<u32>,
    /// Of the request at hand: hit blocks, and blocks resident behind the leading run.
    hit: u32,
    stranded: u32,
    requests: Option<PerRequest>,
}

impl<'a> References<'a> {
    fn new(trace: &'a Trace, spec: &ReplaySpec) -> Self {
        Self {
            trace,
            capacity_blocks: spec.tiers[0].capacity_blocks,
            counters: Counters::default(),
            blocks: 0,
            hits: Vec::with_capacity(trace.len()),
            passed_on: vec![0; trace.len()],
            hit: 0,
            stranded: 0,
            requests: spec.per_request.then(|| PerRequest::new(spec, trace.len())),
        }
    }

    /// Positions `from .. to` of a request's path that it stored and nobody read.
    fn unread(&self, request: usize, from: u32, to: u32) -> u64 {
        u64::from(to.saturating_sub(from.max(self.hits[request])))
    }

    /// What each request still owns at the end, from the latest on: the request and the positions resident there
    /// and behind them.
    fn owned(&self) -> impl Iterator<Item = (usize, u32, u32, u32)> + '_ {
        let mut above = 0;
        (0..self.trace.len()).rev().map(move |request| {
            let (first, end) = (self.passed_on[request], self.trace.path_len(request));
            let room = self.capacity_blocks.saturating_sub(above).min(u64::from(end - first)) as u32;
            above += u64::from(end - first);
            (request, first, end - room, end)
        })
    }

    /// What only the end can tell.
    fn finish(&mut self) {
        let (mut dead, mut unread) = (0, 0);
        for (request, first, resident, end) in self.owned() {
            dead += self.unread(request, first, resident);
            unread += self.unread(request, resident, end);
        }
        let counters = &mut self.counters;
        counters.dead_on_arrival += dead;
        counters.unread_at_end = unread;
        counters.resident = self.blocks.min(self.capacity_blocks);
        counters.peak = counters.resident;
        counters.evicted = counters.inserted_compute - counters.resident;
        counters.admitted = counters.inserted_compute;
        counters.offered = counters.admitted;
    }

    /// The resident blocks, most recent first.
    fn content(&self) -> Vec<u32> {
        let (mut path, mut out) = (Vec::new(), Vec::new());
        for (request, _, resident, end) in self.owned() {
            if resident < end {
                self.trace.forest.path(self.trace.requests.node[request], &mut path);
                out.extend(path[resident as usize..].iter().rev());
            }
        }
        out
    }
}

impl Recorder for References<'_> {
    fn run(&mut self, run: ReuseRun) {
        let owner = run.owner as usize;
        let left = self.trace.path_len(owner) - self.passed_on[owner];
        self.passed_on[owner] += run.len;
        // Blocks of the run that have left before the request.
        let gone = (u64::from(run.above) + u64::from(left)).saturating_sub(self.capacity_blocks);
        if gone == 0 {
            self.hit += run.len;
        } else {
            self.counters.dead_on_arrival += self.unread(owner, run.start, run.start + run.len);
            self.stranded += u64::from(run.len).saturating_sub(gone) as u32;
        }
    }

    fn request(&mut self, request: u32, known_blocks: u32) {
        let (trace, request) = (self.trace, request as usize);
        let listed = trace.path_len(request);
        let input_tokens = u64::from(trace.requests.input_tokens[request]);
        let hit = std::mem::take(&mut self.hit);
        let stranded = std::mem::take(&mut self.stranded);
        let tokens = trace.tokens(request, hit);
        self.blocks += u64::from(listed - known_blocks);
        self.hits.push(hit);
        let counters = &mut self.counters;
        counters.hit_requests += u64::from(hit > 0);
        counters.asked += u64::from(listed);
        counters.asked_tokens += input_tokens;
        counters.served += u64::from(hit);
        counters.served_tokens += tokens;
        counters.usable += u64::from(hit);
        counters.usable_tokens += tokens;
        counters.stranded += u64::from(stranded);
        counters.inserted_compute += u64::from(listed - hit);
        if let Some(requests) = &mut self.requests {
            requests.push_hits(0, hit, tokens);
            requests.push_resident(0, self.blocks.min(self.capacity_blocks));
            requests.push_request(input_tokens - tokens, stranded, hit);
        }
    }
}

/// Replays one LRU tier of at least one block in object mode: the result of the block engine, without events.
pub(super) fn replay(trace: &Trace, spec: &ReplaySpec, progress: &Progress) -> Result<ReplayResult> {
    let mut references = References::new(trace, spec);
    pass(trace, &mut references, progress)?;
    references.finish();
    let tier = TierResult { counters: references.counters, content: references.content() };
    Ok(ReplayResult {
        spec: spec.clone(),
        tiers: vec![tier],
        requests: references.requests.take(),
        events: Events::new(false),
        input_tokens: trace.totals().input_tokens,
    })
}
