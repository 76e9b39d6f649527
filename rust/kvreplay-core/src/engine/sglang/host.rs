//! HiCache: the copy of the tree in host memory.

use super::model::{Model, Pool};
use super::pages::Pages;
use super::tree::{Found, ROOT};
use crate::engine::{Cause, EngineRequest, Recorder};

/// When a node is copied to host memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Write {
    /// When the first request inserts it.
    Through,
    /// When the second request inserts it.
    ThroughSelective,
    /// When it leaves the device.
    Back,
}

impl Write {
    /// Requests that must have inserted a node before it is copied; not asked when writing back.
    pub(super) fn threshold(self) -> u64 {
        if self == Self::Through { 1 } else { 2 }
    }
}

/// The pool in host memory.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) pool: Pool,
    pub(super) write: Write,
    /// Tokens below which host pages are computed again instead of loaded.
    pub(super) load_back_tokens: u64,
    /// Nodes held on the device and in host memory, in the order noted; only kept when writing back. An entry
    /// holds if the node still has its number.
    twice: Vec<(u64, u32)>,
    notes: u64,
    /// Nodes that the running request loads, the deepest first.
    loading: Vec<u32>,
    /// A node of the present insertion found no room.
    full: bool,
    /// Nodes to copy, the deepest first.
    chain: Vec<u32>,
}

impl Host {
    pub(super) fn new(pool: Pool, write: Write, load_back_tokens: u64) -> Self {
        Self {
            pool,
            write,
            load_back_tokens,
            twice: Vec::new(),
            notes: 0,
            loading: Vec::new(),
            full: false,
            chain: Vec::new(),
        }
    }

    pub(super) fn writes_back(&self) -> bool {
        self.write == Write::Back
    }
}

impl Model {
    /// Loads the pages behind the device's that are in host memory, all of them or none, and returns how many
    /// pages need no computation. The path found is locked; what is not loaded is unlocked.
    pub(super) fn load_back(
        &mut self,
        pages: &Pages<'_>,
        found: Found,
        fetched: u32,
        request: &EngineRequest<'_>,
        out: &mut Recorder,
    ) -> u32 {
        let Some(host) = &self.host else { return found.device_pages };
        let (tier, least) = (host.pool.tier, host.load_back_tokens.max(1));
        let count = found.pages - found.device_pages;
        let enough = u64::from(count) * u64::from(request.block_tokens) >= least;
        if enough {
            self.make_room(count.into(), out);
        }
        if !enough || self.gpu.free() < u64::from(count) {
            self.tree.unlock(found.node, found.device_node);
            return found.device_pages;
        }
        self.load(found);
        let loaded = &pages.path[found.device_pages as usize..found.pages as usize];
        for &block in loaded {
            out.insert(self.gpu.tier, block, Cause::Promotion);
        }
        let (held, read) = loaded.split_at((count - fetched) as usize);
        let ends =
            [found.device_pages, found.pages - fetched, found.pages].map(|at| request.tokens(at.into()));
        out.serve(tier, held, held.len() as u32, ends[1] - ends[0]);
        if let Some(storage) = &self.storage {
            out.serve(storage.tier(), read, fetched, ends[2] - ends[1]);
        }
        found.pages
    }

    fn load(&mut self, found: Found) {
        let mut node = found.node;
        while node != found.device_node {
            self.tree.set_device(node, true);
            self.gpu.used += self.tree.node(node).key.len();
            if let Some(host) = &mut self.host {
                host.loading.push(node);
            }
            node = self.tree.node(node).parent;
        }
    }

    /// The copies of loaded nodes may be given up from now on.
    pub(super) fn finish_load(&mut self) {
        let Some(host) = &mut self.host else { return };
        let mut loading = std::mem::take(&mut host.loading);
        for &node in &loading {
            self.note(node);
        }
        loading.clear();
        if let Some(host) = &mut self.host {
            host.loading = loading;
        }
    }

    /// Copies a node to host memory, and before it the nodes above that have no copy, from the top. It ends
    /// at the first node that finds no room; then no other node of this insertion finds any.
    pub(super) fn back_up(&mut self, node: u32, out: &mut Recorder) {
        let Some(host) = &mut self.host else { return };
        if host.full {
            return;
        }
        let mut chain = std::mem::take(&mut host.chain);
        chain.clear();
        let mut at = node;
        while at != ROOT && !self.tree.node(at).host {
            chain.push(at);
            at = self.tree.node(at).parent;
        }
        let full = !chain.iter().rev().all(|&node| self.write_host(node, Cause::Compute, out));
        if let Some(host) = &mut self.host {
            (host.full, host.chain) = (full, chain);
        }
    }

