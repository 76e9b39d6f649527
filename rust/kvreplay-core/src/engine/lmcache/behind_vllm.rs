//! The profile `vllm@X+lmcache@Y`: vLLM's GPU cache with the in-process engine behind it
//! (`LMCacheConnectorV1`).
//!
//! Source: `LMCache` 0.5.6, `integration/vllm/vllm_v1_adapter.py`; the GPU is vLLM's own (`engine/vllm`).

use super::cache::{Cache, Front};
use super::chunks::ChunkPaths;
use super::in_process::cache;
use super::tier::Tier;
use crate::engine::vllm::{Flags, Gpu};
use crate::engine::{EngineModel, EngineRequest, Recorder, Setup};
use crate::error::{Error, Result};

/// vLLM with `LMCache`.
#[derive(Debug)]
pub(super) struct BehindVllm {
    gpu: Gpu,
    cache: Cache,
    paths: ChunkPaths,
}

pub(super) fn build(setup: &Setup<'_>) -> Result<Box<dyn EngineModel>> {
    let Some((0, spec)) = setup.tier("gpu") else {
        return Err(Error::config(
            "vLLM has no tier gpu here",
            "give gpu=CAPACITY first, then LMCache's tiers, or take the profile lmcache@ for LMCache alone",
        ));
    };
    if setup.tiers.len() == 1 {
        return Err(Error::config(
            "LMCache has no tier here",
            "give cpu=CAPACITY,chunk_blocks=16 (256-token chunks) after gpu, or take the profile vllm@",
        ));
    }
    let flags = Flags::of(setup.releases[0]);
    let gpu = Gpu::new(0, spec.capacity_blocks, flags.free_rule, setup.blocks);
    Ok(Box::new(BehindVllm { gpu, cache: cache(setup, 1)?, paths: ChunkPaths::default() }))
}

impl EngineModel for BehindVllm {
    fn serve(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        if !self.gpu.fits(request) {
            return;
        }
        let hits = self.gpu.look_up(request);
        self.gpu.report(request, hits, out);
        let chunks = self.paths.read(request, self.cache.chunk_blocks());
        self.cache.look_up(&chunks, out);
        let front = Front { held_tokens: request.tokens(u64::from(hits)), computes_last_token: true };
        let loaded = self.cache.load(request, &chunks, front, out);
        self.gpu.admit(request, hits, loaded.div_ceil(u64::from(request.block_tokens)), out);
        self.gpu.decode(request, request.total_tokens(), out);
        self.gpu.free();
        self.cache.store(&chunks, out);
    }

    fn content(&self, tier: usize) -> Vec<u32> {
        match tier {
            0 => self.gpu.content(),
            _ => self.cache.tier(tier).map_or_else(Vec::new, Tier::content),
        }
    }

    fn validate(&self) -> std::result::Result<(), String> {
        self.gpu.validate()?;
        self.cache.validate()
    }
}
