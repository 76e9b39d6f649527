//! Differential tests: the replay engine against its slow twins on random forests.

use super::filters::{Always, Doubling, MinCount, MinDepth, SecondTouch, SlowFilter};
use super::hierarchy::{Event, SlowHierarchy, SlowRequest, SlowTier};
use super::{future, slow};
use crate::hierarchy::{EventKind, Fill, TierSpec, Touch};
use crate::policy::{Closure, POLICIES};
use crate::progress::Progress;
use crate::replay::testing::trace_of;
use crate::replay::{Mode, ReplayResult, ReplaySpec, replay};
use crate::trace::Trace;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

const BLOCK_TOKENS: u32 = 64;

/// A forest: each request keeps a part of an earlier path and goes on with labels of its own.
pub(super) fn forests() -> impl Strategy<Value = Trace> {
    let request = (any::<prop::sample::Index>(), 0usize..10, prop::collection::vec(0u64..3, 0..7), 0u32..64);
    prop::collection::vec(request, 1..40).prop_map(|requests| {
        let mut paths: Vec<Vec<u64>> = Vec::new();
        let mut tokens = Vec::new();
        for (from, keep, labels, partial) in requests {
            let mut path = if paths.is_empty() { Vec::new() } else { paths[from.index(paths.len())].clone() };
            path.truncate(keep);
            for label in labels {
                let above = path.last().copied().unwrap_or(0);
                path.push(above.wrapping_mul(5).wrapping_add(label + 1));
            }
            let full = path.len() as u32 * BLOCK_TOKENS;
            tokens.push(if path.is_empty() { partial } else { full - partial });
            paths.push(path);
        }
        trace_of(&paths, &tokens, BLOCK_TOKENS)
    })
}

fn policies() -> impl Strategy<Value = String> {
    let names: Vec<String> = POLICIES
        .iter()
        .map(|p| p.name)
        .filter(|n| !matches!(*n, "random" | "opt"))
        .map(str::to_owned)
        .collect();
    prop::sample::select(names)
}

fn filter_specs() -> impl Strategy<Value = String> {
    prop::sample::select(vec![
        "always",
        "always",
        "min_count(2, tracker=5)",
        "min_count(3)",
        "doubling(4, decay_every=\"7 offers\", max_entries=9)",
        "second_touch",
        "min_prefix_depth(300)",
    ])
    .prop_map(str::to_owned)
}

fn slow_filter(spec: &str, chunk: u32) -> Box<dyn SlowFilter> {
    match spec {
        "always" => Box::new(Always),
        "min_count(2, tracker=5)" => Box::new(MinCount { n: 2, entries: 5, table: vec![] }),
        "min_count(3)" => Box::new(MinCount { n: 3, entries: 64_000, table: vec![] }),
        "second_touch" => Box::new(SecondTouch::default()),
        "min_prefix_depth(300)" => Box::new(MinDepth(300_u32.div_ceil(BLOCK_TOKENS * chunk))),
        _ => Box::new(Doubling { threshold: 4, every: 7, most: 9, offers: 0, table: BTreeMap::new() }),
    }
}

/// A list of one to three tiers; chunk sizes multiply down the list.
fn tiers() -> impl Strategy<Value = Vec<TierSpec>> {
    let tier = (
        policies(),
        filter_specs(),
        0u64..14,
        prop::sample::select(vec![Fill::WriteThrough, Fill::WriteBack, Fill::Victim]),
        prop::sample::select(vec![Touch::Path, Touch::Served]),
        any::<bool>(),
        1u32..4,
    );
    prop::collection::vec(tier, 1..4).prop_map(|parts| {
        let (mut tiers, mut chunk) = (Vec::<TierSpec>::new(), 1);
        let alone = parts.len() == 1;
        for (k, (policy, admission, capacity, fill, touch, closed, times)) in parts.into_iter().enumerate() {
            let may_grow = k == 0 || fill == Fill::WriteThrough;
            chunk *= if may_grow { times } else { 1 };
            let admission = if k == 0 && !alone { "always".to_owned() } else { admission };
            let closure = if closed { Closure::Leaf } else { Closure::None };
            let base = TierSpec::new(&format!("t{k}"), capacity * u64::from(chunk) + u64::from(chunk) / 2);
            tiers.push(TierSpec { policy, admission, fill, touch, closure, chunk_blocks: chunk, ..base });
        }
        tiers
    })
}

