//! `LMCache`: the in-process engine, the multi-process server, and the in-process engine behind vLLM.
//!
//! Chunks are stored, found and evicted whole. Alone, a chunk is one block of the replay (`block_size` is
//! `LMCache`'s `chunk_size`); behind vLLM it is `chunk_blocks` of vLLM's blocks, named by the last one.

mod behind_vllm;
mod cache;
mod chunks;
mod in_process;
mod mp;
mod order;
mod rules;
mod tier;

use super::parts::Members;
use super::registry::{Choice, Component, ProfileInfo, Role};
use super::vllm::{GPU_ROLE, VLLM};
use super::{Release, Setup};
use crate::error::{Error, Result};

/// Releases whose rules were read in source.
pub(super) const RELEASES: &[Release] = &[Release(0, 5, 6)];

const fn choice(name: &'static str, doc: &'static str) -> Choice {
    Choice { name, doc, parameters: &[] }
}

/// `cache_policy` of the in-process engine.
const LOCAL_POLICIES: &[Choice] = &[
    choice("lru", "evicts what was not stored or looked up for longest"),
    choice("lfu", "evicts what was used least; first come, first out among equals"),
    choice("fifo", "evicts what was stored first"),
    choice("mru", "evicts what was stored or looked up last"),
];

/// A remote server decides for itself; `LMCache` only writes to it and reads from it.
const REMOTE_POLICIES: &[Choice] = &[
    choice("lru", "a server that evicts what was not written or read for longest (not LMCache's code)"),
    choice("none", "a server that never evicts: once full it takes nothing more"),
];

/// `--eviction-policy` of the multi-process server.
const MP_POLICIES: &[Choice] = &[
    choice("lru", "evicts what was not stored or looked up for longest"),
    choice("arc", "LMCache's variant of ARC; its capacity is the largest number of chunks ever held"),
    choice("noop", "never evicts"),
];

/// The tiers of the in-process engine; in `chunks` of several blocks where an engine with smaller blocks is in
/// front.
const fn roles(chunks: bool) -> [Role; 4] {
    const fn role(name: &'static str, doc: &'static str, policies: &'static [Choice], chunks: bool) -> Role {
        Role { name, doc, policies, admissions: &[], chunks }
    }
    [
        role(
            "cpu",
            "memory (max_local_cpu_size), from which loads and stores take their room; without it local_cpu is off",
            LOCAL_POLICIES,
            chunks,
        ),
        role("disk", "local_disk (max_local_disk_size), with the policy of memory", LOCAL_POLICIES, chunks),
        role("remote", "the server of remote_url", REMOTE_POLICIES, chunks),
        role("*", "further remote backends, in the order they are asked", REMOTE_POLICIES, chunks),
    ]
}

const ALONE: [Role; 4] = roles(false);
const BEHIND: [Role; 4] = roles(true);

/// vLLM's GPU, then the in-process engine.
const BEHIND_VLLM: &[Role] = &[GPU_ROLE, BEHIND[0], BEHIND[1], BEHIND[2], BEHIND[3]];

/// The profile `lmcache@`.
pub(super) const LMCACHE: ProfileInfo = ProfileInfo {
    name: "lmcache",
    doc: "LMCache in process: 256-token chunks in memory, on disk and remote",
    components: &[Component { name: "lmcache", releases: RELEASES }],
    options: in_process::OPTIONS,
    block_tokens: 256,
    roles: &ALONE,
    source: rules::SOURCE,
    rules: rules::in_process,
    build: in_process::build,
};

/// The profile `lmcache-mp@`.
pub(super) const LMCACHE_MP: ProfileInfo = ProfileInfo {
    name: "lmcache-mp",
    doc: "LMCache's multi-process server: 256-token chunks in L1 and L2, evicted in batches",
    components: &[Component { name: "lmcache-mp", releases: RELEASES }],
    options: mp::OPTIONS,
    block_tokens: 256,
    roles: &[
        Role {
            name: "cpu",
            doc: "L1, the server's memory",
            policies: MP_POLICIES,
            admissions: &[],
            chunks: false,
        },
        Role {
            name: "*",
            doc: "L2 adapters, in the order they are configured",
            policies: MP_POLICIES,
            admissions: &[],
            chunks: false,
        },
    ],
    source: rules::SOURCE,
    rules: rules::multi_process,
    build: mp::build,
};

/// The profile `vllm@X+lmcache@Y`.
pub(super) const VLLM_LMCACHE: ProfileInfo = ProfileInfo {
    name: "vllm+lmcache",
    doc: "vLLM's GPU cache with LMCache in process behind it",
    components: &[VLLM.components[0], LMCACHE.components[0]],
    options: in_process::OPTIONS,
    block_tokens: VLLM.block_tokens,
    roles: BEHIND_VLLM,
    source: rules::SOURCE,
    rules: rules::behind_vllm,
    build: behind_vllm::build,
};

/// Refuses traces with more blocks than the lists can number.
fn check_blocks(setup: &Setup<'_>) -> Result<()> {
    if setup.blocks <= Members::MAX_NAMED {
        return Ok(());
    }
    Err(Error::config(
        format!("{} distinct chunks are more than this profile can number", setup.blocks),
        "give a larger block_size, or replay a part of the trace",
    ))
}

#[cfg(test)]
mod tests;
