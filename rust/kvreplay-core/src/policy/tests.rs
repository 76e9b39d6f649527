//! Queue contents of every policy, step by step, on sequences worked by hand, and the registry.

use super::parts::{BitSet, Closure};
use super::{Build, POLICIES, Policy, Room, Stored, Topology, build, store, take};
use crate::replay::testing::full_blocks;
use crate::trace::Trace;
use std::path::Path;

/// A tier of unrelated blocks 0, 1, 2, ..
fn blocks(count: u64) -> Trace {
    full_blocks(&(0..count).map(|id| vec![id]).collect::<Vec<_>>())
}

/// Uses blocks one after the other and notes the content after each, `use` meaning hit or insert.
fn contents(policy: &str, capacity: u32, uses: &[u32]) -> Vec<Vec<u32>> {
    let trace = blocks(16);
    let topology = Topology::new(&trace.forest);
    let mut policy =
        build(policy, &Build { topology: &topology, capacity, block_tokens: 1, timed: true }).unwrap();
    let mut room = Room::new(&topology, capacity, Closure::None);
    uses.iter()
        .map(|&block| {
            if room.holds(block) {
                policy.hit(block, &room);
            } else {
                store(&mut *policy, &mut room, block);
            }
            policy.validate(&room).unwrap();
            policy.content()
        })
        .collect()
}

#[test]
fn lru_moves_what_is_used() {
    assert_eq!(
        contents("lru", 3, &[1, 2, 3, 1, 4]),
        [vec![1], vec![2, 1], vec![3, 2, 1], vec![1, 3, 2], vec![4, 1, 3]]
    );
}

#[test]
fn fifo_moves_nothing() {
    assert_eq!(contents("fifo", 3, &[1, 2, 3, 1, 4])[3..], [vec![3, 2, 1], vec![4, 3, 2]]);
}

#[test]
fn lfu_drops_the_least_used_and_forgets_counts() {
    // 1 is used twice; 2 and 3 once, 2 longer ago. 2 comes back with a count of 1.
    assert_eq!(contents("lfu", 3, &[1, 1, 2, 3, 4, 2])[3..], [vec![1, 3, 2], vec![1, 4, 3], vec![1, 2, 4]]);
}

#[test]
fn lruk_looks_at_the_second_last_use() {
    // Once-used blocks go first, the one used longest ago; 1 and 2 are judged by their second last use.
    assert_eq!(
        contents("lruk", 3, &[1, 2, 2, 1, 3, 4, 4, 5])[4..],
        [vec![2, 1, 3], vec![2, 1, 4], vec![4, 2, 1], vec![4, 2, 5]]
    );
    assert_eq!(contents("lruk(1)", 2, &[1, 2, 1, 3]), contents("lru", 2, &[1, 2, 1, 3]));
}

#[test]
fn slru_protects_what_is_used_again() {
    // Protected holds two of three (0.8 * 3 floored); the third promotion sends the oldest, 1, back.
    assert_eq!(
        contents("slru", 3, &[1, 2, 3, 1, 2, 3, 4])[3..],
        [vec![1, 3, 2], vec![2, 1, 3], vec![3, 2, 1], vec![3, 2, 4]]
    );
}

#[test]
fn twoq_takes_into_am_what_comes_back() {
    // Kin = 1, Kout = 2. 1 leaves A1in for A1out, comes back into Am and stays through the scan.
    assert_eq!(
        contents("twoq", 4, &[1, 2, 3, 4, 5, 1, 6, 7])[4..],
        [vec![5, 4, 3, 2], vec![1, 5, 4, 3], vec![1, 6, 5, 4], vec![1, 7, 6, 5]]
    );
}

#[test]
fn arc_keeps_what_was_used_again() {
    // T2 before T1. 5 evicts 2 into B1, whose return moves the target to 1 and 3 into B1.
    assert_eq!(
        contents("arc", 3, &[1, 1, 2, 3, 5, 2, 6])[3..],
        [vec![1, 3, 2], vec![1, 5, 3], vec![2, 1, 5], vec![2, 6, 5]]
    );
}

#[test]
fn arc_drops_the_oldest_of_t1_without_a_ghost_when_t1_fills_the_tier() {
    // 1 is forgotten, so it comes back into T1 like a new block.
    assert_eq!(contents("arc", 2, &[1, 2, 3, 1, 1])[2..], [vec![3, 2], vec![1, 3], vec![1, 3]]);
}

#[test]
fn s3fifo_promotes_blocks_hit_twice() {
    // Small 1, main 3. 1 has two hits when it reaches the end of S and enters M; 2 becomes a ghost and
    // comes back into M.
    assert_eq!(
        contents("s3fifo", 4, &[1, 1, 1, 2, 3, 4, 5, 2])[5..],
        [vec![4, 3, 2, 1], vec![1, 5, 4, 3], vec![2, 1, 5, 4]]
    );
}

