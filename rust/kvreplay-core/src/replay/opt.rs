//! The engine of `opt`: a set of future references instead of a cache of blocks.
//!
//! Number all references of the trace in order. A resident block is named by the reference at which it is
//! needed next, so the cache is a set of numbers: a reference hits when its number is in the set, and the
//! largest number is the block to drop, the farthest next request first and of one request the deepest
//! block. The next requests along a path never come earlier the deeper the block lies, so they are a few
//! runs per request, found in one pass backwards.

use super::{Mode, PerRequest, ReplayResult, ReplaySpec, TierResult, request, visit};
use crate::error::{Error, Result};
use crate::hierarchy::{Counters, EventKind, Events, Request};
use crate::policy::parts::BitTree;
use crate::progress::Progress;
use crate::trace::Trace;
use std::collections::VecDeque;

const NEVER: u32 = u32::MAX;

/// Replays `opt` as the only tier.
pub(super) fn replay(
    trace: &Trace,
    spec: &ReplaySpec,
    bypass: bool,
    progress: &Progress,
) -> Result<ReplayResult> {
    let tier = &spec.tiers[0];
    if spec.mode == Mode::Prefix && !bypass {
        return Err(Error::config("opt(bypass=false) has no prefix mode", "use opt, or mode=object"));
    }
    if tier.chunk_blocks != 1 {
        return Err(Error::config("opt knows no chunks", "use chunk_blocks=1"));
    }
    let future = Future::read(trace, spec, progress)?;
    let mut opt = Opt::new(trace, &future, tier.capacity_blocks);
    let mut events = Events::new(spec.events);
    let mut recorder = spec.per_request.then(|| PerRequest::new(spec, trace.len()));
    visit(trace, spec, progress, |request| {
        let hits = match spec.mode {
            Mode::Prefix => opt.serve(request, &mut events),
            Mode::Object => opt.access(request, bypass, &mut events),
        };
        if let Some(recorder) = &mut recorder {
            recorder.push_hits(0, hits.blocks, hits.tokens);
            recorder.push_resident(0, opt.resident());
            recorder.push_request(request.input_tokens - hits.tokens, hits.stranded, hits.usable);
        }
    })?;
    let tiers = vec![opt.finish()];
    let input_tokens = trace.totals().input_tokens;
    Ok(ReplayResult { spec: spec.clone(), tiers, requests: recorder, events, input_tokens })
}

/// When the blocks of each request are needed next.
struct Future {
    /// Number of the first reference per request, and their count at the end.
    first: Vec<usize>,
    /// Runs of a request's path with one next request: range in `runs` per request.
    of_request: Vec<(usize, usize)>,
    /// Length and next request ([`NEVER`]).
    runs: Vec<(u32, u32)>,
}

impl Future {
    fn read(trace: &Trace, spec: &ReplaySpec, progress: &Progress) -> Result<Self> {
        let mut future = Self {
            first: Vec::with_capacity(trace.len() + 1),
            of_request: vec![(0, 0); trace.len()],
            runs: Vec::new(),
        };
        let mut at = 0;
        for index in 0..trace.len() {
            future.first.push(at);
            at += request(trace, spec, index).blocks as usize;
        }
        future.first.push(at);
        let mut next = vec![NEVER; trace.forest.blocks() as usize];
        let mut path = Vec::new();
        for index in (0..trace.len()).rev() {
            if index % super::STEP == 0 {
                progress.advance_to(0)?;
            }
            let begin = future.runs.len();
            trace.forest.runs(request(trace, spec, index).node, &mut path);
            for run in &path {
                let here = &mut next[run.start as usize..(run.start + run.len) as usize];
                for same in here.chunk_by(|a, b| a == b) {
                    match future.runs[begin..].last_mut() {
                        Some((len, request)) if *request == same[0] => *len += same.len() as u32,
                        _ => future.runs.push((same.len() as u32, same[0])),
                    }
                }
                here.fill(index as u32);
            }
            future.of_request[index] = (begin, future.runs.len());
        }
        Ok(future)
    }

    fn runs(&self, index: u32) -> &[(u32, u32)] {
        let (begin, end) = self.of_request[index as usize];
        &self.runs[begin..end]
    }
}

/// Hits of one request.
struct Hits {
    blocks: u32,
    tokens: u64,
    usable: u32,
    stranded: u32,
}

struct Opt<'a> {
    trace: &'a Trace,
    future: &'a Future,
    /// Next references of resident blocks.
    set: BitTree,
    /// Those of them whose block was served since it was stored.
    read: BitTree,
    /// Those of them whose block the request now served would store.
    fresh: BitTree,
    size: u64,
    /// Resident blocks that are never needed again and whether they were read, oldest first (no bypass).
    idle: VecDeque<(u32, bool)>,
    capacity: u64,
    counters: Counters,
    path: Vec<u32>,
}

