//! The rules of SGLang as `kvreplay profile show` prints them.

use super::releases::{Counting, Rules, Shortage};
use crate::engine::registry::Rule;
use crate::engine::release::Release;

const RADIX: &str = "mem_cache/radix_cache.py";
const UNIFIED: &str = "mem_cache/unified_cache/unified_tree_core.py";
const FULL: &str = "mem_cache/unified_cache/components/full.py";
const CACHE: &str = "mem_cache/unified_radix_cache.py";
const STRATEGY: &str = "mem_cache/evict_policy.py";
const SCHEDULER: &str = "managers/schedule_batch.py, managers/scheduler.py";
const ALLOCATOR: &str = "mem_cache/allocator/base.py";
const FILE: &str = "mem_cache/storage/file/lru_file_evictor.py";

/// Topic, rule, since, source.
type Line = (&'static str, &'static str, &'static str, &'static str);

const TREE: &[Line] = &[
    (
        "page",
        "keys and hits are whole pages; the page size is 1 token unless the attention backend forces another",
        "",
        RADIX,
    ),
    (
        "look-up",
        "the longest known path; it refreshes every node on it and splits a node it ends inside of",
        "",
        RADIX,
    ),
    ("last token", "at most the prompt less one token is looked up (option last_token)", "", SCHEDULER),
    (
        "lock",
        "the path found is locked until the request ends; a locked node, and a node with a child on the device, is no leaf",
        "",
        RADIX,
    ),
    (
        "eviction unit",
        "whole nodes, so more may be freed than asked for; a parent left without children is a leaf at once",
        "",
        RADIX,
    ),
    (
        "eviction order",
        "by the strategy of the tier: lru, lfu, slru, priority (choices of the server), fifo, mru, filo (in the code)",
        "",
        STRATEGY,
    ),
    (
        "admission",
        "a prompt of more pages than the pool (in the engine a few tokens less) is refused: here it is computed in full and changes nothing",
        "",
        SCHEDULER,
    ),
    (
        "decoding",
        "generated pages are taken while the prompt is locked and enter the tree when the request ends, below a node that ends with the prompt; the last sampled token has no KV",
        "",
        RADIX,
    ),
    ("decoding", "what does not fit beside the prompt is not generated", "", SCHEDULER),
    (
        "partial page",
        "a page that is not full takes no room here; with pages of several tokens the engine uses one more per request (following the golden vectors)",
        "",
        "golden vectors",
    ),
    (
        "not modelled",
        "chunked prefill (a node per chunk), requests that run at the same time, retraction, priorities of requests",
        "",
        "kvreplay",
    ),
];

const CLASSIC: &[Line] = &[
    (
        "split",
        "the upper part is a new node, created and accessed now; it inherits the hit count (option tree=radix)",
        "",
        RADIX,
    ),
    (
        "split",
        "with tree=unified (0.5.23) the upper part keeps the time of creation and the lower part counts as accessed",
        "",
        UNIFIED,
    ),
];

