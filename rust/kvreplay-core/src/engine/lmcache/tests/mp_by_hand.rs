//! The multi-process server, step by step. The rules are those of `golden/engines/README.md`; for L2 and the
//! end of a session those of `LMCache` 0.5.6's source, as the profile shows them.

use super::{Bench, tier};
use crate::hierarchy::EventKind;

/// L1 whose loop never runs.
fn idle(tiers: &[crate::hierarchy::TierSpec], options: &[(&str, &str)]) -> Bench {
    let mut all = vec![("tick_every_requests", "1000")];
    all.extend(options);
    Bench::new("lmcache-mp@0.5.6", tiers, &all)
}

#[test]
fn a_write_never_evicts_and_is_all_or_nothing() {
    let mut server = idle(&[tier("cpu", 4, "lru")], &[]);
    server.full(&[1, 2, 3]);
    assert_eq!(server.next_out(0), [3, 2, 1], "added tail to head");
    assert_eq!(server.full(&[1, 4, 5]), [10]);
    assert_eq!((server.next_out(0), server.no_room(0)), (vec![3, 2, 1], 2));
    assert_eq!(server.full(&[1, 4]), [10]);
    assert_eq!(server.next_out(0), [3, 2, 1, 4]);
}

#[test]
fn the_loop_evicts_a_share_from_the_watermark_on() {
    let options = [("watermark", "0.75"), ("eviction_ratio", "0.5"), ("tick_every_requests", "2")];
    let mut server = Bench::new("lmcache-mp", &[tier("cpu", 4, "lru")], &options);
    server.full(&[1, 2, 3]);
    assert_eq!(server.resident(0), 3, "the loop turns after every second request");
    server.full(&[1]);
    assert_eq!(server.next_out(0), [2, 1], "int(3 * 0.5) = 1 goes: 3, the oldest");
    server.full(&[4]);
    server.full(&[5]);
    assert_eq!(server.next_out(0), [4, 5], "4 of 4: two go");
    server.full(&[5]);
    server.full(&[5]);
    assert_eq!(server.resident(0), 2, "2 of 4 is below 0.75");
}

#[test]
fn a_ratio_of_nothing_evicts_nothing_and_a_small_one_evicts_one() {
    for (ratio, left) in [("0", 2), ("0.01", 1), ("1", 0)] {
        let options = [("watermark", "0"), ("eviction_ratio", ratio)];
        let mut server = Bench::new("lmcache-mp", &[tier("cpu", 4, "lru")], &options);
        server.full(&[1, 2]);
        assert_eq!(server.resident(0), left);
    }
    let mut none = Bench::new("lmcache-mp", &[tier("cpu", 0, "arc")], &[("watermark", "0")]);
    assert_eq!((none.full(&[1]), none.resident(0)), (vec![0], 0));
}

#[test]
fn arc_moves_touched_chunks_to_t2_and_evicts_t1_first() {
    let options = [("watermark", "1"), ("eviction_ratio", "0.5")];
    let mut server = Bench::new("lmcache-mp", &[tier("cpu", 4, "arc")], &options);
    server.full(&[1, 2]);
    assert_eq!(server.full(&[1]), [10]);
    assert_eq!(server.next_out(0), [2, 1], "T1: 2, T2: 1");
    server.full(&[3, 4]);
    // 4 of 4: two go, from T1 as |T1| >= p = 0: 2, then 4 (added before 3).
    assert_eq!(server.next_out(0), [3, 1]);
    // 2 is in B1: p rises to 1, and it comes into T1. T1: 3, 2.
    server.full(&[2]);
    server.full(&[5]);
    // T1: 3, 2, 5 (p = 1): two go, 3 and 2.
    assert_eq!(server.next_out(0), [5, 1]);
    server.full(&[6]);
    server.full(&[7]);
    assert_eq!(server.next_out(0), [7, 1], "T1 held 5, 6, 7");
    assert_eq!(server.events(EventKind::Evict), [[2, 4, 3, 2, 5, 6]]);
}

#[test]
fn noop_never_evicts() {
    let mut server = Bench::new("lmcache-mp", &[tier("cpu", 2, "noop")], &[]);
    server.full(&[1, 2]);
    server.full(&[3]);
    assert_eq!((server.next_out(0), server.no_room(0)), (vec![2, 1], 1));
}

#[test]
fn what_l2_serves_passes_through_l1() {
    let tiers = [tier("cpu", 4, "lru"), tier("fs", 9, "lru")];
    let options = [("watermark", "0.75"), ("eviction_ratio", "0.5"), ("tick_every_requests", "1")];
    let mut server = Bench::new("lmcache-mp", &tiers, &options);
    server.full(&[1, 2, 3]);
    // 3 of 4 in L1: int(1.5) = 1 goes, the tail.
    assert_eq!((server.next_out(0), server.next_out(1)), (vec![2, 1], vec![3, 2, 1]));
    assert_eq!(server.full(&[1, 2, 3]), [20, 10]);
    assert_eq!(server.next_out(0), [2, 1], "3 left L1 after the read, and is not stored again");
    assert_eq!(server.next_out(1), [2, 1, 3], "L2 refreshed what it served");
}

