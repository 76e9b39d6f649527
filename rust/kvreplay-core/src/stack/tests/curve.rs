//! The curve at every capacity against sums of literal hits.

use super::forests::{cases, distinct, samples, tokens};
use crate::progress::Progress;
use crate::reference::stack as literal;
use crate::stack::{Bin, Curve, Point};
use proptest::prelude::*;

/// The curve by counting: at `capacities`, with the requests from `warmup` on counted as warm.
fn slow(sample: &super::forests::Sample, capacities: &[u64], warmup: Option<usize>) -> Vec<Point> {
    let point = |&capacity_blocks: &u64| {
        let mut hits = literal::lru(&sample.paths, capacity_blocks as usize).0;
        let hit_blocks = hits.iter().map(|&hit| u64::from(hit)).sum();
        let hit_tokens = tokens(&sample.trace, &hits);
        let warm_hit_tokens = warmup.map(|first| {
            hits.iter_mut().take(first).for_each(|hit| *hit = 0);
            tokens(&sample.trace, &hits)
        });
        Point { capacity_blocks, hit_blocks, hit_tokens, warm_hit_tokens }
    };
    capacities.iter().map(point).collect()
}

proptest! {
    #![proptest_config(cases(400))]

    #[test]
    fn every_point_equals_literal_sums(sample in samples(30), warmup in prop::option::of(0..32_usize), turn in 0..1000_usize) {
        let mut capacities: Vec<u64> = (0..=distinct(&sample) + 1).collect();
        let shift = turn % capacities.len();
        capacities.rotate_left(shift);
        let curve = Curve::of(&sample.trace, warmup, &Progress::default()).unwrap();
        let want = slow(&sample, &capacities, warmup);
        prop_assert_eq!(curve.at(&capacities), want.clone());
        let endless = curve.at(&[u64::MAX])[0];
        let last = slow(&sample, &[distinct(&sample)], warmup)[0];
        prop_assert_eq!(endless, Point { capacity_blocks: u64::MAX, ..last });
    }

    #[test]
    fn steps_are_the_points_where_the_curve_rises(sample in samples(40), warmup in prop::option::of(0..32_usize)) {
        let curve = Curve::of(&sample.trace, warmup, &Progress::default()).unwrap();
        let capacities: Vec<u64> = (0..=distinct(&sample) + 1).collect();
        let points = curve.at(&capacities);
        let rises = points.windows(2).filter(|pair| {
            pair[1].hit_blocks > pair[0].hit_blocks || pair[1].hit_tokens > pair[0].hit_tokens
        });
        let rises: Vec<Point> = rises.map(|pair| pair[1]).collect();
        prop_assert_eq!(curve.breakpoints(), rises.len() as u64);
        prop_assert_eq!(curve.last_capacity_blocks(), rises.last().map_or(0, |point| point.capacity_blocks));
        prop_assert_eq!(curve.steps().collect::<Vec<_>>(), rises);
    }

    #[test]
    fn distances_fall_in_their_bins(sample in samples(30)) {
        let mut bins: Vec<Bin> = Vec::new();
        for (request, accesses) in literal::accesses(&sample.paths).iter().enumerate() {
            for (position, access) in accesses.iter().flatten().enumerate() {
                let bin = access.distance.ilog2() as usize;
                while bins.len() <= bin {
                    let lower = 1 << bins.len();
                    bins.push(Bin { lower, upper: 2 * lower, accesses: 0, tokens: 0 });
                }
                let covered = |blocks| sample.trace.tokens(request, blocks);
                bins[bin].accesses += 1;
                bins[bin].tokens += covered(position as u32 + 1) - covered(position as u32);
            }
        }
        let curve = Curve::of(&sample.trace, None, &Progress::default()).unwrap();
        prop_assert_eq!(curve.reuse_distance(), bins);
    }
}