#[test]
fn sieve_passes_over_visited_blocks_once() {
    // The hand clears 1, takes 2 and rests on 3; 1 stays where it is.
    assert_eq!(
        contents("sieve", 3, &[1, 2, 3, 1, 4, 5, 6])[3..],
        [vec![3, 2, 1], vec![4, 3, 1], vec![5, 4, 1], vec![6, 5, 1]]
    );
}

#[test]
fn wtinylfu_lets_the_more_frequent_stay() {
    // Window 1, main 2. Protected (1), probation, window. 3 is a candidate with one use against 2 with one
    // use: the victim stays. Used three times, 4 wins against 2.
    assert_eq!(
        contents("wtinylfu", 3, &[1, 2, 1, 3, 4, 4, 4, 5])[2..],
        [vec![1, 2], vec![1, 2, 3], vec![1, 2, 4], vec![1, 2, 4], vec![1, 2, 4], vec![1, 4, 5]]
    );
}

#[test]
fn gdsf_ages_by_the_value_of_the_last_victim() {
    // Values: 1 has 3; 2 leaves with 1, so 3 comes in at 2 and 4, for whom it leaves, at 3; then 1 is older.
    assert_eq!(
        contents("gdsf", 2, &[1, 1, 1, 2, 3, 4, 5])[3..],
        [vec![1, 2], vec![1, 3], vec![4, 1], vec![5, 4]]
    );
}

#[test]
fn recompute_cost_prefers_the_deep() {
    let trace = full_blocks(&[vec![1, 2, 3, 4], vec![9], vec![8]]);
    let topology = Topology::new(&trace.forest);
    let build_for = Build { topology: &topology, capacity: 2, block_tokens: 10_000, timed: false };
    let mut policy = build("recompute_cost", &build_for).unwrap();
    let mut room = Room::new(&topology, 2, Closure::None);
    // Block 3 lies at depth 4, 4 and 5 are roots: the root leaves though it was used later.
    for (block, victim) in [(3, None), (4, None), (5, Some(4))] {
        assert_eq!(store(&mut *policy, &mut room, block), Stored::Done { victim });
    }
    // The victim's value of 1.19 is added to that of block 5, which now is worth 2.37 against 2.31.
    assert_eq!(policy.content(), [5, 3]);
}

#[test]
fn random_is_seeded() {
    let uses: Vec<u32> = (0..200).map(|i| i * 7 % 16).collect();
    assert_eq!(contents("random(7)", 5, &uses), contents("random(7)", 5, &uses));
    assert_ne!(contents("random(7)", 5, &uses), contents("random(8)", 5, &uses));
}

#[test]
fn sieve_hand_survives_removals() {
    let trace = blocks(8);
    let topology = Topology::new(&trace.forest);
    let build_for = Build { topology: &topology, capacity: 4, block_tokens: 1, timed: false };
    let mut policy = build("sieve", &build_for).unwrap();
    let mut room = Room::new(&topology, 4, Closure::None);
    for block in 0..5 {
        store(&mut *policy, &mut room, block); // 4 evicts 0; the hand rests on 1
    }
    take(&mut *policy, &mut room, 1); // the hand moves to 2
    assert_eq!(store(&mut *policy, &mut room, 5), Stored::Done { victim: None });
    assert_eq!(store(&mut *policy, &mut room, 6), Stored::Done { victim: Some(2) });
    assert_eq!(policy.content(), [6, 5, 4, 3]);
}

/// Insertions and removals at random, guard and closure on, checked after every step.
#[test]
fn every_policy_survives_random_operations() {
    let mut state = 7_u64;
    let mut next = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let paths: Vec<Vec<u64>> = (0..40).map(|i| (0..=i % 5).map(|d| i / 5 * 10 + d).collect()).collect();
    let trace = full_blocks(&paths);
    let topology = Topology::new(&trace.forest);
    for info in POLICIES.iter().filter(|info| info.name != "opt") {
        for closure in [Closure::Leaf, Closure::None] {
            let build_for = Build { topology: &topology, capacity: 9, block_tokens: 1, timed: true };
            let mut policy = build(info.name, &build_for).unwrap();
            let mut room = Room::new(&topology, 9, closure);
            let mut runs = Vec::new();
            for _ in 0..3000 {
                trace.forest.runs(trace.requests.node[next(40) as usize], &mut runs);
                room.guard(&runs);
                for _ in 0..next(6) {
                    let block = next(u64::from(topology.blocks())) as u32;
                    step(&mut *policy, &mut room, block, next(4) == 0);
                    policy.validate(&room).unwrap_or_else(|what| panic!("{}: {what}", info.name));
                }
                room.unguard(&runs);
            }
        }
    }
}

