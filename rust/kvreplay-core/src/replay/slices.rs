//! A replay by slices of one LRU stack: every counter of the block engine, from owner runs.
//!
//! The tiers are covers (`stack::exact_slices`): after each request the tiers down to `k` hold the top `S_k` of the
//! stack. Two kinds of tier have books of their own:
//!
//! - an **inclusive** tier (the first, and a `write_through` tier) holds the whole top `S_k`. A request of
//!   `n` blocks inserts its positions `h_k .. min(n, S_k)`, where `h_k` is its hit at capacity `S_k`;
//! - an **exclusive** tier (`victim`) holds the blocks between `S_(k-1)` and `S_k`. It receives what the tier
//!   above evicts and gives up what it serves, so all that it evicts was never served.
//!
//! What was never served by an inclusive tier needs memory: a block that a tier above serves again stays unread
//! in this one. So each request keeps the positions it owns that are unread here: those it inserted, and those it took
//! over unread from their last owner. An owner's blocks leave it in the order of the path and once, so a list
//! of intervals per request is enough.

use super::{PerRequest, ReplayResult, ReplaySpec, TierResult};
use crate::error::Result;
use crate::hierarchy::{Counters, Events};
use crate::progress::Progress;
use crate::stack::{Recorder, ReuseRun, pass};
use crate::trace::{Run, Trace};

/// A tier as a slice of the stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CoverTier {
    /// Blocks that the tiers above hold together.
    pub(super) above: u64,
    /// Blocks that the tiers down to this one hold together.
    pub(super) cover: u64,
    /// Whether it holds only what lies between the two.
    pub(super) exclusive: bool,
}

impl CoverTier {
    /// Blocks it holds when there were so many distinct ones.
    fn resident(self, blocks: u64) -> u64 {
        let above = if self.exclusive { self.above } else { 0 };
        blocks.min(self.cover).saturating_sub(above)
    }
}

/// Positions `from .. to` of a path.
type Span = (u32, u32);

/// How much of a span lies in `from .. to`.
fn overlap(span: Span, from: u32, to: u32) -> u32 {
    span.1.min(to).saturating_sub(span.0.max(from))
}

/// How many blocks of a run hit at a capacity.
fn hits_of(run: ReuseRun, capacity_blocks: u64) -> u32 {
    capacity_blocks.saturating_sub(u64::from(run.above)).min(u64::from(run.len)) as u32
}

/// The books of one tier.
struct Books {
    tier: CoverTier,
    counters: Counters,
    /// Hits of the current request at `above` and at `cover`.
    hit_above: u32,
    hit: u32,
    /// Inclusive tiers: what each request inserted.
    inserted: Vec<Span>,
    /// Below other tiers: what each request took over unread, ascending; all before what it inserted.
    kept: Vec<Vec<Span>>,
    now: Vec<Span>,
}

impl Books {
    fn new(tier: CoverTier, requests: usize) -> Self {
        Self {
            tier,
            counters: Counters::default(),
            hit_above: 0,
            hit: 0,
            inserted: Vec::with_capacity(if tier.exclusive { 0 } else { requests }),
            kept: Vec::new(),
            now: Vec::new(),
        }
    }

    fn run(&mut self, run: ReuseRun) {
        let (above, here) = (hits_of(run, self.tier.above), hits_of(run, self.tier.cover));
        self.hit_above += above;
        self.hit += here;
        if self.tier.exclusive {
            return;
        }
        let gone = self.unread(run.owner, run.start + here, run.start + run.len);
        self.counters.dead_on_arrival += gone;
        if above > 0 {
            self.take_over(run.owner, run.start, run.start + above);
        }
    }

    /// Unread positions of `owner` in `from .. to`.
    fn unread(&self, owner: u32, from: u32, to: u32) -> u64 {
        let own = u64::from(overlap(self.inserted[owner as usize], from, to));
        let Some(kept) = self.kept.get(owner as usize) else { return own };
        let first = kept.partition_point(|span| span.1 <= from);
        let more = kept[first..].iter().take_while(|span| span.0 < to);
        own + more.map(|&span| u64::from(overlap(span, from, to))).sum::<u64>()
    }

