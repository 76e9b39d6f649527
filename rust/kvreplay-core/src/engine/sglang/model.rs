//! The model: what a request does to the tree and to the pools behind it.
//!
//! One request at a time: look up, lock what was found, make room, insert the prompt, decode, insert what was
//! decoded, unlock. Host memory and storage are in `host` and `prefetch`; without them this is the plain
//! radix cache.

use super::host::Host;
use super::pages::{LookUp, Pages};
use super::releases::{Counting, Rules, Shortage};
use super::storage::Storage;
use super::tree::{Flavor, Found, Place, ROOT, Tree};
use crate::engine::{Cause, EngineModel, EngineRequest, Recorder};

/// A pool of pages.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pool {
    /// Position of its tier.
    pub(super) tier: usize,
    /// Pages it has.
    pub(super) capacity: u64,
    /// Pages in use by the tree.
    pub(super) used: u64,
}

impl Pool {
    pub(super) fn free(&self) -> u64 {
        self.capacity - self.used
    }
}

/// SGLang's prefix cache, with or without lower tiers.
#[derive(Debug)]
pub(super) struct Model {
    pub(super) tree: Tree,
    pub(super) flavor: Flavor,
    pub(super) rules: Rules,
    pub(super) look_up: LookUp,
    pub(super) gpu: Pool,
    pub(super) host: Option<Host>,
    pub(super) storage: Option<Storage>,
    /// The path of a request with what it decoded.
    pub(super) sequence: Vec<u32>,
}

impl EngineModel for Model {
    fn serve(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        let pages = Pages::new(request, self.look_up);
        if pages.len() > self.gpu.capacity {
            return;
        }
        let fetched = self.prefetch(&pages, request, out);
        let found = self.find(&pages);
        self.tree.lock(found.node);
        let device = found.device_pages as usize;
        out.serve(self.gpu.tier, &pages.path[..device], found.device_pages, request.tokens(device as u64));
        let hit = self.load_back(&pages, found, fetched, request, out);
        self.make_room_for_prompt(pages.len() - u64::from(hit), u64::from(hit), request, out);
        self.finish_load();
        let end = self.insert(pages.path, pages.unnamed, 0, out);
        self.tree.lock(end);
        self.decode(&pages, end, request, out);
        self.tree.unlock(end, ROOT);
    }

    fn content(&self, tier: usize) -> Vec<u32> {
        if self.gpu.tier == tier {
            return self.device_content();
        }
        match (&self.host, &self.storage) {
            (Some(host), _) if host.pool.tier == tier => self.host_content(),
            (_, Some(storage)) => storage.content(),
            _ => Vec::new(),
        }
    }

    fn validate(&self) -> Result<(), String> {
        self.check()
    }
}

impl Model {
    /// Looks a prompt up, which refreshes and may split what it finds.
    pub(super) fn find(&mut self, pages: &Pages<'_>) -> Found {
        let found = self.tree.find(pages.looked_up());
        if found.split {
            self.note(found.node);
        }
        found
    }

    /// Evicts leaves until `pages` pages are free on the device, or nothing may be evicted.
    pub(super) fn make_room(&mut self, pages: u64, out: &mut Recorder) {
        while self.gpu.free() < pages {
            let Some(node) = self.tree.next_device_leaf() else { break };
            self.evict_device(node, out);
        }
    }

    /// Makes room for the `pages` pages of a prompt behind the `hit` ones that need no computation.
    fn make_room_for_prompt(
        &mut self,
        pages: u64,
        hit: u64,
        request: &EngineRequest<'_>,
        out: &mut Recorder,
    ) {
        if self.rules.shortage == Shortage::Missing || pages == 0 {
            return self.make_room(pages, out);
        }
        // Pages of several tokens: the engine asks for one page more than the tokens fill.
        let tokens = request.prompt_tokens - request.tokens(hit);
        let page = u64::from(request.block_tokens);
        let asked = if page == 1 { pages } else { tokens.div_ceil(page) + 1 };
        if self.gpu.free() < asked {
            self.make_room(self.gpu.free() + asked, out);
        }
    }

    fn evict_device(&mut self, node: u32, out: &mut Recorder) {
        if self.host.is_some() {
            let write_back = self.writes_back();
            if self.tree.node(node).host || write_back && self.write_host(node, Cause::Demotion, out) {
                self.report_device_eviction(node, out);
                self.tree.set_device(node, false);
                return;
            }
            self.drop_below(node, out);
        }
        self.report_device_eviction(node, out);
        self.tree.remove(node);
    }

    fn report_device_eviction(&mut self, node: u32, out: &mut Recorder) {
        let key = &self.tree.node(node).key;
        self.gpu.used -= key.len();
        for block in key.blocks() {
            out.evict(self.gpu.tier, block);
        }
    }

