//! The GPU's free queue, step by step.

use super::{Lab, gpu};
use crate::engine::vllm::lru::Lru;
use crate::hierarchy::EventKind;

#[test]
fn tails_leave_first_and_scratch_blocks_are_used_again() {
    let mut lab = Lab::<Lru>::new((33, 0), &[gpu(5)], &[]);
    // Two full blocks and two tokens: the third slot gets no hash and is freed to the front.
    assert_eq!(lab.serve_tokens(&[1, 2], 10, &[], 0), [0]);
    assert_eq!(lab.queue(), [None, Some(2), Some(1)]);
    // The last token is always computed: one block hits, the other gets a second copy in the scratch slot.
    assert_eq!(lab.serve(&[1, 2]), [4]);
    assert_eq!(lab.queue(), [Some(2), Some(2), Some(1)]);
    // The never-used slot goes first, then both copies of 2.
    assert_eq!(lab.serve(&[3, 4, 5]), [0]);
    assert_eq!(lab.queue(), [Some(1), Some(5), Some(4), Some(3)]);
    // One token more than two blocks: both may hit, 2 is gone.
    assert_eq!(lab.serve_tokens(&[1, 2], 9, &[], 0), [4]);
    assert_eq!(lab.queue(), [None, Some(3), Some(2), Some(1)]);
    let (evicted, counters) = lab.finish(EventKind::Evict);
    assert_eq!(evicted, [(2, 0, 2), (2, 0, 2), (3, 0, 5), (3, 0, 4)]);
    assert_eq!((counters[0].inserted_compute, counters[0].resident, counters[0].peak), (7, 3, 4));
}

#[test]
fn scratch_blocks_age_like_others_before_0_23() {
    let mut lab = Lab::<Lru>::new((22, 1), &[gpu(5)], &[]);
    lab.serve_tokens(&[1, 2], 10, &[], 0);
    assert_eq!(lab.queue(), [None, Some(2), Some(1)]);
    lab.serve(&[1, 2]);
    // The second copy of 2 took the never-used slot.
    assert_eq!(lab.queue(), [None, Some(2), Some(2), Some(1)]);
    lab.serve(&[3]);
    assert_eq!(lab.queue(), [Some(2), Some(2), Some(1), Some(3)]);
}

#[test]
fn decoded_blocks_join_with_or_without_a_name() {
    let mut lab = Lab::<Lru>::new((33, 0), &[gpu(7)], &[]);
    // Six prompt tokens; the decoded ones fill block 2 (named) and block 9.
    assert_eq!(lab.serve_tokens(&[1], 6, &[2, 9], 8), [0]);
    assert_eq!(lab.queue(), [None, Some(9), Some(2), Some(1)]);
    assert_eq!(lab.serve_tokens(&[1, 2, 9], 13, &[], 0), [12]);
    // Ten decoded tokens without names fill two blocks nobody finds; with the partial one that is all of the pool.
    assert_eq!(lab.serve_tokens(&[1], 6, &[], 10), [4]);
    assert_eq!(lab.queue(), [None, Some(9), Some(2), None, None, None, Some(1)][1..]);
    let (_, counters) = lab.finish(EventKind::Evict);
    // Three named and three unnamed blocks; 1 was served to both later requests.
    assert_eq!((counters[0].resident, counters[0].served, counters[0].unread_at_end), (6, 4, 3));
}

#[test]
fn a_prompt_that_cannot_fit_changes_nothing() {
    let mut lab = Lab::<Lru>::new((33, 0), &[gpu(4)], &[]);
    lab.serve(&[1, 2]);
    assert_eq!(lab.serve_tokens(&[1, 2, 3], 13, &[], 0), [0]);
    assert_eq!(lab.queue(), [Some(2), Some(1)]);
    // Decoding ends where the pool does.
    assert_eq!(lab.serve_tokens(&[1, 2], 9, &[], 100), [8]);
    assert_eq!(lab.queue(), [None, Some(2), Some(1)]);
}
