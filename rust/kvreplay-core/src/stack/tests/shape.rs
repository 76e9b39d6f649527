//! Long sessions: what the joined paths are for.

use super::forests::{paths_of, trace_of};
use crate::progress::Progress;
use crate::reference::stack as literal;
use crate::stack::paths::{NO_PATH, Paths};
use crate::stack::slices;
use crate::trace::{Tail, Trace};

/// A trace of `requests` paths that the turns of one session make: `next(turn, path so far)` edits the path.
fn session(requests: usize, mut next: impl FnMut(usize, &mut Vec<u64>)) -> Trace {
    let (mut path, mut ids) = (Vec::new(), Vec::new());
    for turn in 0..requests {
        next(turn, &mut path);
        ids.push(path.clone());
    }
    let input = ids.iter().map(|path: &Vec<u64>| path.len() as u32 * 5).collect();
    trace_of(&ids, input, 5, vec![], Tail::Ceil)
}

/// The largest number of joined paths that any request crosses.
fn most_pieces(trace: &Trace) -> usize {
    let paths = Paths::new(&trace.forest, &trace.requests.node);
    let pieces = |&node| {
        let mut at = paths.of(&trace.forest, node);
        let mut count = 0;
        while at != NO_PATH {
            count += 1;
            at = paths.above(at);
        }
        count
    };
    trace.requests.node.iter().map(pieces).max().unwrap_or(0)
}

fn hits_equal_literal(trace: &Trace) {
    let paths = paths_of(trace);
    for capacity in [1, 7, 40, 300] {
        let hits = slices(trace, &[capacity], &Progress::default()).unwrap();
        assert_eq!(hits[0], literal::lru(&paths, capacity as usize).0);
    }
}

#[test]
fn a_session_that_only_grows_is_one_path() {
    let trace = session(400, |turn, path| path.push(turn as u64));
    assert_eq!((trace.forest.chains(), most_pieces(&trace)), (400, 1));
    hits_equal_literal(&trace);
}

#[test]
fn a_session_that_replaces_its_partial_last_block_is_one_path_with_short_tails() {
    let mut fresh = 0;
    let mut push = |path: &mut Vec<u64>, blocks: usize| {
        path.extend((0..blocks as u64).map(|i| fresh + i));
        fresh += blocks as u64;
    };
    let trace = session(300, |_, path| {
        path.pop();
        push(path, 3);
    });
    assert_eq!((trace.forest.chains(), most_pieces(&trace)), (300, 2));
    hits_equal_literal(&trace);
}

#[test]
fn branching_at_every_turn_crosses_few_paths() {
    // A binary tree: the path of a leaf is its bits from the top, the leaves in an order that mixes branches.
    let path = |leaf: u64| (1..9).map(|depth| (leaf >> (8 - depth)) | (1 << depth)).collect();
    let ids: Vec<Vec<u64>> = (0..256_u64).map(|i| path(i * 167 % 256)).collect();
    let trace = trace_of(&ids, vec![40; 256], 5, vec![], Tail::Ceil);
    assert!(trace.forest.blocks() == 510 && most_pieces(&trace) <= 8);
    hits_equal_literal(&trace);
}
