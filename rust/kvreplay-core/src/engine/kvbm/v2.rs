//! Engine v2: `kvbm-engine`'s pipelines over the pools of `kvbm-logical`, driven by `kvbm-connector`.

use super::options::{Edge, Inactive, Options};
use super::pool::Pool;
use super::request::{Item, Items, run};
use super::sketch::Sketch;
use crate::engine::vllm::{FreeRule, Gpu};
use crate::engine::{Cause, EngineModel, EngineRequest, Recorder, Setup};

/// The model.
#[derive(Debug)]
pub(super) struct V2 {
    options: Options,
    gpu: Gpu,
    /// Host and disk.
    pools: [Option<Pool>; 2],
    /// Touches per block; `None` where no rule looks at them.
    touches: Option<Sketch>,
    items: Items,
    /// Blocks that passed the filter of an edge, per edge.
    passed: [Vec<Item>; 2],
    nodes: [Vec<u32>; 2],
}

const HOST: usize = 0;
const DISK: usize = 1;

impl V2 {
    pub(super) fn new(options: Options, setup: &Setup<'_>) -> Self {
        let pool = |name: &str| {
            let (tier, spec) = setup.tier(name)?;
            Some(Pool::new(tier, spec.capacity_units(), setup.blocks, options.inactive.order(setup.blocks)))
        };
        Self {
            gpu: Gpu::new(0, setup.tiers[0].capacity_blocks, FreeRule::UnhashedFirst, setup.blocks),
            pools: [pool("cpu"), pool("disk")],
            touches: options.counts_touches().then(|| Sketch::new(options.sketch_capacity)),
            options,
            items: Items::default(),
            passed: [Vec::new(), Vec::new()],
            nodes: [Vec::new(), Vec::new()],
        }
    }

    /// Matches the host behind the GPU's hits, then the disk behind that; what is on the disk is copied to the
    /// host first, if that has room. Says how many blocks are loaded.
    fn load(&mut self, request: &EngineRequest<'_>, hits: u32, out: &mut Recorder) -> u64 {
        let rest = &request.blocks_before_last_token()[hits as usize..];
        let [host, disk] = &mut self.pools;
        let on_host = host.as_ref().map_or(0, |host| run(rest, |block| host.has(block)));
        let on_disk = disk.as_ref().map_or(0, |disk| run(&rest[on_host..], |block| disk.has(block)));
        let behind = rest.iter().skip(on_host + on_disk + 1);
        for pool in host.iter().chain(&*disk) {
            out.strand(pool.tier(), behind.clone().filter(|&&block| pool.has(block)).count() as u32);
        }
        let (of_host, of_disk) = rest[..on_host + on_disk].split_at(on_host);
        if let Some(touches) = &mut self.touches {
            for &block in of_host.iter().chain(of_disk) {
                touches.touch(u64::from(block));
            }
        }
        let nodes = &mut self.nodes[HOST];
        nodes.clear();
        if let Some(host) = host {
            serve(host, of_host, request, out);
            for &block in of_host {
                host.take(block);
            }
            nodes.extend_from_slice(of_host);
        }
        let mut loaded = on_host;
        if let Some(disk) = disk {
            for &block in of_disk {
                disk.take(block);
            }
            if host.as_ref().is_none_or(|host| host.has_room(on_disk as u32)) {
                serve(disk, of_disk, request, out);
                loaded += on_disk;
                if let Some(host) = host {
                    stage(host, nodes, request, of_disk, u64::from(hits) + on_host as u64, out);
                }
            }
            give_back(disk, of_disk, &self.options, self.touches.as_ref());
        }
        if let Some(host) = host {
            give_back(host, &self.nodes[HOST], &self.options, self.touches.as_ref());
        }
        loaded as u64
    }

    /// Offers full blocks to the host, or to the disk where there is no host.
    fn store(&mut self, request: &EngineRequest<'_>, at: std::ops::Range<u64>, out: &mut Recorder) {
        let target = usize::from(self.pools[HOST].is_none());
        let mut passed = std::mem::take(&mut self.passed[target]);
        passed.clear();
        for at in at {
            let item = self.items.item(request, at);
            if self.passes(&item, target, self.options.to_host, out) {
                passed.push(item);
            }
        }
        for batch in passed.chunks(self.options.batch_blocks) {
            self.write(request, batch, target, out);
        }
        self.passed[target] = passed;
    }

    /// Whether a block passes the filter before a tier.
    fn passes(&self, item: &Item, target: usize, edge: Edge, out: &mut Recorder) -> bool {
        let Some(pool) = &self.pools[target] else { return false };
        if edge == Edge::PassAll {
            return true;
        }
        if item.name.is_some_and(|name| pool.has(name)) {
            out.already_held(pool.tier(), 1);
            return false;
        }
        let count = || self.touches.as_ref().map_or(0, |touches| touches.count(item.key));
        let passes = edge == Edge::Presence || count() > self.options.min_lfu_count;
        if !passes {
            match item.name {
                Some(name) => out.reject(pool.tier(), name),
                None => out.reject_unnamed(pool.tier()),
            }
        }
        passes
    }

