//! Stack slices against the literal hierarchy, wherever they are said to be exact.

use super::forests::{cases, distinct, samples};
use crate::progress::Progress;
use crate::reference::hierarchy;
use crate::stack::{Fill, SliceTier, exact_slices, slices};
use proptest::prelude::*;

fn literal(tier: SliceTier) -> hierarchy::Tier {
    let (fill, touch_path) = match tier.fill {
        Fill::WriteThrough => (hierarchy::Fill::WriteThrough, true),
        Fill::WriteThroughServed => (hierarchy::Fill::WriteThrough, false),
        Fill::WriteBack => (hierarchy::Fill::WriteBack, true),
        Fill::Victim => (hierarchy::Fill::Victim, true),
    };
    hierarchy::Tier { capacity: tier.capacity_blocks as usize, fill, touch_path }
}

fn fills() -> impl Strategy<Value = Fill> {
    prop_oneof![
        4 => Just(Fill::Victim),
        4 => Just(Fill::WriteThrough),
        1 => Just(Fill::WriteThroughServed),
        1 => Just(Fill::WriteBack)
    ]
}

proptest! {
    #![proptest_config(cases(3000))]

    #[test]
    fn exact_slices_are_exact(
        sample in samples(40),
        tiers in prop::collection::vec((0..60_u64, fills()), 1..5),
        roomy in any::<bool>(),
    ) {
        let longest = sample.trace.totals().longest_path;
        let mut cover = 0;
        let tiers: Vec<SliceTier> = tiers
            .iter()
            .enumerate()
            .map(|(k, &(capacity, fill))| {
                // Most write-through tiers are larger than what lies above, most first tiers fit every request.
                let capacity_blocks = match fill {
                    _ if k == 0 && roomy => u64::from(longest) + capacity / 8,
                    Fill::WriteThrough if roomy => cover + capacity / 4,
                    _ => capacity / 2,
                };
                cover += capacity_blocks;
                SliceTier { capacity_blocks, fill }
            })
            .collect();
        if let Some(covers) = exact_slices(&tiers, longest) {
            let hits = slices(&sample.trace, &covers, &Progress::default()).unwrap();
            let plain: Vec<_> = tiers.iter().map(|&tier| literal(tier)).collect();
            let outcomes = hierarchy::replay(&sample.paths, &plain);
            let mut above = vec![0; sample.trace.len()];
            for (k, (upto, outcome)) in hits.iter().zip(outcomes).enumerate() {
                let served: Vec<u32> = upto.iter().zip(&above).map(|(upto, above)| upto - above).collect();
                prop_assert_eq!(served, outcome.hits, "tier {}", k);
                above.clone_from(upto);
                let held = covers[k] - if tiers[k].fill == Fill::Victim && k > 0 { covers[k - 1] } else { 0 };
                prop_assert!(outcome.content.len() as u64 <= held.min(distinct(&sample)));
            }
        }
    }
}

#[test]
fn only_what_is_proved_is_said_to_be_exact() {
    let tier = |capacity_blocks, fill| SliceTier { capacity_blocks, fill };
    let gpu = tier(10, Fill::WriteThrough);
    assert_eq!(exact_slices(&[], 5), None);
    assert_eq!(exact_slices(&[gpu], 50), Some(vec![10]));
    assert_eq!(exact_slices(&[gpu, tier(7, Fill::Victim)], 10), Some(vec![10, 17]));
    assert_eq!(exact_slices(&[gpu, tier(7, Fill::Victim)], 11), None);
    assert_eq!(exact_slices(&[gpu, tier(10, Fill::WriteThrough)], 11), Some(vec![10, 10]));
    assert_eq!(exact_slices(&[gpu, tier(9, Fill::WriteThrough)], 5), None);
    assert_eq!(exact_slices(&[gpu, tier(20, Fill::WriteThroughServed)], 5), None);
    assert_eq!(exact_slices(&[gpu, tier(20, Fill::WriteBack)], 5), None);
    let deep = [gpu, tier(5, Fill::Victim), tier(20, Fill::WriteThrough), tier(u64::MAX - 20, Fill::Victim)];
    assert_eq!(exact_slices(&deep, 10), Some(vec![10, 15, 20, u64::MAX]));
    assert_eq!(exact_slices(&[gpu, tier(u64::MAX, Fill::Victim)], 10), None);
    let hollow = [gpu, tier(0, Fill::Victim), tier(8, Fill::Victim)];
    assert_eq!(exact_slices(&hollow[..2], 10), Some(vec![10, 10]));
    assert_eq!(exact_slices(&hollow, 10), None);
}
