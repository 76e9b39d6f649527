//! Dynamo KVBM v2 below vLLM in plain maps. Events are those below the GPU; touches are counted exactly.

use super::plain_gpu::PlainGpu;
use crate::engine::EngineRequest;
use std::collections::{BTreeMap, BTreeSet};

/// The order of inactive blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Inactive {
    Lineage,
    LineageFifo,
    Lru,
    MultiLru([u32; 3]),
}

/// The filter before a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Edge {
    PassAll,
    Presence,
    PresenceLfu,
}

/// What the deployment sets.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) gpu: usize,
    pub(crate) cpu: Option<usize>,
    pub(crate) disk: Option<usize>,
    pub(crate) batch: usize,
    pub(crate) head_first: bool,
    pub(crate) inactive: Inactive,
    pub(crate) to_host: Edge,
    pub(crate) to_disk: Edge,
    pub(crate) min_count: u32,
}

/// Names are below 2^32, blocks without a name above.
type Id = u64;

#[derive(Debug, Default)]
struct Node {
    /// When the block became inactive; `None` for a ghost.
    tick: Option<u64>,
    parent: Option<Id>,
    children: BTreeSet<Id>,
}

#[derive(Debug)]
struct Pool {
    name: &'static str,
    kind: Inactive,
    empty: usize,
    /// Lineage: all nodes. Else: inactive blocks, level and tick.
    nodes: BTreeMap<Id, Node>,
    lists: Vec<(u32, Id)>,
    active: BTreeSet<Id>,
    /// Known parents of blocks here.
    parents: BTreeMap<Id, Option<Id>>,
    now: u64,
}

impl Pool {
    fn new(name: &'static str, kind: Inactive, capacity: usize) -> Self {
        Self {
            name,
            kind,
            empty: capacity,
            nodes: BTreeMap::new(),
            lists: Vec::new(),
            active: BTreeSet::new(),
            parents: BTreeMap::new(),
            now: 0,
        }
    }

    fn is_lineage(&self) -> bool {
        matches!(self.kind, Inactive::Lineage | Inactive::LineageFifo)
    }

    fn is_inactive(&self, block: Id) -> bool {
        let in_graph = self.nodes.get(&block).is_some_and(|node| node.tick.is_some());
        in_graph || self.lists.iter().any(|&(_, other)| other == block)
    }

    fn has(&self, block: Id) -> bool {
        self.active.contains(&block) || self.is_inactive(block)
    }

    fn inactive_blocks(&self) -> usize {
        self.lists.len() + self.nodes.values().filter(|node| node.tick.is_some()).count()
    }

    fn take(&mut self, block: Id) {
        if self.is_lineage() {
            self.unlink(block);
        } else {
            self.lists.retain(|&(_, other)| other != block);
        }
        self.active.insert(block);
    }

    fn put(&mut self, block: Id, level: u32) {
        self.active.remove(&block);
        if !self.is_lineage() {
            return self.lists.push((level, block));
        }
        self.now += 1;
        let parent = self.parents[&block];
        let node = self.nodes.entry(block).or_default();
        (node.tick, node.parent) = (Some(self.now), parent);
        if let Some(parent) = parent {
            self.nodes.entry(parent).or_default().children.insert(block);
        }
    }

    /// A block turns into a ghost; ghosts without children go, up to the first that stays.
    fn unlink(&mut self, block: Id) {
        self.nodes.get_mut(&block).unwrap().tick = None;
        let mut at = block;
        loop {
            let node = &self.nodes[&at];
            if node.tick.is_some() || !node.children.is_empty() {
                return;
            }
            let parent = self.nodes.remove(&at).unwrap().parent;
            let Some(parent) = parent else { return };
            let above = self.nodes.get_mut(&parent).unwrap();
            above.children.remove(&at);
            if above.children.is_empty() && above.tick.is_some() {
                if self.kind == Inactive::LineageFifo {
                    self.now += 1;
                    above.tick = Some(self.now);
                }
                return;
            }
            at = parent;
        }
    }

    fn victim(&self) -> Option<Id> {
        if self.is_lineage() {
            let leaves = self.nodes.iter().filter(|(_, node)| node.children.is_empty());
            let ticks = leaves.filter_map(|(&block, node)| node.tick.map(|tick| (tick, block)));
            return ticks.min().map(|(_, block)| block);
        }
        self.lists.iter().min_by_key(|&&(level, _)| level).map(|&(_, block)| block)
    }