fn step(policy: &mut dyn Policy, room: &mut Room<'_>, block: u32, remove: bool) {
    if room.holds(block) {
        if remove {
            take(policy, room, block);
        } else {
            policy.hit(block, room);
        }
        return;
    }
    let before: BitSet = room.residents().clone();
    let may_leave: Vec<u32> = before.iter().filter(|&b| room.may_leave(b)).collect();
    let full = room.is_full();
    match store(policy, room, block) {
        Stored::NoRoom => assert!(full && may_leave.is_empty() && *room.residents() == before),
        Stored::Done { victim: Some(victim) } => assert!(full && may_leave.contains(&victim)),
        Stored::Done { victim: None } => assert!(!full),
    }
}

#[test]
fn the_registry_is_complete() {
    for info in POLICIES {
        assert!(!info.doc.is_empty() && !info.source.is_empty(), "{}", info.name);
        assert!(info.parameters.iter().all(|p| !p.doc.is_empty() && !p.default.is_empty()));
        assert_eq!(POLICIES.iter().filter(|p| p.name == info.name).count(), 1);
    }
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/policies");
    for info in POLICIES {
        let page = std::fs::read_to_string(pages.join(format!("{}.md", info.name))).unwrap_or_default();
        assert!(page.contains(info.doc) && page.contains(info.source), "docs/policies/{}.md", info.name);
        for parameter in info.parameters {
            let row = format!("| `{}` | `{}` | {} |", parameter.name, parameter.default, parameter.doc);
            assert!(page.contains(&row), "docs/policies/{}.md lacks {row}", info.name);
        }
        // Chance and foresight have no twin of this kind: one has properties only, the other its own.
        let has_twin = crate::reference::policies::slow(info.name, 4, 16).is_some();
        assert_eq!(has_twin, !matches!(info.name, "random" | "opt"), "the twin of {}", info.name);
    }
    let need =
        "lru fifo lfu arc twoq lruk slru s3fifo sieve wtinylfu gdsf recompute_cost tail_lru ttl random opt";
    assert!(need.split(' ').all(|name| POLICIES.iter().any(|p| p.name == name)));
}

/// The bar is 12 bytes per distinct block and tier, with everything resident: the arrays of a policy, and
/// two bits of the room. Beyond it are `lruk` with k over 2, and `recompute_cost` from 2^22 blocks on (by half a byte).
#[test]
fn keys_in_order_take_few_bytes() {
    use super::parts::{GreedyDual, Large, Small, Whole};
    let (blocks, room) = (1_usize << 20, 0.25);
    let per_block = |bytes: usize| room + bytes as f64 / blocks as f64;
    for (name, bytes, expected) in [
        ("lfu", super::lfu::bytes(blocks), 8.0),
        ("lruk(1)", super::lruk::bytes::<1>(blocks), 4.0),
        ("lruk(2)", super::lruk::bytes::<2>(blocks), 8.0),
        ("lruk(3)", super::lruk::bytes::<3>(blocks), 12.0),
        ("gdsf", GreedyDual::<Whole>::new(blocks).bytes(), 11.0),
        ("recompute_cost", GreedyDual::<Small>::new(blocks).bytes(), 11.0),
        ("recompute_cost, many blocks", GreedyDual::<Large>::new(blocks).bytes(), 12.0),
    ] {
        let over = per_block(bytes) - expected;
        assert!((0.6..0.66).contains(&over), "{name}: {}", per_block(bytes));
    }
}

/// Stamps of few bits are renumbered all the time, which changes nothing.
#[test]
fn renumbered_uses_keep_their_order() {
    let trace = blocks(16);
    let topology = Topology::new(&trace.forest);
    for (name, few) in
        [("lfu", super::lfu::with_stamps(16, 5)), ("lruk(3)", super::lruk::with_stamps::<3>(16, 6))]
    {
        let build_for = Build { topology: &topology, capacity: 9, block_tokens: 1, timed: true };
        let mut tiers = [build(name, &build_for).unwrap(), few]
            .map(|policy| (policy, Room::new(&topology, 9, Closure::None)));
        let mut state = 3_u64;
        for _ in 0..3000 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let block = (state >> 33) as u32 % 16 * ((state >> 50) as u32 % 16) / 16;
            for (policy, room) in &mut tiers {
                step(&mut **policy, room, block, (state >> 20).trailing_zeros() > 3);
                policy.validate(room).unwrap();
            }
            assert_eq!(tiers[0].0.content(), tiers[1].0.content(), "{name}");
        }
    }
}
