//! The CPU tier of the `OffloadingConnector`: which chunks a request loads and offers, and what one store call does.
//!
//! vLLM 0.33.0, `distributed/kv_transfer/kv_connector/v1/offloading/scheduler.py`, `v1/kv_offload/cpu/manager.py`;
//! the touch rule of 0.30.0 and earlier is that of `0.30.0`.

use super::path::{PROMOTED, Path, PrivateKeys, REUSED, WRITTEN};
use super::policy::{ChunkPolicy, Recency};
use super::tiering::Secondaries;
use super::tracker::Tracker;
use crate::engine::{Cause, EngineRequest, Recorder};

/// What `store_threshold` counts, and from which count on a chunk is stored.
#[derive(Debug)]
pub(super) struct Threshold {
    pub(super) count: u32,
    /// Offers (0.30.0 and later) or look-ups (before).
    pub(super) offers: bool,
    pub(super) tracker: Tracker,
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
    pub(super) recency: Recency,
    pub(super) threshold: Option<Threshold>,
    /// Whether chunks that get full while decoding are offered.
    pub(super) offload_decode: bool,
    /// Whether a GPU is in front: its engine offers what was refused again.
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
    places: Vec<u32>,
    victims: Vec<u32>,
    gone: Vec<u32>,
}

impl<P: ChunkPolicy> Offload<P> {
    pub(super) fn new(set: Setting) -> Self {
        Self {
            chunk_tokens: u64::from(set.chunk_blocks) * u64::from(set.block_tokens),
            policy: P::new(set.capacity, set.recency),
            private: PrivateKeys::new(set.blocks),
            marks: Vec::new(),
            offer: 0,
            path: Path::default(),
            prompt_chunks: 0,
            limit_tokens: 0,
            next: 0,
            refused: None,
            places: Vec::new(),
            victims: Vec::new(),
            gone: Vec::new(),
            set,
        }
    }

