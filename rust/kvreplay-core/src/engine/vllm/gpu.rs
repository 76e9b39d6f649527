//! The prefix cache of the GPU: a pool of blocks, a free queue that is the eviction order, and a map from names
//! to blocks that keeps duplicates.
//!
//! vLLM 0.33.0, `v1/core/block_pool.py`, `kv_cache_utils.py`, `single_type_kv_cache_manager.py`. A *slot* is one
//! block of the pool; slot 0 is the null block, which never holds KV.

use crate::engine::parts::Links;
use crate::engine::{Cause, EngineRequest, Recorder};
use crate::policy::parts::NONE;

/// A slot without a hash: never used, or a block that did not get full.
const UNHASHED: u32 = NONE;
/// A slot with the hash of a block that the trace does not name.
const UNNAMED: u32 = NONE - 1;
/// The free queue.
const FREE: u32 = 0;

/// Where blocks without a hash go when they are freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FreeRule {
    /// To the front of the free queue: the next request takes them (0.23.0 and later).
    UnhashedFirst,
    /// To the back, like all others (0.22.x and earlier).
    AppendAll,
}

/// The GPU tier. One request after the other goes through [`Self::look_up`], [`Self::admit`], [`Self::decode`]
/// and [`Self::free`].
#[derive(Debug)]
pub(crate) struct Gpu {
    tier: usize,
    usable_blocks: u64,
    rule: FreeRule,
    /// Per slot, the block it holds.
    holds: Vec<u32>,
    /// Free slots that were used before, in the order in which they are taken. Never-used slots come before
    /// them and are made when taken.
    queue: Links,
    /// Slots at the front of the queue, the first one last.
    front: Vec<u32>,
    /// Rings of the copies of a block, oldest first.
    copies: Links,
    /// Per block, the slot of its oldest copy.
    oldest: Vec<u32>,
    /// Slots of the running request, root first.
    held: Vec<u32>,
    /// How many of them are full and have a hash.
    hashed: u64,
}

impl Gpu {
    /// A pool of `total_blocks` blocks (vLLM's `num_gpu_blocks`, the null block included), tier `tier` of the
    /// replay, for block numbers below `blocks`.
    pub(crate) fn new(tier: usize, total_blocks: u64, rule: FreeRule, blocks: u32) -> Self {
        Self {
            tier,
            usable_blocks: total_blocks.saturating_sub(1).min(u64::from(NONE - 2)),
            rule,
            holds: vec![UNHASHED],
            queue: Links::new(1, 0),
            front: Vec::new(),
            copies: Links::new(1, 0),
            oldest: vec![NONE; blocks as usize],
            held: Vec::new(),
            hashed: 0,
        }
    }

    /// Whether the prompt fits into the pool; one that does not is never admitted.
    pub(crate) fn fits(&self, request: &EngineRequest<'_>) -> bool {
        request.prompt_tokens.div_ceil(u64::from(request.block_tokens)) <= self.usable_blocks
    }

    /// Tokens the pool can hold.
    pub(crate) fn tokens(&self, block_tokens: u32) -> u64 {
        self.usable_blocks * u64::from(block_tokens)
    }

    /// Blocks of the longest run found, the last prompt token always left out. Changes nothing.
    pub(crate) fn look_up(&self, request: &EngineRequest<'_>) -> u32 {
        let run = request.blocks_before_last_token().iter().take_while(|&&block| self.has(block));
        run.count() as u32
    }

    /// Tells the recorder about a look-up: the hits, and what is resident behind the first block missing.
    pub(crate) fn report(&self, request: &EngineRequest<'_>, hits: u32, out: &mut Recorder) {
        let found = &request.full_blocks()[..hits as usize];
        out.serve(self.tier, found, hits, request.tokens(u64::from(hits)));
        let behind = request.blocks_before_last_token().iter().skip(hits as usize + 1);
        out.strand(self.tier, behind.filter(|&&block| self.has(block)).count() as u32);
    }

    fn has(&self, block: u32) -> bool {
        self.oldest[block as usize] != NONE
    }

    /// Takes the `hits` blocks found and a slot for every other block of the prompt; what these held is
    /// evicted. Full blocks get their hash now, the first `loaded` ones after the hits as promoted.
    pub(crate) fn admit(&mut self, request: &EngineRequest<'_>, hits: u32, loaded: u64, out: &mut Recorder) {
        debug_assert!(self.held.is_empty() && self.fits(request));
        for &block in &request.full_blocks()[..hits as usize] {
            let slot = self.oldest[block as usize];
            self.queue.remove(slot);
            self.held.push(slot);
        }
        self.hashed = u64::from(hits);
        self.grow(request, request.prompt_tokens, u64::from(hits) + loaded, out);
    }

    /// Goes on decoding until `tokens` tokens of prompt and output have KV; ends early where the pool is used up.
    pub(crate) fn decode(&mut self, request: &EngineRequest<'_>, tokens: u64, out: &mut Recorder) {
        self.grow(request, tokens.min(self.tokens(request.block_tokens)), 0, out);
    }

