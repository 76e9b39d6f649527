//! The V1 manager (C++ `WindowBlockManager`), one request at a time.

use super::options::{EmptiedSlot, Options};
use super::slots::{Block, DEFAULT_PRIORITY, Retention, Slots};
use super::tree::{Found, Key, Tree};
use crate::engine::{Cause, EngineModel, EngineRequest, Recorder};
use crate::policy::parts::NONE;

const GPU: usize = 0;
const HOST: usize = 1;

/// The model.
#[derive(Debug)]
pub(super) struct V1 {
    options: Options,
    capacities: [u32; 2],
    slots: Slots,
    tree: Tree,
    /// Blocks of the request at hand, root first.
    held: Vec<u32>,
    now_us: Option<i64>,
}

impl V1 {
    /// Tier 0 is the GPU (primary), tier 1 the host (secondary), which may have no room.
    pub(super) fn new(options: Options, capacities: [u32; 2], names: u32) -> Self {
        let (slots, tree) = (Slots::new(&capacities), Tree::new(names));
        Self { options, capacities, slots, tree, held: Vec::new(), now_us: None }
    }

    /// Matches the prompt, all tokens but the last, and takes a block for each of its blocks.
    fn add_sequence(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        let size = u64::from(request.block_tokens);
        let usable = request.prompt_tokens - 1;
        let mut searching = true;
        for at in 0..request.prompt_tokens.div_ceil(size) {
            let tokens = size.min(usable - at * size) as u32;
            let retention = self.options.prompt_retention(at * size);
            let name = request.listed.get(at as usize).copied();
            let found = name.filter(|_| searching && tokens > 0).and_then(|name| {
                self.tree.find(&self.slots, name, tokens, request.block_tokens, self.options.partial)
            });
            searching = matches!(found, Some(Found::Full(_)));
            let block = match found {
                Some(Found::Full(block)) => {
                    self.record_hit(block, 1, tokens, out);
                    self.slots.claim(block, retention);
                    self.onboard(block, out);
                    block
                }
                Some(Found::Partial(block, matched)) => {
                    self.record_hit(block, 0, matched, out);
                    self.reuse_part(block, retention, out)
                }
                None => self.allocate(retention, out),
            };
            self.held.push(block);
        }
    }

    fn record_hit(&self, block: u32, blocks: u32, tokens: u32, out: &mut Recorder) {
        let at = &self.slots.blocks[block as usize];
        let unit = [at.unit()];
        let units = if at.counted && unit[0] != NONE { &unit[..] } else { &[] };
        out.serve(at.level as usize, units, blocks, u64::from(tokens));
    }

    /// The leading tokens of a block: copied into a new one, or the block itself if nobody else needs it.
    fn reuse_part(&mut self, block: u32, retention: Retention, out: &mut Recorder) -> u32 {
        let at = &self.slots.blocks[block as usize];
        if !at.queued || at.first_child != NONE {
            let same = Retention { priority: Some(at.priority), duration_us: at.duration_us };
            return self.allocate(same, out);
        }
        at.record_evict(at.level as usize, out);
        self.tree.remove(&mut self.slots, block);
        self.slots.claim(block, retention);
        self.onboard(block, out);
        block
    }

    /// Brings a block of the host to the GPU. The slot it leaves is free, but where it queues decides when
    /// it is used again.
    fn onboard(&mut self, block: u32, out: &mut Recorder) {
        if self.slots.blocks[block as usize].level as usize == GPU {
            return;
        }
        let emptied = self.allocate(Retention::default(), out);
        self.slots.blocks[block as usize].level = GPU as u8;
        self.slots.blocks[emptied as usize].level = HOST as u8;
        let at = &self.slots.blocks[block as usize];
        if at.counted {
            out.move_up(HOST, at.unit());
            out.insert(GPU, at.unit(), Cause::Promotion);
        }
        let to_front = self.options.emptied_slot == EmptiedSlot::Front;
        if to_front {
            self.slots.blocks[emptied as usize].priority = 0;
        }
        self.slots.release(emptied, to_front, self.now_us);
    }