impl<'a> Opt<'a> {
    fn new(trace: &'a Trace, future: &'a Future, capacity: u64) -> Self {
        let tree = || BitTree::new(future.first[trace.len()]);
        Self {
            trace,
            future,
            set: tree(),
            read: tree(),
            fresh: tree(),
            size: 0,
            idle: VecDeque::new(),
            capacity,
            counters: Counters::default(),
            path: Vec::new(),
        }
    }

    /// The block referenced by a number.
    fn block(&self, reference: usize) -> u32 {
        let request = self.future.first.partition_point(|&first| first <= reference) - 1;
        let depth = (reference - self.future.first[request]) as u32 + 1;
        let node = self.trace.forest.truncate(self.trace.requests.node[request], depth);
        self.trace.forest.first(node.chain) + node.len - 1
    }

    /// A block has left: was it ever read.
    fn depart(&mut self, request: &Request, block: impl Fn(&Self) -> u32, read: bool, events: &mut Events) {
        self.counters.evicted += 1;
        self.counters.dead_on_arrival += u64::from(!read);
        if events.on {
            events.push(request.index, 0, EventKind::Evict, block(self));
        }
    }

    /// Prefix mode: look up, then keep the blocks with the nearest next request.
    fn serve(&mut self, request: &Request, events: &mut Events) -> Hits {
        let (first, n) = (self.future.first[request.index as usize], request.blocks as usize);
        let open = self.set.leading_range(first, n);
        let hit = open.min(request.limit_blocks as usize);
        let held = self.set.clear_range(first, n);
        // Of one request the deepest block goes first, so a prefix is never cut in the middle.
        debug_assert_eq!(held, open);
        self.size -= held as u64;
        self.counters.count_request(request, hit as u32);
        if events.on {
            self.trace.forest.path(request.node, &mut self.path);
            for &block in &self.path[..hit] {
                events.push(request.index, 0, EventKind::Hit, block);
            }
        }
        let mut stored = self.look_ahead(request, (first, open, hit), events);
        while self.size > self.capacity {
            let Some(last) = self.set.previous(usize::MAX) else { break };
            self.set.clear(last);
            self.size -= 1;
            if self.fresh.get(last) {
                stored -= 1; // passed by: it never was in
            } else {
                let read = self.read.get(last);
                self.depart(request, |opt| opt.block(last), read, events);
            }
        }
        self.counters.offered += stored;
        self.counters.admitted += stored;
        self.counters.inserted_compute += stored;
        self.counters.peak = self.counters.peak.max(self.size);
        self.forget_fresh(request, events);
        let hit = hit as u32;
        Hits { blocks: hit, tokens: request.tokens(hit), usable: hit, stranded: (held - open) as u32 }
    }

    /// Puts the next references of the path into the set; blocks never needed again leave. Returns how many
    /// of the path were not resident before.
    fn look_ahead(
        &mut self,
        request: &Request,
        (first, open, hit): (usize, usize, usize),
        events: &mut Events,
    ) -> u64 {
        let future = self.future;
        let (mut at, mut stored) = (0, 0);
        for &(len, next) in future.runs(request.index) {
            let end = at + len as usize;
            if next == NEVER {
                for position in at..end.min(open) {
                    let read = position < hit || self.read.get(first + position);
                    self.depart(request, |opt| opt.block(first + position), read, events);
                }
            } else {
                let to = future.first[next as usize];
                let (known, read) = (open.clamp(at, end), hit.clamp(at, end));
                self.set.set_range(to + at, len as usize);
                self.size += u64::from(len);
                self.read.set_range(to + at, read - at);
                self.read.clear_range(to + read, end - read);
                for position in read..known {
                    if self.read.get(first + position) {
                        self.read.set(to + position);
                    }
                }
                self.fresh.set_range(to + known, end - known);
                stored += (end - known) as u64;
            }
            at = end;
        }
        stored
    }

    /// Ends a request: what is still fresh was stored.
    fn forget_fresh(&mut self, request: &Request, events: &mut Events) {
        let future = self.future;
        let mut at = 0;
        for &(len, next) in future.runs(request.index) {
            if next != NEVER {
                let to = future.first[next as usize] + at;
                if events.on {
                    for position in
                        (0..len as usize).filter(|&i| self.fresh.get(to + i) && self.set.get(to + i))
                    {
                        events.push(request.index, 0, EventKind::Insert, self.path[at + position]);
                    }
                }
                self.fresh.clear_range(to, len as usize);
            }
            at += len as usize;
        }
    }

