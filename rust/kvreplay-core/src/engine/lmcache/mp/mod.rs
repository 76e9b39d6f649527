//! The profile `lmcache-mp@`: the multi-process server with L1 in memory and L2 adapters.
//!
//! Source: `LMCache` 0.5.6, `v1/distributed/{l1_manager,storage_manager}.py`,
//! `v1/distributed/storage_controllers/{eviction,prefetch,store}_controller.py` and their policies,
//! `v1/multiprocess/modules/lookup.py`.

mod order;
mod tier;

use super::chunks::{ChunkPaths, Chunks};
use crate::engine::{Cause, EngineModel, EngineRequest, Recorder, Setup};
use crate::error::{Error, Result};
use crate::policy::spec::{Param, Spec};
use order::Order;
use tier::{Tier, Watermark};

/// Options of the server.
pub(super) const OPTIONS: &[Param] = &[
    Param { name: "watermark", default: "0.8", doc: "share of L1 in use from which its loop evicts" },
    Param { name: "eviction_ratio", default: "0.2", doc: "share of L1's chunks one turn of the loop evicts" },
    Param {
        name: "tick_every_requests",
        default: "1",
        doc: "requests between two turns of the eviction loops (the server's sleep one second)",
    },
    Param { name: "l2_watermark", default: "0.8", doc: "as watermark, for every L2 adapter" },
    Param { name: "l2_eviction_ratio", default: "0.2", doc: "as eviction_ratio, for every L2 adapter" },
    Param {
        name: "prefetch_policy",
        default: "default",
        doc: "what was loaded from L2: default (it leaves L1 after the read) or retain (it stays there)",
    },
    Param {
        name: "store_policy",
        default: "default",
        doc: "what was written to L2: default (it stays in L1 too) or skip_l1 (it leaves L1)",
    },
    Param {
        name: "save_decode_cache",
        default: "false",
        doc: "whether chunks that fill while decoding are stored",
    },
    Param {
        name: "end_session_touch",
        default: "false",
        doc: "whether the end of a request refreshes all its chunks in L1",
    },
];

#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the server of its own")]
#[derive(Debug, Clone, Copy)]
struct Options {
    tick_every_requests: u64,
    retain: bool,
    skip_l1: bool,
    save_decode_cache: bool,
    end_session_touch: bool,
}

/// The server.
#[derive(Debug)]
pub(super) struct Server {
    l1: Tier,
    l2: Vec<Tier>,
    options: Options,
    paths: ChunkPaths,
    requests: u64,
    /// Chunks of the prompt found, and the L2 adapter of each that L1 lacks.
    found: usize,
    source: Vec<Option<u16>>,
    /// Chunks of a store or load under way.
    batch: Vec<u32>,
    stored: Vec<u32>,
    /// Unnamed chunks that this request left in L1.
    unnamed: u64,
}

pub(super) fn build(setup: &Setup<'_>) -> Result<Box<dyn EngineModel>> {
    super::check_blocks(setup)?;
    let Some((0, _)) = setup.tier("cpu") else {
        return Err(Error::config(
            "the multi-process server has no tier cpu here",
            "its L1 is the first tier: give cpu=CAPACITY before the L2 adapters",
        ));
    };
    let number = |name: &str| setup.options.number(name, 0.0..=1.0);
    let l1 = Watermark { trigger: number("watermark")?, ratio: number("eviction_ratio")? };
    let l2 = Watermark { trigger: number("l2_watermark")?, ratio: number("l2_eviction_ratio")? };
    let tier = |(at, spec): (usize, &crate::hierarchy::TierSpec)| -> Result<Tier> {
        let watermark = if at == 0 { l1 } else { l2 };
        let (order, watermark) = match Spec::parse(&spec.policy)?.name.as_str() {
            "arc" => (Order::arc(setup.blocks), Some(watermark)),
            "noop" => (Order::lru(setup.blocks), None),
            _ => (Order::lru(setup.blocks), Some(watermark)),
        };
        Ok(Tier::new(at, u64::from(spec.capacity_units()), watermark, order, setup.blocks))
    };
    let mut tiers = setup.tiers.iter().enumerate().map(tier).collect::<Result<Vec<_>>>()?;
    Ok(Box::new(Server {
        l1: tiers.remove(0),
        l2: tiers,
        options: options(setup)?,
        paths: ChunkPaths::default(),
        requests: 0,
        found: 0,
        source: Vec::new(),
        batch: Vec::new(),
        stored: Vec::new(),
        unnamed: 0,
    }))
}

