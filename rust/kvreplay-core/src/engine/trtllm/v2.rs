//! The V2 manager (`kv_cache_manager_v2`), full blocks of one full-attention pool, one request at a time.

use super::options::Options;
use super::slots::{DEFAULT_PRIORITY, Slots};
use super::tree::{Key, Tree};
use crate::engine::{Cause, EngineModel, EngineRequest, Recorder};
use crate::policy::parts::NONE;

const GPU: usize = 0;

/// The model. A page is a block of [`Slots`]; pages that nobody uses lie in the queues.
#[derive(Debug)]
pub(super) struct V2 {
    options: Options,
    capacities: Vec<u32>,
    used: Vec<u32>,
    slots: Slots,
    tree: Tree,
    /// Pages given back, to be made anew.
    recycled: Vec<u32>,
    /// Pages of the request at hand, root first.
    held: Vec<u32>,
    /// Lists of pages on the move.
    buffers: Vec<Vec<u32>>,
}

impl V2 {
    /// Tiers from the GPU down; none has more pages than it may hold.
    pub(super) fn new(options: Options, capacities: Vec<u32>, names: u32) -> Self {
        let none = vec![0; capacities.len()];
        let (slots, tree) = (Slots::new(&none), Tree::new(names));
        let (recycled, held, buffers) = (Vec::new(), Vec::new(), Vec::new());
        Self { options, capacities, used: none, slots, tree, recycled, held, buffers }
    }

    /// Takes the pages of the leading run, whatever level they are on.
    fn look_up(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        for &name in request.blocks_before_last_token() {
            let page = self.tree.full(name);
            if page == NONE {
                break;
            }
            let level = self.slots.blocks[page as usize].level as usize;
            out.serve(level, &[name], 1, u64::from(request.block_tokens));
            self.slots.unlink(page);
            self.held.push(page);
        }
    }

    /// Brings all found pages to the GPU at once.
    fn onboard(&mut self, out: &mut Recorder) {
        let below = |&&page: &&u32| self.slots.blocks[page as usize].level as usize != GPU;
        let missing = self.held.iter().filter(below).count() as u32;
        self.make_room(missing, out);
        for at in 0..self.held.len() {
            let page = &mut self.slots.blocks[self.held[at] as usize];
            let level = page.level as usize;
            if level != GPU {
                page.level = GPU as u8;
                self.used[level] -= 1;
                self.used[GPU] += 1;
                out.move_up(level, page.name);
                out.insert(GPU, page.name, Cause::Promotion);
            }
        }
    }

    /// New GPU pages with a priority each.
    fn add(&mut self, at: std::ops::Range<u64>, request: &EngineRequest<'_>, out: &mut Recorder) {
        self.make_room((at.end - at.start) as u32, out);
        for at in at {
            let token = at * u64::from(request.block_tokens);
            let retention = if token < request.prompt_tokens {
                self.options.prompt_retention(token)
            } else {
                self.options.decode_retention()
            };
            let page = self.recycled.pop().unwrap_or_else(|| self.slots.make(GPU));
            let block = &mut self.slots.blocks[page as usize];
            (block.level, block.priority) = (GPU as u8, retention.priority.unwrap_or(DEFAULT_PRIORITY));
            self.used[GPU] += 1;
            self.held.push(page);
        }
    }

    fn make_room(&mut self, pages: u32, out: &mut Recorder) {
        if self.capacities[GPU] - self.used[GPU] < pages {
            self.prepare(GPU, pages, &mut Vec::new(), out);
        }
    }