    /// Object mode: every reference an access of its own.
    fn access(&mut self, request: &Request, bypass: bool, events: &mut Events) -> Hits {
        let (first, n) = (self.future.first[request.index as usize], request.blocks as usize);
        let stranded = (self.set.count_range(first, n) - self.set.leading_range(first, n)) as u32;
        self.counters.stranded += u64::from(stranded);
        if events.on {
            self.trace.forest.path(request.node, &mut self.path);
        }
        let future = self.future;
        let (mut at, mut hits, mut usable, mut tokens) = (0_u32, 0, 0, 0);
        for &(len, next) in future.runs(request.index) {
            for position in at..at + len {
                let to = (next != NEVER).then(|| future.first[next as usize] + position as usize);
                if self.access_one(request, position, to, bypass, events) {
                    usable += u32::from(usable == position);
                    hits += 1;
                    tokens += request.tokens(position + 1) - request.tokens(position);
                }
            }
            at += len;
        }
        self.counters.count_request(request, hits);
        // Tokens and usable blocks are not those of a leading run here.
        self.counters.served_tokens += tokens;
        self.counters.served_tokens -= request.tokens(hits);
        let usable = usable.min(request.limit_blocks);
        self.counters.usable += u64::from(usable);
        self.counters.usable_tokens += request.tokens(usable);
        Hits { blocks: hits, tokens, usable, stranded }
    }

    fn access_one(
        &mut self,
        request: &Request,
        position: u32,
        to: Option<usize>,
        bypass: bool,
        events: &mut Events,
    ) -> bool {
        let at = self.future.first[request.index as usize] + position as usize;
        let log = |opt: &Self, events: &mut Events, kind| {
            if events.on {
                events.push(request.index, 0, kind, opt.path[position as usize]);
            }
        };
        let hit = self.set.get(at);
        if hit {
            self.set.clear(at);
            self.size -= 1;
            log(self, events, EventKind::Hit);
        } else if !bypass {
            if self.capacity == 0 {
                return false;
            }
            if self.size + self.idle.len() as u64 == self.capacity {
                self.evict_one(request, events);
            }
        }
        let Some(to) = to else {
            self.idle_or_gone(request, at, (hit, bypass), events);
            return hit;
        };
        self.set.set(to);
        self.size += 1;
        if hit {
            self.read.set(to);
        } else {
            self.read.clear(to);
        }
        let passed_by = bypass && self.size > self.capacity && self.set.previous(usize::MAX) == Some(to);
        if passed_by {
            self.set.clear(to);
            self.size -= 1;
        } else {
            if self.size + self.idle.len() as u64 > self.capacity {
                self.evict_one(request, events);
            }
            if !hit {
                self.stored();
                log(self, events, EventKind::Insert);
            }
        }
        hit
    }

    fn stored(&mut self) {
        self.counters.offered += 1;
        self.counters.admitted += 1;
        self.counters.inserted_compute += 1;
        self.counters.peak = self.counters.peak.max(self.size + self.idle.len() as u64);
    }

    /// A block was accessed for the last time.
    fn idle_or_gone(
        &mut self,
        request: &Request,
        at: usize,
        (hit, bypass): (bool, bool),
        events: &mut Events,
    ) {
        if !bypass {
            let block = self.block(at);
            self.idle.push_back((block, hit));
            if !hit {
                self.stored();
                if events.on {
                    events.push(request.index, 0, EventKind::Insert, block);
                }
            }
        } else if hit {
            self.depart(request, |opt| opt.block(at), true, events);
        }
    }

    /// Evicts a block that is never needed again, or else the one needed last.
    fn evict_one(&mut self, request: &Request, events: &mut Events) {
        if let Some((block, read)) = self.idle.pop_front() {
            self.depart(request, |_| block, read, events);
        } else if let Some(last) = self.set.previous(usize::MAX) {
            self.set.clear(last);
            self.size -= 1;
            let read = self.read.get(last);
            self.depart(request, |opt| opt.block(last), read, events);
        }
    }

    /// Blocks resident now.
    fn resident(&self) -> u64 {
        self.size + self.idle.len() as u64
    }

    /// Counters and content at the end.
    fn finish(mut self) -> TierResult {
        self.counters.resident = self.resident();
        self.counters.unread_at_end = self.idle.iter().filter(|(_, read)| !read).count() as u64;
        TierResult {
            counters: self.counters,
            content: self.idle.iter().rev().map(|&(block, _)| block).collect(),
        }
    }
}
