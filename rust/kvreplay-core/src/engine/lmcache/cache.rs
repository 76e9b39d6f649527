//! The in-process engine (`LMCacheEngine` with its `StorageManager`): look-up, load and store of one request
//! over memory, disk and remote backends.
//!
//! Source: `LMCache` 0.5.6, `v1/cache_engine.py`, `v1/storage_backend/{storage_manager,local_cpu_backend,
//! local_disk_backend,remote_backend}.py`, `integration/vllm/vllm_v1_adapter.py`.

use super::chunks::Chunks;
use super::tier::Tier;
use crate::engine::{Cause, EngineRequest, Recorder};

/// Options of the engine.
#[derive(Debug, Clone, Copy)]
pub(super) struct Options {
    /// A load of fewer tokens is not made.
    pub min_retrieve_tokens: u64,
    /// Whether chunks that fill while decoding are stored.
    pub save_decode_cache: bool,
}

/// The engine.
#[derive(Debug)]
pub(super) struct Cache {
    /// Memory (`LocalCPUBackend`), unless `local_cpu` is off.
    cpu: Option<Tier>,
    /// Disk and remote backends, in the order they are asked.
    below: Vec<Tier>,
    chunk_blocks: u32,
    options: Options,
    /// Chunks of the prompt found, and the last one of each backend in turn (memory first).
    found: usize,
    ends: Vec<usize>,
}

/// What the serving engine in front has already.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Front {
    /// Leading tokens of the prompt that it holds.
    pub held_tokens: u64,
    /// Whether it computes the last token even if everything is found.
    pub computes_last_token: bool,
}

impl Cache {
    pub(super) fn new(cpu: Option<Tier>, below: Vec<Tier>, chunk_blocks: u32, options: Options) -> Self {
        Self { cpu, below, chunk_blocks, options, found: 0, ends: Vec::new() }
    }

    /// Blocks per chunk.
    pub(super) fn chunk_blocks(&self) -> u32 {
        self.chunk_blocks
    }

    /// Looks the whole prompt up: memory takes the longest leading run, the next backend goes on from there.
    /// What is found is used: tail to head, in memory and on disk.
    pub(super) fn look_up(&mut self, chunks: &Chunks<'_>, out: &mut Recorder) {
        self.ends.clear();
        let mut at = 0;
        for tier in self.cpu.iter_mut().chain(&mut self.below) {
            let run = tier.leading(&chunks.prompt[at..]);
            tier.find(&chunks.prompt[at..at + run]);
            at += run;
            self.ends.push(at);
        }
        self.found = at;
        for tier in self.cpu.iter().chain(&self.below) {
            out.strand(tier.at(), tier.count(&chunks.prompt[at..]) * self.chunk_blocks);
        }
    }

    /// Loads what was found beyond what the serving engine has. It reads whole chunks, and copies what disk
    /// and remote backends serve into memory. Returns the tokens loaded.
    pub(super) fn load(
        &mut self,
        request: &EngineRequest<'_>,
        chunks: &Chunks<'_>,
        front: Front,
        out: &mut Recorder,
    ) -> u64 {
        let chunk_tokens = u64::from(request.block_tokens) * u64::from(self.chunk_blocks);
        let found_tokens = self.found as u64 * chunk_tokens;
        let last = u64::from(front.computes_last_token && found_tokens == request.prompt_tokens);
        let end = found_tokens.saturating_sub(last);
        if end <= front.held_tokens || end - front.held_tokens < self.options.min_retrieve_tokens {
            return 0;
        }
        let start = (front.held_tokens / chunk_tokens) as usize;
        if let Some(cpu) = &mut self.cpu {
            cpu.pin(&chunks.prompt[..self.ends[0]]);
        }
        self.map_backends(chunks, start);
        let mut reader = Reader { request, chunk_tokens, reached: front.held_tokens, end };
        let mut at = start;
        if let Some(cpu) = &mut self.cpu {
            let read = &chunks.prompt[at..self.ends[0].max(at)];
            at += read.len();
            reader.serve(cpu, read, at, out);
            cpu.pin(read);
        }
        let above = usize::from(self.cpu.is_some());
        for k in 0..self.below.len() {
            let read = &chunks.prompt[at..self.ends[k + above].max(at)];
            let got = self.promote(k, read, out);
            at += got;
            reader.serve(&self.below[k], &read[..got], at, out);
            if got < read.len() {
                break;
            }
        }
        if let Some(cpu) = &mut self.cpu {
            cpu.unpin(&chunks.prompt[..self.found]);
        }
        reader.reached - front.held_tokens
    }