#[test]
fn a_run_may_come_back_to_l1() {
    let tiers = [tier("cpu", 4, "lru"), tier("fs", 9, "lru")];
    let mut server = idle(&tiers, &[]);
    server.full(&[2]);
    server.full(&[1, 2]);
    server.full(&[3]);
    assert_eq!(server.full(&[1, 2, 3]), [30, 0]);
    let options = [("watermark", "0.25"), ("eviction_ratio", "0.5"), ("tick_every_requests", "3")];
    let mut server = Bench::new("lmcache-mp", &tiers, &options);
    server.full(&[1]);
    server.full(&[2]);
    server.full(&[3]);
    assert_eq!(server.next_out(0), [2, 3], "1 went");
    assert_eq!(server.full(&[2, 1, 3]), [20, 10], "L1, L2, L1");
}

#[test]
fn retain_keeps_what_was_loaded() {
    let tiers = [tier("cpu", 4, "lru"), tier("fs", 9, "lru")];
    let options = [
        ("watermark", "0.75"),
        ("eviction_ratio", "0.5"),
        ("tick_every_requests", "2"),
        ("prefetch_policy", "retain"),
    ];
    let mut server = Bench::new("lmcache-mp", &tiers, &options);
    server.full(&[1, 2, 3]);
    server.full(&[1]);
    assert_eq!(server.next_out(0), [2, 1]);
    assert_eq!(server.full(&[1, 2, 3]), [20, 10]);
    assert_eq!(server.next_out(0), [3, 2, 1]);
    assert_eq!(server.events(EventKind::Insert)[0], [3, 2, 1, 3]);
}

#[test]
fn a_load_that_does_not_fit_l1_ends_the_run_with_l1() {
    let tiers = [tier("cpu", 3, "lru"), tier("fs", 9, "lru")];
    let options = [("watermark", "1"), ("eviction_ratio", "0.9"), ("tick_every_requests", "1")];
    let mut server = Bench::new("lmcache-mp", &tiers, &options);
    server.full(&[1, 2, 3]);
    server.full(&[4]);
    assert_eq!((server.next_out(0), server.next_out(1)), (vec![1, 4], vec![3, 2, 1, 4]));
    // 2 and 3 need two places, one is free. 2 and 3 are then stored again: refused too.
    assert_eq!(server.full(&[1, 2, 3]), [10, 0]);
    assert_eq!((server.no_room(0), server.next_out(0)), (4, vec![4, 1]));
}

#[test]
fn a_full_adapter_skips_what_does_not_fit() {
    let tiers = [tier("cpu", 9, "lru"), tier("fs", 2, "noop"), tier("s3", 9, "lru")];
    let mut server = idle(&tiers, &[]);
    server.full(&[1, 2, 3]);
    assert_eq!((server.next_out(1), server.no_room(1)), (vec![2, 1], 1));
    assert_eq!(server.next_out(2), [3, 2, 1]);
}

#[test]
fn skip_l1_leaves_all_to_l2() {
    let tiers = [tier("cpu", 2, "noop"), tier("fs", 9, "lru")];
    let mut server = idle(&tiers, &[("store_policy", "skip_l1")]);
    server.full(&[1, 2]);
    assert_eq!((server.next_out(0), server.next_out(1)), (vec![], vec![2, 1]));
    assert_eq!(server.full(&[1, 2]), [0, 20]);
    assert_eq!(server.ask(&[], 20), [0, 0]);
    assert_eq!((server.resident(0), server.resident(1)), (0, 4));
    let mut alone = idle(&tiers[..1], &[("store_policy", "skip_l1")]);
    alone.full(&[1, 2]);
    assert_eq!(alone.next_out(0), [2, 1], "without L2 nothing leaves");
}

#[test]
fn the_end_of_a_session_refreshes_all_chunks_if_asked_for() {
    for (touch, order) in [("false", [2, 1, 4, 3]), ("true", [4, 3, 2, 1])] {
        let mut server = idle(&[tier("cpu", 9, "lru")], &[("end_session_touch", touch)]);
        server.full(&[1, 2]);
        server.full(&[1, 2, 3, 4]);
        assert_eq!(server.next_out(0), order);
    }
}

#[test]
fn decoded_chunks_are_stored_call_by_call_if_asked_for() {
    let options = [("save_decode_cache", "true")];
    let mut server = idle(&[tier("cpu", 3, "lru")], &options);
    server.decode(&[1], 15, &[2, 3], 20);
    assert_eq!(server.next_out(0), [1, 2, 3]);
    let mut server = idle(&[tier("cpu", 3, "lru")], &options);
    server.decode(&[1, 2], 20, &[], 50);
    assert_eq!((server.resident(0), server.no_room(0)), (3, 4));
    let mut server = idle(&[tier("cpu", 3, "lru")], &[]);
    server.decode(&[1], 15, &[2, 3], 20);
    assert_eq!(server.next_out(0), [1]);
}

#[test]
fn chunks_without_a_name_are_stored_with_their_call() {
    let options = [("watermark", "0.9"), ("eviction_ratio", "0.5"), ("tick_every_requests", "1")];
    for policy in ["lru", "arc"] {
        let mut server = Bench::new("lmcache-mp", &[tier("cpu", 6, policy)], &options);
        server.ask(&[1, 2], 50);
        assert_eq!((server.resident(0), server.next_out(0)), (5, vec![2, 1]));
        server.ask(&[3, 4], 40);
        assert_eq!((server.resident(0), server.no_room(0)), (5, 4), "four do not fit into one place");
        server.full(&[5]);
        // 6 of 6: three go, the unnamed ones of the tail.
        assert_eq!((server.resident(0), server.next_out(0)), (3, vec![2, 1, 5]));
        assert_eq!(server.full(&[1, 2]), [20]);
    }
}