    /// An insertion starts: it may find room.
    pub(super) fn start_backups(&mut self) {
        if let Some(host) = &mut self.host {
            host.full = false;
        }
    }

    /// Copies one node to host memory; `false` when no room can be made.
    pub(super) fn write_host(&mut self, node: u32, cause: Cause, out: &mut Recorder) -> bool {
        let pages = self.tree.node(node).key.len();
        let Some(host) = &self.host else { return false };
        let (tier, short) = (host.pool.tier, pages.saturating_sub(host.pool.free()));
        if short > 0 && self.evict_host(short, out) < short {
            out.no_room(tier, u64::from(self.tree.node(node).key.named()));
            return false;
        }
        self.tree.node_mut(node).host = true;
        for block in self.tree.node(node).key.blocks() {
            out.insert(tier, block, cause);
        }
        if let Some(host) = &mut self.host {
            host.pool.used += pages;
        }
        self.note(node);
        if let Some(storage) = &mut self.storage {
            storage.write(&self.tree.node(node).key, cause, out);
        }
        true
    }

    /// Frees at least `pages` pages of host memory if it can, and returns how many.
    pub(super) fn evict_host(&mut self, pages: u64, out: &mut Recorder) -> u64 {
        let mut freed = if self.writes_back() { self.reclaim(pages, out) } else { 0 };
        while freed < pages {
            let Some(node) = self.tree.next_host_leaf() else { break };
            freed += self.drop_host_copy(node, out);
            self.tree.remove(node);
        }
        freed
    }

    /// Gives up host copies of nodes that are on the device as well: first those that will not leave the
    /// device next, then the others.
    fn reclaim(&mut self, pages: u64, out: &mut Recorder) -> u64 {
        let Some(host) = &mut self.host else { return 0 };
        let (mut twice, loading) = (std::mem::take(&mut host.twice), std::mem::take(&mut host.loading));
        let mut freed = 0;
        for spare_leaves in [true, false] {
            for &(note, node) in &twice {
                if freed >= pages {
                    break;
                }
                let it = self.tree.node(node);
                if it.noted != note {
                    continue;
                }
                if !(it.device && it.host) {
                    self.tree.node_mut(node).noted = 0;
                } else if !(spare_leaves && self.tree.is_device_leaf(node)
                    || loading.contains(&node)
                    || self.tree.is_pinned(node))
                {
                    self.tree.node_mut(node).noted = 0;
                    freed += self.drop_host_copy(node, out);
                }
            }
        }
        if twice.len() > 2 * self.tree.len() + 64 {
            twice.retain(|&(note, node)| self.tree.node(node).noted == note);
        }
        if let Some(host) = &mut self.host {
            (host.twice, host.loading) = (twice, loading);
        }
        freed
    }

    /// Frees the host pages of a node and returns their number.
    fn drop_host_copy(&mut self, node: u32, out: &mut Recorder) -> u64 {
        self.tree.node_mut(node).host = false;
        let Some(host) = &mut self.host else { return 0 };
        let key = &self.tree.node(node).key;
        host.pool.used -= key.len();
        for block in key.blocks() {
            out.evict(host.pool.tier, block);
        }
        key.len()
    }

    /// Drops everything below a node that leaves the device without a copy; it is in host memory only.
    pub(super) fn drop_below(&mut self, node: u32, out: &mut Recorder) {
        let mut at = node;
        loop {
            while let Some(child) = self.tree.first_child(at) {
                at = child;
            }
            if at == node {
                break;
            }
            let above = self.tree.node(at).parent;
            self.drop_host_copy(at, out);
            self.tree.remove(at);
            at = above;
        }
    }

    /// Notes a node that is held twice; its place in the order is kept until it is found to be held once.
    pub(super) fn note(&mut self, node: u32) {
        let it = self.tree.node_mut(node);
        if let Some(host) = &mut self.host
            && host.writes_back()
            && it.device
            && it.host
            && it.noted == 0
        {
            host.notes += 1;
            it.noted = host.notes;
            host.twice.push((host.notes, node));
        }
    }
}