    fn evict(&mut self) -> Option<Id> {
        let block = self.victim()?;
        self.take(block);
        self.active.remove(&block);
        Some(block)
    }

    fn allocate(&mut self, blocks: usize, events: &mut Vec<String>) -> bool {
        if self.empty + self.inactive_blocks() < blocks {
            return false;
        }
        for _ in 0..blocks {
            if self.empty > 0 {
                self.empty -= 1;
            } else {
                let block = self.evict().unwrap();
                if block < 1 << 32 {
                    events.push(format!("evict {} {block}", self.name));
                }
            }
        }
        true
    }

    fn register(&mut self, block: Id, parent: Option<Id>, events: &mut Vec<String>) {
        if self.is_inactive(block) {
            self.take(block);
            self.empty += 1;
            return;
        }
        self.active.insert(block);
        self.parents.insert(block, parent);
        if block < 1 << 32 {
            events.push(format!("insert {} {block}", self.name));
        }
    }
}

/// The manager and what the last request did.
#[derive(Debug)]
pub(crate) struct Manager {
    options: Options,
    gpu: PlainGpu,
    cpu: Option<Pool>,
    disk: Option<Pool>,
    touches: BTreeMap<Id, u32>,
    nameless: u64,
    /// Ids of the request's blocks.
    ids: Vec<Id>,
    pub(crate) hit_tokens: Vec<u64>,
    pub(crate) events: Vec<String>,
}

