//! The engines agree wherever both answer, and the choice between them is the documented one.

use super::{Engine, Unit, replay_auto};
use crate::hierarchy::{Fill, TierSpec, Touch};
use crate::progress::Progress;
use crate::replay::testing::{full_blocks, trace_of};
use crate::replay::{Mode, ReplaySpec, lru_each, replay};
use crate::trace::Trace;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

const BLOCK_TOKENS: u32 = 16;

fn config() -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(0x5EED_0003);
    ProptestConfig { cases: 1500, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

/// Forests whose requests keep a part of an earlier path; some with a partial last block.
fn forests() -> impl Strategy<Value = Trace> {
    let request = (any::<prop::sample::Index>(), 0usize..10, prop::collection::vec(0u64..3, 0..6), 0u32..16);
    prop::collection::vec(request, 0..70).prop_map(|requests| {
        let (mut paths, mut tokens): (Vec<Vec<u64>>, Vec<u32>) = (Vec::new(), Vec::new());
        for (from, keep, labels, partial) in requests {
            let mut path = if paths.is_empty() { Vec::new() } else { paths[from.index(paths.len())].clone() };
            path.truncate(keep);
            for label in labels {
                let above = path.last().copied().unwrap_or(0);
                path.push(above.wrapping_mul(5).wrapping_add(label + 1));
            }
            tokens.push((path.len() as u32 * BLOCK_TOKENS).saturating_sub(if path.is_empty() {
                0
            } else {
                partial
            }));
            paths.push(path);
        }
        trace_of(&paths, &tokens, BLOCK_TOKENS)
    })
}

fn fills() -> impl Strategy<Value = Fill> {
    prop::sample::select(vec![Fill::WriteThrough, Fill::Victim, Fill::WriteBack])
}

fn tiers(list: Vec<(u64, Fill, bool)>) -> Vec<TierSpec> {
    let tier = |(k, (capacity, fill, path)): (usize, (u64, Fill, bool))| TierSpec {
        fill,
        touch: if path { Touch::Path } else { Touch::Served },
        ..TierSpec::new(&format!("t{k}"), capacity)
    };
    list.into_iter().enumerate().map(tier).collect()
}

fn engine_of(spec: &ReplaySpec) -> Engine {
    let trace = full_blocks(&[vec![1, 2], vec![1, 2, 3], vec![4]]);
    replay_auto(&trace, spec, Unit::Block, &Progress::default()).unwrap().0
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn both_engines_give_the_same_result(
        trace in forests(),
        list in prop::collection::vec((0u64..40, fills(), prop::bool::weighted(0.8)), 1..5),
    ) {
        let spec = ReplaySpec { per_request: true, occupancy: true, ..ReplaySpec::new(tiers(list)) };
        let (engine, fast) = replay_auto(&trace, &spec, Unit::Block, &Progress::default()).unwrap();
        let slow = replay(&trace, &spec, &Progress::default()).unwrap();
        if spec.tiers.len() == 1 {
            prop_assert_eq!(engine, Engine::Stack);
        }
        prop_assert_eq!(fast, slow);
    }

    #[test]
    fn both_engines_give_the_same_result_in_object_mode(trace in forests(), capacity in 0u64..40) {
        let spec = ReplaySpec {
            per_request: true,
            occupancy: true,
            mode: Mode::Object,
            ..ReplaySpec::new(vec![TierSpec::new("t", capacity)])
        };
        let (engine, fast) = replay_auto(&trace, &spec, Unit::Block, &Progress::default()).unwrap();
        prop_assert_eq!(engine, if capacity > 0 { Engine::Stack } else { Engine::Blocks });
        prop_assert_eq!(fast, replay(&trace, &spec, &Progress::default()).unwrap());
    }

    #[test]
    fn many_lru_tiers_from_one_pass_are_single_replays(
        trace in forests(), capacities in prop::collection::vec(0u64..50, 0..6),
    ) {
        let together = lru_each(&trace, &capacities, &Progress::default()).unwrap();
        for (capacity, counters) in capacities.into_iter().zip(together) {
            let spec = ReplaySpec::new(vec![TierSpec::new("t", capacity)]);
            let alone = replay(&trace, &spec, &Progress::default()).unwrap();
            prop_assert_eq!(counters, alone.tiers[0].counters);
        }
    }
}

#[test]
fn a_growing_hierarchy_is_answered_by_the_stack_and_anything_else_is_not() {
    let stack = vec![(5, Fill::WriteThrough, true), (9, Fill::Victim, true), (20, Fill::WriteThrough, true)];
    assert_eq!(engine_of(&ReplaySpec::new(tiers(stack.clone()))), Engine::Stack);
    for change in [
        |s: &mut ReplaySpec| s.events = true,
        |s: &mut ReplaySpec| s.residence = true,
        |s: &mut ReplaySpec| s.last_token = true,
        |s: &mut ReplaySpec| s.full_blocks_only = true,
        |s: &mut ReplaySpec| s.tiers[0].policy = "fifo".to_owned(),
        |s: &mut ReplaySpec| s.tiers[1].admission = "min_count(2)".to_owned(),
        |s: &mut ReplaySpec| s.tiers[2].touch = Touch::Served,
        |s: &mut ReplaySpec| s.tiers[1].fill = Fill::WriteBack,
        |s: &mut ReplaySpec| s.tiers[2].chunk_blocks = 2,
        |s: &mut ReplaySpec| s.tiers[2].capacity_blocks = 8,
    ] {
        let mut spec = ReplaySpec::new(tiers(stack.clone()));
        change(&mut spec);
        assert_eq!(engine_of(&spec), Engine::Blocks, "{spec:?}");
    }
    let object = ReplaySpec { mode: Mode::Object, ..ReplaySpec::new(vec![TierSpec::new("t", 3)]) };
    assert_eq!(engine_of(&object), Engine::Stack);
    for change in [
        |s: &mut ReplaySpec| s.events = true,
        |s: &mut ReplaySpec| s.residence = true,
        |s: &mut ReplaySpec| s.last_token = true,
        |s: &mut ReplaySpec| s.full_blocks_only = true,
        |s: &mut ReplaySpec| s.tiers[0].policy = "sieve".to_owned(),
        |s: &mut ReplaySpec| s.tiers[0].admission = "min_count(2)".to_owned(),
        |s: &mut ReplaySpec| s.tiers[0].capacity_blocks = 0,
    ] {
        let mut spec = object.clone();
        change(&mut spec);
        assert_eq!(engine_of(&spec), Engine::Blocks, "{spec:?}");
    }
    let opt = TierSpec { policy: "opt".to_owned(), ..TierSpec::new("t", 3) };
    assert_eq!(engine_of(&ReplaySpec::new(vec![opt])), Engine::Future);
    let spelled =
        TierSpec { policy: " lru( ) ".to_owned(), admission: "always()".to_owned(), ..TierSpec::new("t", 3) };
    assert_eq!(engine_of(&ReplaySpec::new(vec![spelled])), Engine::Stack);
}

#[test]
fn what_is_not_valid_is_refused_whatever_the_engine() {
    let trace = full_blocks(&[vec![1]]);
    let mut two = tiers(vec![(5, Fill::Victim, true), (5, Fill::Victim, true)]);
    two[1].name = two[0].name.clone();
    let wrong = TierSpec { policy: "lru(2)".to_owned(), ..TierSpec::new("t", 3) };
    for spec in [ReplaySpec::new(Vec::new()), ReplaySpec::new(two), ReplaySpec::new(vec![wrong])] {
        assert!(replay_auto(&trace, &spec, Unit::Block, &Progress::default()).is_err(), "{spec:?}");
    }
}
