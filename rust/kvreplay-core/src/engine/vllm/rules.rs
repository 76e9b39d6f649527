//! The rules of vLLM, as `kvreplay profile show` prints them.

use super::gpu::FreeRule;
use super::policy::Recency;
use super::releases::{ARC, CPU, Counted, Flags, PROMPT_ONLY, Spared, THRESHOLD, TIERING};
use crate::engine::{Release, Rule};

const POOL: &str = "v1/core/block_pool.py";
const MANAGER: &str = "v1/core/single_type_kv_cache_manager.py";
const SCHEDULER: &str = "v1/core/sched/scheduler.py, v1/core/kv_cache_manager.py";
const CONNECTOR: &str = "kv_transfer/kv_connector/v1/offloading/scheduler.py";
const OFFLOAD: &str = "v1/kv_offload/cpu/manager.py";
const POLICIES: &str = "v1/kv_offload/cpu/policies";
const TIERS: &str = "v1/kv_offload/tiering";

fn rule(topic: &'static str, rule: &str, since: &'static str, source: &'static str) -> Rule {
    Rule { topic, rule: rule.to_owned(), since, source }
}

/// The rules of a release of vLLM.
pub(super) fn rules(releases: &[Release]) -> Vec<Rule> {
    let release = releases[0];
    let flags = Flags::of(release);
    let mut rules = gpu_rules(flags);
    if release >= CPU {
        rules.extend(load_rules(flags));
        rules.extend(store_rules(release, flags));
        rules.extend(policy_rules(release, flags));
    } else {
        rules.push(rule("CPU tier", "There is none.", "", OFFLOAD));
    }
    if release >= TIERING {
        rules.extend(tiering_rules());
    }
    rules
}

/// What every profile with vLLM's GPU says about it.
pub(in crate::engine) fn gpu_rules(flags: Flags) -> Vec<Rule> {
    let free = match flags.free_rule {
        FreeRule::UnhashedFirst => rule(
            "GPU free order",
            "A request frees its blocks tail first. Full blocks go to the back of the free queue, so tails are \
             evicted before heads; a block that did not get full goes to the front and is the next one taken.",
            "0.23.0",
            MANAGER,
        ),
        FreeRule::AppendAll => rule(
            "GPU free order",
            "A request frees its blocks tail first, all to the back of the free queue: a block that did not get \
             full ages like the others and takes a place.",
            "",
            MANAGER,
        ),
    };
    vec![
        rule("GPU capacity", "One of num_gpu_blocks, the null block, never holds KV.", "", POOL),
        rule(
            "GPU look-up",
            "The longest leading run of full blocks, at most floor((tokens - 1) / block size): the last token is \
             always computed. A look-up changes nothing.",
            "",
            SCHEDULER,
        ),
        rule(
            "GPU admission",
            "Blocks for the whole prompt must fit. A prompt larger than the pool is never admitted: it computes \
             everything and changes no tier (the server would refuse it). Generation ends where the pool does.",
            "",
            SCHEDULER,
        ),
        rule(
            "GPU eviction",
            "Blocks are taken one by one from the front of the free queue, never-used ones before those freed to \
             its back; what a block held is evicted at that moment.",
            "",
            POOL,
        ),
        rule(
            "GPU duplicates",
            "A block computed again (the last one of a prompt of whole blocks) is a second copy beside the old \
             one; a look-up finds the oldest copy, and an eviction event comes with each copy.",
            "",
            POOL,
        ),
        rule(
            "GPU output",
            "Decoded blocks join like others when they are full. The last sampled token has no KV.",
            "",
            MANAGER,
        ),
        free,
    ]
}

fn load_rules(flags: Flags) -> Vec<Rule> {
    let recency = if flags.recency.is_scoped() {
        rule("CPU look-up", "A look-up changes no order; what is loaded counts as reused.", "0.31.0", OFFLOAD)
    } else {
        rule(
            "CPU look-up",
            "Every look-up touches all complete chunks of the prompt, tail first, also behind a hole and where \
             nothing is loaded.",
            "",
            CONNECTOR,
        )
    };
    vec![
        rule(
            "CPU chunks",
            "Only complete chunks exist; a chunk is named by its last block and stored, evicted and loaded whole.",
            "",
            CONNECTOR,
        ),
        rule(
            "CPU load",
            "Asked when at least a whole chunk of the prompt lies behind the GPU hit g: the run of present chunks \
             from chunk floor(g / chunk) on; at least a whole chunk behind g must come of it. The last token may \
             be loaded, too (it is computed again).",
            "",
            CONNECTOR,
        ),
        recency,
    ]
}

fn store_rules(release: Release, flags: Flags) -> Vec<Rule> {
    let decode = if release >= PROMPT_ONLY {
        rule(
            "CPU output",
            "Only chunks of the prompt are offered, unless offload_decode is set.",
            "0.23.0",
            CONNECTOR,
        )
    } else {
        rule("CPU output", "Chunks that get full while decoding are offered, too.", "", CONNECTOR)
    };
    let again = if flags.offers_at_end {
        rule(
            "CPU offers repeated",
            "What was refused is offered again at every step (here one per block of output) and once when the \
             request has ended.",
            "0.26.0",
            CONNECTOR,
        )
    } else {
        rule(
            "CPU offers repeated",
            "What was refused is offered again at every step (here one per block of output).",
            "",
            CONNECTOR,
        )
    };
    let (spared, since) = match flags.spared {
        Spared::Nothing => ("A call may evict chunks of its own offer.", ""),
        Spared::Counted => {
            ("A call evicts no chunk of its own offer (with a threshold: none that meets it).", "0.18.1")
        }
        Spared::Offer => ("A call evicts no chunk of its own offer.", "0.31.0"),
    };
    let mut rules = vec![
        rule(
            "CPU offers",
            "After the prompt's step all complete chunks from the end of the load on are offered in one call; \
             without a load from the head on, those the GPU had among them. The prompt is one step: chunked \
             prefill is not modelled. Without a GPU tier: one call, only the chunks behind the hit.",
            "",
            CONNECTOR,
        ),
        decode,
        again,
        rule(
            "CPU room",
            "A call stores all chunks it wants or none: where it cannot evict enough, it is refused.",
            "",
            OFFLOAD,
        ),
        rule("CPU protection", spared, since, OFFLOAD),
    ];
    rules.extend((release >= THRESHOLD).then(|| threshold_rule(flags)));
    rules
}

