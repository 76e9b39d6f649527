//! Secondary tiers: everything the CPU stores goes there, and comes back through the CPU.

use super::{Lab, cpu};
use crate::engine::vllm::arc::Arc;
use crate::engine::vllm::lru::Lru;
use crate::hierarchy::{EventKind, TierSpec};

fn files(chunks: u64) -> TierSpec {
    TierSpec { policy: "fs".to_owned(), ..TierSpec::new("files", chunks) }
}

fn objects(chunks: u64) -> TierSpec {
    TierSpec { policy: "obj".to_owned(), ..TierSpec::new("objects", chunks) }
}

#[test]
fn chunks_come_back_through_the_cpu() {
    let mut lab = Lab::<Lru>::new((33, 0), &[cpu(2), files(9)], &[]);
    lab.serve(&[1, 2]);
    lab.serve(&[3, 4]);
    assert_eq!(lab.lists(), [[4, 3]]);
    // Both are read from files; each read takes a slot of the CPU, whose content leaves.
    assert_eq!(lab.serve(&[1, 2]), [0, 8]);
    assert_eq!(lab.lists(), [[2, 1]]);
    // The next time the CPU has them. 5 needs room, and 2 is the deepest of what the request used.
    assert_eq!(lab.serve(&[1, 2, 5]), [8, 0]);
    assert_eq!(lab.lists(), [[5, 1]]);
    let (events, counters) = lab.finish(EventKind::Insert);
    let files: Vec<u32> = events.iter().filter(|(_, tier, _)| *tier == 1).map(|(.., block)| *block).collect();
    assert_eq!(files, [1, 2, 3, 4, 5]);
    assert_eq!(
        (counters[0].inserted_promotion, counters[0].inserted_compute, counters[0].evicted),
        (2, 5, 5)
    );
    assert_eq!((counters[1].evicted, counters[1].resident, counters[1].served), (0, 5, 2));
}

#[test]
fn a_promotion_may_evict_a_chunk_of_its_own_run_which_is_read_again() {
    let mut lab = Lab::<Lru>::new((33, 0), &[cpu(3), files(9)], &[]);
    lab.serve(&[1, 2, 3]);
    lab.serve(&[4]);
    lab.serve(&[5]);
    assert_eq!(lab.lists(), [[1, 4, 5]]);
    // First look-up: 1 is there, 2 and 3 are read and push out 1 and 4. Second one: 1 is read, too, for 5.
    assert_eq!(lab.serve(&[1, 2, 3]), [0, 12]);
    assert_eq!(lab.lists(), [[3, 2, 1]]);
    let (evicted, _) = lab.finish(EventKind::Evict);
    assert_eq!(evicted[2..], [(3, 0, 1), (3, 0, 4), (3, 0, 5)]);
}

#[test]
fn a_run_longer_than_the_cpu_ends_where_it_would_evict_itself() {
    let mut lab = Lab::<Lru>::new((33, 0), &[cpu(2), files(9)], &[]);
    lab.serve(&[1, 2]);
    lab.serve(&[1, 2, 3]);
    lab.serve(&[1, 9]);
    assert_eq!(lab.lists(), [[9, 1]]);
    // 1 is there, 2 and 3 push out 9 and 1, 1 pushes out 3, and 3 is not read a second time: vLLM would never end.
    assert_eq!(lab.serve(&[1, 2, 3]), [0, 8]);
    assert_eq!(lab.lists(), [[3, 1]]);
}

#[test]
fn the_first_tier_that_has_a_chunk_serves_it_and_a_full_medium_takes_no_more() {
    let mut lab = Lab::<Lru>::new((33, 0), &[cpu(1), files(1), objects(2)], &[]);
    lab.serve(&[1]);
    lab.serve(&[2]);
    lab.serve(&[3]);
    assert_eq!(lab.serve(&[1]), [0, 4, 0]);
    assert_eq!(lab.serve(&[2]), [0, 0, 4]);
    assert_eq!(lab.serve(&[3]), [0, 0, 0]);
    let (_, counters) = lab.finish(EventKind::Insert);
    assert_eq!(counters.iter().map(|tier| tier.resident).collect::<Vec<_>>(), [1, 1, 2]);
    assert_eq!(counters.iter().map(|tier| tier.no_room).collect::<Vec<_>>(), [0, 3, 2]);
}

#[test]
fn chunks_stored_again_are_not_written_again() {
    let mut lab = Lab::<Lru>::new((22, 1), &[cpu(1), files(9)], &[]);
    for path in [1, 2, 1] {
        lab.serve(&[path]);
    }
    let (_, counters) = lab.finish(EventKind::Insert);
    // The third one was promoted: nothing is stored, so nothing is offered to the files.
    assert_eq!((counters[1].inserted_compute, counters[1].already_held), (2, 0));
}

#[test]
fn a_promoted_chunk_was_written_by_its_request_and_stays_in_t1() {
    let arc = TierSpec { policy: "arc".to_owned(), ..cpu(2) };
    let mut lab = Lab::<Arc>::new((33, 0), &[arc, files(9)], &[]);
    lab.serve(&[1, 2]);
    lab.serve(&[3]);
    assert_eq!(lab.lists(), [vec![1, 3], vec![], vec![2], vec![]]);
    // 1 is there and used again. 2 is a ghost: the target is 1, the oldest of T1 leaves for it, which is 1; so
    // that is read, too, and pushes out 3.
    assert_eq!(lab.serve(&[1, 2]), [0, 8]);
    assert_eq!(lab.lists(), [vec![2, 1], vec![], vec![3], vec![]]);
    // Now both are there.
    assert_eq!(lab.serve(&[1, 2]), [8, 0]);
    assert_eq!(lab.lists(), [vec![], vec![2, 1], vec![3], vec![]]);
}
