//! Properties of `semantics.md` section 10 on random forests.

use super::testing::{full_blocks, trace_of};
use super::{Mode, ReplayResult, ReplaySpec, replay, request};
use crate::hierarchy::{Events, Fill, Ground, Hierarchy, TierSpec};
use crate::policy::{Closure, POLICIES};
use crate::progress::Progress;
use crate::trace::Trace;
use proptest::prelude::*;

/// Paths over a small forest: each keeps a part of an earlier one and goes on with labels of its own.
fn path_lists() -> impl Strategy<Value = Vec<Vec<u64>>> {
    let request = (any::<prop::sample::Index>(), 0usize..9, prop::collection::vec(0u64..3, 0..6));
    prop::collection::vec(request, 1..60).prop_map(|requests| {
        let mut paths: Vec<Vec<u64>> = Vec::new();
        for (from, keep, labels) in requests {
            let mut path = if paths.is_empty() { Vec::new() } else { paths[from.index(paths.len())].clone() };
            path.truncate(keep);
            for label in labels {
                let above = path.last().copied().unwrap_or(0);
                path.push(above.wrapping_mul(5).wrapping_add(label + 1));
            }
            paths.push(path);
        }
        paths
    })
}

fn policies() -> impl Strategy<Value = &'static str> {
    prop::sample::select(POLICIES.iter().map(|p| p.name).filter(|name| *name != "opt").collect::<Vec<_>>())
}

fn fills() -> impl Strategy<Value = Fill> {
    prop::sample::select(vec![Fill::WriteThrough, Fill::WriteBack, Fill::Victim])
}

fn run(trace: &Trace, spec: &ReplaySpec) -> ReplayResult {
    replay(trace, spec, &Progress::default()).unwrap()
}

fn tier(policy: &str, capacity: u64) -> TierSpec {
    TierSpec { policy: policy.to_owned(), ..TierSpec::new("t", capacity) }
}

fn lower(policy: &str, capacity: u64, fill: Fill) -> TierSpec {
    TierSpec { policy: policy.to_owned(), fill, ..TierSpec::new("u", capacity) }
}

fn served(trace: &Trace, policy: &str, capacity: u64, closure: Closure) -> u64 {
    let tier = TierSpec { closure, ..tier(policy, capacity) };
    run(trace, &ReplaySpec::new(vec![tier])).tiers[0].counters.served
}

