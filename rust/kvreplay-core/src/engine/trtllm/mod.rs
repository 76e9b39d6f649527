//! `TensorRT-LLM`'s KV-cache managers: the C++ one (`trtllm@1`) and `kv_cache_manager_v2` (`trtllm@2`).
//!
//! Rules: `TensorRT-LLM` `evictionPolicy.cpp` @05a9191, `kvCacheManager.cpp` @b35ac1b and
//! `runtime/kv_cache_manager_v2`. There are no golden values: the oracle is hand-worked traces and a slow twin.

mod options;
mod rules;
mod slots;
mod tree;
mod v1;
mod v2;

use super::registry::{Choice, Component, ProfileInfo, Role};
use super::{EngineModel, Release, Setup};
use crate::error::{Error, Result};
use options::Options;

const RELEASES: &[Release] = &[Release(1, 0, 0), Release(2, 0, 0)];

/// What a tier without a choice is called.
const OWN: &[Choice] = &[Choice { name: "lru", doc: "by priority, then by release", parameters: &[] }];

const fn role(name: &'static str, doc: &'static str) -> Role {
    Role { name, doc, policies: OWN, admissions: &[], chunks: false }
}

pub(super) const INFO: ProfileInfo = ProfileInfo {
    name: "trtllm",
    doc: "TensorRT-LLM KV-cache manager with retention priorities, generation 1 (C++) or 2",
    components: &[Component { name: "trtllm", releases: RELEASES }],
    options: options::PARAMS,
    block_tokens: 32,
    roles: &[
        role("gpu", "primary blocks; capacity counts the blocks of the primary pool"),
        role("cpu", "secondary blocks in host memory (host_cache_size)"),
        role("disk", "pages on disk (generation 2 only)"),
    ],
    source: "NVIDIA/TensorRT-LLM, evictionPolicy.cpp @05a9191, kvCacheManager.cpp @b35ac1b, kv_cache_manager_v2",
    rules: rules::rules,
    build,
};

fn build(setup: &Setup<'_>) -> Result<Box<dyn EngineModel>> {
    let options = Options::new(setup)?;
    if !setup.block_tokens.is_power_of_two() {
        return Err(Error::config(
            format!("block_size={} is not a power of two", setup.block_tokens),
            "TensorRT-LLM's tokens_per_block is a power of two, like 32 or 64",
        ));
    }
    if setup.tiers[0].name != "gpu" {
        return Err(Error::config(
            format!("trtllm needs the tier gpu before {}", setup.tiers[0].name),
            "the host tier takes what the GPU evicts: give gpu too",
        ));
    }
    let capacities: Vec<u32> = setup.tiers.iter().map(crate::hierarchy::TierSpec::capacity_units).collect();
    if setup.releases[0] >= Release(2, 0, 0) {
        return Ok(Box::new(v2::V2::new(options, capacities, setup.blocks)));
    }
    if setup.tier("disk").is_some() {
        return Err(Error::config(
            "trtllm@1 has no tier disk",
            "generation 1 knows gpu and cpu; use trtllm@2 for a disk",
        ));
    }
    let host = capacities.get(1).copied().unwrap_or(0);
    Ok(Box::new(v1::V1::new(options, [capacities[0], host], setup.blocks)))
}

#[cfg(test)]
mod tests;