    /// Frees `goal` slots of a level and takes in the pages that fell from above.
    fn prepare(&mut self, level: usize, goal: u32, fallen: &mut Vec<u32>, out: &mut Recorder) {
        let last = level + 1 == self.capacities.len();
        let free = self.capacities[level] - self.used[level];
        let short = (goal + fallen.len() as u32).saturating_sub(free).min(self.slots.free(level));
        let mut moving = self.buffers.pop().unwrap_or_default();
        moving.extend((0..short).map_while(|_| self.slots.pop(level)));
        if last {
            for page in moving.drain(..) {
                self.lose(page, out);
            }
        }
        moving.append(fallen);
        // What was evicted here leaves before the fallen pages come in.
        let room = self.capacities[level] - self.used[level] + if last { 0 } else { short } - goal;
        let leaving = moving.len() - moving.len().min(room as usize);
        if last {
            for &page in &moving[..leaving] {
                self.lose(page, out);
            }
        } else if leaving > 0 {
            let mut below = self.buffers.pop().unwrap_or_default();
            below.extend_from_slice(&moving[..leaving]);
            self.prepare(level + 1, 0, &mut below, out);
            self.buffers.push(below);
        }
        for &page in &moving[leaving..] {
            self.fall(page, level, out);
        }
        moving.clear();
        self.buffers.push(moving);
    }

    /// A page moves down and queues as the newest of its priority.
    fn fall(&mut self, page: u32, to: usize, out: &mut Recorder) {
        let block = &mut self.slots.blocks[page as usize];
        let from = std::mem::replace(&mut block.level, to as u8) as usize;
        self.used[from] -= 1;
        self.used[to] += 1;
        block.record_evict(from, out);
        block.record_insert(to, Cause::Demotion, out);
        self.slots.link(page, false);
    }

    /// A page is gone, and with it all that hangs below it; those that just fell stay as garbage.
    fn lose(&mut self, page: u32, out: &mut Recorder) {
        self.tree.detach(&mut self.slots, page, out);
        for at in 0..self.tree.detached().len() {
            let below = self.tree.detached()[at];
            if self.slots.blocks[below as usize].queued {
                self.slots.unlink(below);
                self.recycle(below);
            }
        }
        self.recycle(page);
    }

    fn recycle(&mut self, page: u32) {
        self.used[self.slots.blocks[page as usize].level as usize] -= 1;
        self.recycled.push(page);
    }

    /// Hangs full pages into the tree and queues them, last first. A page that is there already, or that is
    /// not full, is given back.
    fn close(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        let full = request.total_full_blocks();
        let (mut parent, mut matching, mut known) = (NONE, true, true);
        for at in 0..self.held.len().min(full as usize) {
            let page = self.held[at];
            let name = request.name_of(at as u64).filter(|_| known).unwrap_or(NONE);
            // A name says nothing behind a block that has none.
            known = name != NONE;
            let there = if matching && name != NONE { self.tree.full(name) } else { NONE };
            if there == NONE {
                matching = false;
                let tokens = request.block_tokens;
                let key = Key { name, lead: NONE, lead_tokens: 0, tokens, full: true };
                self.tree.insert(&mut self.slots, page, parent, &key, out);
                parent = page;
            } else {
                parent = there;
            }
        }
        while let Some(page) = self.held.pop() {
            if self.slots.blocks[page as usize].in_tree {
                self.slots.link(page, false);
            } else {
                self.recycle(page);
            }
        }
    }
}

impl EngineModel for V2 {
    fn serve(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        let size = u64::from(request.block_tokens);
        let needed = request.total_tokens().div_ceil(size);
        if request.prompt_tokens == 0 || needed > u64::from(self.capacities[GPU]) {
            return;
        }
        self.look_up(request, out);
        self.onboard(out);
        let prompt = request.prompt_tokens.div_ceil(size);
        self.add(self.held.len() as u64..prompt, request, out);
        for at in prompt..needed {
            self.add(at..at + 1, request, out);
        }
        self.close(request, out);
    }

    fn content(&self, tier: usize) -> Vec<u32> {
        let names = self.slots.last_first(tier).map(|page| &self.slots.blocks[page as usize]);
        names.filter(|at| at.counted && at.name != NONE).map(|at| at.name).collect()
    }

    fn validate(&self) -> Result<(), String> {
        for (level, (used, capacity)) in self.used.iter().zip(&self.capacities).enumerate() {
            if used > capacity {
                return Err(format!("level {level} holds {used} pages of {capacity}"));
            }
        }
        self.slots.validate(&self.used)?;
        self.tree.validate(&self.slots)
    }
}
