//! `unit=request`: the cache of a system without paging, which keeps whole sequences.
//!
//! As a comparison. An entry is the path of one request, stored in a place of its own: it shares no block with
//! other entries and is evicted whole, least recently used first (Kwon et al., SOSP 2023, section 2, describe what
//! reservation by sequence costs). Rules of a request of `n` blocks:
//!
//! 1. The hit is the longest leading run that its path has in common with any entry; of several entries with it
//!    the most recently used one serves. That entry becomes the most recent one.
//! 2. If the entry holds the whole path, nothing is stored. If the path holds the whole entry, the entry grows
//!    by the rest. Otherwise the path is stored as a new entry of `n` blocks, the common part once more.
//! 3. Entries leave, least recent first (the one being stored never), until all fit. A sequence larger than the
//!    tier is not stored (`no_room`).
//!
//! Counters are in blocks of entries: a block in two entries is resident twice. An entry is dead on arrival when it
//! leaves without having served a request.
//!
//! **State.** `newest[b]` names the most recently used entry that holds block `b`. When the least recent entry
//! leaves, a block whose newest entry it is lies in no other: that one would be more recent.

use super::{Mode, PerRequest, ReplayResult, ReplaySpec, TierResult, visit};
use crate::error::{Error, Result};
use crate::hierarchy::{Counters, Events, Request};
use crate::policy::spec::Spec;
use crate::progress::Progress;
use crate::trace::{Node, Trace};
use std::collections::BTreeMap;

const NONE: u32 = u32::MAX;

/// Replays a tier of whole sequences.
///
/// # Errors
/// [`Error::Config`] for anything but one LRU tier without filter, chunks and events; [`Error::Cancelled`].
pub(super) fn replay(trace: &Trace, spec: &ReplaySpec, progress: &Progress) -> Result<ReplayResult> {
    check(spec)?;
    let mut cache = Sequences::new(trace, spec.tiers[0].capacity_blocks);
    let mut recorder = spec.per_request.then(|| PerRequest::new(spec, trace.len()));
    visit(trace, spec, progress, |request| {
        let hit = cache.serve(request);
        if let Some(recorder) = &mut recorder {
            let tokens = request.tokens(hit);
            recorder.push_hits(0, hit, tokens);
            recorder.push_resident(0, cache.resident);
            recorder.push_request(request.input_tokens - tokens, 0, 0);
        }
    })?;
    let input_tokens = trace.totals().input_tokens;
    let tiers = vec![cache.finish()];
    let events = Events::new(false);
    Ok(ReplayResult { spec: spec.clone(), tiers, requests: recorder, events, input_tokens })
}

fn check(spec: &ReplaySpec) -> Result<()> {
    let [tier] = spec.tiers.as_slice() else {
        return Err(Error::config("unit=request takes one tier", "it is a comparison with one plain cache"));
    };
    let (policy, admission) = (Spec::parse(&tier.policy)?, Spec::parse(&tier.admission)?);
    if policy.name != "lru" || admission.name != "always" {
        return Err(Error::config(
            format!("unit=request with policy={} and admission={}", tier.policy, tier.admission),
            "whole sequences are evicted least recently used first: use policy=lru and admission=always",
        ));
    }
    if spec.mode != Mode::Prefix || tier.chunk_blocks != 1 || spec.events {
        return Err(Error::config(
            "unit=request knows no object mode, no chunks and no events",
            "leave them out, or use unit=block",
        ));
    }
    Ok(())
}

/// A stored sequence.
#[derive(Debug, Clone, Copy)]
struct Entry {
    node: Node,
    blocks: u32,
    /// Key in the order of use.
    used: u64,
    unread: bool,
}

struct Sequences<'a> {
    trace: &'a Trace,
    capacity: u64,
    /// Per block: the most recently used entry that holds it.
    newest: Vec<u32>,
    /// By number; [`Entry::node`] is empty where the entry is gone.
    entries: Vec<Entry>,
    free: Vec<u32>,
    /// Entries from the least to the most recently used.
    order: BTreeMap<u64, u32>,
    clock: u64,
    resident: u64,
    path: Vec<u32>,
    counters: Counters,
}