    /// Hands the unread positions in `from .. to` on to the current request.
    fn take_over(&mut self, owner: u32, from: u32, to: u32) {
        let owner = owner as usize;
        let kept = self.kept.get(owner).map_or(&[][..], Vec::as_slice);
        let first = kept.partition_point(|span| span.1 <= from);
        let own = std::iter::once(&self.inserted[owner]);
        for &(start, end) in kept[first..].iter().take_while(|span| span.0 < to).chain(own) {
            let (start, end) = (start.max(from), end.min(to));
            if start >= end {
                continue;
            }
            match self.now.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                _ => self.now.push((start, end)),
            }
        }
    }

    /// Closes a request of `listed` blocks of which all tiers together serve `served`; `tokens` are those of a
    /// leading run of blocks. Returns the blocks this tier served, as positions.
    fn close(&mut self, listed: u32, served: u32, input_tokens: u64, tokens: impl Fn(u32) -> u64) -> Span {
        let (from, to) = (std::mem::take(&mut self.hit_above), std::mem::take(&mut self.hit));
        let counters = &mut self.counters;
        counters.hit_requests += u64::from(to > from);
        counters.asked += u64::from(listed - from);
        counters.asked_tokens += input_tokens - tokens(from);
        counters.served += u64::from(to - from);
        counters.served_tokens += tokens(to) - tokens(from);
        if !self.tier.exclusive {
            let end = u64::from(listed).min(self.tier.cover) as u32;
            let promoted = served.min(end).saturating_sub(to);
            counters.inserted_promotion += u64::from(promoted);
            counters.inserted_compute += u64::from(end.saturating_sub(to) - promoted);
            self.inserted.push((to, end.max(to)));
            if self.tier.above > 0 {
                self.kept.push(std::mem::take(&mut self.now));
            }
        }
        (from, to)
    }
}

/// All books of a pass, and who still owns what.
struct Slices<'a> {
    trace: &'a Trace,
    books: Vec<Books>,
    /// Whether the tiers are one hierarchy; else each is a cache of its own.
    together: bool,
    /// Blocks of each request that later requests took over.
    passed_on: Vec<u32>,
    blocks: u64,
    requests: Option<PerRequest>,
}

impl<'a> Slices<'a> {
    fn new(trace: &'a Trace, tiers: &[CoverTier], together: bool, requests: Option<PerRequest>) -> Self {
        Self {
            trace,
            books: tiers.iter().map(|&tier| Books::new(tier, trace.len())).collect(),
            together,
            passed_on: vec![0; trace.len()],
            blocks: 0,
            requests,
        }
    }

    /// Positions that `request` owns at the end.
    fn owned(&self, request: usize) -> Span {
        (self.passed_on[request], self.trace.path_len(request))
    }

    /// What only the end can tell.
    fn finish(&mut self) {
        let mut above = 0_u64;
        for request in (0..self.trace.len()).rev() {
            let (first, end) = self.owned(request);
            for books in self.books.iter_mut().filter(|books| !books.tier.exclusive) {
                let room = books.tier.cover.saturating_sub(above).min(u64::from(end - first)) as u32;
                let unread = books.unread(request as u32, first, first + room);
                let dead = books.unread(request as u32, first + room, end);
                books.counters.unread_at_end += unread;
                books.counters.dead_on_arrival += dead;
            }
            above += u64::from(end - first);
        }
        let mut handed_down = 0;
        for Books { tier, counters, .. } in &mut self.books {
            counters.resident = tier.resident(self.blocks);
            if tier.exclusive {
                counters.inserted_demotion = handed_down;
                counters.moved_up = counters.served;
                counters.evicted = handed_down - counters.moved_up - counters.resident;
                counters.dead_on_arrival = counters.evicted;
                counters.unread_at_end = counters.resident;
            } else {
                counters.evicted = counters.inserted() - counters.resident;
            }
            counters.peak = counters.resident;
            counters.admitted = counters.inserted();
            counters.offered = counters.admitted;
            handed_down = counters.evicted;
        }
    }

