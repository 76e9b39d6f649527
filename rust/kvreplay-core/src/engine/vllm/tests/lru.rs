//! LRU of the CPU tier, step by step, in releases that differ.

use super::{Lab, cpu, gpu};
use crate::engine::vllm::lru::Lru;
use crate::hierarchy::{EventKind, TierSpec};

#[test]
fn what_a_request_uses_is_most_recent_and_its_tail_goes_first() {
    let mut lab = Lab::<Lru>::new((33, 0), &[cpu(4)], &[]);
    assert_eq!(lab.serve(&[1, 2, 3]), [0]);
    assert_eq!(lab.lists(), [[3, 2, 1]]);
    // Without a GPU all tokens may come from the CPU.
    assert_eq!(lab.serve(&[1, 2]), [8]);
    assert_eq!(lab.lists(), [[3, 2, 1]]);
    assert_eq!(lab.serve(&[4, 5]), [0]);
    assert_eq!(lab.lists(), [[2, 1, 5, 4]]);
    // 1 is loaded and stays; 6 takes the place of 2.
    assert_eq!(lab.serve(&[1, 6]), [4]);
    assert_eq!(lab.lists(), [[5, 4, 6, 1]]);
    // More than fits: refused, the chunks that are there are used all the same.
    assert_eq!(lab.serve(&[1, 6, 7, 8, 9, 10, 11]), [8]);
    assert_eq!(lab.lists(), [[5, 4, 6, 1]]);
    let (evicted, counters) = lab.finish(EventKind::Evict);
    assert_eq!(evicted, [(2, 0, 3), (3, 0, 2)]);
    assert_eq!((counters[0].no_room, counters[0].inserted_compute), (5, 6));
}

#[test]
fn recency_counts_at_use_from_0_33_and_at_the_end_before() {
    let run = |minor| {
        let mut lab = Lab::<Lru>::new((minor, 0), &[cpu(3)], &[]);
        lab.serve(&[1]);
        lab.serve(&[2, 3]);
        assert_eq!(lab.lists(), [[1, 3, 2]]);
        assert_eq!(lab.serve(&[1, 4, 5]), [4]);
        lab.lists()
    };
    assert_eq!(run(33), [[5, 4, 1]]);
    // The loaded chunk still had its old place when the store needed room.
    assert_eq!((run(31), run(32)), (vec![vec![2, 5, 4]], vec![vec![2, 5, 4]]));
}

#[test]
fn a_transfer_moves_chunks_when_it_ends_in_0_24_to_0_30() {
    let run = |minor, patch| {
        let mut lab = Lab::<Lru>::new((minor, patch), &[cpu(5)], &[]);
        lab.serve(&[1, 2, 3]);
        let stored = lab.lists();
        lab.serve(&[1, 2, 4]);
        (stored, lab.lists())
    };
    // Touched tail first, then the new ones come back head first: the head of a prompt is its first victim.
    assert_eq!(run(30, 0), (vec![vec![1, 2, 3]], vec![vec![3, 2, 1, 4]]));
    assert_eq!(run(24, 0), run(30, 0));
    assert_eq!(run(23, 0), (vec![vec![3, 2, 1]], vec![vec![3, 4, 2, 1]]));
    assert_eq!(run(11, 2), run(23, 0));
}

#[test]
fn a_store_may_evict_its_own_offer_up_to_0_14() {
    let run = |minor, patch| {
        let mut lab = Lab::<Lru>::new((minor, patch), &[gpu(20), cpu(3)], &[]);
        lab.serve(&[1, 2, 3]);
        // The GPU has all three, nothing is loaded, all four are offered and one more slot is needed.
        assert_eq!(lab.serve_tokens(&[1, 2, 3, 4], 17, &[], 0), [12, 0]);
        lab.lists()
    };
    assert_eq!(run(14, 1), [[4, 2, 1]]);
    assert_eq!(run(18, 1), [[3, 2, 1]]);
}

#[test]
fn decoded_chunks_are_offered_before_0_23_and_when_asked_for() {
    let run = |release, options: &[(&str, &str)]| {
        let mut lab = Lab::<Lru>::new(release, &[gpu(20), cpu(5)], options);
        lab.serve_tokens(&[1], 6, &[2, 3], 8);
        lab.lists()
    };
    assert_eq!(run((33, 0), &[]), [[1]]);
    assert_eq!(run((33, 0), &[("offload_decode", "true")]), [[3, 2, 1]]);
    // Each block is a step, and each step that stores touches the whole path.
    assert_eq!(run((22, 1), &[]), [[3, 2, 1]]);
}

#[test]
fn chunks_are_whole_and_named_by_their_last_block() {
    let tier = TierSpec { chunk_blocks: 2, ..TierSpec::new("cpu", 9) };
    let mut lab = Lab::<Lru>::new((33, 0), &[gpu(4), tier], &[]);
    // Nine blocks are four chunks; five blocks are two of them and a rest.
    assert_eq!(lab.serve(&[1, 2, 3]), [0, 0]);
    assert_eq!(lab.lists(), [[2]]);
    lab.serve(&[9, 8, 7]);
    assert_eq!(lab.lists(), [[2, 8]]);
    // The GPU lost all; one chunk comes from the CPU, the third block is computed.
    assert_eq!(lab.serve(&[1, 2, 3]), [0, 8]);
    // Less than a whole chunk behind the GPU hit: no load, and the offer starts at the head again.
    assert_eq!(lab.serve(&[1, 2, 3]), [8, 0]);
    let (hits, counters) = lab.finish(EventKind::Hit);
    assert_eq!(hits, [(2, 1, 2), (3, 0, 1), (3, 0, 2)]);
    assert_eq!((counters[1].inserted_compute, counters[1].served, counters[1].already_held), (4, 2, 2));
}
