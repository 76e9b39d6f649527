//! Runs, ceilings, per-request hits and counters of one tier against the literal twins.

use super::forests::{Sample, cases, distinct, samples};
use crate::Error;
use crate::progress::Progress;
use crate::reference::{hierarchy, stack as literal};
use crate::replay::lru_each;
use crate::stack::{Recorder, ReuseRun, ceiling, pass, slices};
use crate::trace::Node;
use proptest::prelude::*;

#[derive(Default)]
struct Keep {
    runs: Vec<ReuseRun>,
    known: Vec<u32>,
}

impl Recorder for Keep {
    fn run(&mut self, run: ReuseRun) {
        self.runs.push(run);
    }
    fn request(&mut self, request: u32, known_blocks: u32) {
        assert_eq!(request as usize, self.known.len());
        self.known.push(known_blocks);
    }
}

/// Maximal runs of blocks with one owner, as the literal stack has them.
fn runs_of(sample: &Sample) -> Vec<ReuseRun> {
    let mut out: Vec<ReuseRun> = Vec::new();
    for (request, accesses) in literal::accesses(&sample.paths).iter().enumerate() {
        let request = request as u32;
        for (position, access) in accesses.iter().flatten().enumerate() {
            match out.last_mut() {
                Some(run) if run.request == request && run.owner == access.owner => {
                    assert_eq!(access.distance, run.above + run.len + 1);
                    run.len += 1;
                }
                _ => out.push(ReuseRun {
                    request,
                    start: position as u32,
                    len: 1,
                    above: access.distance - 1,
                    owner: access.owner,
                }),
            }
        }
    }
    out
}

/// Asked, served (blocks and tokens), inserted, evicted, resident, dead on arrival, unread at the end.
fn counters_of(sample: &Sample, capacity: usize) -> [u64; 8] {
    let tier = hierarchy::Tier { capacity, fill: hierarchy::Fill::WriteThrough, touch_path: true };
    let outcome = hierarchy::replay(&sample.paths, &[tier]).remove(0);
    [
        outcome.counters.asked,
        outcome.counters.served,
        super::forests::tokens(&sample.trace, &outcome.hits),
        outcome.counters.inserted_compute,
        outcome.counters.evicted,
        outcome.content.len() as u64,
        outcome.counters.dead_on_arrival,
        outcome.counters.unread_at_end,
    ]
}

proptest! {
    #![proptest_config(cases(1500))]

    #[test]
    fn runs_and_known_blocks_equal_a_plain_stack(sample in samples(40)) {
        let mut keep = Keep::default();
        pass(&sample.trace, &mut keep, &Progress::default()).unwrap();
        prop_assert_eq!(keep.runs, runs_of(&sample));
        prop_assert_eq!(&keep.known, &literal::ceiling(&sample.paths));
        prop_assert_eq!(keep.known, ceiling(&sample.trace));
    }
}

proptest! {
    #![proptest_config(cases(40))]

    #[test]
    fn runs_of_longer_traces_equal_a_plain_stack(sample in samples(400)) {
        let mut keep = Keep::default();
        pass(&sample.trace, &mut keep, &Progress::default()).unwrap();
        prop_assert_eq!(keep.runs, runs_of(&sample));
        prop_assert_eq!(keep.known, ceiling(&sample.trace));
    }
}

