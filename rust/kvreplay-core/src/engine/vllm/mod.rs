//! vLLM: the prefix cache of the GPU and the CPU tier of its `OffloadingConnector`.

mod gpu;
mod model;
mod releases;

pub(super) use gpu::Gpu;
pub(super) use releases::{Flags, RELEASES};

use super::registry::{Component, ProfileInfo, Role, Rule};
use super::{EngineModel, Release, Setup};
use crate::error::Result;

/// The profile `vllm@`.
pub(super) const VLLM: ProfileInfo = ProfileInfo {
    name: "vllm",
    doc: "vLLM: GPU prefix cache",
    components: &[Component { name: "vllm", releases: RELEASES }],
    options: &[],
    block_tokens: 16,
    roles: &[Role {
        name: "gpu",
        doc: "KV blocks of the GPU; capacity is num_gpu_blocks, the null block included",
        policies: &[super::Choice { name: "lru", doc: "free queue", parameters: &[] }],
        admissions: &[],
        chunks: false,
    }],
    source: "vLLM 0.33.0",
    rules,
    build,
};

fn rules(_releases: &[Release]) -> Vec<Rule> {
    Vec::new()
}

fn build(setup: &Setup<'_>) -> Result<Box<dyn EngineModel>> {
    Ok(Box::new(model::Vllm::new(setup)))
}

#[cfg(test)]
mod tests;