const TIERS: &[Line] = &[
    (
        "split",
        "the upper part inherits the time of creation and the hit count; the lower part counts as accessed",
        "",
        UNIFIED,
    ),
    ("hit count", "write_back never counts, so lfu and slru are lru there", "", UNIFIED),
    (
        "backup",
        "write_through copies a node to host memory when the first request inserts it, write_through_selective when the second does; ancestors without a copy go first",
        "",
        UNIFIED,
    ),
    (
        "backup",
        "for what is missing in host memory leaves of it are evicted; if that is not enough the backup is left out",
        "",
        CACHE,
    ),
    (
        "backup",
        "write_back copies a node when it leaves the device; without room the node and what is below it are lost",
        "",
        CACHE,
    ),
    ("device eviction", "a node with a copy stays in host memory, one without is lost", "", UNIFIED),
    (
        "host victim",
        "only a node that is not on the device, has no children and is not in use; by the device's strategy",
        "",
        FULL,
    ),
    (
        "host victim",
        "under write_through the copy of a node on the device is therefore pinned: host memory not larger than the device adds next to nothing",
        "",
        FULL,
    ),
    (
        "host victim",
        "write_back first gives up copies of nodes on the device, in the order they were noted, those of device leaves last",
        "PR 33777",
        UNIFIED,
    ),
    (
        "load back",
        "all pages found in host memory or none: none below load_back_threshold tokens (10); the copies stay",
        "",
        CACHE,
    ),
    (
        "load back",
        "a node in host memory that is computed again is on the device again and keeps its copy",
        "",
        UNIFIED,
    ),
    (
        "storage write",
        "every node copied to host memory is written page by page; pages that are there are refreshed",
        "",
        CACHE,
    ),
    (
        "storage read",
        "before scheduling: asked if at least prefetch_threshold (256) tokens are unknown and the last known node has a copy (or nothing is known); a hit below the threshold is ignored",
        "",
        SCHEDULER,
    ),
    (
        "storage read",
        "if the hit does not fit, host memory evicts as much as the whole hit, and what fits then is read if it is at least the threshold",
        "",
        "mem_cache/hybrid_cache/hybrid_cache_controller.py",
    ),
    (
        "storage eviction",
        "the file backend with a max_size: the page written or read longest ago, down to storage_eviction_ratio (0.9) of the size; other backends are not modelled",
        "",
        FILE,
    ),
    (
        "timing",
        "copies and reads take no time: a backup is complete before the next request, a prefetch before its request is scheduled",
        "",
        "semantics, section 9",
    ),
    (
        "checked",
        "hits and contents after every request are those of UnifiedRadixCache and UnifiedTreeCore themselves, run on random requests with pools that only count",
        "",
        "tests of this profile",
    ),
    (
        "not verified",
        "what the file backend evicts, and the order of events between tiers, were read and not compared with the engine",
        "",
        "kvreplay",
    ),
];

fn of_release(release: Release) -> [Line; 3] {
    let differs = Rules::of(release);
    [
        match differs.shortage {
            Shortage::Missing => (
                "room",
                "pages of the prompt that were not found are taken at once; leaves are evicted for what is missing",
                "0.5.18 or shortly before",
                ALLOCATOR,
            ),
            Shortage::Whole => (
                "room",
                "pages of the prompt that were not found are taken at once; if they do not fit, as many leave as they are, though some were free (with pages of several tokens one more)",
                "up to 0.5.14 or shortly after",
                "mem_cache/common.py",
            ),
        },
        match differs.counting {
            Counting::Never => {
                ("hit count", "never counted, so lfu is lru; there is no slru", "up to 0.5.9", RADIX)
            }
            Counting::Insertions => (
                "hit count",
                "insertion adds one to every node of the path, a new leaf starts at one; a request that decodes inserts its prompt twice",
                "0.5.10 (PR 18843)",
                RADIX,
            ),
            Counting::Requests => (
                "hit count",
                "a request adds one to every node of its path, a new leaf starts at one",
                "after 0.5.18",
                RADIX,
            ),
        },
        if differs.prompts_apart {
            ("priority", "a prompt that generated pages gets priority 1, they have 0", "after 0.5.18", RADIX)
        } else {
            (
                "priority",
                "all nodes have the same, so priority is lru",
                "up to 0.5.18 or shortly after",
                RADIX,
            )
        },
    ]
}

fn rules(parts: &[&[Line]]) -> Vec<Rule> {
    let lines = parts.iter().copied().flatten();
    lines.map(|&(topic, rule, since, source)| Rule { topic, rule: rule.to_owned(), since, source }).collect()
}

/// Rules of the radix cache.
pub(super) fn sglang(releases: &[Release]) -> Vec<Rule> {
    rules(&[TREE, &of_release(releases[0]), CLASSIC])
}

/// Rules of HiCache.
pub(super) fn hicache(releases: &[Release]) -> Vec<Rule> {
    rules(&[TREE, &of_release(releases[0]), TIERS])
}
