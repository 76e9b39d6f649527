//! vLLM: the prefix cache of the GPU, the CPU tier of its `OffloadingConnector` (LRU and vLLM's own ARC), and the
//! secondary tiers of `TieringOffloadingSpec`.
//!
//! Requests run one at a time and transfers are instant. What each release does is data in `releases`; the rules
//! with their sources are in `rules`.

mod arc;
mod build;
mod gpu;
mod lru;
mod model;
mod offload;
mod path;
mod policy;
mod releases;
pub(super) mod rules;
mod tiering;
mod tracker;

pub(super) use gpu::{FreeRule, Gpu};
pub(super) use releases::{Flags, RELEASES};
pub(super) use rules::gpu_rules;

use super::registry::{Choice, Component, ProfileInfo, Role};
use crate::policy::spec::Param;

/// What `vllm@` and profiles built on it say about the GPU tier.
pub(super) const GPU_ROLE: Role = Role {
    name: "gpu",
    doc: "KV blocks of the GPU; capacity is vLLM's num_gpu_blocks, of which one, the null block, holds nothing",
    policies: &[Choice {
        name: "lru",
        doc: "the free queue: least recently freed, tails first",
        parameters: &[],
    }],
    admissions: &[],
    chunks: false,
};

/// The profile `vllm@`.
pub(super) const VLLM: ProfileInfo = ProfileInfo {
    name: "vllm",
    doc: "vLLM: GPU prefix cache, native CPU offload (OffloadingConnector), secondary tiers",
    components: &[Component { name: "vllm", releases: RELEASES }],
    options: &[Param {
        name: "offload_decode",
        default: "",
        doc: "whether chunks that get full while decoding are offered to the CPU, the contrary of \
              offload_prompt_only; unless given, the release's default: false from 0.23.0 on, before always true",
    }],
    block_tokens: 16,
    roles: &[GPU_ROLE, CPU_ROLE, SECONDARY_ROLE],
    source: "vLLM 0.33.0 and older releases (v1/core, v1/kv_offload); golden vectors of 0.33.0, 0.30.0, 0.22.1",
    rules: rules::rules,
    build: build::build,
};

const CPU_ROLE: Role = Role {
    name: "cpu",
    doc: "chunks in host memory (CPUOffloadingSpec); capacity is num_chunks times blocks_per_chunk, in blocks",
    policies: &[
        Choice { name: "lru", doc: "eviction_policy lru", parameters: &[] },
        Choice { name: "arc", doc: "eviction_policy arc, vLLM's variant", parameters: &[] },
    ],
    admissions: &[Choice {
        name: "store_threshold",
        doc: "a chunk is stored from its n-th offer on (up to 0.28.0: look-up); below 2 every chunk is",
        parameters: &[
            Param { name: "n", default: "2", doc: "store_threshold" },
            Param { name: "tracker", default: "64000", doc: "max_tracker_size: chunks counted at a time" },
        ],
    }],
    chunks: true,
};

const SECONDARY_ROLE: Role = Role {
    name: "*",
    doc: "secondary tier (TieringOffloadingSpec) in chunks of the CPU tier; capacity is what the medium has room for",
    policies: &[
        Choice { name: "fs", doc: "a file per chunk, never deleted", parameters: &[] },
        Choice { name: "obj", doc: "an object per chunk, never deleted", parameters: &[] },
    ],
    admissions: &[],
    chunks: true,
};

#[cfg(test)]
mod tests;