impl<'a> Sequences<'a> {
    fn new(trace: &'a Trace, capacity: u64) -> Self {
        Self {
            trace,
            capacity,
            newest: vec![NONE; trace.forest.blocks() as usize],
            entries: Vec::new(),
            free: Vec::new(),
            order: BTreeMap::new(),
            clock: 0,
            resident: 0,
            path: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// Serves a request and returns the blocks it hits.
    fn serve(&mut self, request: &Request) -> u32 {
        self.trace.forest.path(request.node, &mut self.path);
        let common =
            self.path.iter().take_while(|&&block| self.newest[block as usize] != NONE).count() as u32;
        let hit = common.min(request.limit_blocks);
        self.counters.count_request(request, hit);
        if common > 0 {
            let source = self.newest[self.path[common as usize - 1] as usize];
            if hit > 0 {
                self.entries[source as usize].unread = false;
            }
            let grows = self.entries[source as usize].blocks == common;
            if common < request.blocks && grows && u64::from(request.blocks) <= self.capacity {
                self.grow(source, request);
                return hit;
            }
            self.touch(source);
        }
        if common < request.blocks {
            self.store(request);
        }
        hit
    }

    /// Makes an entry the most recent one.
    fn touch(&mut self, entry: u32) {
        self.order.remove(&self.entries[entry as usize].used);
        self.clock += 1;
        self.entries[entry as usize].used = self.clock;
        self.order.insert(self.clock, entry);
        let node = self.entries[entry as usize].node;
        self.trace.forest.path(node, &mut self.path);
        for &block in &self.path {
            self.newest[block as usize] = entry;
        }
    }

    /// Lets an entry become the request's whole path.
    fn grow(&mut self, entry: u32, request: &Request) {
        let more = request.blocks - self.entries[entry as usize].blocks;
        self.entries[entry as usize].node = request.node;
        self.entries[entry as usize].blocks = request.blocks;
        self.touch(entry);
        self.evict_down_to(self.capacity - u64::from(more));
        self.count_in(u64::from(more));
    }

    /// Stores the request's path as a new entry.
    fn store(&mut self, request: &Request) {
        if u64::from(request.blocks) > self.capacity {
            self.counters.offered += u64::from(request.blocks);
            self.counters.no_room += u64::from(request.blocks);
            return;
        }
        self.evict_down_to(self.capacity - u64::from(request.blocks));
        let entry = Entry { node: request.node, blocks: request.blocks, used: 0, unread: true };
        let number = self.free.pop().unwrap_or(self.entries.len() as u32);
        if number as usize == self.entries.len() {
            self.entries.push(entry);
        } else {
            self.entries[number as usize] = entry;
        }
        // No entry has the key 0: the clock starts at 1, so touching a new entry removes nothing.
        self.touch(number);
        self.count_in(u64::from(request.blocks));
    }

    fn count_in(&mut self, blocks: u64) {
        self.resident += blocks;
        self.counters.peak = self.counters.peak.max(self.resident);
        self.counters.offered += blocks;
        self.counters.admitted += blocks;
        self.counters.inserted_compute += blocks;
    }

    /// Evicts the least recent entries until at most `blocks` are resident.
    fn evict_down_to(&mut self, blocks: u64) {
        while self.resident > blocks
            && let Some((_, number)) = self.order.pop_first()
        {
            let entry = self.entries[number as usize];
            self.free.push(number);
            self.resident -= u64::from(entry.blocks);
            self.counters.evicted += u64::from(entry.blocks);
            self.counters.dead_on_arrival += if entry.unread { u64::from(entry.blocks) } else { 0 };
            self.trace.forest.path(entry.node, &mut self.path);
            for &block in &self.path {
                if self.newest[block as usize] == number {
                    self.newest[block as usize] = NONE;
                }
            }
        }
    }

    fn finish(mut self) -> TierResult {
        self.counters.resident = self.resident;
        let (mut content, mut path) = (Vec::new(), Vec::new());
        for &number in self.order.values().rev() {
            let entry = self.entries[number as usize];
            self.counters.unread_at_end += if entry.unread { u64::from(entry.blocks) } else { 0 };
            self.trace.forest.path(entry.node, &mut path);
            content.extend_from_slice(&path);
        }
        TierResult { counters: self.counters, content }
    }
}

#[cfg(test)]
mod tests;