    /// One transfer: room for all its blocks or for none; what the host got goes on to the disk.
    fn write(&mut self, request: &EngineRequest<'_>, batch: &[Item], target: usize, out: &mut Recorder) {
        let Some(pool) = &mut self.pools[target] else { return };
        if !pool.allocate(batch.len() as u32, out) {
            return out.no_room(pool.tier(), batch.len() as u64);
        }
        let mut nodes = std::mem::take(&mut self.nodes[target]);
        nodes.clear();
        for item in batch {
            self.touch_if_new(item, target);
            let Some(pool) = &mut self.pools[target] else { break };
            nodes.push(pool.register(item, request, Cause::Compute, out).0);
        }
        if target == HOST && self.pools[DISK].is_some() {
            self.chain(request, batch, out);
        }
        if let Some(pool) = &mut self.pools[target] {
            give_back(pool, &nodes, &self.options, self.touches.as_ref());
        }
        self.nodes[target] = nodes;
    }

    /// Offers what the host just registered to the disk.
    fn chain(&mut self, request: &EngineRequest<'_>, batch: &[Item], out: &mut Recorder) {
        let mut passed = std::mem::take(&mut self.passed[DISK]);
        passed.clear();
        passed
            .extend(batch.iter().copied().filter(|item| self.passes(item, DISK, self.options.to_disk, out)));
        if !passed.is_empty() {
            self.write(request, &passed, DISK, out);
        }
        self.passed[DISK] = passed;
    }

    /// A block that no tier has yet is new to the registry, which counts that as a touch. What goes to the disk
    /// behind the host was registered there.
    fn touch_if_new(&mut self, item: &Item, target: usize) {
        let Some(touches) = &mut self.touches else { return };
        let on_host = target == DISK && self.pools[HOST].is_some();
        let has = |name| self.pools.iter().flatten().any(|pool| pool.has(name));
        if !on_host && !item.name.is_some_and(has) {
            touches.touch(item.key);
        }
    }
}

fn serve(pool: &Pool, blocks: &[u32], request: &EngineRequest<'_>, out: &mut Recorder) {
    let tokens = blocks.len() as u64 * u64::from(request.block_tokens);
    out.serve(pool.tier(), blocks, blocks.len() as u32, tokens);
}

/// Copies blocks of the disk, from place `at` of the sequence on, to the host.
fn stage(
    host: &mut Pool,
    nodes: &mut Vec<u32>,
    request: &EngineRequest<'_>,
    blocks: &[u32],
    at: u64,
    out: &mut Recorder,
) {
    host.allocate(blocks.len() as u32, out);
    for (at, &block) in (at..).zip(blocks) {
        let item = Item { at, name: Some(block), key: u64::from(block) };
        nodes.push(host.register(&item, request, Cause::Promotion, out).0);
    }
}

/// Blocks in use become inactive.
fn give_back(pool: &mut Pool, nodes: &[u32], options: &Options, touches: Option<&Sketch>) {
    for at in 0..nodes.len() {
        let node = nodes[if options.head_first { at } else { nodes.len() - 1 - at }];
        let list = if let (Inactive::MultiLru(from), Some(touches)) = (options.inactive, touches) {
            let count = touches.count(pool.key(node));
            from.iter().filter(|&&from| count >= from).count() as u32
        } else {
            0
        };
        pool.put(node, list);
    }
}

impl EngineModel for V2 {
    fn serve(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        if !self.gpu.fits(request) {
            return;
        }
        for pool in self.pools.iter_mut().flatten() {
            pool.begin();
        }
        let block_tokens = u64::from(request.block_tokens);
        let hits = self.gpu.look_up(request);
        self.gpu.report(request, hits, out);
        let loaded = self.load(request, hits, out);
        self.gpu.admit(request, hits, loaded, out);
        let tokens = request.total_tokens().min(self.gpu.tokens(request.block_tokens));
        let (mut stored, mut done) = (0, request.prompt_tokens);
        loop {
            let full = done / block_tokens;
            if full > stored {
                self.store(request, stored..full, out);
                stored = full;
            }
            if done >= tokens {
                break;
            }
            done = tokens.min(done + block_tokens);
            self.gpu.decode(request, done, out);
        }
        self.gpu.free();
    }

    fn content(&self, tier: usize) -> Vec<u32> {
        let mut pools = self.pools.iter().flatten();
        pools.find(|pool| pool.tier() == tier).map_or_else(|| self.gpu.content(), Pool::content)
    }

    fn validate(&self) -> Result<(), String> {
        self.gpu.validate()?;
        self.pools.iter().flatten().try_for_each(Pool::validate)
    }
}
