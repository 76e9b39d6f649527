//! Whole sequences against a slow twin that keeps plain lists.

use crate::error::Error;
use crate::hierarchy::{Counters, TierSpec};
use crate::progress::Progress;
use crate::replay::testing::full_blocks;
use crate::replay::{Mode, ReplayResult, ReplaySpec, Unit, replay_auto};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(0x5EED_0004);
    ProptestConfig { cases: 600, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

fn run(paths: &[Vec<u64>], capacity: u64) -> ReplayResult {
    let spec = ReplaySpec { per_request: true, ..ReplaySpec::new(vec![TierSpec::new("t", capacity)]) };
    replay_auto(&full_blocks(paths), &spec, Unit::Request, &Progress::default()).unwrap().1
}

/// Entries from the most to the least recent: a path, and whether it never served.
#[derive(Default)]
struct Slow {
    entries: Vec<(Vec<u64>, bool)>,
    evicted: u64,
    dead: u64,
    inserted: u64,
    no_room: u64,
    hits: Vec<u32>,
}

impl Slow {
    fn resident(&self) -> u64 {
        self.entries.iter().map(|(path, _)| path.len() as u64).sum()
    }

    fn serve(&mut self, path: &[u64], capacity: u64) {
        let common = |entry: &[u64]| entry.iter().zip(path).take_while(|(a, b)| a == b).count();
        let best = self.entries.iter().map(|(entry, _)| common(entry)).max().unwrap_or(0);
        self.hits.push(best as u32);
        let (n, mut grown) = (path.len() as u64, false);
        if best > 0 {
            let at = self.entries.iter().position(|(entry, _)| common(entry) == best).unwrap();
            let (mut entry, _) = self.entries.remove(at);
            if entry.len() == best && best < path.len() && n <= capacity {
                self.inserted += n - best as u64;
                entry = path.to_vec();
                grown = true;
            }
            self.entries.insert(0, (entry, false));
        }
        if best < path.len() && !grown {
            if n > capacity {
                self.no_room += n;
                return;
            }
            self.evict(capacity - n);
            self.entries.insert(0, (path.to_vec(), true));
            self.inserted += n;
        }
        self.evict(capacity);
    }

    fn evict(&mut self, blocks: u64) {
        while self.resident() > blocks {
            let (path, unread) = self.entries.pop().unwrap();
            self.evicted += path.len() as u64;
            self.dead += if unread { path.len() as u64 } else { 0 };
        }
    }
}

fn paths() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let request = (any::<prop::sample::Index>(), 0usize..8, prop::collection::vec(0u64..2, 0..5));
    prop::collection::vec(request, 0..50).prop_map(|requests| {
        let mut paths: Vec<Vec<u64>> = Vec::new();
        for (from, keep, labels) in requests {
            let mut path = if paths.is_empty() { Vec::new() } else { paths[from.index(paths.len())].clone() };
            path.truncate(keep);
            for label in labels {
                path.push(path.last().copied().unwrap_or(0).wrapping_mul(3).wrapping_add(label + 1));
            }
            paths.push(path);
        }
        paths
    })
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn equals_the_slow_twin(paths in paths(), capacity in 0u64..40) {
        let result = run(&paths, capacity);
        let mut slow = Slow::default();
        for path in &paths {
            slow.serve(path, capacity);
        }
        let Counters { evicted, dead_on_arrival, no_room, resident, peak, .. } = result.tiers[0].counters;
        prop_assert_eq!(&result.requests.as_ref().unwrap().hit_blocks[0], &slow.hits);
        prop_assert_eq!((evicted, dead_on_arrival, no_room), (slow.evicted, slow.dead, slow.no_room));
        prop_assert_eq!(result.tiers[0].counters.inserted(), slow.inserted);
        prop_assert_eq!((resident, peak <= capacity), (slow.resident(), true));
        let trace = full_blocks(&paths);
        let content: Vec<u64> = result.tiers[0].content.iter().map(|&b| trace.ids.number(b)).collect();
        let expected: Vec<u64> = slow.entries.iter().flat_map(|(path, _)| path.clone()).collect();
        prop_assert_eq!(content, expected);
    }

    /// Sharing blocks and evicting them one by one never hits less than whole sequences of the same room.
    #[test]
    fn the_ceiling_bounds_it(paths in paths(), capacity in 0u64..40) {
        let all = crate::stack::ceiling(&full_blocks(&paths));
        for (hit, ceiling) in run(&paths, capacity).requests.unwrap().hit_blocks[0].iter().zip(all) {
            prop_assert!(*hit <= ceiling);
        }
    }
}

#[test]
fn a_hand_worked_sequence() {
    // 1 2 3 | grows to 1 2 3 4 | 1 2 9 is a copy of its own and pushes nothing out at 7 blocks | 5 pushes out
    // the least recent, which is 1 2 9: 1 2 3 served last.
    let paths = [vec![1, 2, 3], vec![1, 2, 3, 4], vec![1, 2, 9], vec![1, 2, 3], vec![5]];
    let result = run(&paths, 7);
    assert_eq!(result.requests.as_ref().unwrap().hit_blocks[0], [0, 3, 2, 3, 0]);
    let counters = result.tiers[0].counters;
    assert_eq!((counters.inserted(), counters.evicted, counters.dead_on_arrival), (3 + 1 + 3 + 1, 3, 3));
    assert_eq!((counters.resident, counters.unread_at_end, counters.peak), (5, 1, 7));
}

#[test]
fn a_sequence_larger_than_the_tier_is_not_stored() {
    let result = run(&[vec![1, 2, 3], vec![1, 2, 3]], 2);
    assert_eq!(result.requests.as_ref().unwrap().hit_blocks[0], [0, 0]);
    assert_eq!((result.tiers[0].counters.no_room, result.tiers[0].counters.resident), (6, 0));
}

#[test]
fn what_whole_sequences_cannot_do_is_refused() {
    let tier = TierSpec::new("t", 9);
    let with = |policy: &str, admission: &str, chunk_blocks: u32| TierSpec {
        policy: policy.to_owned(),
        admission: admission.to_owned(),
        chunk_blocks,
        ..tier.clone()
    };
    let one = |tier: TierSpec| ReplaySpec::new(vec![tier]);
    for spec in [
        ReplaySpec::new(vec![tier.clone(), TierSpec::new("u", 9)]),
        one(with("fifo", "always", 1)),
        one(with("lru", "min_count(2)", 1)),
        one(with("lru", "always", 2)),
        ReplaySpec { events: true, ..one(tier.clone()) },
        ReplaySpec { mode: Mode::Object, ..one(tier.clone()) },
    ] {
        let got = replay_auto(&full_blocks(&[vec![1]]), &spec, Unit::Request, &Progress::default());
        assert!(matches!(got, Err(Error::Config { .. })), "{spec:?}");
    }
}
