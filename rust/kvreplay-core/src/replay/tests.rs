//! Behaviour of the replay on hand-worked traces, and the invariants of `semantics.md` section 10.

use super::testing::{full_blocks, trace_of};
use super::{Mode, ReplayResult, ReplaySpec, replay};
use crate::error::Error;
use crate::hierarchy::EventKind::{Evict, Hit, Insert};
use crate::hierarchy::{EventKind, Fill, TierSpec};
use crate::policy::Closure;
use crate::progress::Progress;
use crate::trace::Trace;

fn run(trace: &Trace, spec: &ReplaySpec) -> ReplayResult {
    replay(trace, spec, &Progress::default()).unwrap()
}

/// Prefix mode with everything recorded.
fn recorded(trace: &Trace, tiers: Vec<TierSpec>) -> ReplayResult {
    run(trace, &ReplaySpec { per_request: true, events: true, ..ReplaySpec::new(tiers) })
}

fn tier(policy: &str, capacity: u64) -> TierSpec {
    TierSpec { policy: policy.to_owned(), ..TierSpec::new("t", capacity) }
}

fn second(policy: &str, capacity: u64, fill: Fill) -> TierSpec {
    TierSpec { policy: policy.to_owned(), fill, ..TierSpec::new("u", capacity) }
}

fn content(trace: &Trace, result: &ReplayResult, k: usize) -> Vec<u64> {
    result.tiers[k].content.iter().map(|&b| trace.ids.number(b)).collect()
}

fn hits(result: &ReplayResult, k: usize) -> Vec<u32> {
    result.requests.as_ref().unwrap().hit_blocks[k].clone()
}

fn config_error(trace: &Trace, spec: &ReplaySpec) -> (String, String) {
    match replay(trace, spec, &Progress::default()) {
        Err(Error::Config { message, hint }) => (message, hint),
        other => panic!("expected a configuration error, got {other:?}"),
    }
}

#[test]
fn the_head_of_a_path_is_most_recent_and_its_tail_leaves_first() {
    let trace = full_blocks(&[vec![1, 2, 3], vec![1, 4]]);
    let result = recorded(&trace, vec![tier("lru", 3)]);
    assert_eq!(content(&trace, &result, 0), [1, 4, 2]);
    let kinds: Vec<(EventKind, u64)> = (0..result.events.len())
        .map(|i| (result.events.kind[i], trace.ids.number(result.events.block[i])))
        .collect();
    assert_eq!(kinds, [(Insert, 3), (Insert, 2), (Insert, 1), (Hit, 1), (Evict, 3), (Insert, 4)]);
}

#[test]
fn a_request_larger_than_the_tier_keeps_its_head() {
    let trace = trace_of(&[vec![1, 2, 3, 4, 5, 6], vec![1, 2, 3, 4, 5, 6]], &[96, 96], 16);
    let result = recorded(&trace, vec![tier("lru", 4)]);
    assert_eq!(hits(&result, 0), [0, 4]);
    assert_eq!(result.requests.as_ref().unwrap().computed_tokens, [96, 32]);
    assert_eq!(content(&trace, &result, 0), [1, 2, 3, 4]);
    assert_eq!((result.tiers[0].counters.inserted(), result.tiers[0].counters.evicted), (4, 0));
}

#[test]
fn a_tier_of_no_blocks_serves_nothing() {
    let trace = full_blocks(&[vec![1, 2], vec![1, 2]]);
    for policy in crate::policy::POLICIES {
        for mode in [Mode::Prefix, Mode::Object] {
            let spec = ReplaySpec { mode, ..ReplaySpec::new(vec![tier(policy.name, 0)]) };
            let counters = run(&trace, &spec).tiers[0].counters;
            assert_eq!((counters.served, counters.inserted(), counters.asked), (0, 0, 4), "{}", policy.name);
        }
    }
}

#[test]
fn an_empty_trace_and_a_huge_tier_are_no_trouble() {
    let empty = full_blocks(&[]);
    let some = full_blocks(&[vec![1, 2], vec![], vec![1, 2]]);
    for policy in crate::policy::POLICIES {
        for mode in [Mode::Prefix, Mode::Object] {
            let spec =
                ReplaySpec { mode, per_request: true, ..ReplaySpec::new(vec![tier(policy.name, u64::MAX)]) };
            assert_eq!(run(&empty, &spec).tiers[0].counters.asked, 0);
            let result = run(&some, &spec);
            assert_eq!(hits(&result, 0), [0, 0, 2], "{}", policy.name);
        }
    }
}