fn threshold_rule(flags: Flags) -> Rule {
    let (text, since) = match flags.counted {
        Counted::LookUps => (
            "store_threshold counts look-ups, all chunks of the prompt behind the GPU hit; an offer stores those \
             counted at least n times. A full table drops its least recent entry.",
            "0.18.1",
        ),
        Counted::LookUpsToMiss => (
            "store_threshold counts look-ups, which end at the first chunk missing (included); an offer stores \
             those counted at least n times. A full table drops its least recent entry.",
            "0.22.1",
        ),
        Counted::EachOffer => (
            "store_threshold counts offers one by one, this one included. A full table drops its least recent \
             entry, also one of the same offer.",
            "0.29.0",
        ),
        Counted::Offers => (
            "store_threshold counts offers, this one included, known chunks first. A full table drops its least \
             recent entry, but none of the same offer: where there is no other, the new chunk is not counted.",
            "0.30.0",
        ),
    };
    rule("CPU threshold", text, since, OFFLOAD)
}

fn policy_rules(release: Release, flags: Flags) -> Vec<Rule> {
    let (lru, since) = match flags.recency {
        Recency::Touch => {
            ("LRU: a call that stores touches the whole path, tail first, its new chunks among them.", "")
        }
        Recency::TouchAndTransfer => (
            "LRU: a call that stores touches the whole path, tail first. Loaded and stored chunks come to the \
             recent end when their transfer ends; the order inside a transfer is open in vLLM, here head first.",
            "0.24.0",
        ),
        Recency::AtEnd => (
            "LRU: chunks enter at the recent end, head first. When the request ends, all it used move there, tail \
             first; until then loaded chunks keep their old place.",
            "0.31.0",
        ),
        Recency::AtUse => (
            "LRU: all chunks a request uses share one rank, the most recent one, the deepest evicted first; so \
             they lie when it has ended, too.",
            "0.33.0",
        ),
    };
    let mut rules = vec![rule("CPU LRU", lru, since, POLICIES)];
    if release >= ARC {
        rules.extend(arc_rules(flags));
    } else {
        let text = "Not possible: a chunk just stored is touched, which fails with a KeyError.";
        rules.push(rule("CPU ARC", text, "", POLICIES));
    }
    rules
}

fn arc_rules(flags: Flags) -> Vec<Rule> {
    let (arc, since_arc) = if flags.recency.is_scoped() {
        (
            "ARC: inserts go to T1, after a ghost hit, too. A chunk about to be stored adapts the target if it is a \
             ghost, once per request. At its end, tail first, a reused chunk moves to T2, one only written to the \
             recent end of its list.",
            "0.31.0",
        )
    } else {
        (
            "ARC: inserts go to T1, after a ghost hit, too. A touch moves T1 to T2 (a chunk just written stays) \
             and adapts the target where it meets a ghost; a call that stores touches the whole path again.",
            "",
        )
    };
    let (victims, since_victims) = match (flags.arc_is_atomic, flags.arc_falls_back) {
        (_, true) => ("The other list gives where the chosen one has no victim.", "0.30.0"),
        (true, false) => {
            ("T2 gives where T1 has no victim, but not T1 where T2 has none: refused.", "0.22.1")
        }
        (false, _) => (
            "T2 gives where T1 has no victim, but not T1 where T2 has none: refused, and the victims found until \
             then are lost.",
            "",
        ),
    };
    vec![
        rule("CPU ARC", arc, since_arc, POLICIES),
        rule(
            "CPU ARC target",
            "A ghost of B1 adds max(1, |B2| / |B1|), one of B2 takes max(1, |B1| / |B2|), between 0 and the \
             capacity; it moves to the recent end of its list. Each ghost list keeps as many as the tier.",
            "",
            POLICIES,
        ),
        Rule {
            topic: "CPU ARC victims",
            rule: format!("The oldest of T1 if |T1| >= int(target), else of T2. {victims}"),
            since: since_victims,
            source: POLICIES,
        },
    ]
}

fn tiering_rules() -> Vec<Rule> {
    vec![
        rule(
            "secondary tiers: write",
            "What the CPU stores goes to every secondary tier at once, unless that has it. Nothing is evicted: a \
             medium that is full takes no more.",
            "0.22.1",
            TIERS,
        ),
        rule(
            "secondary tiers: read",
            "A chunk missing in the CPU is asked of the tiers in order; the first that has it fills a slot of the \
             CPU, which evicts by its policy. The look-up is repeated when the transfers have ended. Chunks that \
             are on their way are not evicted; where all are, the run ends. A run that keeps evicting its own \
             chunks goes round for ever in vLLM; here it ends after 64 look-ups.",
            "0.22.1",
            TIERS,
        ),
    ]
}