    /// Begins a request of which `tokens` tokens of prompt and output will have KV.
    pub(super) fn start(&mut self, request: &EngineRequest<'_>, tokens: u64) {
        self.limit_tokens = if self.set.offload_decode { tokens } else { request.prompt_tokens };
        // More chunks than fit are refused, and more than the table holds are not counted: that many without a
        // name stand for any number.
        let entries = self.set.threshold.as_ref().map_or(0, |threshold| threshold.tracker.entries());
        let most = u64::from(self.set.capacity) + u64::from(entries) + 1;
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

    /// Looks up what follows the `gpu_tokens` tokens found on the GPU and loads it. Returns the tokens loaded.
    pub(super) fn load(&mut self, request: &EngineRequest<'_>, gpu_tokens: u64, out: &mut Recorder) -> u64 {
        let first = (gpu_tokens / self.chunk_tokens) as usize;
        let reach = request.prompt_tokens / self.chunk_tokens * self.chunk_tokens;
        let asks = reach >= gpu_tokens + self.chunk_tokens;
        let end = self.look_up(first, asks, out);
        self.report_stranded(end, out);
        let end_tokens = end as u64 * self.chunk_tokens;
        if !asks || end_tokens < gpu_tokens + self.chunk_tokens {
            return 0;
        }
        self.report_load(first, end, gpu_tokens, out);
        for at in (first..end).rev() {
            self.reuse(at);
        }
        if self.set.recency == Recency::Touch {
            for &key in &self.path.keys[first..end] {
                self.policy.transferred(key);
            }
        }
        self.next = end;
        end_tokens - gpu_tokens
    }

    /// The end of the run of chunks from `first` on, brought from secondary tiers where the CPU lacks them.
    /// A look-up that starts a transfer is repeated when the transfer has ended.
    fn look_up(&mut self, first: usize, asks: bool, out: &mut Recorder) -> usize {
        loop {
            if self.set.recency == Recency::Touch {
                for &key in self.path.keys[..self.prompt_chunks].iter().rev() {
                    self.policy.touch(key, false);
                }
            }
            if !asks {
                return self.run_from(first);
            }
            self.count_look_ups(first);
            let (end, promoted) = self.look_up_once(first, out);
            if !promoted {
                return end;
            }
        }
    }

    fn run_from(&self, first: usize) -> usize {
        let chunks = self.path.keys[..self.prompt_chunks].iter().skip(first);
        first + chunks.take_while(|&&key| self.policy.holds(key)).count()
    }

    /// Before 0.30.0 every chunk looked up counts, the first one missing included.
    fn count_look_ups(&mut self, first: usize) {
        let Some(threshold) = self.set.threshold.as_mut().filter(|threshold| !threshold.offers) else {
            return;
        };
        for &key in &self.path.keys[first..self.prompt_chunks] {
            threshold.tracker.count_look_up(key, &mut self.gone);
            if !self.policy.holds(key) {
                break;
            }
        }
    }

    /// One look-up. Also says whether it started a transfer.
    fn look_up_once(&mut self, first: usize, out: &mut Recorder) -> (usize, bool) {
        self.offer += 1;
        let (mut at, mut promoted) = (first, 0);
        while at < self.prompt_chunks {
            let key = self.path.keys[at];
            if !self.policy.holds(key) {
                // A chunk that was evicted again by later ones of its run would go round for ever.
                let is_lost = self.path.has(at, PROMOTED) || self.private.is_private(key);
                if is_lost || self.set.secondaries.find(key).is_none() || !self.promote(at, promoted, out) {
                    break;
                }
                promoted += 1;
            }
            at += 1;
        }
        (at, promoted > 0)
    }

    /// Brings a chunk from a secondary tier into the CPU; `pinned` others are on their way.
    fn promote(&mut self, at: usize, pinned: u32, out: &mut Recorder) -> bool {
        if pinned >= self.set.capacity {
            return false;
        }
        let scoped = self.set.recency == Recency::RequestScoped;
        if scoped {
            self.policy.miss(&mut self.path, at);
        }
        self.marks[self.path.keys[at] as usize] = self.offer;
        let full = self.policy.len() == self.set.capacity;
        self.evict(u32::from(full), out);
        self.policy.insert(&mut self.path, &[at as u32]);
        if !scoped {
            self.policy.transferred(self.path.keys[at]);
        }
        self.path.set(at, PROMOTED | WRITTEN);
        out.insert(self.set.tier, self.path.keys[at], Cause::Promotion);
        true
    }

    /// Says which tier served which part of the load.
    fn report_load(&mut self, first: usize, end: usize, gpu_tokens: u64, out: &mut Recorder) {
        let mut from_tokens = gpu_tokens;
        let mut from = first;
        while from < end {
            let source = self.source(from);
            let to = (from..end).find(|&at| self.source(at) != source).unwrap_or(end);
            let tokens = to as u64 * self.chunk_tokens - from_tokens;
            let blocks = (tokens / u64::from(self.set.block_tokens)) as u32;
            out.serve(source, &self.path.keys[from..to], blocks, tokens);
            from_tokens += tokens;
            from = to;
        }
    }

    fn source(&self, at: usize) -> usize {
        let promoted = self.path.has(at, PROMOTED);
        let found = if promoted { self.set.secondaries.find(self.path.keys[at]) } else { None };
        found.unwrap_or(self.set.tier)
    }

    fn report_stranded(&self, end: usize, out: &mut Recorder) {
        let behind = self.path.keys[..self.prompt_chunks].iter().skip(end + 1);
        let chunks = behind.filter(|&&key| self.policy.holds(key)).count() as u32;
        out.strand(self.set.tier, chunks * self.set.chunk_blocks);
    }

    /// A step of the engine ends: `tokens` tokens have KV now.
    pub(super) fn step(&mut self, tokens: u64, out: &mut Recorder) {
        let end = (tokens.min(self.limit_tokens) / self.chunk_tokens) as usize;
        let end = end.min(self.path.keys.len());
        if end > self.next && self.store(end, out) {
            self.next = end;
            self.refused = None;
        }
    }

    /// Offers the chunks up to `end` that were not stored yet, in one call. Returns whether it went through.
    fn store(&mut self, end: usize, out: &mut Recorder) -> bool {
        // What a refusal depends on does not get better while the request runs, so only what the offer itself
        // changes is left to do.
        let begin = match self.refused {
            Some(refused) if refused.settled => refused.end,
            Some(_) => self.next,
            None => {
                self.offer += 1;
                self.next
            }
        };
        self.count_offer(begin, end);
        let room = u64::from(self.set.capacity - self.policy.len());
        let (mut candidates, mut present) = (0_u64, 0_u64);
        for at in (begin..end).rev() {
            if self.policy.holds(self.path.keys[at]) {
                present += u64::from(self.is_offered(at));
                self.reuse(at);
            } else if self.is_wanted(at) {
                candidates += 1;
                if self.set.recency == Recency::RequestScoped {
                    self.policy.miss(&mut self.path, at);
                }
            }
        }
        let evictable = u64::from(self.policy.len()) - present;
        if self.refused.is_some() || candidates > room + evictable {
            self.refused = Some(Refused { end, settled: self.is_settled(end) });
            return false;
        }
        self.account(end, present, out);
        if candidates > 0 {
            self.evict(candidates.saturating_sub(room) as u32, out);
            self.write(end, out);
        }
        true
    }

    /// Marks the offer and counts it.
    fn count_offer(&mut self, begin: usize, end: usize) {
        let offer = self.offer;
        let keys = &self.path.keys[begin..end];
        match &mut self.set.threshold {
            Some(threshold) if threshold.offers => {
                for &key in keys {
                    self.marks[key as usize] = offer;
                }
                let marks = &self.marks;
                let is_offered = |key: u32| marks[key as usize] == offer;
                threshold.tracker.count_offer(keys, is_offered, &mut self.gone);
            }
            // Up to 0.29.0 the filter hides the other chunks from the call.
            Some(threshold) => {
                for &key in keys.iter().filter(|&&key| threshold.tracker.get(key) >= threshold.count) {
                    self.marks[key as usize] = offer;
                }
            }
            None => {
                for &key in keys {
                    self.marks[key as usize] = offer;
                }
            }
        }
    }

    fn is_offered(&self, at: usize) -> bool {
        self.marks[self.path.keys[at] as usize] == self.offer
    }

    /// Whether a chunk has been counted often enough.
    fn is_wanted(&self, at: usize) -> bool {
        let key = self.path.keys[at];
        self.set.threshold.as_ref().is_none_or(|threshold| threshold.tracker.get(key) >= threshold.count)
    }

    fn is_settled(&self, end: usize) -> bool {
        let Some(threshold) = self.set.threshold.as_ref().filter(|threshold| threshold.offers) else {
            return true;
        };
        self.path.keys[self.next..end].iter().all(|&key| {
            let count = threshold.tracker.get(key);
            count == 0 || count >= threshold.count
        })
    }

    /// The chunk was there and is used.
    fn reuse(&mut self, at: usize) {
        if self.set.recency == Recency::RequestScoped {
            self.policy.reuse(&mut self.path, at);
        }
        if !self.path.has(at, WRITTEN) {
            self.path.set(at, REUSED);
        }
    }

    /// Tells the recorder what happens to the offer, except the inserts.
    fn account(&mut self, end: usize, present: u64, out: &mut Recorder) {
        out.already_held(self.set.tier, present);
        self.places.clear();
        for at in self.next..end {
            let key = self.path.keys[at];
            if self.policy.holds(key) {
                continue;
            }
            if self.is_wanted(at) {
                self.places.push(at as u32);
            } else if self.private.is_private(key) {
                out.reject_unnamed(self.set.tier);
            } else {
                out.reject(self.set.tier, key);
            }
        }
    }

    fn evict(&mut self, count: u32, out: &mut Recorder) {
        if count == 0 {
            return;
        }
        self.victims.clear();
        let (marks, offer) = (&self.marks, self.offer);
        self.policy.evict(count, |key| marks[key as usize] == offer, &mut self.victims, &mut self.gone);
        for &key in &self.victims {
            if self.private.is_private(key) {
                out.evict_unnamed(self.set.tier);
            } else {
                out.evict(self.set.tier, key);
            }
        }
    }

    /// Stores the chunks at `places` and hands them on to the secondary tiers.
    fn write(&mut self, end: usize, out: &mut Recorder) {
        self.policy.insert(&mut self.path, &self.places);
        for &at in &self.places {
            self.path.set(at as usize, WRITTEN);
            let key = self.path.keys[at as usize];
            if self.private.is_private(key) {
                out.insert_unnamed(self.set.tier, Cause::Compute);
            } else {
                out.insert(self.set.tier, key, Cause::Compute);
            }
        }
        if self.set.recency == Recency::Touch {
            self.touch_written(end);
        }
        for &at in &self.places {
            let key = self.path.keys[at as usize];
            self.set.secondaries.write((!self.private.is_private(key)).then_some(key), out);
        }
    }

    /// Up to 0.30.0: a call that stores touches the whole path, and then the transfers end, head first.
    fn touch_written(&mut self, end: usize) {
        let mut written = self.places.iter().rev().peekable();
        for (at, &key) in self.path.keys[..end].iter().enumerate().rev() {
            let is_new = written.next_if(|&&place| place as usize == at).is_some();
            self.policy.touch(key, is_new);
        }
        for &at in &self.places {
            self.policy.transferred(self.path.keys[at as usize]);
        }
    }

    /// The request ends: what was refused is offered once more, and its chunks count for the policy.
    pub(super) fn end(&mut self, tokens: u64, out: &mut Recorder) {
        if self.set.behind_gpu && self.refused.is_some() {
            self.step(tokens, out);
        }
        if let Some(refused) = self.refused {
            let absent = (self.next..refused.end)
                .filter(|&at| !self.policy.holds(self.path.keys[at]) && self.is_wanted(at));
            out.no_room(self.set.tier, absent.count() as u64);
        }
        if self.set.recency == Recency::RequestScoped {
            self.policy.finish(&self.path);
        }
        self.release();
    }

    /// Gives private keys back that nothing knows any more.
    fn release(&mut self) {
        for &key in self.path.keys.iter().chain(&self.gone) {
            let counted = |threshold: &Threshold| threshold.tracker.get(key) > 0;
            let is_known = self.policy.knows(key) || self.set.threshold.as_ref().is_some_and(counted);
            if self.private.is_private(key) && !is_known {
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