impl Manager {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            gpu: PlainGpu::new(options.gpu),
            cpu: options.cpu.map(|blocks| Pool::new("cpu", options.inactive, blocks)),
            disk: options.disk.map(|blocks| Pool::new("disk", options.inactive, blocks)),
            options,
            touches: BTreeMap::new(),
            nameless: 1 << 32,
            ids: Vec::new(),
            hit_tokens: Vec::new(),
            events: Vec::new(),
        }
    }

    pub(crate) fn serve(&mut self, request: &EngineRequest<'_>) {
        self.events.clear();
        self.hit_tokens = vec![0; 1 + usize::from(self.cpu.is_some()) + usize::from(self.disk.is_some())];
        if !self.gpu.fits(request) {
            return;
        }
        let size = u64::from(request.block_tokens);
        self.ids.clear();
        for at in 0..request.total_full_blocks() {
            self.nameless += 1;
            self.ids.push(request.name_of(at).map_or(self.nameless, u64::from));
        }
        let hits = self.gpu.look_up(request);
        self.hit_tokens[0] = hits as u64 * size;
        self.load(request, hits);
        self.gpu.admit(request, hits, request.prompt_tokens);
        let tokens = self.gpu.tokens(request);
        let (mut stored, mut done) = (0, request.prompt_tokens);
        loop {
            let full = (done / size) as usize;
            if full > stored {
                self.store(stored, full);
                stored = full;
            }
            if done >= tokens {
                break;
            }
            done = tokens.min(done + size);
            self.gpu.grow(request, done);
        }
        self.gpu.free();
    }

    /// Named blocks of a tier, the last to leave first; empties it.
    pub(crate) fn drain(&mut self, tier: &str) -> Vec<u32> {
        let pool = if tier == "cpu" { &mut self.cpu } else { &mut self.disk };
        let Some(pool) = pool else { return Vec::new() };
        let mut order: Vec<Id> = std::iter::from_fn(|| pool.evict()).collect();
        order.reverse();
        order.into_iter().filter(|&block| block < 1 << 32).map(|block| block as u32).collect()
    }

    fn touch(&mut self, block: Id) {
        let count = self.touches.entry(block).or_insert(0);
        *count = (*count + 1).min(15);
    }

    fn count(&self, block: Id) -> u32 {
        self.touches.get(&block).copied().unwrap_or(0)
    }

    fn pool(&mut self, disk: bool) -> Option<&mut Pool> {
        if disk { self.disk.as_mut() } else { self.cpu.as_mut() }
    }

    fn give_back(&mut self, disk: bool, blocks: &[Id]) {
        let mut order = blocks.to_vec();
        if !self.options.head_first {
            order.reverse();
        }
        for block in order {
            let level = match self.options.inactive {
                Inactive::MultiLru(from) => from.iter().filter(|&&from| self.count(block) >= from).count(),
                _ => 0,
            };
            self.pool(disk).unwrap().put(block, level as u32);
        }
    }

    fn load(&mut self, request: &EngineRequest<'_>, hits: usize) {
        let rest: Vec<Id> =
            request.blocks_before_last_token()[hits..].iter().map(|&name| u64::from(name)).collect();
        let count = |pool: &Option<Pool>, blocks: &[Id]| {
            pool.as_ref().map_or(0, |pool| blocks.iter().take_while(|block| pool.has(**block)).count())
        };
        let on_cpu = count(&self.cpu, &rest);
        let on_disk = count(&self.disk, &rest[on_cpu..]);
        let (of_cpu, of_disk) = (&rest[..on_cpu], &rest[on_cpu..on_cpu + on_disk]);
        for &block in &rest[..on_cpu + on_disk] {
            self.touch(block);
        }
        let size = u64::from(request.block_tokens);
        let mut tier = 1;
        if let Some(cpu) = &mut self.cpu {
            self.hit_tokens[tier] = on_cpu as u64 * size;
            tier += 1;
            self.events.extend(of_cpu.iter().map(|block| format!("hit cpu {block}")));
            for &block in of_cpu {
                cpu.take(block);
            }
        }
        let mut back = of_cpu.to_vec();
        let room = self.cpu.as_ref().is_none_or(|cpu| cpu.empty + cpu.inactive_blocks() >= on_disk);
        if room && self.disk.is_some() {
            self.hit_tokens[tier] = on_disk as u64 * size;
            self.events.extend(of_disk.iter().map(|block| format!("hit disk {block}")));
            if let Some(cpu) = &mut self.cpu {
                cpu.allocate(on_disk, &mut self.events);
                for (place, &block) in of_disk.iter().enumerate() {
                    let at = hits + on_cpu + place;
                    let parent = at.checked_sub(1).map(|before| self.ids[before]);
                    cpu.register(block, parent, &mut self.events);
                    back.push(block);
                }
            }
        }
        if let Some(disk) = &mut self.disk {
            for &block in of_disk {
                disk.take(block);
            }
            self.give_back(true, of_disk);
        }
        if self.cpu.is_some() {
            self.give_back(false, &back);
        }
    }

    fn passes(&mut self, block: Id, disk: bool, edge: Edge) -> bool {
        let (count, min_count) = (self.count(block), self.options.min_count);
        let Some(pool) = self.pool(disk) else { return false };
        let (name, present) = (pool.name, pool.has(block));
        match edge {
            Edge::PassAll => true,
            _ if present => false,
            Edge::PresenceLfu if count <= min_count => {
                if block < 1 << 32 {
                    self.events.push(format!("reject {name} {block}"));
                }
                false
            }
            _ => true,
        }
    }

    fn store(&mut self, from: usize, to: usize) {
        let disk = self.cpu.is_none();
        let edge = self.options.to_host;
        let passed: Vec<usize> = (from..to).filter(|&at| self.passes(self.ids[at], disk, edge)).collect();
        for batch in passed.chunks(self.options.batch) {
            self.write(batch, disk);
        }
    }

    fn write(&mut self, batch: &[usize], disk: bool) {
        let mut events = std::mem::take(&mut self.events);
        let Some(pool) = self.pool(disk) else { return };
        if !pool.allocate(batch.len(), &mut events) {
            self.events = events;
            return;
        }
        for &at in batch {
            let block = self.ids[at];
            let known = |pool: &Option<Pool>| pool.as_ref().is_some_and(|pool| pool.has(block));
            if !known(&self.cpu) && !known(&self.disk) {
                self.touch(block);
            }
            let parent = at.checked_sub(1).map(|before| self.ids[before]);
            self.pool(disk).unwrap().register(block, parent, &mut events);
        }
        self.events = events;
        if !disk && self.disk.is_some() {
            let edge = self.options.to_disk;
            let passed: Vec<usize> =
                batch.iter().copied().filter(|&at| self.passes(self.ids[at], true, edge)).collect();
            if !passed.is_empty() {
                self.write(&passed, true);
            }
        }
        let blocks: Vec<Id> = batch.iter().map(|&at| self.ids[at]).collect();
        self.give_back(disk, &blocks);
    }
}
