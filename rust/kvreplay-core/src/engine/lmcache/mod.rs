//! LMCache: the in-process engine, the multi-process server, and the in-process engine behind vLLM.
//!
//! Chunks are stored, found and evicted whole. Alone, a chunk is one block of the replay (`block_size` is
//! LMCache's `chunk_size`); behind vLLM it is `chunk_blocks` of vLLM's blocks, named by the last one.

mod cache;
mod chunks;
mod in_process;
mod mp;
mod order;
mod rules;
mod tier;

use super::parts::Members;
use super::registry::{Choice, Component, ProfileInfo, Role};
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

/// A remote server decides for itself; LMCache only writes to it and reads from it.
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

/// The tiers of the in-process engine, `chunks` said by whether a GPU with smaller blocks is in front.
const fn in_process_roles(chunks: bool) -> [Role; 4] {
    [
        Role {
            name: "cpu",
            doc: "memory (max_local_cpu_size), the allocator of all loads and stores; leave it out for local_cpu=False",
            policies: LOCAL_POLICIES,
            admissions: &[],
            chunks,
        },
        Role {
            name: "disk",
            doc: "local_disk (max_local_disk_size), with the policy of memory",
            policies: LOCAL_POLICIES,
            admissions: &[],
            chunks,
        },
        Role {
            name: "remote",
            doc: "a remote backend (remote_url)",
            policies: REMOTE_POLICIES,
            admissions: &[],
            chunks,
        },
        Role {
            name: "*",
            doc: "further remote backends (remote storage plugins), in the order they are asked",
            policies: REMOTE_POLICIES,
            admissions: &[],
            chunks,
        },
    ]
}

/// The profile `lmcache@`.
pub(super) const LMCACHE: ProfileInfo = ProfileInfo {
    name: "lmcache",
    doc: "LMCache in process: 256-token chunks in memory, on disk and remote",
    components: &[Component { name: "lmcache", releases: RELEASES }],
    options: in_process::OPTIONS,
    block_tokens: 256,
    roles: &in_process_roles(false),
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