    /// Which backend serves which chunk from `start` on. If the look-up found all in one backend, that one;
    /// else the backends are asked again from `start` on, so memory may serve what lies behind a hole.
    fn map_backends(&mut self, chunks: &Chunks<'_>, start: usize) {
        let mut before = 0;
        let runs = self.ends.iter().filter(|&&end| std::mem::replace(&mut before, end) < end).count();
        if runs == 1 {
            return;
        }
        let mut at = start;
        for (tier, end) in self.cpu.iter().chain(&self.below).zip(&mut self.ends) {
            at += tier.leading(&chunks.prompt[at..self.found]);
            *end = at;
        }
    }

    /// Reads chunks from a lower backend into memory; returns how many found a slot there.
    fn promote(&mut self, k: usize, read: &[u32], out: &mut Recorder) -> usize {
        let got = match &mut self.cpu {
            Some(cpu) => cpu.take(read.len() as u64, out) as usize,
            None => read.len(),
        };
        for &chunk in &read[..got] {
            self.below[k].touch(chunk);
        }
        if let Some(cpu) = &mut self.cpu {
            for &chunk in &read[..got] {
                cpu.fill(chunk, Cause::Promotion, out);
            }
            cpu.pin(&read[..got]);
        }
        got
    }

    /// Stores the prompt's chunks behind what was found in every backend, then those that fill while decoding.
    pub(super) fn store(&mut self, chunks: &Chunks<'_>, out: &mut Recorder) {
        self.store_batch(&chunks.prompt[self.found..], chunks.prompt_unnamed, out);
        if !self.options.save_decode_cache {
            return;
        }
        for chunk in chunks.decoded {
            self.store_batch(std::slice::from_ref(chunk), 0, out);
        }
        let unnamed = chunks.decoded_unnamed;
        let stored = self.cpu.as_mut().map_or(unnamed, |cpu| cpu.put_unnamed(unnamed, out));
        for tier in &mut self.below {
            tier.put_unnamed(stored, out);
        }
    }

    /// One store call: every chunk takes a slot in memory first, head to tail, and where none is to be had the
    /// call ends, for the other backends too.
    fn store_batch(&mut self, named: &[u32], unnamed: u64, out: &mut Recorder) {
        let wanted = named.len() as u64 + unnamed;
        let got = match &mut self.cpu {
            Some(cpu) => cpu.take(wanted, out),
            None => wanted,
        };
        let (stored, stored_unnamed) = if got < named.len() as u64 {
            (&named[..got as usize], 0)
        } else {
            (named, got - named.len() as u64)
        };
        if let Some(cpu) = &mut self.cpu {
            for &chunk in stored {
                cpu.fill(chunk, Cause::Compute, out);
            }
            cpu.fill_unnamed(stored_unnamed, out);
            out.no_room(cpu.at(), wanted - got);
        }
        for tier in &mut self.below {
            for &chunk in stored {
                tier.put(chunk, out);
            }
            tier.put_unnamed(stored_unnamed, out);
        }
    }

    /// The tier at a position of the replay.
    pub(super) fn tier(&self, at: usize) -> Option<&Tier> {
        self.cpu.iter().chain(&self.below).find(|tier| tier.at() == at)
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        self.cpu.iter().chain(&self.below).try_for_each(Tier::validate)
    }
}

/// Follows the tokens that a load brings.
struct Reader<'a> {
    request: &'a EngineRequest<'a>,
    chunk_tokens: u64,
    /// Tokens of the prompt held or loaded so far.
    reached: u64,
    /// Where the load ends.
    end: u64,
}

impl Reader<'_> {
    /// A backend serves the chunks `read`, which end at chunk `end`.
    fn serve(&mut self, tier: &Tier, read: &[u32], end: usize, out: &mut Recorder) {
        let to = (end as u64 * self.chunk_tokens).min(self.end);
        if read.is_empty() || to <= self.reached {
            return;
        }
        let block = u64::from(self.request.block_tokens);
        let blocks = to.div_ceil(block) - self.reached.div_ceil(block);
        out.serve(tier.at(), read, blocks as u32, to - self.reached);
        self.reached = to;
    }
}
