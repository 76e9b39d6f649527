//! The CPU tier of the `OffloadingConnector`: which chunks a request loads and offers, and what one store call does.
//!
//! vLLM, `distributed/kv_transfer/kv_connector/v1/offloading/scheduler.py` and `v1/kv_offload/cpu/manager.py` (in
//! 0.11 to 0.18 `offloading_connector.py` and `lru_manager.py`, `arc_manager.py`).

mod load;
mod store;

use super::path::{Path, PrivateKeys, REUSED, WRITTEN};
use super::policy::ChunkPolicy;
use super::releases::{Flags, Spared};
use super::tiering::Secondaries;
use super::tracker::Tracker;
use crate::engine::{EngineRequest, Recorder};

/// `store_threshold`: from which count on a chunk is stored.
#[derive(Debug)]
pub(super) struct Threshold {
    pub(super) count: u32,
    pub(super) tracker: Tracker,
}

impl Threshold {
    fn is_met(&self, key: u32) -> bool {
        self.tracker.get(key) >= self.count
    }
}

/// How a CPU tier is set up.
pub(super) struct Setting {
    /// Its position in the replay.
    pub(super) tier: usize,
    /// Chunks it holds.
    pub(super) capacity: u32,
    pub(super) chunk_blocks: u32,
    pub(super) block_tokens: u32,
    /// Distinct blocks of the trace.
    pub(super) blocks: u32,
    pub(super) flags: Flags,
    pub(super) threshold: Option<Threshold>,
    /// Whether chunks that get full while decoding are offered.
    pub(super) offload_decode: bool,
    /// Whether a GPU is in front: its engine takes several steps, and offers again what was refused.
    pub(super) behind_gpu: bool,
    pub(super) secondaries: Secondaries,
}

/// A range that was offered and refused.
#[derive(Debug, Clone, Copy)]
struct Refused {
    /// End of the range.
    end: usize,
    /// Whether another offer of it changes nothing.
    settled: bool,
}

/// The CPU tier and its secondary tiers.
pub(super) struct Offload<P> {
    set: Setting,
    chunk_tokens: u64,
    policy: P,
    private: PrivateKeys,
    /// Per key, the offer that holds it.
    marks: Vec<u32>,
    offer: u32,
    path: Path,
    /// Complete chunks of the prompt.
    prompt_chunks: usize,
    /// Tokens whose chunks may be stored.
    limit_tokens: u64,
    /// First chunk not stored yet.
    next: usize,
    refused: Option<Refused>,
    /// Chunks that the look-up at hand promotes.
    promoted: Vec<u32>,
    /// Chunks that the call at hand stores.
    places: Vec<u32>,
    /// Chunks that the threshold keeps it from storing.
    rejected: Vec<u32>,
    victims: Vec<u32>,
    gone: Vec<u32>,
}

impl<P: ChunkPolicy> Offload<P> {
    pub(super) fn new(set: Setting) -> Self {
        Self {
            chunk_tokens: u64::from(set.chunk_blocks) * u64::from(set.block_tokens),
            policy: P::new(set.capacity, set.flags),
            private: PrivateKeys::new(set.blocks),
            marks: Vec::new(),
            offer: 0,
            path: Path::default(),
            prompt_chunks: 0,
            limit_tokens: 0,
            next: 0,
            refused: None,
            promoted: Vec::new(),
            places: Vec::new(),
            rejected: Vec::new(),
            victims: Vec::new(),
            gone: Vec::new(),
            set,
        }
    }