fn options(setup: &Setup<'_>) -> Result<Options> {
    let given = setup.options;
    let choice = |name: &str, other: &str| match given.text(name) {
        "default" => Ok(false),
        word if word == other => Ok(true),
        word => Err(given.bad(name, word, &format!("default or {other}"))),
    };
    Ok(Options {
        tick_every_requests: given.number("tick_every_requests", 1..=u64::from(u32::MAX))?,
        retain: choice("prefetch_policy", "retain")?,
        skip_l1: choice("store_policy", "skip_l1")?,
        save_decode_cache: given.flag("save_decode_cache")?,
        end_session_touch: given.flag("end_session_touch")?,
    })
}

impl EngineModel for Server {
    fn serve(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        let mut paths = std::mem::take(&mut self.paths);
        let chunks = paths.read(request, 1);
        self.look_up(&chunks, out);
        self.load(&chunks, u64::from(request.block_tokens), out);
        let of_prompt = self.store(&chunks, out);
        if self.options.end_session_touch {
            self.touch_all(&chunks, of_prompt);
        }
        self.paths = paths;
        self.requests += 1;
        if self.requests.is_multiple_of(self.options.tick_every_requests) {
            self.l1.tick(out);
            for tier in &mut self.l2 {
                tier.tick(out);
            }
        }
    }

    fn content(&self, tier: usize) -> Vec<u32> {
        let tier = if tier == 0 { Some(&self.l1) } else { self.l2.get(tier - 1) };
        tier.map_or_else(Vec::new, |tier| tier.order.content())
    }

    fn validate(&self) -> std::result::Result<(), String> {
        std::iter::once(&self.l1).chain(&self.l2).try_for_each(Tier::validate)
    }
}

impl Server {
    /// The longest leading run of chunks that L1 or an L2 adapter holds. What comes from L2 needs room in L1
    /// for all of it, else the run ends with what L1 has.
    fn look_up(&mut self, chunks: &Chunks<'_>, out: &mut Recorder) {
        self.source.clear();
        self.batch.clear();
        for &chunk in chunks.prompt {
            if self.l1.has(chunk) {
                self.source.push(None);
            } else if let Some(k) = self.l2.iter().position(|tier| tier.has(chunk)) {
                self.source.push(Some(k as u16));
                self.batch.push(chunk);
            } else {
                break;
            }
        }
        if self.batch.len() as u64 > self.l1.free() {
            out.no_room(self.l1.at(), self.batch.len() as u64);
            let run = self.source.iter().position(Option::is_some);
            self.source.truncate(run.unwrap_or(usize::MAX));
            self.batch.clear();
        }
        self.found = self.source.len();
        for tier in std::iter::once(&self.l1).chain(&self.l2) {
            let behind = chunks.prompt[self.found..].iter().filter(|&&chunk| tier.has(chunk));
            out.strand(tier.at(), behind.count() as u32);
        }
    }

    /// Serves what was found. Chunks from L2 are staged in L1; all are touched there, tail to head.
    fn load(&mut self, chunks: &Chunks<'_>, chunk_tokens: u64, out: &mut Recorder) {
        let found = &chunks.prompt[..self.found];
        let staged = std::mem::take(&mut self.batch);
        for &chunk in staged.iter().rev() {
            self.l1.order.create(chunk, false);
        }
        self.serve_from(None, found, chunk_tokens, out);
        for k in 0..self.l2.len() {
            self.serve_from(Some(k as u16), found, chunk_tokens, out);
        }
        for &chunk in found.iter().rev() {
            self.l1.order.touch(chunk);
        }
        if self.options.retain {
            self.l1.keep(&staged, out);
        } else {
            for &chunk in &staged {
                self.l1.order.delete(chunk);
            }
        }
        self.batch = staged;
    }

