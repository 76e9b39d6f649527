//! Engine v1: the offload manager and pools of `lib/llm/block_manager` behind the vLLM connector of the wheels.

use super::doubling::Doubling;
use super::options::{Inactive, Options};
use super::pool::Pool;
use super::request::{Item, Items, run};
use crate::engine::vllm::{FreeRule, Gpu};
use crate::engine::{Cause, EngineModel, EngineRequest, Recorder, Setup};

/// The model.
#[derive(Debug)]
pub(super) struct V1 {
    gpu: Gpu,
    host: Option<Pool>,
    disk: Option<Pool>,
    filter: Option<Doubling>,
    batch_blocks: usize,
    head_first: bool,
    items: Items,
    /// Blocks of the store at hand, and the nodes they are in.
    batch: Vec<Item>,
    nodes: Vec<u32>,
    /// Blocks on their way to the disk.
    pending: Vec<Item>,
    pending_nodes: Vec<u32>,
}

impl V1 {
    pub(super) fn new(options: &Options, setup: &Setup<'_>) -> Self {
        let pool = |name: &str| {
            let (tier, spec) = setup.tier(name)?;
            Some(Pool::new(tier, spec.capacity_units(), setup.blocks, Inactive::Lru.order(setup.blocks)))
        };
        let filter = options
            .disk_filter
            .map(|filter| Doubling::new(filter.threshold, filter.every, filter.max_entries, setup.blocks));
        Self {
            gpu: Gpu::new(0, setup.tiers[0].capacity_blocks, FreeRule::UnhashedFirst, setup.blocks),
            host: pool("cpu"),
            disk: pool("disk"),
            filter,
            batch_blocks: options.batch_blocks,
            head_first: options.head_first,
            items: Items::default(),
            batch: Vec::new(),
            nodes: Vec::new(),
            pending: Vec::new(),
            pending_nodes: Vec::new(),
        }
    }

    /// Matches the host behind the GPU's hits, then the disk behind that, and says how many blocks are
    /// loaded. A run that reaches the end of a prompt of full blocks gives its last block up.
    fn load(&mut self, request: &EngineRequest<'_>, hits: u32, out: &mut Recorder) -> u64 {
        let rest = &request.full_blocks()[hits as usize..];
        let on_host = self.host.as_ref().map_or(0, |host| run(rest, |block| host.has(block)));
        let on_disk = self.disk.as_ref().map_or(0, |disk| run(&rest[on_host..], |block| disk.has(block)));
        let found = on_host + on_disk;
        let reached = (u64::from(hits) + found as u64) * u64::from(request.block_tokens);
        let given_up = usize::from(found > 0 && reached == request.prompt_tokens);
        let from_host = on_host.min(found - given_up);
        let from_disk = found - given_up - from_host;
        for (pool, found, served) in [
            (&mut self.host, &rest[..on_host], from_host),
            (&mut self.disk, &rest[on_host..found], from_disk),
        ] {
            let Some(pool) = pool else { continue };
            let tokens = served as u64 * u64::from(request.block_tokens);
            out.serve(pool.tier(), &found[..served], served as u32, tokens);
            let behind = rest.iter().skip(on_host + on_disk + 1);
            out.strand(pool.tier(), behind.filter(|&&block| pool.has(block)).count() as u32);
            renew(pool, found, self.head_first);
        }
        (from_host + from_disk) as u64
    }

    /// Stores blocks that got full: on the host, or on the disk where there is no host.
    fn store(&mut self, request: &EngineRequest<'_>, at: std::ops::Range<u64>, out: &mut Recorder) {
        let target = if self.host.is_some() { &mut self.host } else { &mut self.disk };
        let Some(target) = target else { return };
        let blocks = at.end - at.start;
        if !target.allocate(u32::try_from(blocks).unwrap_or(u32::MAX), out) {
            return out.no_room(target.tier(), blocks);
        }
        self.batch.clear();
        self.nodes.clear();
        for at in at {
            let item = self.items.item(request, at);
            self.nodes.push(target.register(&item, request, Cause::Compute, out).0);
            self.batch.push(item);
        }
        if self.host.is_some() && self.disk.is_some() {
            self.store_on_disk(request, out);
        }
        let target = if self.host.is_some() { &mut self.host } else { &mut self.disk };
        if let Some(target) = target {
            give_back(target, &self.nodes, self.head_first);
        }
    }

    /// Every block registered on the host is offered to the disk.
    fn store_on_disk(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        for at in 0..self.batch.len() {
            let item = self.batch[at];
            let Some(disk) = &mut self.disk else { return };
            if let Some(name) = item.name.filter(|&name| disk.has(name)) {
                // Looking whether it is there counts as a use.
                disk.renew(name);
                out.already_held(disk.tier(), 1);
                continue;
            }
            let admits = self.filter.as_mut().is_none_or(|filter| filter.admits(&item, request.now_us));
            if !admits {
                match item.name {
                    Some(name) => out.reject(disk.tier(), name),
                    None => out.reject_unnamed(disk.tier()),
                }
                continue;
            }
            if !disk.allocate(1, out) {
                out.no_room(disk.tier(), 1);
                continue;
            }
            self.pending.push(item);
            if self.pending.len() == self.batch_blocks {
                self.flush(request, out);
            }
        }
        self.flush(request, out);
    }

    /// A transfer to the disk ends: its blocks are registered together and given back, each run of
    /// neighbours tail first.
    fn flush(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        let Some(disk) = &mut self.disk else { return };
        self.pending_nodes.clear();
        for item in &self.pending {
            self.pending_nodes.push(disk.register(item, request, Cause::Compute, out).0);
        }
        let mut from = 0;
        for at in 1..=self.pending.len() {
            if at == self.pending.len() || self.pending[at].at != self.pending[at - 1].at + 1 {
                give_back(disk, &self.pending_nodes[from..at], self.head_first);
                from = at;
            }
        }
        self.pending.clear();
    }
}

/// Blocks that were matched go back.
fn renew(pool: &mut Pool, blocks: &[u32], head_first: bool) {
    for at in 0..blocks.len() {
        pool.renew(blocks[if head_first { at } else { blocks.len() - 1 - at }]);
    }
}

/// Blocks in use go back. A child keeps its parent, so that dropping a list from its head on returns the
/// tail first.
fn give_back(pool: &mut Pool, nodes: &[u32], head_first: bool) {
    for at in 0..nodes.len() {
        pool.put(nodes[if head_first { at } else { nodes.len() - 1 - at }], 0);
    }
}

impl EngineModel for V1 {
    fn serve(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        if let (Some(filter), Some(now_us)) = (&mut self.filter, request.now_us) {
            filter.advance(now_us);
        }
        if !self.gpu.fits(request) {
            return;
        }
        for pool in self.host.iter_mut().chain(&mut self.disk) {
            pool.begin();
        }
        let block_tokens = u64::from(request.block_tokens);
        let hits = self.gpu.look_up(request);
        self.gpu.report(request, hits, out);
        let loaded = self.load(request, hits, out);
        self.gpu.admit(request, hits, loaded, out);
        let tokens = request.total_tokens().min(self.gpu.tokens(request.block_tokens));
        let (mut stored, mut done) = (u64::from(hits) + loaded, request.prompt_tokens);
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
        let pools = self.host.iter().chain(&self.disk);
        pools.into_iter().find(|pool| pool.tier() == tier).map_or_else(|| self.gpu.content(), Pool::content)
    }

    fn validate(&self) -> Result<(), String> {
        self.gpu.validate()?;
        self.host.iter().chain(&self.disk).try_for_each(Pool::validate)
    }
}