/// Hit blocks per request over all tiers.
fn runs(trace: &Trace, tiers: Vec<TierSpec>) -> Vec<u32> {
    let result = run(trace, &ReplaySpec { per_request: true, ..ReplaySpec::new(tiers) });
    let requests = result.requests.unwrap();
    (0..trace.len()).map(|r| requests.hit_blocks.iter().map(|tier| tier[r]).sum()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_step_keeps_the_invariants(
        paths in path_lists(),
        tiers in prop::collection::vec((policies(), 0u64..20, fills(), any::<bool>()), 1..4),
    ) {
        let trace = full_blocks(&paths);
        let specs: Vec<TierSpec> = tiers
            .into_iter()
            .enumerate()
            .map(|(k, (policy, capacity, fill, closed))| TierSpec {
                name: format!("t{k}"),
                closure: if closed { Closure::Leaf } else { Closure::None },
                ..lower(policy, capacity, fill)
            })
            .collect();
        let spec = ReplaySpec::new(specs);
        let ground = Ground::new(&trace, &spec.tiers);
        let topologies = ground.topologies();
        let mut hierarchy = Hierarchy::new(&trace, &spec.tiers, &ground, &topologies, true).unwrap();
        let mut events = Events::new(false);
        for index in 0..trace.len() {
            let request = request(&trace, &spec, index);
            hierarchy.serve(&request, &mut events);
            hierarchy.validate().map_err(TestCaseError::fail)?;
            let mut at = 0;
            for k in 0..hierarchy.len() {
                let (from, to) = hierarchy.served(k);
                prop_assert!(from == at && to >= from && to <= request.blocks);
                prop_assert!(hierarchy.resident_blocks(k) <= spec.tiers[k].capacity_blocks);
                at = to;
            }
        }
    }

    #[test]
    fn tiers_and_computed_make_up_the_input(
        paths in path_lists(),
        partial in prop::collection::vec(0u32..16, 60),
        policy in policies(),
        fill in fills(),
        last_token in any::<bool>(),
        full_blocks_only in any::<bool>(),
    ) {
        let tokens: Vec<u32> =
            paths.iter().zip(&partial).map(|(path, p)| (path.len() as u32 * 16).saturating_sub(*p)).collect();
        let trace = trace_of(&paths, &tokens, 16);
        let tiers = vec![tier(policy, 7), lower("lru", 15, fill)];
        let spec = ReplaySpec { per_request: true, last_token, full_blocks_only, ..ReplaySpec::new(tiers) };
        let result = run(&trace, &spec);
        let requests = result.requests.unwrap();
        for (r, &input) in tokens.iter().enumerate() {
            let hit = requests.hit_tokens[0][r] + requests.hit_tokens[1][r];
            prop_assert_eq!(hit + requests.computed_tokens[r], input);
            prop_assert!(!last_token || input == 0 || hit < input);
        }
    }

    #[test]
    fn every_policy_is_below_opt_and_opt_below_the_ceiling(
        paths in path_lists(),
        policy in policies(),
        capacity in 0u64..25,
    ) {
        let trace = full_blocks(&paths);
        let opt = served(&trace, "opt", capacity, Closure::Leaf);
        for closure in [Closure::Leaf, Closure::None] {
            prop_assert!(served(&trace, policy, capacity, closure) <= opt);
        }
        let totals = trace.totals();
        let ceiling = totals.block_refs - u64::from(trace.forest.blocks());
        prop_assert!(opt <= ceiling);
        prop_assert_eq!(served(&trace, policy, 10_000, Closure::None), ceiling);
    }

    #[test]
    fn lru_is_closed_and_never_loses_by_growing(paths in path_lists()) {
        let trace = full_blocks(&paths);
        let mut before = 0;
        for capacity in 0..25 {
            let plain = served(&trace, "lru", capacity, Closure::None);
            prop_assert_eq!(plain, served(&trace, "lru", capacity, Closure::Leaf));
            prop_assert!(plain >= before);
            before = plain;
        }
    }

    #[test]
    fn names_of_blocks_do_not_matter(paths in path_lists(), policy in policies(), capacity in 1u64..20) {
        let renamed: Vec<Vec<u64>> =
            paths.iter().map(|path| path.iter().map(|id| id.wrapping_mul(0x9E37_79B9_7F4A_7C15)).collect()).collect();
        let [a, b] = [full_blocks(&paths), full_blocks(&renamed)]
            .map(|trace| runs(&trace, vec![tier(policy, capacity), lower(policy, capacity, Fill::Victim)]));
        prop_assert_eq!(a, b);
    }

    #[test]
    fn a_victim_lru_below_an_lru_is_one_lru(paths in path_lists(), upper in 9u64..25, below in 0u64..25) {
        // The property holds for requests that fit tier 1.
        let trace = full_blocks(&paths.into_iter().map(|mut p| { p.truncate(9); p }).collect::<Vec<_>>());
        let two = runs(&trace, vec![tier("lru", upper), lower("lru", below, Fill::Victim)]);
        prop_assert_eq!(two, runs(&trace, vec![tier("lru", upper + below)]));
    }

    #[test]
    fn a_larger_write_through_lru_decides_alone(paths in path_lists(), upper in 0u64..20, more in 0u64..20) {
        let trace = full_blocks(&paths);
        let two = runs(&trace, vec![tier("lru", upper), lower("lru", upper + more, Fill::WriteThrough)]);
        prop_assert_eq!(two, runs(&trace, vec![tier("lru", upper + more)]));
    }

    #[test]
    fn lru_is_the_same_with_and_without_prefixes_where_all_fits(paths in path_lists()) {
        let trace = full_blocks(&paths);
        let spec = |mode| ReplaySpec { mode, per_request: true, ..ReplaySpec::new(vec![tier("lru", 10_000)]) };
        let (prefix, object) = (run(&trace, &spec(Mode::Prefix)), run(&trace, &spec(Mode::Object)));
        prop_assert_eq!(prefix.requests.unwrap().hit_blocks, object.requests.unwrap().hit_blocks);
    }
}