    /// Blocks before `promoted` came from a tier below.
    fn grow(&mut self, request: &EngineRequest<'_>, tokens: u64, promoted: u64, out: &mut Recorder) {
        let block_tokens = u64::from(request.block_tokens);
        while (self.held.len() as u64) < tokens.div_ceil(block_tokens) {
            let slot = self.take(out);
            self.held.push(slot);
        }
        for at in self.hashed..tokens / block_tokens {
            let cause = if at < promoted { Cause::Promotion } else { Cause::Compute };
            self.hash(self.held[at as usize], request.name_of(at), cause, out);
            self.hashed = at + 1;
        }
    }

    /// The first slot of the free queue, emptied.
    fn take(&mut self, out: &mut Recorder) -> u32 {
        if let Some(slot) = self.front.pop() {
            return slot;
        }
        if (self.holds.len() as u64) <= self.usable_blocks {
            self.holds.push(UNHASHED);
            self.copies.add();
            return self.queue.add();
        }
        let slot = self.queue.oldest(FREE).expect("a request never needs more slots than there are");
        self.queue.remove(slot);
        match std::mem::replace(&mut self.holds[slot as usize], UNHASHED) {
            UNHASHED => {}
            UNNAMED => out.evict_unnamed(self.tier),
            block => {
                self.drop_copy(slot, block);
                out.evict(self.tier, block);
            }
        }
        slot
    }

    fn drop_copy(&mut self, slot: u32, block: u32) {
        let oldest = &mut self.oldest[block as usize];
        if *oldest == slot {
            let next = self.copies.next(slot);
            *oldest = if next == slot { NONE } else { next };
        }
        self.copies.remove(slot);
    }

    /// A slot is full: it gets the hash of its block, beside other copies of it.
    fn hash(&mut self, slot: u32, block: Option<u32>, cause: Cause, out: &mut Recorder) {
        let Some(block) = block else {
            self.holds[slot as usize] = UNNAMED;
            return out.insert_unnamed(self.tier, cause);
        };
        self.holds[slot as usize] = block;
        match self.oldest[block as usize] {
            NONE => self.oldest[block as usize] = slot,
            // Before the oldest one in the ring is behind the newest one.
            oldest => self.copies.insert_before(oldest, slot),
        }
        out.insert(self.tier, block, cause);
    }

    /// The request ends: its blocks are freed, tail first.
    pub(crate) fn free(&mut self) {
        while let Some(slot) = self.held.pop() {
            if self.holds[slot as usize] == UNHASHED && self.rule == FreeRule::UnhashedFirst {
                self.front.push(slot);
            } else {
                self.queue.push(FREE, slot);
            }
        }
    }

    /// Resident blocks, each once by its oldest copy, the last to be evicted first.
    pub(crate) fn content(&self) -> Vec<u32> {
        let is_oldest = |&slot: &u32| {
            let block = self.holds[slot as usize];
            block < UNNAMED && self.oldest[block as usize] == slot
        };
        let mut slots: Vec<u32> = self.queue.iter(FREE).filter(is_oldest).collect();
        slots.reverse();
        slots.into_iter().map(|slot| self.holds[slot as usize]).collect()
    }

    /// Names in the order of the free queue, `None` for slots without a name: what the next requests take.
    #[cfg(test)]
    pub(crate) fn queue(&self) -> Vec<Option<u32>> {
        let slots = self.front.iter().rev().copied().chain(self.queue.iter(FREE));
        slots.map(|slot| self.holds[slot as usize]).map(|name| (name < UNNAMED).then_some(name)).collect()
    }

    /// Checks the pool between requests.
    pub(crate) fn validate(&self) -> Result<(), String> {
        let free = self.front.len() + self.queue.iter(FREE).count();
        if !self.held.is_empty() || free + 1 != self.holds.len() {
            return Err(format!("{free} of {} slots are free between requests", self.holds.len() - 1));
        }
        if self.holds.len() as u64 > self.usable_blocks + 1 {
            return Err(format!("{} slots of {} are in use", self.holds.len() - 1, self.usable_blocks));
        }
        for (slot, &block) in self.holds.iter().enumerate() {
            if block < UNNAMED && !self.ring_has(block, slot as u32) {
                return Err(format!("slot {slot} is no copy of its block {block}"));
            }
        }
        let named = self.oldest.iter().enumerate().filter(|&(_, &slot)| slot != NONE);
        for (block, &slot) in named {
            if self.holds[slot as usize] != block as u32 {
                return Err(format!("block {block} is not in slot {slot}"));
            }
        }
        Ok(())
    }

    fn ring_has(&self, block: u32, slot: u32) -> bool {
        let first = self.oldest[block as usize];
        let mut at = first;
        while at != NONE {
            if at == slot {
                return true;
            }
            at = self.copies.next(at);
            if at == first {
                return false;
            }
        }
        false
    }
}