#[test]
fn last_token_and_full_blocks_shorten_hits() {
    let trace = trace_of(&[vec![1, 2, 3, 4], vec![1, 2, 3, 4]], &[64, 64], 16);
    let spec = ReplaySpec { last_token: true, per_request: true, ..ReplaySpec::new(vec![tier("lru", 9)]) };
    let result = run(&trace, &spec);
    assert_eq!((hits(&result, 0), result.requests.unwrap().computed_tokens), (vec![0, 3], vec![64, 16]));

    let partial = trace_of(&[vec![1, 2, 3], vec![4, 5, 6], vec![1, 2, 3]], &[40, 40, 40], 16);
    let spec =
        ReplaySpec { full_blocks_only: true, per_request: true, ..ReplaySpec::new(vec![tier("lru", 4)]) };
    let result = run(&partial, &spec);
    assert_eq!(hits(&result, 0), [0, 0, 2]);
    assert_eq!(content(&partial, &result, 0), [1, 2, 4, 5]);
    assert_eq!(result.tiers[0].counters.asked, 9);
}

#[test]
fn tier_denominators() {
    // The case of that name: a GPU of 10 blocks of 100 tokens over a large write-through tier.
    let document: Vec<u64> = (1..=8).collect();
    let trace = trace_of(
        &[document.clone(), vec![20, 21, 22, 23], [document, vec![30, 31]].concat()],
        &[800, 400, 1000],
        100,
    );
    let result = recorded(&trace, vec![tier("lru", 10), second("lru", 1000, Fill::WriteThrough)]);
    let requests = result.requests.as_ref().unwrap();
    assert_eq!(requests.hit_tokens[0], [0, 0, 600]);
    assert_eq!(requests.hit_tokens[1], [0, 0, 200]);
    assert_eq!(requests.computed_tokens, [800, 400, 200]);
    let (gpu, cpu) = (result.tiers[0].counters, result.tiers[1].counters);
    assert_eq!((gpu.asked_tokens, cpu.asked_tokens), (2200, 1600));
    assert_eq!((gpu.inserted_promotion, gpu.inserted_compute), (2, 14));
    assert_eq!(cpu.inserted_compute, 14);
}

#[test]
fn a_victim_tier_shares_no_block_with_tier_1() {
    let trace = full_blocks(&[vec![1], vec![2], vec![3], vec![1], vec![2], vec![3]]);
    let result = recorded(&trace, vec![tier("lru", 2), second("lru", 2, Fill::Victim)]);
    assert_eq!(hits(&result, 1), [0, 0, 0, 1, 1, 1]);
    assert_eq!((content(&trace, &result, 0), content(&trace, &result, 1)), (vec![3, 2], vec![1]));
    let counters = result.tiers[1].counters;
    assert_eq!((counters.inserted_demotion, counters.moved_up, counters.evicted), (4, 3, 0));
}

#[test]
fn write_back_takes_what_is_evicted_and_what_a_tier_below_serves() {
    let trace = full_blocks(&[vec![1], vec![2], vec![3], vec![1]]);
    let mut third = second("lru", 9, Fill::WriteThrough);
    third.name = "v".to_owned();
    let result = recorded(&trace, vec![tier("lru", 1), second("lru", 1, Fill::WriteBack), third]);
    // 1 is handed down, then pushed out by 2; the third tier serves it, and it is copied into both above.
    assert_eq!((hits(&result, 1), hits(&result, 2)), (vec![0; 4], vec![0, 0, 0, 1]));
    assert_eq!((content(&trace, &result, 0), content(&trace, &result, 1)), (vec![1], vec![1]));
    let counters = result.tiers[1].counters;
    assert_eq!((counters.inserted_demotion, counters.inserted_promotion, counters.evicted), (3, 1, 3));
    assert_eq!(counters.dead_on_arrival, 3);
}

#[test]
fn chunks_are_stored_and_hit_whole() {
    let path: Vec<u64> = (1..=7).collect();
    let trace = full_blocks(&[path.clone(), vec![10], path]);
    let lower = TierSpec { chunk_blocks: 3, ..second("lru", 7, Fill::WriteThrough) };
    let result = recorded(&trace, vec![tier("lru", 1), lower]);
    // Tier 1 holds block 10 when the path comes back; two whole chunks lie below, block 7 nowhere.
    assert_eq!((hits(&result, 0), hits(&result, 1)), (vec![0, 0, 0], vec![0, 0, 6]));
    assert_eq!(content(&trace, &result, 1), [3, 6]);
    let counters = result.tiers[1].counters;
    assert_eq!((counters.inserted(), counters.resident, counters.asked), (6, 6, 15));
}

#[test]
fn a_chunk_that_starts_in_the_tier_above_counts_only_its_rest() {
    let trace = full_blocks(&[vec![1, 2, 3, 4], vec![9], vec![1, 2, 3, 4]]);
    let lower = TierSpec { chunk_blocks: 4, ..second("lru", 8, Fill::WriteThrough) };
    let result = recorded(&trace, vec![tier("lru", 4), lower]);
    // Block 9 pushed 4 out of tier 1, which still serves three blocks.
    assert_eq!((hits(&result, 0), hits(&result, 1)), (vec![0, 0, 3], vec![0, 0, 1]));
}