    /// Inserts a sequence and returns its last node. Nodes that end within the first `counted` pages have
    /// been counted for this request already.
    fn insert(&mut self, path: &[u32], unnamed: u32, counted: usize, out: &mut Recorder) -> u32 {
        self.start_backups();
        let now = self.tree.tick();
        let (mut node, mut depth) = (ROOT, 0);
        while let Some((child, common)) = self.tree.step(&path[depth..]) {
            let access = if self.flavor == Flavor::Radix { now } else { self.tree.tick() };
            self.tree.node_mut(child).usage.access = access;
            node = child;
            if u64::from(common) < self.tree.node(child).key.len() {
                node = self.tree.split(child, common);
                self.note(node);
            }
            if !self.tree.node(node).device {
                self.restore(node, out);
            }
            depth += common as usize;
            if depth > counted {
                self.count(node, out);
            }
        }
        if depth == path.len() && unnamed == 0 {
            node
        } else {
            self.append(node, &path[depth..], unnamed, out)
        }
    }

    /// Adds computed pages below a node.
    fn append(&mut self, node: u32, path: &[u32], unnamed: u32, out: &mut Recorder) -> u32 {
        let leaf = self.tree.add(node, path, unnamed, Place::Device);
        self.gpu.used += self.tree.node(leaf).key.len();
        for &block in path {
            out.insert(self.gpu.tier, block, Cause::Compute);
        }
        self.count(leaf, out);
        leaf
    }

    /// A node that was in host memory only gets the pages that the request computed.
    fn restore(&mut self, node: u32, out: &mut Recorder) {
        self.tree.set_device(node, true);
        let key = &self.tree.node(node).key;
        self.gpu.used += key.len();
        for block in key.blocks() {
            out.insert(self.gpu.tier, block, Cause::Compute);
        }
        self.note(node);
    }

    /// Counts that a request inserted a node, and backs it up when it has been inserted often enough.
    fn count(&mut self, node: u32, out: &mut Recorder) {
        if self.writes_back() || self.rules.counting == Counting::Never {
            return;
        }
        self.tree.node_mut(node).usage.hits += 1;
        let hits = self.tree.node(node).usage.hits;
        if self.host.as_ref().is_some_and(|host| hits >= host.write.threshold()) && !self.tree.node(node).host
        {
            self.back_up(node, out);
        }
    }

    /// Counts an insertion for a node and those above it; only releases without host memory ask for it.
    fn count_path(&mut self, mut node: u32) {
        while node != ROOT {
            self.tree.node_mut(node).usage.hits += 1;
            node = self.tree.node(node).parent;
        }
    }

    /// Decodes behind the prompt that ends in node `end`, and inserts the pages that got full.
    fn decode(&mut self, pages: &Pages<'_>, end: u32, request: &EngineRequest<'_>, out: &mut Recorder) {
        let wanted = request.total_full_blocks() - request.prompt_full_blocks();
        let decoded = wanted.min(self.gpu.capacity - pages.len());
        if decoded == 0 {
            return;
        }
        self.make_room(decoded, out);
        let last = if pages.unnamed > 0 {
            // Nobody finds what lies below pages without a name, so this is the only way down.
            if self.rules.counting == Counting::Insertions {
                self.count_path(end);
            }
            self.start_backups();
            self.append(end, &[], decoded as u32, out)
        } else {
            let prompt = request.full_blocks();
            let names = &request.decoded[..decoded.min(request.decoded.len() as u64) as usize];
            let mut sequence = std::mem::take(&mut self.sequence);
            sequence.clear();
            sequence.extend_from_slice(prompt);
            sequence.extend_from_slice(names);
            let counted = if self.rules.counting == Counting::Requests { prompt.len() } else { 0 };
            let last = self.insert(&sequence, decoded as u32 - names.len() as u32, counted, out);
            self.sequence = sequence;
            last
        };
        self.tree.lock(last);
        if self.rules.prompts_apart {
            self.set_prompt_apart(end);
        }
        self.tree.unlock(last, ROOT);
    }

    /// The prompt is inserted once more when more than it was, which ranks it above what was decoded. The root
    /// is ranked too: a node that comes from storage below it starts with its priority.
    fn set_prompt_apart(&mut self, end: u32) {
        let now = self.tree.tick();
        let mut node = end;
        loop {
            let usage = &mut self.tree.node_mut(node).usage;
            usage.access = now;
            usage.priority = 1;
            if node == ROOT {
                break;
            }
            node = self.tree.node(node).parent;
        }
    }

    /// Whether nodes are written to host memory when they leave the device.
    pub(super) fn writes_back(&self) -> bool {
        self.host.as_ref().is_some_and(Host::writes_back)
    }
}
