//! vLLM's ARC, step by step.

use super::{Lab, cpu, gpu};
use crate::engine::vllm::arc::Arc;
use crate::hierarchy::TierSpec;

fn arc(chunks: u64) -> TierSpec {
    TierSpec { policy: "arc".to_owned(), ..cpu(chunks) }
}

fn target(lab: &Lab<Arc>) -> f64 {
    lab.model.cpu.as_ref().unwrap().1.policy().target()
}

#[test]
fn a_request_counts_once_and_inserts_go_to_t1() {
    let mut lab = Lab::<Arc>::new((33, 0), &[arc(2)], &[]);
    lab.serve(&[1, 2]);
    assert_eq!(lab.lists(), [vec![2, 1], vec![], vec![], vec![]]);
    // A hit is a second use: T2.
    assert_eq!(lab.serve(&[1]), [4]);
    assert_eq!(lab.lists(), [vec![2], vec![1], vec![], vec![]]);
    lab.serve(&[3]);
    assert_eq!(lab.lists(), [vec![3], vec![1], vec![2], vec![]]);
    // The ghost of 2 raises the target to 1, T1 has one chunk and gives it; 2 goes to T1 all the same.
    assert_eq!(lab.serve(&[1, 2]), [4]);
    assert_eq!(lab.lists(), [vec![2], vec![1], vec![3], vec![]]);
    assert!((target(&lab) - 1.0).abs() < f64::EPSILON);
    // Now the target is 2 and T1 is below it: T2 gives.
    lab.serve(&[3]);
    assert_eq!(lab.lists(), [vec![2, 3], vec![], vec![], vec![1]]);
    assert!((target(&lab) - 2.0).abs() < f64::EPSILON);
    // A ghost of B2 lowers it again.
    lab.serve(&[1]);
    assert_eq!(lab.lists(), [vec![3, 1], vec![], vec![2], vec![]]);
    assert!((target(&lab) - 1.0).abs() < f64::EPSILON);
}

#[test]
fn touches_promote_and_adapt_up_to_0_30() {
    let mut lab = Lab::<Arc>::new((30, 0), &[arc(2)], &[]);
    // Written, then touched by the same call: it stays in T1, tail first.
    lab.serve(&[1, 2]);
    assert_eq!(lab.lists(), [vec![2, 1], vec![], vec![], vec![]]);
    // A look-up touches what is there, also without a load behind it.
    lab.serve(&[1]);
    assert_eq!(lab.lists(), [vec![2], vec![1], vec![], vec![]]);
    lab.serve(&[3]);
    assert_eq!(lab.lists(), [vec![3], vec![1], vec![2], vec![]]);
    // 2 is a ghost: the look-up adapts; the store after it finds 2 in T1.
    lab.serve(&[2]);
    assert_eq!(lab.lists(), [vec![2], vec![1], vec![3], vec![]]);
    assert!((target(&lab) - 1.0).abs() < f64::EPSILON);
}

/// T1 holds 1, T2 holds 2, the target is 2; then 2 and 4 are offered with 2 on the GPU.
fn below_target(release: (u16, u16)) -> (Vec<Vec<u32>>, f64) {
    let mut lab = Lab::<Arc>::new(release, &[gpu(30), arc(2)], &[]);
    for path in [1, 2, 3, 1, 2] {
        lab.serve(&[path]);
    }
    assert_eq!(lab.lists(), [vec![1, 2], vec![], vec![3], vec![]]);
    lab.serve(&[2]);
    assert_eq!(lab.lists(), [vec![1], vec![2], vec![3], vec![]]);
    assert_eq!(lab.serve_tokens(&[2, 4], 9, &[], 0), [4, 0]);
    (lab.lists(), target(&lab))
}

#[test]
fn t1_below_its_target_gives_only_from_0_30_on() {
    assert_eq!(below_target((29, 0)), (vec![vec![1], vec![2], vec![3], vec![]], 2.0));
    assert_eq!(below_target((30, 0)), (vec![vec![4], vec![2], vec![3, 1], vec![]], 2.0));
}

#[test]
fn what_was_chosen_is_lost_when_there_is_not_enough_up_to_0_18() {
    let run = |release| {
        let mut lab = Lab::<Arc>::new(release, &[gpu(30), arc(2)], &[("offload_decode", "true")]);
        lab.serve(&[1]);
        lab.serve(&[2]);
        // Two chunks are needed, 2 is spared (from 0.18 on) as the GPU has it: only 1 can leave.
        assert_eq!(lab.serve_tokens(&[2, 3, 4], 13, &[], 0), [4, 0]);
        lab.lists()
    };
    assert_eq!(run((22, 1)), [vec![1], vec![2], vec![], vec![]]);
    assert_eq!(run((18, 1)), [vec![], vec![2], vec![1], vec![]]);
}