    /// Reports what one tier serves; an L2 adapter refreshes it, tail to head.
    fn serve_from(&mut self, source: Option<u16>, found: &[u32], chunk_tokens: u64, out: &mut Recorder) {
        self.stored.clear();
        let served = found.iter().zip(&self.source).filter(|&(_, from)| *from == source);
        self.stored.extend(served.map(|(&chunk, _)| chunk));
        let count = self.stored.len() as u32;
        let tier = source.map_or(&mut self.l1, |k| &mut self.l2[k as usize]);
        if source.is_some() {
            for &chunk in self.stored.iter().rev() {
                tier.order.touch(chunk);
            }
        }
        if count > 0 {
            out.serve(tier.at(), &self.stored, count, u64::from(count) * chunk_tokens);
        }
    }

    /// Stores the prompt's chunks behind what was found in one call, then those that fill while decoding.
    /// Returns how many unnamed chunks of the prompt are in L1 now.
    fn store(&mut self, chunks: &Chunks<'_>, out: &mut Recorder) -> u64 {
        self.unnamed = 0;
        self.store_call(&chunks.prompt[self.found..], chunks.prompt_unnamed, out);
        let of_prompt = self.unnamed;
        if self.options.save_decode_cache {
            self.store_decoded(chunks, out);
        }
        of_prompt
    }

    /// Stores the chunks that fill while decoding, a call for each.
    fn store_decoded(&mut self, chunks: &Chunks<'_>, out: &mut Recorder) {
        for chunk in chunks.decoded {
            self.store_call(std::slice::from_ref(chunk), 0, out);
        }
        let mut left = chunks.decoded_unnamed;
        while left > 0 {
            // One call each; under skip_l1 each leaves L1 before the next one comes.
            let fits = self.l1.free().min(if self.skips_l1() { 1 } else { left });
            if fits == 0 {
                return out.no_room(self.l1.at(), left);
            }
            self.store_call(&[], fits, out);
            left -= fits;
        }
    }

    /// All absent chunks of a call fit into L1, or none is stored. What is written to L1 goes to L2 at once.
    fn store_call(&mut self, named: &[u32], unnamed: u64, out: &mut Recorder) {
        self.batch.clear();
        self.batch.extend(named.iter().filter(|&&chunk| !self.l1.has(chunk)));
        let wanted = self.batch.len() as u64 + unnamed;
        out.already_held(self.l1.at(), (named.len() - self.batch.len()) as u64);
        if wanted > self.l1.free() {
            return out.no_room(self.l1.at(), wanted);
        }
        self.l1.add(&self.batch, unnamed, false, Cause::Compute, out);
        for tier in &mut self.l2 {
            self.stored.clear();
            self.stored.extend(self.batch.iter().filter(|&&chunk| !tier.has(chunk)));
            out.already_held(tier.at(), (self.batch.len() - self.stored.len()) as u64);
            // An adapter skips what does not fit any more.
            let (free, absent) = (tier.free(), self.stored.len() as u64);
            let fits = free.min(absent);
            self.stored.truncate(fits as usize);
            let fits_unnamed = (free - fits).min(unnamed);
            out.no_room(tier.at(), absent - fits + unnamed - fits_unnamed);
            tier.add(&self.stored, fits_unnamed, true, Cause::Compute, out);
        }
        if self.skips_l1() {
            self.l1.take_back(&self.batch, unnamed, out);
        } else {
            self.unnamed += unnamed;
        }
    }

    fn skips_l1(&self) -> bool {
        self.options.skip_l1 && !self.l2.is_empty()
    }

    /// Refreshes what L1 holds of the request, tail to head, `of_prompt` unnamed chunks of the prompt included.
    fn touch_all(&mut self, chunks: &Chunks<'_>, of_prompt: u64) {
        self.l1.order.delete_newest_unnamed(self.unnamed);
        self.l1.order.add_touched_unnamed(self.unnamed - of_prompt);
        if self.options.save_decode_cache {
            self.touch_held(chunks.decoded);
        }
        self.l1.order.add_touched_unnamed(of_prompt);
        self.touch_held(chunks.prompt);
    }

    fn touch_held(&mut self, chunks: &[u32]) {
        for &chunk in chunks.iter().rev() {
            if self.l1.has(chunk) {
                self.l1.order.touch(chunk);
            }
        }
    }
}
