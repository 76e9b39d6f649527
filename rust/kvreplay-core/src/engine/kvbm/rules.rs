//! The rules as the documentation prints them, with what was read and what was not.

use crate::engine::{Release, Rule};

const CONNECTOR: &str = "ai-dynamo/dynamo vllm/connector/leader/slot.rs @0262594";
const POOL: &str =
    "ai-dynamo/dynamo pool/managed/inactive.rs @582fd44, state.rs @0ac6a62, active.rs @642a7e5";
const OFFLOAD: &str = "ai-dynamo/dynamo offload.rs @003b9e2, pool/managed/state.rs @0ac6a62";
const FILTER: &str = "ai-dynamo/dynamo offload/filter.rs @46b2b3b";
const SEARCH: &str = "ai-dynamo/dynamo kvbm-connector search.rs @2ae28dc, kvbm-engine instance.rs @0a2debf, staging.rs @2a895a4";
const PIPELINE: &str = "ai-dynamo/dynamo kvbm-connector scheduler.rs @1a77c43, kvbm-engine offload/policy.rs @87b1ac1, pipeline.rs @00f5335";
const LINEAGE: &str = "ai-dynamo/dynamo kvbm-logical inactive/backends @14eb663, @53fe970";
const SKETCH: &str = "ai-dynamo/dynamo kvbm-logical tinylfu.rs @c748f40";
const OURS: &str = "kvreplay";

fn rule(topic: &'static str, source: &'static str, text: &str) -> Rule {
    Rule { topic, rule: text.to_owned(), since: "", source }
}

/// The rules of both engines; which one runs is an option, not a release.
pub(super) fn rules(_: &[Release]) -> Vec<Rule> {
    let mut rules = vec![
        rule(
            "version",
            OURS,
            "the option engine chooses v1 or v2; the rules are the same for both wheels. They were read at the commits \
             given here, which were not matched with a wheel file by file",
        ),
        rule(
            "GPU",
            OURS,
            "vLLM's block pool as vllm@0.23 and later have it (blocks without a hash are freed to the front): tail \
             first, the last prompt token always computed. A prompt larger than the pool is not admitted: it \
             computes everything and changes nothing",
        ),
        rule(
            "transfers",
            OURS,
            "instant: a request's loads end before it stores anything, its stores before the next request starts",
        ),
    ];
    rules.extend(v1());
    rules.extend(v2());
    rules
}

fn v1() -> Vec<Rule> {
    vec![
        rule(
            "v1 look-up",
            CONNECTOR,
            "behind the GPU's hits the host's leading run, then the disk's behind that, over the prompt's full blocks; \
             if the run ends with the prompt, its last block is given up (the disk's, else the host's)",
        ),
        rule(
            "v1 recency",
            POOL,
            "a match takes blocks out of the inactive set, the end of the load puts them back as the most recent ones: \
             eviction goes by last release. All blocks have priority 0",
        ),
        rule(
            "v1 release order",
            POOL,
            "tail first, so the tail leaves before the head: a block in use holds its parent, so blocks dropped from \
             the head on go back from the tail on. option release_order",
        ),
        rule(
            "v1 store",
            CONNECTOR,
            "after each step the blocks that got full in it, decoded ones too, go to the host in one request: never \
             the GPU's hits nor what was loaded. The whole prompt is one step here (chunked prefill would be several)",
        ),
        rule(
            "v1 room",
            POOL,
            "room is taken for all blocks of a request or for none: empty blocks first, then the least recent ones. \
             Whether a block is there already is seen only afterwards: then the new copy is emptied again, and the \
             old one is renewed. What the host evicts is not handed down",
        ),
        rule(
            "v1 disk",
            OFFLOAD,
            "every block registered on the host is offered to the disk, head first, known ones again: one that is on \
             the disk is renewed there; else the filter decides, and one block of room is taken",
        ),
        rule(
            "v1 disk transfers",
            OFFLOAD,
            "transfer_batch_blocks blocks end together and are given back tail first within a run of neighbours. That \
             transfers fill their batches, and that the host's blocks stay in use until then, is assumed",
        ),
        rule(
            "v1 disk filter",
            FILTER,
            "a number per block, 1 at the first offer, doubled at each next one; from disk_filter_threshold on it passes. \
             All fall by one every disk_filter_interval from the first request on, those at 0 are dropped; with more \
             than disk_filter_entries all fall until it fits, and the interval starts anew",
        ),
        rule("v1 without a host", CONNECTOR, "the GPU stores on the disk directly, without the filter"),
        rule("v1 disk hits", CONNECTOR, "go to the GPU directly and do not fill the host"),
        rule(
            "v1 not modelled",
            OURS,
            "the host's prefix priority floor (DYN_KVBM_HOST_OFFLOAD_PREFIX_MIN_PRIORITY, 0 unless set): traces have no \
             priorities",
        ),
    ]
}

fn v2() -> Vec<Rule> {
    vec![
        rule(
            "v2 look-up",
            SEARCH,
            "behind the GPU's hits the host's leading run, then the disk's, the block of the last prompt token left \
             out. Disk blocks are copied to the host first, all or none, and stay there; if they do not fit, only the \
             host's run is used (the engine's error path: not verified)",
        ),
        rule(
            "v2 store",
            PIPELINE,
            "after each step every full block from the first on is offered to the host, the GPU's hits too; those that \
             are there are left out (g1_to_g2), the others go in transfers of transfer_batch_blocks, each with room \
             for all or for none. Decoded blocks are offered too",
        ),
        rule(
            "v2 disk",
            PIPELINE,
            "what a transfer registered on the host goes on to the disk through g2_to_g3: presence by default; \
             before pull request 8826 it was presence_lfu with min_lfu_count 8. Without a host the GPU stores on the \
             disk directly",
        ),
        rule(
            "v2 order",
            LINEAGE,
            "inactive=lineage: only blocks without inactive blocks below them leave, by when they became inactive; a \
             parent that has none left keeps its time (lineage_fifo: it goes to the end). lru: by when they became \
             inactive. multi_lru: four such lists by touches at that moment, the coldest first, never sorted again",
        ),
        rule(
            "v2 release order",
            OURS,
            "head first, as a Rust vector is dropped; not verified (option release_order)",
        ),
        rule(
            "v2 touches",
            SKETCH,
            "a block is touched when it is matched, and when it is registered and no tier had it. Counts of 4 bits in a \
             sketch of sketch_capacity blocks, halved after ten touches each; the hash is ours, so collisions differ",
        ),
    ]
}