    /// Begins a request of which `tokens` tokens of prompt and output will have KV.
    pub(super) fn start(&mut self, request: &EngineRequest<'_>, tokens: u64) {
        self.limit_tokens = if self.set.offload_decode { tokens } else { request.prompt_tokens };
        // Without a GPU nothing bounds a prompt. More chunks than fit are refused, and more than the table holds are
        // not counted: that many without a name stand for any number.
        let entries = self.set.threshold.as_ref().map_or(0, |threshold| threshold.tracker.entries());
        let enough = u64::from(self.set.capacity) + u64::from(entries) + 1;
        let most = if self.set.behind_gpu { u64::MAX } else { enough };
        let blocks = u64::from(self.set.chunk_blocks);
        self.path.read(request, blocks, self.limit_tokens, most, &mut self.private);
        let end = self.private.end();
        self.policy.extend(end);
        self.marks.resize(self.marks.len().max(end), 0);
        if let Some(threshold) = &mut self.set.threshold {
            threshold.tracker.extend(end);
        }
        self.prompt_chunks = self.path.keys.len().min((request.prompt_tokens / self.chunk_tokens) as usize);
        self.next = 0;
        self.refused = None;
    }

    /// Whether a chunk has been counted often enough.
    fn is_wanted(&self, at: usize) -> bool {
        self.set.threshold.as_ref().is_none_or(|threshold| threshold.is_met(self.path.keys[at]))
    }

    /// The chunk was there and is used.
    fn reuse(&mut self, at: usize) {
        if self.set.flags.recency.is_scoped() {
            self.policy.reuse(&mut self.path, at);
        }
        if !self.path.has(at, WRITTEN) {
            self.path.set(at, REUSED);
        }
    }

    /// Evicts `count` chunks; for a promotion, none that is on its way.
    fn evict(&mut self, count: u32, for_promotion: bool, out: &mut Recorder) -> bool {
        self.victims.clear();
        let (marks, offer, threshold) = (&self.marks, self.offer, self.set.threshold.as_ref());
        let spared = if for_promotion { Spared::Offer } else { self.set.flags.spared };
        let is_spared = |key: u32| {
            let is_marked = marks[key as usize] == offer;
            match spared {
                Spared::Nothing => false,
                Spared::Counted => is_marked && threshold.is_none_or(|threshold| threshold.is_met(key)),
                Spared::Offer => is_marked,
            }
        };
        let is_enough = self.policy.evict(count, is_spared, &mut self.victims, &mut self.gone);
        for &key in &self.victims {
            if self.private.is_private(key) {
                out.evict_unnamed(self.set.tier);
            } else {
                out.evict(self.set.tier, key);
            }
        }
        is_enough
    }

    /// The request ends: what was refused is offered once more, and its chunks count for the policy.
    pub(super) fn end(&mut self, tokens: u64, out: &mut Recorder) {
        if self.set.behind_gpu && self.set.flags.offers_at_end && self.refused.is_some() {
            self.step(tokens, out);
        }
        if let Some(refused) = self.refused {
            let absent = (self.next..refused.end)
                .filter(|&at| !self.policy.holds(self.path.keys[at]) && self.is_wanted(at));
            out.no_room(self.set.tier, absent.count() as u64);
        }
        if self.set.flags.recency.is_scoped() {
            self.policy.finish(&self.path);
        }
        self.release();
    }

    /// Gives private keys back that nothing knows any more.
    fn release(&mut self) {
        let threshold = self.set.threshold.as_ref();
        for &key in self.path.unnamed().iter().chain(&self.gone) {
            let is_known = |key| {
                self.policy.knows(key) || threshold.is_some_and(|threshold| threshold.tracker.get(key) > 0)
            };
            if self.private.is_private(key) && !is_known(key) {
                self.private.release(key);
            }
        }
        self.gone.clear();
    }

    /// Resident chunks with a name, the last to be evicted first.
    pub(super) fn content(&self) -> Vec<u32> {
        self.policy.content().into_iter().filter(|&key| !self.private.is_private(key)).collect()
    }

    pub(super) fn secondaries(&self) -> &Secondaries {
        &self.set.secondaries
    }

    #[cfg(test)]
    pub(super) fn policy(&self) -> &P {
        &self.policy
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        if self.policy.len() > self.set.capacity {
            return Err(format!("{} chunks in a tier of {}", self.policy.len(), self.set.capacity));
        }
        if let Some(threshold) = &self.set.threshold {
            threshold.tracker.validate()?;
        }
        self.policy.validate()
    }
}
