//! Tables: reuse runs, reuse times, ratios and growth.

use super::forests::{Sample, cases, distinct, samples, tokens, trace_of};
use crate::progress::Progress;
use crate::reference::stack as literal;
use crate::stack::{
    Bin, Curve, bins_table, ceiling, points_table, ratios, ratios_table, reuse_runs, reuse_time,
    window_growth,
};
use crate::table::{Table, Values};
use crate::trace::Tail;
use proptest::prelude::*;

fn ints<'a>(table: &'a Table, name: &str) -> &'a [i64] {
    match table.column(name) {
        Some(Values::Int(values)) => values,
        other => panic!("column {name}: {other:?}"),
    }
}

/// Growth rows by counting over the requests of each window.
fn slow_growth(sample: &Sample, capacities: &[u64], ends: &[usize]) -> Vec<Vec<i64>> {
    let columns = |end: usize| {
        let paths = &sample.paths[..end];
        let sum = |hits: &[u32]| tokens(&sample.trace, hits) as i64;
        let mut row = vec![
            end as i64,
            sample.trace.requests.input_tokens[..end].iter().map(|&n| i64::from(n)).sum(),
            sum(&literal::ceiling(paths)),
        ];
        row.extend(capacities.iter().map(|&capacity| sum(&literal::lru(paths, capacity as usize).0)));
        let mut blocks: Vec<u32> = paths.iter().flatten().copied().collect();
        blocks.sort_unstable();
        blocks.dedup();
        row.push(blocks.len() as i64);
        row
    };
    ends.iter().map(|&end| columns(end)).collect()
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn reuse_times_fall_in_their_bins(sample in samples(30)) {
        let arrival_us = sample.trace.requests.arrival_us.clone().unwrap();
        let mut want = std::collections::BTreeMap::<u64, (u64, u64)>::new();
        for (request, accesses) in literal::accesses(&sample.paths).iter().enumerate() {
            for (position, access) in accesses.iter().flatten().enumerate() {
                let age = (arrival_us[request] - arrival_us[access.owner as usize]) as u64;
                let covered = |blocks| sample.trace.tokens(request, blocks);
                let bin = want.entry(if age == 0 { 0 } else { 1 << age.ilog2() }).or_default();
                bin.0 += 1;
                bin.1 += covered(position as u32 + 1) - covered(position as u32);
            }
        }
        let bins = reuse_time(&sample.trace, &Progress::default()).unwrap();
        for pair in bins.windows(2) {
            prop_assert_eq!(pair[0].upper, pair[1].lower);
        }
        let used: Vec<_> = bins.iter().filter(|bin| bin.accesses > 0).map(|bin| (bin.lower, (bin.accesses, bin.tokens))).collect();
        prop_assert_eq!(used, want.into_iter().collect::<Vec<_>>());
    }

    #[test]
    fn growth_counts_each_prefix_of_the_trace(sample in samples(30), windows in 1..12_usize, untimed in any::<bool>()) {
        let mut sample = sample;
        let arrival_us = sample.trace.requests.arrival_us.clone().unwrap();
        let (first, last) = (arrival_us.first().copied().unwrap_or(0), arrival_us.last().copied().unwrap_or(0));
        let ends: Vec<usize> = (1..=windows).map(|k| if untimed || first == last {
            arrival_us.len() * k / windows
        } else {
            let until = first + (last - first) * k as i64 / windows as i64;
            arrival_us.iter().filter(|&&at| at <= until).count()
        }).collect();
        if untimed {
            sample.trace.requests.arrival_us = None;
        }
        let capacities = [4, 12];
        let table = window_growth(&sample.trace, &capacities, windows, &Progress::default()).unwrap();
        let names = ["requests", "input_tokens", "ceiling_hit_tokens", "hit_tokens_0", "hit_tokens_1", "distinct_blocks"];
        let got: Vec<Vec<i64>> = (0..windows).map(|k| names.iter().map(|name| ints(&table, name)[k]).collect()).collect();
        prop_assert_eq!(got, slow_growth(&sample, &capacities, &ends));
        prop_assert_eq!(ints(&table, "window"), (1..=windows as i64).collect::<Vec<_>>());
        prop_assert_eq!(*ints(&table, "distinct_blocks").last().unwrap() as u64, distinct(&sample));
    }
}

