//! The radix cache by hand: the tree after each request.

use super::{Run, shape, tier, told};
use crate::engine::{EngineModel, EngineRequest};
use crate::error::Error;

fn run(pages: u64, policy: &str) -> Run {
    Run::new(&[tier("gpu", pages, policy)], 20, &[]).unwrap()
}

/// Serves a prompt; tokens served, then the tree.
fn step(run: &mut Run, path: &[u32]) -> (u64, String) {
    let hit = run.serve(path, 0, &[], 0)[0];
    (hit, shape(&run.model))
}

fn is(hit: u64, shape: &str) -> (u64, String) {
    (hit, shape.to_owned())
}

#[test]
fn whole_leaves_go_and_their_parents_follow() {
    let mut run = run(8, "lru");
    assert_eq!(step(&mut run, &[0, 1, 2, 3]), is(0, "0-3"));
    assert_eq!(step(&mut run, &[0, 1, 4, 5]), is(2, "0-1{2-3 4-5}"));
    // One page is missing, two leave: the leaf accessed longest ago.
    assert_eq!(step(&mut run, &[6, 7, 8]), is(0, "0-1{4-5} 6-8"));
    // Four are missing: the leaf, then its parent, which is older than 6-8.
    assert_eq!(step(&mut run, &[9, 10, 11, 12, 13]), is(0, "6-8 9-13"));
    assert_eq!(run.model.content(0), [9, 10, 11, 12, 13, 6, 7, 8]);
    let (events, counters) = run.finish();
    assert_eq!(told(&events, 2), "gpu-2 gpu-3 gpu+6 gpu+7 gpu+8");
    assert_eq!(told(&events, 3), "gpu-4 gpu-5 gpu-0 gpu-1 gpu+9 gpu+10 gpu+11 gpu+12 gpu+13");
    let of = &counters[0];
    assert_eq!((of.inserted_compute, of.evicted, of.resident, of.peak), (14, 6, 8, 8));
    assert_eq!((of.served, of.asked, of.dead_on_arrival), (2, 16, 4));
}

#[test]
fn the_last_page_of_a_repeated_prompt_is_not_locked() {
    let mut run = run(2, "lru");
    assert_eq!(step(&mut run, &[0, 1]), is(0, "0-1"));
    // One page is looked up, the other is computed again; to make room for it its own copy goes.
    assert_eq!(step(&mut run, &[0, 1]), is(1, "0{1}"));
    let (events, _) = run.finish();
    assert_eq!(told(&events, 1), "gpu-1 gpu+1");
}

#[test]
fn with_room_the_page_computed_again_is_given_back() {
    let mut run = run(3, "lru");
    step(&mut run, &[0, 1]);
    assert_eq!(step(&mut run, &[0, 1]), is(1, "0{1}"));
    assert_eq!(run.model.gpu.used, 2);
    let (events, _) = run.finish();
    assert_eq!(told(&events, 1), "");
}

#[test]
fn strategies_choose_different_leaves() {
    // 0-1 is inserted twice and 2-3 once; 4-5 comes last. Then two pages are missing.
    for (policy, left) in [
        ("lru", "0-1 4-5 6-7"),
        ("mru", "0-1 2-3 6-7"),
        ("fifo", "2-3 4-5 6-7"),
        ("filo", "0-1 2-3 6-7"),
        ("lfu", "0-1 4-5 6-7"),
        ("slru", "0-1 4-5 6-7"),
        ("slru(1)", "0-1 4-5 6-7"),
        ("priority", "0-1 4-5 6-7"),
    ] {
        let mut run = Run::new(&[tier("gpu", 6, policy)], 20, &[("last_token", "false")]).unwrap();
        for path in [[0, 1], [2, 3], [0, 1], [4, 5]] {
            step(&mut run, &path);
        }
        assert_eq!(step(&mut run, &[6, 7]).1, left, "{policy}");
    }
}

#[test]
fn a_protected_leaf_outlives_a_younger_one() {
    // 0-1 was used twice long ago, 2-3 and 4-5 once each.
    for (policy, left) in [("slru", "0-1 4-5 6-7"), ("slru(3)", "2-3 4-5 6-7"), ("lfu", "0-1 4-5 6-7")] {
        let mut run = Run::new(&[tier("gpu", 6, policy)], 20, &[("last_token", "false")]).unwrap();
        for path in [[0, 1], [0, 1], [2, 3], [4, 5]] {
            step(&mut run, &path);
        }
        assert_eq!(step(&mut run, &[6, 7]).1, left, "{policy}");
    }
}

#[test]
fn the_two_trees_date_a_split_differently() {
    for (tree, content) in [("radix", [6, 7, 0, 1, 4, 5]), ("unified", [6, 7, 4, 5, 0, 1])] {
        let options = [("tree", tree), ("last_token", "false")];
        let mut run = Run::new(&[tier("gpu", 6, "fifo")], 20, &options).unwrap();
        // 0-3 is split when half of it is asked for, and 2-3 leaves. Is 0-1 as old as 0-3 or as the split?
        for path in [&[0, 1, 2, 3][..], &[4, 5], &[0, 1], &[6, 7]] {
            step(&mut run, path);
        }
        assert_eq!(shape(&run.model), "0-1 4-5 6-7");
        assert_eq!(run.model.content(0), content, "{tree}");
    }
}

