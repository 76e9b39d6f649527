//! Dynamo KVBM v1 below vLLM in plain lists. Events are those below the GPU.

use super::plain_gpu::PlainGpu;
use crate::engine::EngineRequest;
use std::collections::BTreeMap;

/// What the deployment sets.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    pub(crate) gpu: usize,
    pub(crate) cpu: Option<usize>,
    pub(crate) disk: Option<usize>,
    pub(crate) batch: usize,
    pub(crate) head_first: bool,
    /// Threshold, interval in seconds, entries.
    pub(crate) filter: Option<(u64, i64, usize)>,
}

/// A block: its name, or a number of its own.
type Id = Result<u32, u64>;

#[derive(Debug)]
struct Pool {
    name: &'static str,
    empty: usize,
    /// Inactive blocks by release, oldest first.
    inactive: Vec<Id>,
    /// Blocks taken and not registered yet.
    taken: usize,
}

/// The manager and what the last request did.
#[derive(Debug)]
pub(crate) struct Manager {
    options: Options,
    gpu: PlainGpu,
    cpu: Option<Pool>,
    disk: Option<Pool>,
    numbers: BTreeMap<Id, u64>,
    next_fall_us: Option<i64>,
    nameless: u64,
    /// GPU, then the tiers there are.
    pub(crate) hit_tokens: Vec<u64>,
    pub(crate) events: Vec<String>,
}

impl Pool {
    fn new(name: &'static str, capacity: usize) -> Self {
        Self { name, empty: capacity, inactive: Vec::new(), taken: 0 }
    }

    fn has(&self, block: u32) -> bool {
        self.inactive.contains(&Ok(block))
    }

    fn renew(&mut self, block: Id) {
        self.inactive.retain(|other| *other != block);
        self.inactive.push(block);
    }

    fn allocate(&mut self, blocks: usize, events: &mut Vec<String>) -> bool {
        if self.empty + self.inactive.len() < blocks {
            return false;
        }
        for _ in 0..blocks {
            if self.empty > 0 {
                self.empty -= 1;
            } else if let Ok(name) = self.inactive.remove(0) {
                events.push(format!("evict {} {name}", self.name));
            }
        }
        self.taken += blocks;
        true
    }

    /// Registers blocks that were filled and gives them all back.
    fn register(&mut self, blocks: &[Vec<Id>], head_first: bool, events: &mut Vec<String>) {
        for &block in blocks.iter().flatten() {
            self.taken -= 1;
            if self.inactive.contains(&block) {
                self.empty += 1;
                continue;
            }
            if let Ok(name) = block {
                events.push(format!("insert {} {name}", self.name));
            }
        }
        for run in blocks {
            let order: Vec<Id> = if head_first { run.clone() } else { run.iter().rev().copied().collect() };
            for block in order {
                self.renew(block);
            }
        }
    }
}

impl Manager {
    pub(crate) fn new(options: Options) -> Self {
        Self {
            gpu: PlainGpu::new(options.gpu),
            cpu: options.cpu.map(|blocks| Pool::new("cpu", blocks)),
            disk: options.disk.map(|blocks| Pool::new("disk", blocks)),
            options,
            numbers: BTreeMap::new(),
            next_fall_us: None,
            nameless: 0,
            hit_tokens: Vec::new(),
            events: Vec::new(),
        }
    }

