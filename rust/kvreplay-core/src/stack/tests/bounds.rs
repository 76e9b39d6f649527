//! OPT against Belady by brute force, and the order policy <= OPT <= ceiling.

use super::forests::{cases, distinct, samples, tokens};
use crate::progress::Progress;
use crate::reference::{opt as literal, stack};
use crate::stack::{Opt, Point, ceiling, opt};
use proptest::prelude::*;

proptest! {
    #![proptest_config(cases(500))]

    #[test]
    fn opt_equals_brute_force(sample in samples(26)) {
        let progress = Progress::default();
        let fast = Opt::of(&sample.trace, &progress).unwrap();
        let top = ceiling(&sample.trace).iter().map(|&hit| u64::from(hit)).sum::<u64>();
        for capacity in 0..=distinct(&sample) + 1 {
            let hits = fast.hits(capacity, &progress).unwrap();
            prop_assert_eq!(&hits, &literal::hits(&sample.paths, capacity as usize), "capacity {}", capacity);
            let total = |hits: &[u32]| hits.iter().map(|&hit| u64::from(hit)).sum::<u64>();
            prop_assert!(total(&stack::lru(&sample.paths, capacity as usize).0) <= total(&hits));
            prop_assert!(total(&hits) <= top);
        }
    }

    #[test]
    fn opt_points_sum_the_hits(sample in samples(26), warmup in prop::option::of(0..30_usize)) {
        let capacities = [3, 0, 11, 5, u64::MAX];
        let points = opt(&sample.trace, &capacities, warmup, &Progress::default()).unwrap();
        for (&capacity_blocks, point) in capacities.iter().zip(points) {
            let mut hits = literal::hits(&sample.paths, usize::try_from(capacity_blocks).unwrap());
            let hit_blocks = hits.iter().map(|&hit| u64::from(hit)).sum();
            let hit_tokens = tokens(&sample.trace, &hits);
            let warm_hit_tokens = warmup.map(|first| {
                hits.iter_mut().take(first).for_each(|hit| *hit = 0);
                tokens(&sample.trace, &hits)
            });
            prop_assert_eq!(point, Point { capacity_blocks, hit_blocks, hit_tokens, warm_hit_tokens });
        }
    }
}