    /// A GPU block for new content: the victim, or the block whose host slot the victim's content takes.
    fn allocate(&mut self, retention: Retention, out: &mut Recorder) -> u32 {
        let victim = self.slots.pop(GPU).expect("admitted requests fit the GPU");
        let at = &self.slots.blocks[victim as usize];
        let offloads = at.tokens > 0 && at.priority >= self.options.secondary_offload_min_priority;
        let lower = if offloads { self.slots.pop(HOST) } else { None };
        let block = lower.unwrap_or(victim);
        self.tree.detach(&mut self.slots, block, out);
        if lower.is_some() {
            self.offload(victim, out);
        }
        let at = &mut self.slots.blocks[block as usize];
        (at.level, at.tokens) = (GPU as u8, 0);
        let priority = Some(retention.priority.unwrap_or(DEFAULT_PRIORITY));
        self.slots.claim(block, Retention { priority, ..retention });
        block
    }

    /// A victim's content goes to the host and queues there with its priority, for ever.
    fn offload(&mut self, victim: u32, out: &mut Recorder) {
        let at = &mut self.slots.blocks[victim as usize];
        (at.level, at.duration_us) = (HOST as u8, 0);
        at.record_evict(GPU, out);
        at.record_insert(HOST, Cause::Demotion, out);
        self.slots.release(victim, false, self.now_us);
    }

    /// Puts the blocks of the finished request into the tree, those after the first that is not there yet.
    fn store(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        let (mut parent, mut matching, mut known) = (NONE, true, true);
        for at in 0..self.held.len() {
            let key = key(request, at as u64, known);
            // A name says nothing behind a block that has none.
            known &= key.name != NONE;
            let found = if matching { self.tree.exact(&self.slots, &key) } else { NONE };
            let block = self.held[at];
            self.slots.blocks[block as usize].tokens = key.tokens;
            parent = if found == NONE {
                matching = false;
                self.tree.insert(&mut self.slots, block, parent, &key, out);
                block
            } else {
                found
            };
        }
    }
}

/// What block number `at` of the finished sequence holds; names count if all blocks before are `known`.
fn key(request: &EngineRequest<'_>, at: u64, known: bool) -> Key {
    let size = u64::from(request.block_tokens);
    let tokens = size.min(request.total_tokens() - at * size);
    let prompt_tokens = request.prompt_tokens.saturating_sub(at * size).min(size);
    let listed = request.listed.get(at as usize).copied().unwrap_or(NONE);
    let name = if known && tokens == size { request.name_of(at).unwrap_or(NONE) } else { NONE };
    // A block the prompt fills is known by its name alone.
    let leads = known && prompt_tokens > 0 && prompt_tokens < size && listed != NONE;
    let (lead, lead_tokens) = if leads { (listed, prompt_tokens as u32) } else { (NONE, 0) };
    Key { name, lead, lead_tokens, tokens: tokens as u32, full: tokens == size }
}

impl EngineModel for V1 {
    fn serve(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        self.now_us = request.now_us;
        if let Some(now_us) = request.now_us {
            self.slots.refresh(now_us);
        }
        let size = u64::from(request.block_tokens);
        let needed = request.total_tokens().div_ceil(size);
        if request.prompt_tokens == 0 || needed > u64::from(self.capacities[GPU]) {
            return;
        }
        self.add_sequence(request, out);
        let decode = self.options.decode_retention();
        for _ in self.held.len() as u64..needed {
            let block = self.allocate(decode, out);
            self.held.push(block);
        }
        self.store(request, out);
        while let Some(block) = self.held.pop() {
            self.slots.release(block, false, self.now_us);
        }
    }

    fn content(&self, tier: usize) -> Vec<u32> {
        let counted = self.slots.last_first(tier).map(|block| &self.slots.blocks[block as usize]);
        counted.filter(|at| at.counted && at.unit() != NONE).map(Block::unit).collect()
    }

    fn validate(&self) -> Result<(), String> {
        self.slots.validate(&self.capacities)?;
        self.tree.validate(&self.slots)
    }
}
