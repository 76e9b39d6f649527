//! `store_threshold` and what it counts in which release.

use super::{Lab, cpu};
use crate::engine::vllm::lru::Lru;
use crate::hierarchy::{EventKind, TierSpec};

fn tier(chunks: u64, admission: &str) -> TierSpec {
    TierSpec { admission: admission.to_owned(), ..cpu(chunks) }
}

/// Stored blocks of each of four equal requests.
fn stored(release: (u16, u16), admission: &str) -> Vec<Vec<u32>> {
    let mut lab = Lab::<Lru>::new(release, &[tier(9, admission)], &[]);
    for _ in 0..4 {
        lab.serve(&[1, 2, 3]);
    }
    let (inserted, _) = lab.finish(EventKind::Insert);
    (0..4).map(|i| inserted.iter().filter(|(at, ..)| *at == i).map(|(.., block)| *block).collect()).collect()
}

#[test]
fn offers_count_from_0_29_and_look_ups_before() {
    let all_at_once = [vec![], vec![1, 2, 3], vec![], vec![]];
    assert_eq!(stored((33, 0), "store_threshold(2)"), all_at_once);
    assert_eq!(stored((29, 0), "store_threshold(2)"), all_at_once);
    // One by one up to the first one missing: the prompt fills from its head, a chunk every second time.
    assert_eq!(stored((22, 1), "store_threshold(2)"), [vec![], vec![1], vec![], vec![2]]);
    assert_eq!(stored((28, 0), "store_threshold(2)"), stored((22, 1), "store_threshold(2)"));
    // The whole list was counted.
    assert_eq!(stored((18, 1), "store_threshold(2)"), all_at_once);
    for off in ["store_threshold(0)", "store_threshold(1)", "always"] {
        assert_eq!(stored((33, 0), off), [vec![1, 2, 3], vec![], vec![], vec![]], "{off}");
    }
}

#[test]
fn a_full_table_keeps_the_offer_it_counts_from_0_30_on() {
    // Two entries for three chunks: the third gets in when it is offered alone, behind the hit of the others.
    assert_eq!(stored((33, 0), "store_threshold(2, tracker=2)"), [vec![], vec![1, 2], vec![], vec![3]]);
    // One by one they push each other out.
    assert!(stored((29, 0), "store_threshold(2, tracker=2)").concat().is_empty());
}

#[test]
fn the_least_recent_entry_is_forgotten() {
    let mut lab = Lab::<Lru>::new((33, 0), &[tier(9, "store_threshold(2, tracker=3)")], &[]);
    for path in [&[1, 2][..], &[3], &[1], &[4], &[2], &[3]] {
        lab.serve(path);
    }
    // 1 is stored at its second offer; 4 pushes out 2, 2 pushes out 3, so neither counts to two.
    assert_eq!(lab.lists(), [[1]]);
    let (rejected, counters) = lab.finish(EventKind::Reject);
    assert_eq!(rejected.iter().map(|(.., block)| *block).collect::<Vec<_>>(), [1, 2, 3, 4, 2, 3]);
    assert_eq!((counters[0].offered, counters[0].rejected_filter, counters[0].admitted), (7, 6, 1));
}
