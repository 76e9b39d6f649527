//! The rules as the documentation prints them, with what was read and what was not.

use crate::engine::{Release, Rule};

const EVICTION: &str = "NVIDIA/TensorRT-LLM evictionPolicy.cpp @05a9191";
const MANAGER: &str = "NVIDIA/TensorRT-LLM kvCacheManager.cpp @b35ac1b";
const V2: &str = "NVIDIA/TensorRT-LLM kv_cache_manager_v2 (_eviction_controller.py @2fd4eb8, _storage_manager.py @00f6bd6)";
const OURS: &str = "kvreplay";

fn rule(topic: &'static str, source: &'static str, text: &str) -> Rule {
    Rule { topic, rule: text.to_owned(), since: "", source }
}

/// The rules of a generation of the manager.
pub(super) fn rules(releases: &[Release]) -> Vec<Rule> {
    let mut rules = common();
    rules.extend(if releases[0].0 == 1 { v1() } else { v2() });
    rules
}

fn common() -> Vec<Rule> {
    vec![
        rule(
            "version",
            OURS,
            "the number is the generation of the KV-cache manager (1: C++ manager, 2: kv_cache_manager_v2), not a \
             release of TensorRT-LLM: the rules were read at commits, and in which release each arrived was not checked",
        ),
        rule(
            "admission",
            OURS,
            "a request whose tokens need more blocks than the GPU tier has is not admitted: it computes everything \
             and changes nothing. One request runs at a time, so any other request finds room",
        ),
        rule(
            "last token",
            MANAGER,
            "the last prompt token is always computed: a prompt of T tokens looks for its first T - 1; at the end of \
             a request all tokens but the last generated one have KV",
        ),
    ]
}

fn v1() -> Vec<Rule> {
    vec![
        rule(
            "look-up",
            MANAGER,
            "full blocks one by one from the root; each found block is taken out of its free queue, brought to the GPU \
             if it is on the host, and only then is the next one looked for, so bringing one up can lose a later one",
        ),
        rule(
            "partial reuse",
            MANAGER,
            "where no block has all the tokens, the child with the most leading tokens counts (partial_reuse): copied \
             into a new block, or, if it is a leaf nobody uses, taken out of the tree and written into. A trace says \
             only what blocks of one name share, so siblings that differ inside a block count as different from their \
             first token; between equal matches the newest wins (the engine leaves that to a hash map)",
        ),
        rule(
            "free queues",
            EVICTION,
            "one FIFO per level and priority 0..100, blocks never used first in that of priority 35; the victim is the \
             front of the lowest priority that has any",
        ),
        rule(
            "release",
            MANAGER,
            "at the end the blocks that are not in the tree yet are hung into it, the partial last one too; then all \
             are released last to first, each to the back of its priority's queue, so the tail goes before the head",
        ),
        rule(
            "descendants",
            MANAGER,
            "when a block's content is lost, everything below it leaves the tree at once; these blocks stay where they \
             are in the queues and still take room (older releases queued leaves only; not modelled)",
        ),
        rule(
            "priority",
            EVICTION,
            "a found block takes the request's priority and duration, which always overwrite the old ones; without a \
             priority it keeps its own, and its duration ends",
        ),
        rule(
            "priority range",
            OURS,
            "priority_tokens: a block counts as inside the range if its first token is. Not verified",
        ),
        rule(
            "duration",
            EVICTION,
            "with a duration and a priority other than 35, a released block falls to the back of priority 35 when the \
             time is over; looked at when a request starts",
        ),
        rule(
            "offload",
            MANAGER,
            "a victim that has tokens, and a priority of secondary_offload_min_priority or more (30 in the code, 35 in \
             the documentation), goes to the host: the host's own victim is lost, the two swap slots, and the block \
             queues at the back of its priority there, without a duration. Blocks that left the tree are copied too. \
             The host never holds what the GPU holds",
        ),
        rule(
            "onboarding",
            MANAGER,
            "a host hit takes a GPU block (which may send another one down) and leaves an empty host slot, which \
             queues at the back of priority 35 and is used again only after all others (emptied_slot=back). Pull \
             request 18868 puts it to the front at priority 0 (emptied_slot=front)",
        ),
    ]
}

fn v2() -> Vec<Rule> {
    vec![
        rule(
            "look-up",
            V2,
            "the leading run of full blocks that any level holds; then all found pages are kept from eviction, and \
             those below the GPU are brought up together. Parts of blocks are not matched here",
        ),
        rule(
            "eviction order",
            V2,
            "per level a queue for each priority, lowest priority first and oldest first in it",
        ),
        rule(
            "making room",
            V2,
            "a level evicts just as many pages as are missing; those and the pages that fell from above go on \
             together, the level's own first: the last ones stay as far as there is room, the others fall to the next \
             level, and behind the last level they are gone",
        ),
        rule(
            "exclusive",
            V2,
            "a page is on one level at a time: brought up it leaves the lower level (the shadow copies of pull request \
             15828 were not merged)",
        ),
        rule("descendants", V2, "when a page is lost, the pages below it are lost too, on all levels"),
        rule(
            "release",
            V2,
            "at the end the pages of full blocks are queued last to first; a partial last block is dropped. The order \
             and the partial block are assumed as in generation 1: not verified",
        ),
        rule(
            "priority",
            V2,
            "a page keeps the priority it was made with (priority, priority_tokens, decode_priority). Durations, \
             secondary_offload_min_priority, emptied_slot and the partial-reuse options belong to generation 1",
        ),
    ]
}
