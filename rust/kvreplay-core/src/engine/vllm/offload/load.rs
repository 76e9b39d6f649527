//! What a request finds in the CPU and behind it, and loads.

use super::super::path::{PROMOTED, WRITTEN};
use super::super::policy::ChunkPolicy;
use super::super::releases::Counted;
use super::Offload;
use crate::engine::{Cause, EngineRequest, Recorder};

/// A look-up may evict chunks of its own run for others of it, which then are brought again. That comes to an end, or
/// (the run is longer than the tier) goes round for ever, in vLLM, too; here the last look-up brings nothing.
const MOST_LOOK_UPS: u32 = 64;

impl<P: ChunkPolicy> Offload<P> {
    /// Looks up what follows the `gpu_tokens` tokens found on the GPU and loads it. Returns the tokens loaded.
    pub(in crate::engine::vllm) fn load(
        &mut self,
        request: &EngineRequest<'_>,
        gpu_tokens: u64,
        out: &mut Recorder,
    ) -> u64 {
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
        if !self.set.flags.recency.is_scoped() {
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
        if !asks {
            self.touch_prompt();
            return self.run_from(first);
        }
        self.count_look_ups(first);
        let mut look_ups = 0;
        loop {
            look_ups += 1;
            self.promoted.clear();
            let end = self.look_up_once(first, look_ups < MOST_LOOK_UPS, out);
            self.touch_prompt();
            if self.promoted.is_empty() {
                return end;
            }
            if !self.set.flags.recency.is_scoped() {
                for &at in &self.promoted {
                    self.policy.transferred(self.path.keys[at as usize]);
                }
            }
        }
    }

    /// Up to 0.30.0 every look-up touches all complete chunks of the prompt, tail first; what is on its way counts
    /// as just written.
    fn touch_prompt(&mut self) {
        if self.set.flags.recency.is_scoped() {
            return;
        }
        let mut on_the_way = self.promoted.iter().rev().peekable();
        for (at, &key) in self.path.keys[..self.prompt_chunks].iter().enumerate().rev() {
            let is_new = on_the_way.next_if(|&&place| place as usize == at).is_some();
            self.policy.touch(key, is_new);
        }
    }

    fn run_from(&self, first: usize) -> usize {
        let chunks = self.path.keys[..self.prompt_chunks].iter().skip(first);
        first + chunks.take_while(|&&key| self.policy.holds(key)).count()
    }

    /// Up to 0.28.0 the threshold counts look-ups.
    fn count_look_ups(&mut self, first: usize) {
        let Some(threshold) = &mut self.set.threshold else { return };
        let to_miss = match self.set.flags.counted {
            Counted::LookUps => false,
            Counted::LookUpsToMiss => true,
            Counted::EachOffer | Counted::Offers => return,
        };
        for &key in &self.path.keys[first..self.prompt_chunks] {
            threshold.tracker.count_one(key, &mut self.gone);
            if to_miss && !self.policy.holds(key) {
                break;
            }
        }
    }

    /// One look-up; starts transfers from secondary tiers.
    fn look_up_once(&mut self, first: usize, may_promote: bool, out: &mut Recorder) -> usize {
        self.offer += 1;
        let mut at = first;
        while at < self.prompt_chunks {
            let key = self.path.keys[at];
            if !self.policy.holds(key) {
                let asked = may_promote && !self.private.is_private(key);
                if !asked || self.set.secondaries.find(key).is_none() || !self.promote(at, out) {
                    break;
                }
            }
            at += 1;
        }
        at
    }

    /// Brings a chunk from a secondary tier into the CPU, unless all others there are on their way, too.
    fn promote(&mut self, at: usize, out: &mut Recorder) -> bool {
        if self.set.flags.recency.is_scoped() {
            self.policy.miss(&mut self.path, at);
        }
        let is_full = self.policy.len() >= self.set.capacity;
        if is_full && !self.evict(1, true, out) {
            return false;
        }
        self.marks[self.path.keys[at] as usize] = self.offer;
        self.policy.insert(&mut self.path, &[at as u32]);
        self.path.set(at, PROMOTED | WRITTEN);
        self.promoted.push(at as u32);
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
}
