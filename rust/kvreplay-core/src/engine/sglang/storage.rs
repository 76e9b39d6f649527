//! HiCache: the storage tier, as SGLang's `file` backend keeps it: single pages, the one used longest ago
//! leaves first.

use super::key::Key;
use super::tree::NONE;
use crate::engine::{Cause, Recorder};
use std::collections::VecDeque;

/// Pages in storage.
#[derive(Debug)]
pub(super) struct Storage {
    tier: usize,
    /// Pages it holds at most.
    capacity: u64,
    /// Share of the capacity that is left filled when room is made.
    eviction_ratio: f64,
    /// Tokens below which nothing is read.
    prefetch_tokens: u64,
    held: u64,
    /// Per block when it was last used, 0 if it is not here.
    used: Vec<u32>,
    /// Uses, the oldest first. One of a block that was used again since is skipped.
    order: VecDeque<Use>,
    now: u32,
}

#[derive(Debug, Clone, Copy)]
struct Use {
    when: u32,
    /// [`NONE`] for pages without a name.
    block: u32,
    pages: u32,
}

impl Storage {
    pub(super) fn new(
        tier: usize,
        capacity: u64,
        eviction_ratio: f64,
        prefetch_tokens: u64,
        blocks: u32,
    ) -> Self {
        Self {
            tier,
            capacity,
            eviction_ratio,
            prefetch_tokens,
            held: 0,
            used: vec![0; blocks as usize],
            order: VecDeque::new(),
            now: 0,
        }
    }

    pub(super) fn tier(&self) -> usize {
        self.tier
    }

    /// Tokens below which nothing is asked for or read; at least a page.
    pub(super) fn threshold(&self, block_tokens: u32) -> u64 {
        self.prefetch_tokens.max(block_tokens.into())
    }

    pub(super) fn holds(&self, block: u32) -> bool {
        self.used[block as usize] != 0
    }

    /// Reads pages, which refreshes them.
    pub(super) fn read(&mut self, path: &[u32]) {
        for &block in path {
            self.touch(block);
        }
    }

    /// Writes the pages of a node, those that are here already are refreshed. It ends at the first page that
    /// finds no room.
    pub(super) fn write(&mut self, key: &Key, cause: Cause, out: &mut Recorder) {
        for block in key.blocks() {
            if self.holds(block) {
                out.already_held(self.tier, 1);
            } else if self.make_room(out) {
                self.held += 1;
                out.insert(self.tier, block, cause);
            } else {
                out.no_room(self.tier, 1);
                return;
            }
            self.touch(block);
        }
        self.write_unnamed(key.unnamed(), out);
    }

    fn write_unnamed(&mut self, mut pages: u32, out: &mut Recorder) {
        while pages > 0 && self.make_room(out) {
            let some = pages.min(u32::try_from(self.capacity - self.held).unwrap_or(u32::MAX));
            pages -= some;
            self.held += u64::from(some);
            self.order.push_back(Use { when: 0, block: NONE, pages: some });
        }
    }

    /// The named blocks held, the one used last first.
    pub(super) fn content(&self) -> Vec<u32> {
        let holds = |it: &&Use| it.block != NONE && self.used[it.block as usize] == it.when;
        self.order.iter().rev().filter(holds).map(|it| it.block).collect()
    }

    fn touch(&mut self, block: u32) {
        if self.now == u32::MAX || self.order.len() as u64 > 2 * self.held + 64 {
            self.compact();
        }
        self.now += 1;
        self.used[block as usize] = self.now;
        self.order.push_back(Use { when: self.now, block, pages: 1 });
    }

    /// Drops outdated uses and numbers the others anew.
    fn compact(&mut self) {
        let used = &mut self.used;
        self.order.retain(|it| it.block == NONE || used[it.block as usize] == it.when);
        self.now = 0;
        for it in self.order.iter_mut().filter(|it| it.block != NONE) {
            self.now += 1;
            it.when = self.now;
            used[it.block as usize] = self.now;
        }
    }

    /// Room for one page. When there is none, pages leave until the share of the capacity is reached.
    fn make_room(&mut self, out: &mut Recorder) -> bool {
        if self.held < self.capacity {
            return true;
        }
        let left = (self.capacity as f64 * self.eviction_ratio - 1.0).max(0.0);
        self.evict(self.held - left as u64, out);
        self.held < self.capacity
    }

    /// Evicts `pages` pages.
    fn evict(&mut self, mut pages: u64, out: &mut Recorder) {
        while pages > 0 {
            let Some(oldest) = self.order.front_mut() else { return };
            let mut gone = 1;
            if oldest.block == NONE {
                gone = pages.min(oldest.pages.into());
                oldest.pages -= gone as u32;
            }
            let Use { when, block, pages: rest } = *oldest;
            if block != NONE || rest == 0 {
                self.order.pop_front();
            }
            if block != NONE {
                if self.used[block as usize] != when {
                    continue;
                }
                self.used[block as usize] = 0;
                out.evict(self.tier, block);
            }
            self.held -= gone;
            pages -= gone;
        }
    }

    /// Checks the counts.
    pub(super) fn check(&self) -> Result<(), String> {
        let named = self.used.iter().filter(|&&when| when != 0).count() as u64;
        let unnamed: u64 =
            self.order.iter().filter(|it| it.block == NONE).map(|it| u64::from(it.pages)).sum();
        let live = self.content().len() as u64;
        if self.held != named + unnamed || live != named || self.held > self.capacity {
            return Err(format!(
                "storage holds {} pages, counted {named} + {unnamed}, {live} in order",
                self.held
            ));
        }
        Ok(())
    }
}