    pub(crate) fn serve(&mut self, request: &EngineRequest<'_>) {
        self.events.clear();
        self.hit_tokens = vec![0; 1 + usize::from(self.cpu.is_some()) + usize::from(self.disk.is_some())];
        self.fall_until(request.now_us.unwrap());
        if !self.gpu.fits(request) {
            return;
        }
        let size = u64::from(request.block_tokens);
        let hits = self.gpu.look_up(request);
        self.hit_tokens[0] = hits as u64 * size;
        let loaded = self.load(request, hits);
        self.gpu.admit(request, hits, request.prompt_tokens);
        let tokens = self.gpu.tokens(request);
        let (mut stored, mut done) = (hits + loaded, request.prompt_tokens);
        loop {
            let full = (done / size) as usize;
            if full > stored {
                self.store(request, stored, full);
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

    pub(crate) fn content(&self, tier: &str) -> Vec<u32> {
        let pool = if tier == "cpu" { &self.cpu } else { &self.disk };
        pool.iter().flat_map(|pool| pool.inactive.iter().rev()).filter_map(|block| block.ok()).collect()
    }

    fn load(&mut self, request: &EngineRequest<'_>, hits: usize) -> usize {
        let rest = &request.full_blocks()[hits..];
        let count = |pool: &Option<Pool>, blocks: &[u32]| {
            pool.as_ref().map_or(0, |pool| blocks.iter().take_while(|block| pool.has(**block)).count())
        };
        let on_cpu = count(&self.cpu, rest);
        let on_disk = count(&self.disk, &rest[on_cpu..]);
        let mut served = (on_cpu, on_disk);
        let size = u64::from(request.block_tokens);
        if on_cpu + on_disk > 0 && (hits + on_cpu + on_disk) as u64 * size == request.prompt_tokens {
            if on_disk > 0 {
                served.1 -= 1;
            } else {
                served.0 -= 1;
            }
        }
        let parts = [
            (&mut self.cpu, &rest[..on_cpu], served.0),
            (&mut self.disk, &rest[on_cpu..on_cpu + on_disk], served.1),
        ];
        let mut tier = 1;
        for (pool, found, served) in parts {
            let Some(pool) = pool else { continue };
            self.hit_tokens[tier] = served as u64 * size;
            tier += 1;
            self.events.extend(found[..served].iter().map(|name| format!("hit {} {name}", pool.name)));
            let mut order = found.to_vec();
            if !self.options.head_first {
                order.reverse();
            }
            for name in order {
                pool.renew(Ok(name));
            }
        }
        served.0 + served.1
    }

    fn store(&mut self, request: &EngineRequest<'_>, from: usize, to: usize) {
        let target = if self.cpu.is_some() { &mut self.cpu } else { &mut self.disk };
        let Some(pool) = target else { return };
        if !pool.allocate(to - from, &mut self.events) {
            return;
        }
        let mut blocks = Vec::new();
        for at in from..to {
            self.nameless += 1;
            blocks.push(request.name_of(at as u64).ok_or(self.nameless));
        }
        pool.register(&[blocks.clone()], self.options.head_first, &mut self.events);
        if self.cpu.is_some() {
            self.store_on_disk(&blocks, request.now_us.unwrap());
        }
    }

    fn store_on_disk(&mut self, blocks: &[Id], now_us: i64) {
        let mut pending: Vec<Vec<Id>> = Vec::new();
        let mut last_passed = None;
        for (at, &block) in blocks.iter().enumerate() {
            let Some(disk) = &mut self.disk else { return };
            if disk.inactive.contains(&block) {
                disk.renew(block);
                continue;
            }
            if !self.admits(block, now_us) {
                if let Ok(name) = block {
                    self.events.push(format!("reject disk {name}"));
                }
                continue;
            }
            let Some(disk) = &mut self.disk else { return };
            if !disk.allocate(1, &mut self.events) {
                continue;
            }
            match pending.last_mut() {
                Some(run) if at > 0 && last_passed == Some(at - 1) => run.push(block),
                _ => pending.push(vec![block]),
            }
            last_passed = Some(at);
            if pending.iter().flatten().count() == self.options.batch {
                disk.register(&pending, self.options.head_first, &mut self.events);
                pending.clear();
                last_passed = None;
            }
        }
        if let Some(disk) = &mut self.disk {
            disk.register(&pending, self.options.head_first, &mut self.events);
        }
    }

    fn fall(&mut self) {
        for number in self.numbers.values_mut() {
            *number -= 1;
        }
        self.numbers.retain(|_, number| *number > 0);
    }

    fn fall_until(&mut self, now_us: i64) {
        let Some((_, seconds, _)) = self.options.filter else { return };
        let mut next = *self.next_fall_us.get_or_insert(now_us + seconds * 1_000_000);
        while next <= now_us {
            self.fall();
            next += seconds * 1_000_000;
        }
        self.next_fall_us = Some(next);
    }

    fn admits(&mut self, block: Id, now_us: i64) -> bool {
        let Some((threshold, seconds, entries)) = self.options.filter else { return true };
        let number = self.numbers.entry(block).and_modify(|number| *number *= 2).or_insert(1);
        let passes = *number >= threshold;
        if self.numbers.len() > entries {
            while self.numbers.len() > entries {
                self.fall();
            }
            self.next_fall_us = Some(now_us + seconds * 1_000_000);
        }
        passes
    }
}
