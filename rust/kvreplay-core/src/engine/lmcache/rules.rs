//! The rules of `LMCache` as the documentation shows them.

use crate::engine::Release;
use crate::engine::registry::Rule;
use crate::engine::vllm::{Flags, gpu_rules};

/// Where the rules were read.
pub(super) const SOURCE: &str = "LMCache 0.5.6 (PyPI wheel of 2026-10-15), read in source; policies run against \
                                 LMCache's own classes";

const POLICIES: &str = "v1/storage_backend/cache_policy/*.py";
const ENGINE: &str = "v1/cache_engine.py";
const CPU: &str = "v1/storage_backend/local_cpu_backend.py";
const DISK: &str = "v1/storage_backend/local_disk_backend.py";
const MANAGER: &str = "v1/storage_backend/storage_manager.py";
const ADAPTER: &str = "integration/vllm/vllm_v1_adapter.py";
const L1: &str = "v1/distributed/l1_manager.py";
const CONTROLLERS: &str = "v1/distributed/storage_controllers/*_controller.py";
const MP_POLICIES: &str = "v1/distributed/eviction_policy/{lru,arc}.py";

/// Topic, text, source. Since when a rule holds is not known: one release was read.
type Line = (&'static str, &'static str, &'static str);

const SHARED: &[Line] = &[
    (
        "chunks",
        "Only complete chunks are stored and found: floor(tokens / chunk_size). A chunk is named by its last block.",
        ENGINE,
    ),
    (
        "unnamed chunks",
        "Full chunks that the trace does not name take room like others and are never found (kvreplay's rule).",
        "kvreplay",
    ),
];

const IN_PROCESS: &[Line] = &[
    (
        "look-up",
        "The whole prompt is looked up. Memory takes the longest leading run, the next backend goes on where it \
         ends, and so on; a run does not come back to an upper backend.",
        MANAGER,
    ),
    (
        "recency",
        "A look-up refreshes what it finds in memory and on disk, tail to head, whether it is loaded or not. \
         A load from disk refreshes it there once more, head to tail.",
        MANAGER,
    ),
    (
        "load",
        "Loaded is what was found beyond the serving engine's own hit, if it is at least min_retrieve_tokens. \
         Whole chunks are read, from floor(held / chunk_size) on. After a look-up that found chunks in several \
         backends these are asked again from there on.",
        ADAPTER,
    ),
    (
        "promotion",
        "What disk or a remote backend serves is copied into memory, head to tail. Its slots are taken first and \
         evict chunks of memory, but none that this request found or loaded.",
        MANAGER,
    ),
    (
        "promotion without room",
        "If memory cannot hold what is loaded, the load ends there and the rest is computed (kvreplay's rule: the \
         engine waits for other requests, and alone it would wait for its own pins to expire).",
        CPU,
    ),
    (
        "store",
        "The chunks behind what was found are stored, head to tail. Each takes one slot of memory first, also if it \
         is there already behind a hole, evicting one victim at a time. Without a victim the store ends there. \
         Only then absent chunks are added in order and spare slots given back. Nothing is protected.",
        ENGINE,
    ),
    (
        "write-through",
        "What got a slot is put into every backend at once: memory, disk, remote. Memory does nothing for a chunk \
         it has; disk refreshes it.",
        MANAGER,
    ),
    (
        "disk",
        "Makes room for one chunk at a time by the same policy as memory. Accounting is by chunks of equal size.",
        DISK,
    ),
    (
        "remote",
        "LMCache deletes nothing from a remote server, and a look-up is no use there. What a full server does is \
         the tier's policy here: lru or none (not LMCache's code).",
        "v1/storage_backend/remote_backend.py",
    ),
    (
        "decode",
        "With save_decode_cache chunks that get full while decoding are stored one by one; without it (default) \
         they are not.",
        ADAPTER,
    ),
    ("lru", "Victim: the chunk stored or looked up longest ago.", POLICIES),
    ("mru", "Victim: the chunk stored or looked up last.", POLICIES),
    ("fifo", "Victim: the chunk stored first.", POLICIES),
    (
        "lfu",
        "A new chunk joins the end of bucket 1, a use moves it to the end of the next bucket, the victim is the \
         first of the lowest bucket; the count is forgotten with the chunk.",
        POLICIES,
    ),
    (
        "not modelled",
        "save_unfull_chunk, layerwise transfer, blending, P2P and PD backends, chunked prefill (the prompt is one \
         step), and transfers that take time.",
        "kvreplay",
    ),
];

const BEHIND_VLLM: &[Line] = &[
    (
        "hits of LMCache",
        "A tier's hit tokens are what is really loaded: found minus what the GPU has, one less if the look-up covers \
         the whole prompt, since the last token is always computed.",
        ADAPTER,
    ),
    (
        "GPU",
        "What LMCache loads fills GPU blocks like computed ones, so the GPU evicts what it would without LMCache.",
        ADAPTER,
    ),
];

const MULTI_PROCESS: &[Line] = &[
    (
        "look-up",
        "The longest leading run of chunks that L1 or any L2 adapter holds, chunk by chunk: L1 first, then the \
         adapters in order. A run may come back to L1.",
        CONTROLLERS,
    ),
    ("recency", "What was found is refreshed in L1, tail to head.", CONTROLLERS),
    (
        "load from L2",
        "Room in L1 is reserved for all of it at once; if it does not fit, the run ends with what L1 holds. The \
         chunks are temporary: they leave L1 after the read without a trace in ghost lists (prefetch_policy default) \
         or stay (retain). The adapter refreshes what it serves, tail to head.",
        CONTROLLERS,
    ),
    (
        "store",
        "The chunks behind the hit that L1 lacks are stored in one call, all or nothing: a write never evicts. \
         They are added tail to head.",
        L1,
    ),
    (
        "write-through to L2",
        "What was written to L1 goes to every adapter at once; one that is full skips what does not fit. Under \
         store_policy skip_l1 it then leaves L1.",
        CONTROLLERS,
    ),
    (
        "eviction",
        "A loop looks at the share of the capacity in use every tick_every_requests requests (the server: every \
         second). From the watermark on it evicts max(1, int(chunks * eviction_ratio)) chunks. Every L2 adapter has \
         a loop of its own.",
        CONTROLLERS,
    ),
    ("lru", "Victim: the chunk stored or looked up longest ago.", MP_POLICIES),
    (
        "arc",
        "T1 to T2 at a touch. A key in a ghost list moves the target p by max(1, ratio of the ghost lists), limited \
         by the largest number of chunks ever held (top), and comes back into T1 (in L2: T2). The victim is the \
         oldest of T1 if |T1| >= int(p), else of T2. B1 is cut to |T1| + |B1| <= top, then B2 (else B1) until all \
         lists hold at most 2 * top.",
        MP_POLICIES,
    ),
    ("noop", "Nothing is evicted.", "v1/distributed/eviction_policy/noop.py"),
    (
        "end of a request",
        "The server of 0.5.6 refreshes all chunks of a request in L1 when its session ends. The golden vectors were \
         made without that, so it is off unless end_session_touch=true.",
        "v1/multiprocess/modules/lookup.py",
    ),
    (
        "decode",
        "With save_decode_cache chunks that get full while decoding are stored one by one; without it (default) \
         they are not.",
        "integration/vllm/lmcache_mp_metadata.py",
    ),
    (
        "not verified",
        "L2 tiers, retain, skip_l1, noop and end_session_touch were read in source; no vector covers them.",
        "kvreplay",
    ),
    (
        "not modelled",
        "IsolatedLRU and quotas per cache salt, lazy offload, several L1 managers, sliding windows, time to live of \
         locks, adapters that never evict by watermark (use noop), and transfers that take time.",
        "kvreplay",
    ),
];

fn lines(parts: &[&[Line]]) -> Vec<Rule> {
    let all = parts.iter().copied().flatten();
    all.map(|&(topic, rule, source)| Rule { topic, rule: rule.to_owned(), since: "", source }).collect()
}

/// The rules of the in-process engine.
pub(super) fn in_process(_releases: &[Release]) -> Vec<Rule> {
    lines(&[SHARED, IN_PROCESS])
}

/// The rules of the multi-process server.
pub(super) fn multi_process(_releases: &[Release]) -> Vec<Rule> {
    lines(&[SHARED, MULTI_PROCESS])
}

/// The rules of vLLM's GPU, then those of the in-process engine behind it.
pub(super) fn behind_vllm(releases: &[Release]) -> Vec<Rule> {
    let mut rules = gpu_rules(Flags::of(releases[0]));
    rules.extend(lines(&[BEHIND_VLLM, SHARED, IN_PROCESS]));
    rules
}