#[test]
fn reuse_runs_of_four_requests() {
    let ids = [vec![1, 2, 3], vec![1, 2, 4], vec![9, 10, 11], vec![1, 2, 3]];
    let mut trace = trace_of(&ids, vec![48; 4], 16, vec![], Tail::Ceil);
    let untimed = reuse_runs(&trace, &Progress::default()).unwrap();
    assert_eq!(untimed.column("age_us"), Some(&Values::MaybeInt(vec![None; 3])));
    assert_eq!(reuse_time(&trace, &Progress::default()).unwrap(), []);
    trace.requests.arrival_us = Some(vec![0, 1_000_000, 5_000_000, 9_000_000]);
    let want = Table::new()
        .with("request", Values::Int(vec![1, 3, 3]))
        .with("start", Values::Int(vec![0, 0, 2]))
        .with("length", Values::Int(vec![2, 2, 1]))
        .with("distance_blocks", Values::Int(vec![0, 3, 6]))
        .with("previous_request", Values::Int(vec![0, 1, 0]))
        .with("age_us", Values::MaybeInt(vec![Some(1_000_000), Some(8_000_000), Some(9_000_000)]));
    assert_eq!(reuse_runs(&trace, &Progress::default()).unwrap(), want);
    let bins = bins_table(&[Bin { lower: 0, upper: u64::MAX, accesses: 2, tokens: 3 }]);
    assert_eq!(ints(&bins, "upper"), [i64::MAX]);
    let curve = Curve::of(&trace, Some(2), &Progress::default()).unwrap();
    let table = points_table(curve.steps(), true);
    assert_eq!(ints(&table, "capacity_blocks"), [1, 2, 4, 5, 7]);
    assert_eq!(ints(&table, "hit_blocks"), [1, 2, 3, 4, 5]);
    assert_eq!(
        table.column("warm_hit_tokens"),
        Some(&Values::MaybeInt([0, 0, 16, 32, 48].map(Some).to_vec()))
    );
}

#[test]
fn ratios_of_a_trace_with_every_kind_of_request() {
    // Full blocks of 16: a cold request, a full repeat, a repeat with a partial tail, an empty one, a miss.
    let ids = [vec![1, 2], vec![1, 2], vec![1, 2, 3], vec![], vec![7], vec![1, 8]];
    let trace = trace_of(&ids, vec![32, 32, 40, 0, 5, 20], 16, vec![], Tail::Ceil);
    let hits = ceiling(&trace);
    assert_eq!(hits, [0, 2, 2, 0, 0, 1]);
    let got = ratios(&trace, &hits);
    let counts: Vec<_> =
        got.iter().map(|ratio| (ratio.name, ratio.numerator.zip(ratio.denominator))).collect();
    assert_eq!(
        counts,
        [
            ("token_hit_ratio", Some((80, 129))),
            ("token_hit_ratio_upper", Some((32 + 40 + 20, 129))),
            ("block_hit_ratio", Some((5, 10))),
            ("full_block_hit_ratio", Some((5, 7))),
            ("request_hit_ratio", Some((3, 6))),
            ("request_full_hit_ratio", Some((1, 6))),
            ("mean_request_token_hit_ratio", None),
        ]
    );
    let mean = (1.0 + 32.0 / 40.0 + 16.0 / 20.0) / 6.0;
    assert!((got[6].value.unwrap() - mean).abs() < 1e-15);
    assert_eq!(got[0].value, Some(80.0 / 129.0));
    assert_eq!(ratios_table(&got).columns.len(), 5);
}

#[test]
fn an_empty_trace_has_no_ratio_and_no_curve() {
    let trace = trace_of(&[], vec![], 16, vec![], Tail::Floor);
    assert!(ratios(&trace, &[]).iter().all(|ratio| ratio.value.is_none()));
    let curve = Curve::of(&trace, None, &Progress::default()).unwrap();
    assert_eq!((curve.breakpoints(), curve.last_capacity_blocks(), curve.steps().count()), (0, 0, 0));
    assert_eq!(curve.reuse_distance(), []);
    let growth = window_growth(&trace, &[1], 2, &Progress::default()).unwrap();
    assert_eq!(ints(&growth, "requests"), [0, 0]);
    assert!(window_growth(&trace, &[], 0, &Progress::default()).is_err());
}
