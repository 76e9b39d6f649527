//! Dynamo's KV block manager behind vLLM: host memory (G2) and disk (G3) below the GPU (G1).
//!
//! Engine v1 is `lib/llm/block_manager` with the vLLM connector of the `kvbm` wheels; engine v2 is
//! `kvbm-engine`, `kvbm-logical` and `kvbm-connector` of the same repository. The GPU is vLLM's own pool in both.
//! Rules: ai-dynamo/dynamo at the commits that [`rules`] names. There are no golden values: the oracle is
//! hand-worked traces and slow twins.

mod doubling;
mod lineage;
mod options;
mod order;
mod pool;
mod request;
mod rules;
mod sketch;
mod v1;
mod v2;

use super::registry::{Choice, Component, ProfileInfo, Role};
use super::{EngineModel, Release, Setup};
use crate::error::{Error, Result};
use options::{Engine, Options};

/// The wheels whose rules were read.
const RELEASES: &[Release] = &[Release(1, 4, 2), Release(1, 6, 1)];

/// What a tier without a choice is called.
const OWN: &[Choice] = &[Choice {
    name: "lru",
    doc: "blocks leave by the engine's own order (v2: see the option inactive)",
    parameters: &[],
}];

const fn role(name: &'static str, doc: &'static str) -> Role {
    Role { name, doc, policies: OWN, admissions: &[], chunks: false }
}

pub(super) const INFO: ProfileInfo = ProfileInfo {
    name: "kvbm",
    doc: "Dynamo KVBM behind vLLM: write-through to host and disk, engine v1 (wheels) or v2",
    components: &[Component { name: "kvbm", releases: RELEASES }],
    options: options::PARAMS,
    block_tokens: 16,
    roles: &[
        role("gpu", "vLLM's pool (G1); capacity counts num_gpu_blocks, the null block included"),
        role("cpu", "pinned host memory (G2), in blocks"),
        role("disk", "local disk (G3), in blocks; without cpu the GPU writes to it directly"),
    ],
    source: "ai-dynamo/dynamo: lib/llm/block_manager, lib/kvbm-engine, lib/kvbm-logical; kvbm 1.4.2 and 1.6.1",
    rules: rules::rules,
    build,
};

fn build(setup: &Setup<'_>) -> Result<Box<dyn EngineModel>> {
    let options = Options::new(setup)?;
    if setup.tiers[0].name != "gpu" {
        return Err(Error::config(
            format!("kvbm needs the tier gpu before {}", setup.tiers[0].name),
            "KVBM stores what vLLM computes on the GPU: give gpu too",
        ));
    }
    if !setup.block_tokens.is_power_of_two() || setup.block_tokens > 1024 {
        return Err(Error::config(
            format!("block_size={} is not a power of two up to 1024", setup.block_tokens),
            "KVBM's block sizes are 1, 2, 4, ... 1024; the default is 16",
        ));
    }
    Ok(match options.engine {
        Engine::V1 => Box::new(v1::V1::new(&options, setup)),
        Engine::V2 => Box::new(v2::V2::new(options, setup)),
    })
}

#[cfg(test)]
mod tests;