/// Units per chunk size, numbered by first appearance like dense blocks.
#[derive(Default)]
struct Units {
    number: BTreeMap<(usize, u32), u32>,
}

impl Units {
    fn read(&mut self, path: &[u32], chunk: usize, names: &mut BTreeMap<(usize, u32), u32>) -> Vec<u32> {
        let ends = path.chunks_exact(chunk).map(|blocks| blocks[chunk - 1]);
        ends.map(|end| {
            let count = self.number.keys().filter(|(c, _)| *c == chunk).count() as u32;
            let unit = *self.number.entry((chunk, end)).or_insert(count);
            names.insert((chunk, unit), end);
            unit
        })
        .collect()
    }
}

struct Twin {
    hierarchy: SlowHierarchy,
    units: Units,
}

impl Twin {
    fn new(tiers: &[TierSpec]) -> Self {
        let mut hierarchy = SlowHierarchy::default();
        for tier in tiers {
            let capacity = tier.capacity_units();
            hierarchy.tiers.push(SlowTier {
                capacity: capacity as usize,
                policy: slow(&tier.policy, capacity, BLOCK_TOKENS * tier.chunk_blocks).unwrap(),
                filter: slow_filter(&tier.admission, tier.chunk_blocks),
                fill: tier.fill,
                touch: tier.touch,
                closed: tier.closure == Closure::Leaf,
                chunk: tier.chunk_blocks as usize,
                resident: BTreeSet::new(),
                unread: BTreeSet::new(),
                dead: 0,
                no_room: 0,
                stranded: 0,
            });
        }
        Self { hierarchy, units: Units::default() }
    }

    fn request(&mut self, trace: &Trace, index: usize, last_token: bool) -> SlowRequest {
        let mut path = Vec::new();
        trace.forest.path(trace.requests.node[index], &mut path);
        let chunks: BTreeSet<usize> = self.hierarchy.tiers.iter().map(|t| t.chunk).collect();
        let names = &mut self.hierarchy.ends;
        let units = chunks.into_iter().map(|chunk| (chunk, self.units.read(&path, chunk, names))).collect();
        let input = trace.requests.input_tokens[index];
        let limit = if last_token { input.saturating_sub(1) / BLOCK_TOKENS } else { u32::MAX };
        SlowRequest {
            units,
            limit: limit as usize,
            now_us: trace.requests.arrival_us.as_ref().unwrap()[index],
        }
    }

    /// The events so far with blocks for units.
    fn events(&self) -> Vec<Event> {
        let chunk = |k: usize| self.hierarchy.tiers[k].chunk;
        let block = |k, unit| self.hierarchy.ends[&(chunk(k), unit)];
        self.hierarchy.events.iter().map(|&(k, kind, unit)| (k, kind, block(k, unit))).collect()
    }
}

fn run(trace: &Trace, spec: &ReplaySpec) -> ReplayResult {
    replay(trace, spec, &Progress::default()).unwrap()
}

fn events(result: &ReplayResult) -> Vec<(usize, EventKind, u32)> {
    let e = &result.events;
    (0..e.len()).map(|i| (usize::from(e.tier[i]), e.kind[i], e.block[i])).collect()
}