    /// The blocks at the places `from .. to` of the stack, most recent first.
    fn content(&self, from: u64, to: u64) -> Vec<u32> {
        let (mut at, mut runs, mut out) = (0_u64, Vec::new(), Vec::new());
        for request in (0..self.trace.len()).rev() {
            let (first, end) = self.owned(request);
            let next = at + u64::from(end - first);
            if end > first && next > from && at < to {
                let skip = first + from.saturating_sub(at) as u32;
                let stop = first + (to.min(next) - at) as u32;
                self.trace.forest.runs(self.trace.requests.node[request], &mut runs);
                push_part(&runs, skip, stop, &mut out);
            }
            at = next;
            if at >= to {
                break;
            }
        }
        out
    }
}

/// Appends the blocks at positions `from .. to` of a path.
fn push_part(runs: &[Run], from: u32, to: u32, out: &mut Vec<u32>) {
    let mut at = 0;
    for run in runs {
        let (begin, end) = (from.clamp(at, at + run.len), to.clamp(at, at + run.len));
        out.extend(run.start + (begin - at)..run.start + (end.max(begin) - at));
        at += run.len;
    }
}

impl Recorder for Slices<'_> {
    fn run(&mut self, run: ReuseRun) {
        self.passed_on[run.owner as usize] += run.len;
        for books in &mut self.books {
            books.run(run);
        }
    }

    fn request(&mut self, request: u32, known_blocks: u32) {
        let (trace, request) = (self.trace, request as usize);
        let listed = trace.path_len(request);
        let input_tokens = u64::from(trace.requests.input_tokens[request]);
        self.blocks += u64::from(listed - known_blocks);
        let all = self.books.last().map_or(0, |books| books.hit);
        for (k, books) in self.books.iter_mut().enumerate() {
            let served = if self.together { all } else { books.hit };
            let (from, to) = books.close(listed, served, input_tokens, |n| trace.tokens(request, n));
            if let Some(requests) = &mut self.requests {
                requests.push_hits(k, to - from, trace.tokens(request, to) - trace.tokens(request, from));
                requests.push_resident(k, books.tier.resident(self.blocks));
            }
        }
        if let Some(requests) = &mut self.requests {
            requests.push_request(input_tokens - trace.tokens(request, all), 0, 0);
        }
    }
}

/// Replays tiers that are slices of one stack: the result of the block engine, without events.
pub(super) fn replay(
    trace: &Trace,
    spec: &ReplaySpec,
    tiers: &[CoverTier],
    progress: &Progress,
) -> Result<ReplayResult> {
    let requests = spec.per_request.then(|| PerRequest::new(spec, trace.len()));
    let mut slices = Slices::new(trace, tiers, true, requests);
    pass(trace, &mut slices, progress)?;
    slices.finish();
    let tiers = slices.books.iter().map(|books| {
        let from = if books.tier.exclusive { books.tier.above } else { 0 };
        TierResult { counters: books.counters, content: slices.content(from, books.tier.cover) }
    });
    Ok(ReplayResult {
        spec: spec.clone(),
        tiers: tiers.collect(),
        requests: slices.requests.take(),
        events: Events::new(false),
        input_tokens: trace.totals().input_tokens,
    })
}

/// Counters of single LRU tiers of the given capacities (blocks), all from one pass (8 bytes per request and
/// capacity).
///
/// # Errors
/// As [`pass`].
pub fn lru_each(trace: &Trace, capacities: &[u64], progress: &Progress) -> Result<Vec<Counters>> {
    let tier = |&cover: &u64| CoverTier { above: 0, cover, exclusive: false };
    let tiers: Vec<CoverTier> = capacities.iter().map(tier).collect();
    let mut slices = Slices::new(trace, &tiers, false, None);
    pass(trace, &mut slices, progress)?;
    slices.finish();
    Ok(slices.books.into_iter().map(|books| books.counters).collect())
}