proptest! {
    #![proptest_config(cases(600))]

    /// Nothing relies on a chain being made by the first request that holds it.
    #[test]
    fn any_nodes_of_a_forest_in_any_order_will_do(
        sample in samples(40),
        picks in prop::collection::vec((any::<prop::sample::Index>(), 0..24_u32), 0..40),
    ) {
        let Sample { mut trace, .. } = sample;
        let nodes = std::mem::take(&mut trace.requests.node);
        let pick = |(from, len): (prop::sample::Index, u32)| {
            if nodes.is_empty() { Node::EMPTY } else { trace.forest.truncate(nodes[from.index(nodes.len())], len) }
        };
        trace.requests.node = picks.into_iter().map(pick).collect();
        let paths = super::forests::paths_of(&trace);
        let sample = Sample { trace, paths };
        let mut keep = Keep::default();
        pass(&sample.trace, &mut keep, &Progress::default()).unwrap();
        prop_assert_eq!(keep.runs, runs_of(&sample));
        prop_assert_eq!(&keep.known, &literal::ceiling(&sample.paths));
        prop_assert_eq!(keep.known, ceiling(&sample.trace));
    }

    #[test]
    fn renaming_changes_nothing(sample in samples(30), key in any::<u64>()) {
        let ids = sample.paths.iter().map(|path| {
            path.iter().map(|&block| u64::from(block).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ key).collect()
        });
        let requests = &sample.trace.requests;
        let other = super::forests::trace_of(
            &ids.collect::<Vec<_>>(),
            requests.input_tokens.clone(),
            5,
            requests.block_tokens.clone(),
            sample.trace.tail,
        );
        let (mut one, mut two) = (Keep::default(), Keep::default());
        pass(&sample.trace, &mut one, &Progress::default()).unwrap();
        pass(&other, &mut two, &Progress::default()).unwrap();
        prop_assert_eq!(one.runs, two.runs);
    }
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn hits_of_every_request_at_every_capacity_equal_a_literal_lru(sample in samples(30)) {
        let capacities: Vec<u64> = (0..=distinct(&sample) + 1).collect();
        let hits = slices(&sample.trace, &capacities, &Progress::default()).unwrap();
        for (&capacity, hits) in capacities.iter().zip(&hits) {
            prop_assert_eq!(hits, &literal::lru(&sample.paths, capacity as usize).0, "capacity {}", capacity);
        }
        // More room never loses a hit, and an endless cache is the ceiling.
        for pair in hits.windows(2) {
            prop_assert!(pair[0].iter().zip(&pair[1]).all(|(small, large)| small <= large));
        }
        prop_assert_eq!(hits.last().unwrap(), &ceiling(&sample.trace));
    }

    #[test]
    fn counters_of_one_tier_equal_a_literal_one(sample in samples(30)) {
        let capacities: Vec<u64> = (0..=distinct(&sample) + 1).collect();
        let all = lru_each(&sample.trace, &capacities, &Progress::default()).unwrap();
        for (&capacity, c) in capacities.iter().zip(&all) {
            let ends = [c.evicted, c.resident, c.dead_on_arrival, c.unread_at_end];
            let got = [&[c.asked, c.served, c.served_tokens, c.inserted_compute], &ends[..]].concat();
            prop_assert_eq!(got, counters_of(&sample, capacity as usize), "capacity {}", capacity);
        }
    }

    #[test]
    fn the_ceiling_total_does_not_depend_on_the_order(sample in samples(30)) {
        let total: u64 = ceiling(&sample.trace).into_iter().map(u64::from).sum();
        let refs: u64 = sample.paths.iter().map(|path| path.len() as u64).sum();
        prop_assert_eq!(total, refs - distinct(&sample));
        let mut backwards = sample.paths.clone();
        backwards.reverse();
        prop_assert_eq!(total, literal::ceiling(&backwards).into_iter().map(u64::from).sum::<u64>());
    }
}

#[test]
fn a_cancelled_pass_stops() {
    let sample = super::forests::trace_of(&[vec![1]], vec![5], 5, vec![], crate::trace::Tail::Ceil);
    let progress = Progress::default();
    progress.cancel();
    assert!(matches!(pass(&sample, &mut (), &progress), Err(Error::Cancelled)));
}

#[test]
fn composed_recorders_see_the_same_runs() {
    let ids = [vec![1, 2, 3], vec![1, 2], vec![], vec![1, 2, 3, 4]];
    let trace = super::forests::trace_of(&ids, vec![15, 10, 3, 20], 5, vec![], crate::trace::Tail::Ceil);
    let (mut one, mut two, mut many) = (Keep::default(), Keep::default(), [Keep::default(), Keep::default()]);
    pass(&trace, &mut (&mut one, (&mut two, &mut many[..])), &Progress::default()).unwrap();
    let run = |request, start, len, above, owner| ReuseRun { request, start, len, above, owner };
    assert_eq!(one.runs, [run(1, 0, 2, 0, 0), run(3, 0, 2, 0, 1), run(3, 2, 1, 2, 0)]);
    assert_eq!(one.known, [0, 2, 0, 3]);
    for other in [&two, &many[0], &many[1]] {
        assert_eq!((&other.runs, &other.known), (&one.runs, &one.known));
    }
}