#[test]
fn closure_keeps_prefixes_whole() {
    let paths: Vec<Vec<u64>> = (0..200_u64)
        .map(|i| {
            let root = i * i % 7;
            (0..=(i % 9))
                .map(|d| if d < 3 { root * 100 + d } else { root * 100 + d * 1000 + i % 5 })
                .collect()
        })
        .collect();
    let trace = full_blocks(&paths);
    for policy in crate::policy::POLICIES {
        let stranded = |closure| {
            let tier = TierSpec { closure, ..tier(policy.name, 17) };
            run(&trace, &ReplaySpec::new(vec![tier])).tiers[0].counters.stranded
        };
        assert_eq!(stranded(Closure::Leaf), 0, "{}", policy.name);
    }
    let random = TierSpec { closure: Closure::None, ..tier("random", 17) };
    assert!(run(&trace, &ReplaySpec::new(vec![random])).tiers[0].counters.stranded > 0);
}

#[test]
fn ttl_forgets_what_was_not_used_for_long() {
    // Requests come a millisecond apart.
    let trace = full_blocks(&[vec![1, 2], vec![1], vec![9], vec![1, 2], vec![9]]);
    let result = recorded(&trace, vec![tier("ttl(\"2 ms\")", 9)]);
    // At 3 ms block 2 is 3 ms old and gone, block 1 was used 2 ms ago and stays.
    assert_eq!(hits(&result, 0), [0, 1, 0, 1, 1]);
    let counters = result.tiers[0].counters;
    assert_eq!((counters.expired, counters.evicted, counters.dead_on_arrival), (1, 1, 1));
}

#[test]
fn tail_lru_spends_the_ends_of_conversations_first() {
    let trace = full_blocks(&[vec![1, 2, 3], vec![7], vec![8], vec![1, 2, 3]]);
    // Two tokens of slack: blocks 2 and 3 of the first path are spare, and so are 7 and 8.
    let result = recorded(&trace, vec![tier("tail_lru(2)", 4)]);
    assert_eq!(hits(&result, 0), [0, 0, 0, 2]);
    let lru = recorded(&trace, vec![tier("tail_lru(0)", 4)]);
    assert_eq!(hits(&lru, 0), hits(&recorded(&trace, vec![tier("lru", 4)]), 0));
}

#[test]
fn wrong_tier_lists_are_refused_with_a_hint() {
    let trace = full_blocks(&[vec![1]]);
    let error = |tiers| config_error(&trace, &ReplaySpec::new(tiers));
    assert_eq!(error(vec![]).0, "no tier is given");
    assert_eq!(error(vec![tier("lru", 1), tier("lru", 1)]).0, "two tiers are named \"t\"");
    let (message, hint) = error(vec![tier("lruu", 1)]);
    assert_eq!(message, "t: unknown policy \"lruu\"");
    assert!(hint.starts_with("did you mean lru? known: lru, fifo, "), "{hint}");
    let (message, hint) = error(vec![tier("wtinylfu(window=7)", 1)]);
    assert_eq!(
        (message.as_str(), hint.as_str()),
        ("t: wtinylfu: window=7 is out of range", "window is a number from 0 to 1")
    );
    let zero = TierSpec { admission: "min_count(0)".to_owned(), ..tier("lru", 1) };
    assert_eq!(error(vec![zero]).0, "t: min_count: n=0 is out of range");
    let filtered = TierSpec { admission: "min_count(2)".to_owned(), ..tier("lru", 1) };
    let (message, _) = error(vec![filtered, second("lru", 1, Fill::Victim)]);
    assert_eq!(message, "t: admission=min_count(2) on tier 1 of a hierarchy");
    assert_eq!(
        error(vec![tier("opt", 1), second("lru", 1, Fill::Victim)]).0,
        "t: opt is a bound for one tier with admission=always"
    );
    let chunked = TierSpec { chunk_blocks: 2, ..second("lru", 4, Fill::Victim) };
    assert_eq!(
        error(vec![tier("lru", 1), chunked]).0,
        "u: fill=victim needs the chunk_blocks of the tier above"
    );
    let object = ReplaySpec {
        mode: Mode::Object,
        ..ReplaySpec::new(vec![tier("lru", 1), second("lru", 1, Fill::Victim)])
    };
    assert_eq!(config_error(&trace, &object).0, "mode=object takes one tier");
}

#[test]
fn a_replay_can_be_stopped() {
    let trace = full_blocks(&[vec![1], vec![2]]);
    let progress = Progress::default();
    progress.cancel();
    let spec = ReplaySpec::new(vec![tier("lru", 1)]);
    assert!(matches!(replay(&trace, &spec, &progress), Err(Error::Cancelled)));
}