fn compare_prefix(trace: &Trace, tiers: &[TierSpec], last_token: bool) {
    let spec = ReplaySpec { events: true, per_request: true, last_token, ..ReplaySpec::new(tiers.to_vec()) };
    let result = run(trace, &spec);
    let mut twin = Twin::new(tiers);
    let mut served = Vec::new();
    for index in 0..trace.len() {
        let request = twin.request(trace, index, last_token);
        served.push(twin.hierarchy.serve(&request));
    }
    assert_eq!(events(&result), twin.events());
    let requests = result.requests.as_ref().unwrap();
    for (k, tier) in twin.hierarchy.tiers.iter().enumerate() {
        let want: Vec<u32> = served.iter().map(|s| (s[k].1 - s[k].0) as u32).collect();
        assert_eq!(requests.hit_blocks[k], want, "hits of tier {k}");
        let content: BTreeSet<u32> = result.tiers[k].content.iter().copied().collect();
        let want: BTreeSet<u32> =
            tier.resident.iter().map(|&u| twin.hierarchy.ends[&(tier.chunk, u)]).collect();
        assert_eq!(content, want, "content of tier {k}");
        let chunk = tier.chunk as u64;
        let counters = result.tiers[k].counters;
        assert_eq!(counters.dead_on_arrival, tier.dead * chunk);
        assert_eq!(counters.no_room, tier.no_room * chunk);
        assert_eq!(counters.stranded, tier.stranded);
        assert_eq!(counters.unread_at_end, tier.unread.len() as u64 * chunk);
    }
    // The quick ways without events count the same.
    let quick = run(trace, &ReplaySpec { events: false, ..spec });
    for (a, b) in quick.tiers.iter().zip(&result.tiers) {
        assert_eq!(a, b);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn hierarchies_equal_their_twin(trace in forests(), tiers in tiers(), last_token in any::<bool>()) {
        compare_prefix(&trace, &tiers, last_token);
    }

    #[test]
    fn single_tiers_equal_their_twin(
        trace in forests(),
        policy in policies(),
        admission in filter_specs(),
        capacity in 0u64..30,
        closed in any::<bool>(),
    ) {
        let closure = if closed { Closure::Leaf } else { Closure::None };
        compare_prefix(&trace, &[TierSpec { policy, admission, closure, ..TierSpec::new("t0", capacity) }], false);
    }

    #[test]
    fn object_mode_equals_its_twin(
        trace in forests(),
        policy in policies(),
        admission in filter_specs(),
        capacity in 0u64..30,
    ) {
        let tier = TierSpec { policy, admission, closure: Closure::None, ..TierSpec::new("t0", capacity) };
        let spec = ReplaySpec {
            mode: Mode::Object,
            events: true,
            per_request: true,
            ..ReplaySpec::new(vec![tier.clone()])
        };
        let result = run(&trace, &spec);
        let mut twin = Twin::new(&[tier]);
        let mut want = Vec::new();
        for index in 0..trace.len() {
            let request = twin.request(&trace, index, false);
            want.push(twin.hierarchy.access(&request));
        }
        prop_assert_eq!(events(&result), twin.events());
        let requests = result.requests.as_ref().unwrap();
        let got: Vec<(u32, u32)> =
            requests.hit_blocks[0].iter().copied().zip(requests.usable_hit_blocks.iter().copied()).collect();
        prop_assert_eq!(got, want);
        let slow = &twin.hierarchy.tiers[0];
        let counters = result.tiers[0].counters;
        prop_assert_eq!((counters.dead_on_arrival, counters.stranded), (slow.dead, slow.stranded));
        let quick = run(&trace, &ReplaySpec { events: false, ..spec });
        prop_assert_eq!(&quick.tiers, &result.tiers);
    }

    #[test]
    fn opt_equals_its_twin(trace in forests(), capacity in 0u64..30) {
        let mut paths = Vec::new();
        for &node in &trace.requests.node {
            let mut path = Vec::new();
            trace.forest.path(node, &mut path);
            paths.push(path);
        }
        let tier = |policy: &str| TierSpec { policy: policy.to_owned(), ..TierSpec::new("t", capacity) };
        let spec = ReplaySpec { per_request: true, ..ReplaySpec::new(vec![tier("opt")]) };
        let result = run(&trace, &spec);
        prop_assert_eq!(&result.requests.unwrap().hit_blocks[0], &future::prefix(&paths, capacity as usize));
        for (policy, bypass) in [("opt", true), ("opt(bypass=false)", false)] {
            let spec = ReplaySpec { mode: Mode::Object, ..ReplaySpec::new(vec![tier(policy)]) };
            let counters = run(&trace, &spec).tiers[0].counters;
            let want = future::object(&paths, capacity as usize, bypass);
            prop_assert_eq!((counters.served, counters.usable), want);
        }
    }
}