#[test]
fn decoded_pages_are_a_node_below_the_prompt() {
    let mut run = run(6, "lru");
    assert_eq!(run.serve(&[0, 1], 0, &[], 2), [0]);
    assert_eq!(shape(&run.model), "0-1{?2}");
    assert_eq!(step(&mut run, &[0, 1, 2]), is(2, "0-1{?2 2}"));
    assert_eq!(step(&mut run, &[3, 4]), is(0, "0-1{2} 3-4"));
    // What the trace names is found: the next turn repeats the answer 6, 7.
    assert_eq!(run.serve(&[5], 0, &[6, 7], 0), [0]);
    assert_eq!(shape(&run.model), "3-4 5{6-7}");
    assert_eq!(step(&mut run, &[5, 6, 7, 8]), is(3, "3-4 5{6-7{8}}"));
}

#[test]
fn priorities_put_prompts_above_what_they_decoded() {
    let mut run = run(6, "priority");
    run.serve(&[0, 1], 0, &[], 1);
    step(&mut run, &[2, 3]);
    // ?1 goes first, then 2-3: the prompt 0-1 is older, but above a decoded page.
    assert_eq!(step(&mut run, &[4, 5]), is(0, "0-1 2-3 4-5"));
    assert_eq!(step(&mut run, &[6]), is(0, "0-1 4-5 6"));
}

#[test]
fn pages_without_a_name_take_room_and_are_never_found() {
    let mut run = run(6, "lru");
    assert_eq!(run.serve(&[0], 2, &[], 0), [0]);
    assert_eq!(shape(&run.model), "0?2");
    assert_eq!(run.serve(&[0], 2, &[], 0), [1]);
    assert_eq!(shape(&run.model), "0{?2 ?2}");
    assert_eq!(run.model.gpu.used, 5);
    // What is decoded behind them is below them.
    assert_eq!(run.serve(&[0], 1, &[], 1), [1]);
    assert_eq!(shape(&run.model), "0{?2 ?1{?1}}");
}

#[test]
fn a_prompt_that_cannot_fit_changes_nothing() {
    let mut run = run(3, "lru");
    step(&mut run, &[0, 1, 2]);
    assert_eq!(step(&mut run, &[0, 1, 2, 3]), is(0, "0-2"));
    assert_eq!(run.serve(&[0], 3, &[], 0), [0]);
    assert_eq!(shape(&run.model), "0-2");
    // What does not fit beside a prompt is not generated.
    assert_eq!(run.serve(&[0, 1], 0, &[], 100), [1]);
    assert_eq!(shape(&run.model), "0{1{?1}}");
}

#[test]
fn a_pool_of_next_to_nothing_holds_nothing() {
    for pages in [0, 1] {
        let mut run = run(pages, "lru");
        assert_eq!(step(&mut run, &[0, 1]), is(0, ""));
        assert_eq!(step(&mut run, &[]), is(0, ""));
    }
}

#[test]
fn partial_pages_count_only_where_asked() {
    // 5 tokens in pages of 2, of which the trace names 3: the third one is partial.
    let request = |decoded_tokens| EngineRequest {
        index: 0,
        listed: &[0, 1, 2],
        prompt_tokens: 5,
        decoded: &[],
        decoded_tokens,
        block_tokens: 2,
        now_us: None,
    };
    for (listed, shapes) in [("false", ["0-1", "0-1{?1}"]), ("true", ["0-2", "0-1{2 ?1}"])] {
        let options = [("listed_paths", listed), ("last_token", "false")];
        let mut run = Run::new(&[tier("gpu", 9, "lru")], 20, &options).unwrap();
        assert_eq!(run.serve_request(&request(0)), [0]);
        assert_eq!(shape(&run.model), shapes[0]);
        // A partial page that counts is worth the tokens it has.
        assert_eq!(run.serve_request(&request(2)), [if listed == "true" { 5 } else { 4 }]);
        assert_eq!(shape(&run.model), shapes[1]);
    }
}

#[test]
fn what_sglang_does_not_have_is_refused() {
    for (tiers, options, what) in [
        (vec![tier("cpu", 4, "lru")], vec![], "SGLang without a tier \"gpu\""),
        (vec![tier("gpu", 4, "lru")], vec![("tree", "cpp")], "sglang: tree=\"cpp\" is not valid"),
        (vec![tier("gpu", 4, "lru")], vec![("last_token", "1")], "sglang: last_token=\"1\" is not valid"),
        (vec![tier("gpu", 4, "slru(x)")], vec![], "slru: protected_threshold=x is out of range"),
    ] {
        let Err(Error::Config { message, hint }) = Run::new(&tiers, 4, &options) else {
            panic!("{what}: taken");
        };
        assert_eq!(message, what);
        assert!(!hint.is_empty());
    }
}
