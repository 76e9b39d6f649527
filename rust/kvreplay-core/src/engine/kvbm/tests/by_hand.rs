//! Hand-worked traces, every event of every request. The null block is one of the GPU's blocks.

use crate::engine::tests::steps::{Step, Steps};
use crate::engine::{Profile, Release};
use crate::hierarchy::TierSpec;

fn tiers(capacities: &[(&str, u64)]) -> Vec<TierSpec> {
    capacities.iter().map(|&(name, blocks)| TierSpec::new(name, blocks)).collect()
}

fn steps(capacities: &[(&str, u64)], options: &[(&str, &str)]) -> Steps {
    Steps::new("kvbm", Release(1, 6, 1), options, &tiers(capacities), 64, 4).unwrap()
}

/// Full blocks of four tokens, and one token more.
fn path(listed: &[u32]) -> Step {
    Step::new(listed, 4, 1)
}

/// Full blocks at a second.
fn at(listed: &[u32], second: i64) -> Step {
    Step { now_us: Some(second * 1_000_000), ..Step::new(listed, 4, 1) }
}

/// What a request did below the GPU.
fn below(steps: &mut Steps, step: &Step) -> String {
    let mut done = steps.run(step);
    done.events.retain(|event| !event.contains(" gpu "));
    done.text()
}

const V2: (&str, &str) = ("engine", "v2");

#[test]
fn v1_evicts_by_last_release_tail_first() {
    let mut steps = steps(&[("gpu", 5), ("cpu", 4)], &[]);
    let first = "0+0: insert gpu 1, insert gpu 2, insert gpu 3, insert cpu 1, insert cpu 2, insert cpu 3";
    assert_eq!(steps.text(&path(&[1, 2, 3])), first);
    assert_eq!(
        below(&mut steps, &path(&[4, 5, 6])),
        "0+0: evict cpu 3, evict cpu 2, insert cpu 4, insert cpu 5, insert cpu 6"
    );
    assert_eq!(steps.content(1), [4, 5, 6, 1]);
    // The load gives block 1 back before blocks 2 and 3 are stored: it is older than they are.
    let third = "0+4: hit cpu 1, evict cpu 6, evict cpu 5, insert cpu 2, insert cpu 3";
    assert_eq!(below(&mut steps, &path(&[1, 2, 3])), third);
    assert_eq!(steps.content(1), [2, 3, 1, 4]);
    assert_eq!(below(&mut steps, &path(&[1, 2, 3])), "12+0: ", "the GPU's hits are not stored again");
    steps.finish();
}

#[test]
fn v1_head_first_leaves_tails() {
    let mut steps = steps(&[("gpu", 5), ("cpu", 4)], &[("release_order", "head_first")]);
    steps.run(&path(&[1, 2, 3]));
    assert_eq!(below(&mut steps, &path(&[4, 5])), "0+0: evict cpu 1, insert cpu 4, insert cpu 5");
    assert_eq!(steps.content(1), [5, 4, 3, 2]);
    steps.finish();
}

#[test]
fn v1_gives_the_last_block_up_and_evicts_for_the_copy_it_throws_away() {
    let mut steps = steps(&[("gpu", 4), ("cpu", 6)], &[]);
    let full = |listed: &[u32]| Step::new(listed, 4, 0);
    steps.run(&full(&[1, 2, 3]));
    steps.run(&full(&[4, 5, 6]));
    assert_eq!(steps.content(1), [4, 5, 6, 1, 2, 3]);
    // Block 3 was matched too (so it is recent), then computed again; its copy cost block 6.
    assert_eq!(below(&mut steps, &full(&[1, 2, 3])), "0+8: hit cpu 1, hit cpu 2, evict cpu 6");
    assert_eq!(steps.content(1), [3, 1, 2, 4, 5]);
    assert_eq!(below(&mut steps, &full(&[7])), "0+0: insert cpu 7", "the empty block is used first");
    steps.finish();
}

#[test]
fn v1_stores_all_blocks_of_a_step_or_none() {
    let mut steps = steps(&[("gpu", 8), ("cpu", 2)], &[]);
    assert_eq!(below(&mut steps, &path(&[1, 2, 3])), "0+0: ");
    // Decoded blocks come one by one and fit.
    let decodes = Step { decoded: vec![5, 6, 7], decoded_tokens: 13, ..Step::new(&[1, 2, 3], 4, 0) };
    let all = "8+0: insert cpu 3, insert cpu 5, evict cpu 3, insert cpu 6, evict cpu 5, insert cpu 7";
    assert_eq!(below(&mut steps, &decodes), all);
    steps.finish();
}

#[test]
fn v1_can_evict_the_very_block_it_stores() {
    let mut steps = steps(&[("gpu", 4), ("cpu", 3)], &[]);
    for (listed, content) in
        [([1, 2], &[1, 2][..]), ([5, 6], &[5, 6, 1]), ([1, 2], &[2, 1, 5]), ([7, 8], &[7, 8, 2])]
    {
        steps.run(&path(&listed));
        assert_eq!(steps.content(1), content);
    }
    // Block 2 lies behind the missing block 1; room is made before anybody looks whether it is there.
    let last = "0+0: evict cpu 2, evict cpu 8, insert cpu 1, insert cpu 2";
    assert_eq!(below(&mut steps, &path(&[1, 2])), last);
    steps.finish();
}

#[test]
fn v1_writes_to_disk_at_the_second_offer_and_reads_past_the_host() {
    let tiers = [("gpu", 4), ("cpu", 2), ("disk", 4)];
    let mut steps = steps(&tiers, &[]);
    let first = "0+0+0: insert cpu 1, insert cpu 2, reject disk 1, reject disk 2";
    assert_eq!(below(&mut steps, &at(&[1, 2], 0)), first);
    steps.run(&at(&[3, 4], 1));
    let again = "0+0+0: evict cpu 4, evict cpu 3, insert cpu 1, insert cpu 2, insert disk 1, insert disk 2";
    assert_eq!(below(&mut steps, &at(&[1, 2], 599)), again);
    assert_eq!(steps.content(2), [1, 2]);
    steps.run(&at(&[5, 6], 600));
    assert_eq!(below(&mut steps, &at(&[1, 2], 601)), "0+0+8: hit disk 1, hit disk 2");
    assert_eq!(steps.content(1), [5, 6], "the host is not filled");
    // Block 3 was offered once at second 1 and forgotten at second 600.
    let late = "0+0+0: evict cpu 6, evict cpu 5, insert cpu 3, insert cpu 4, reject disk 3, reject disk 4";
    assert_eq!(below(&mut steps, &at(&[3, 4], 602)), late);
    steps.finish();
}

#[test]
fn v1_renews_on_disk_what_it_offers_again() {
    let mut steps = steps(&[("gpu", 4), ("cpu", 2), ("disk", 4)], &[("disk_filter", "false")]);
    assert_eq!(
        below(&mut steps, &path(&[1, 2])),
        "0+0+0: insert cpu 1, insert cpu 2, insert disk 1, insert disk 2"
    );
    steps.run(&path(&[5, 6]));
    assert_eq!(steps.content(2), [5, 6, 1, 2]);
    // The disk gives block 2 up as the last one; stored on the host again, it is renewed on the disk.
    let full = Step::new(&[1, 2], 4, 0);
    assert_eq!(below(&mut steps, &full), "0+0+4: hit disk 1, evict cpu 6, insert cpu 2");
    assert_eq!(steps.content(2), [2, 1, 5, 6]);
    steps.finish();
}

#[test]
fn without_a_host_the_gpu_writes_to_the_disk() {
    for engine in ["v1", "v2"] {
        let mut steps = steps(&[("gpu", 4), ("disk", 4)], &[("engine", engine)]);
        assert_eq!(below(&mut steps, &path(&[1, 2])), "0+0: insert disk 1, insert disk 2");
        steps.run(&path(&[5, 6]));
        assert_eq!(below(&mut steps, &path(&[1, 2])), "0+8: hit disk 1, hit disk 2");
        steps.finish();
    }
}

#[test]
fn v1_gives_a_full_transfer_back_tail_first() {
    let options = [("disk_filter", "false"), ("transfer_batch_blocks", "2")];
    let mut steps = steps(&[("gpu", 8), ("cpu", 4), ("disk", 4)], &options);
    steps.run(&path(&[1, 2, 3]));
    // Blocks 1 and 2 end together, block 3 after them.
    assert_eq!(steps.content(2), [3, 1, 2]);
    steps.finish();
}

#[test]
fn v2_evicts_leaves_and_then_their_parents() {
    let mut steps = steps(&[("gpu", 4), ("cpu", 3)], &[V2]);
    steps.run(&path(&[1, 2]));
    assert_eq!(below(&mut steps, &path(&[3, 4])), "0+0: evict cpu 2, insert cpu 3, insert cpu 4");
    assert_eq!(steps.content(1), [3, 4, 1]);
    assert_eq!(below(&mut steps, &path(&[1, 2])), "0+4: hit cpu 1, evict cpu 4, insert cpu 2");
    assert_eq!(steps.content(1), [1, 2, 3]);
    steps.finish();
}

#[test]
fn v2_lineage_variants_differ_where_a_parent_becomes_a_leaf() {
    for (inactive, last) in [("lineage", "1"), ("lineage_fifo", "4")] {
        let mut steps = steps(&[("gpu", 4), ("cpu", 4)], &[V2, ("inactive", inactive)]);
        steps.run(&path(&[1, 2]));
        steps.run(&path(&[3, 4]));
        assert_eq!(below(&mut steps, &path(&[5])), "0+0: evict cpu 2, insert cpu 5");
        assert_eq!(below(&mut steps, &path(&[6])), format!("0+0: evict cpu {last}, insert cpu 6"));
        steps.finish();
    }
}

#[test]
fn v2_lru_evicts_in_order_of_release() {
    for (order, victim) in [("head_first", "1"), ("tail_first", "2")] {
        let options = [V2, ("inactive", "lru"), ("release_order", order)];
        let mut steps = steps(&[("gpu", 4), ("cpu", 3)], &options);
        steps.run(&path(&[1, 2]));
        let text = format!("0+0: evict cpu {victim}, insert cpu 3, insert cpu 4");
        assert_eq!(below(&mut steps, &path(&[3, 4])), text);
        steps.finish();
    }
}

#[test]
fn v2_multi_lru_keeps_what_is_touched_often() {
    let options = [V2, ("inactive", "multi_lru"), ("multi_lru_thresholds", "2 3 4")];
    let mut steps = steps(&[("gpu", 3), ("cpu", 3)], &options);
    for block in [1, 2, 1, 3] {
        steps.run(&path(&[block]));
    }
    // Block 1 was registered and matched: two touches, one level above the others.
    assert_eq!(steps.content(1), [1, 3, 2]);
    for (block, victim) in [(4, 2), (5, 3), (6, 4)] {
        let text = format!("0+0: evict cpu {victim}, insert cpu {block}");
        assert_eq!(below(&mut steps, &path(&[block])), text);
    }
    steps.finish();
}

#[test]
fn v2_copies_disk_hits_to_the_host() {
    let mut steps = steps(&[("gpu", 4), ("cpu", 2), ("disk", 4)], &[V2]);
    assert_eq!(
        below(&mut steps, &path(&[1, 2])),
        "0+0+0: insert cpu 1, insert cpu 2, insert disk 1, insert disk 2"
    );
    steps.run(&path(&[3, 4]));
    let up = "0+0+8: hit disk 1, hit disk 2, evict cpu 4, evict cpu 3, insert cpu 1, insert cpu 2";
    assert_eq!(below(&mut steps, &path(&[1, 2])), up);
    assert_eq!([steps.content(1), steps.content(2)], [vec![1, 2], vec![1, 2, 3, 4]]);
    steps.finish();
}

#[test]
fn v2_uses_the_host_alone_where_disk_hits_do_not_fit() {
    let mut steps = steps(&[("gpu", 5), ("cpu", 2), ("disk", 8)], &[V2, ("transfer_batch_blocks", "1")]);
    steps.run(&path(&[1, 2, 3]));
    assert_eq!([steps.content(1), steps.content(2)], [vec![3, 1], vec![1, 2, 3]]);
    steps.run(&path(&[7, 8, 9]));
    // The disk has all three blocks, the host has room for two.
    let lost = "0+0+0: evict cpu 7, insert cpu 1, evict cpu 9, insert cpu 2, evict cpu 2, insert cpu 3";
    assert_eq!(below(&mut steps, &path(&[1, 2, 3])), lost);
    steps.finish();
}

#[test]
fn v2_presence_lfu_writes_at_the_second_registration() {
    let mut steps = steps(&[("gpu", 4), ("cpu", 2), ("disk", 4)], &[V2, ("g2_to_g3", "presence_lfu")]);
    assert_eq!(
        below(&mut steps, &path(&[1, 2])),
        "0+0+0: insert cpu 1, insert cpu 2, reject disk 1, reject disk 2"
    );
    steps.run(&path(&[3, 4]));
    let again = "0+0+0: evict cpu 4, evict cpu 3, insert cpu 1, insert cpu 2, insert disk 1, insert disk 2";
    assert_eq!(below(&mut steps, &path(&[1, 2])), again);
    steps.finish();
}

#[test]
fn v2_offers_the_gpus_hits_again() {
    for (engine, text) in
        [("v1", "8+0: "), ("v2", "8+0: evict cpu 4, evict cpu 3, insert cpu 1, insert cpu 2")]
    {
        let mut steps = steps(&[("gpu", 9), ("cpu", 2)], &[("engine", engine)]);
        steps.run(&path(&[1, 2]));
        steps.run(&path(&[3, 4]));
        assert_eq!(below(&mut steps, &path(&[1, 2])), text);
        steps.finish();
    }
}

#[test]
fn v2_pass_all_writes_what_is_there() {
    let mut steps = steps(&[("gpu", 9), ("cpu", 2)], &[V2, ("g1_to_g2", "pass_all")]);
    steps.run(&path(&[1, 2]));
    // Both are evicted for their own new copies.
    assert_eq!(
        below(&mut steps, &path(&[1, 2])),
        "8+0: evict cpu 2, evict cpu 1, insert cpu 1, insert cpu 2"
    );
    steps.finish();
}

#[test]
fn what_can_never_fit_changes_nothing() {
    for engine in ["v1", "v2"] {
        let mut steps = steps(&[("gpu", 3), ("cpu", 4)], &[("engine", engine)]);
        steps.run(&Step::new(&[1, 2], 4, 0));
        assert_eq!(steps.text(&path(&[1, 2])), "0+0: ");
        assert_eq!(steps.text(&Step::default()), "0+0: ");
        assert_eq!([steps.content(0), steps.content(1)], [vec![1, 2], vec![1, 2]]);
        steps.finish();
    }
}

#[test]
fn bad_configurations_are_refused() {
    let error = |capacities: &[(&str, u64)], block_tokens, options: &[(&str, &str)]| {
        let made = Steps::new("kvbm", Release(1, 6, 1), options, &tiers(capacities), 64, block_tokens);
        made.err().expect("was taken").to_string()
    };
    let all = [("gpu", 4), ("cpu", 4), ("disk", 4)];
    assert!(error(&all, 4, &[("engine", "v3")]).contains("v3"));
    assert!(
        error(&all, 4, &[V2, ("inactive", "multi_lru"), ("multi_lru_thresholds", "3 3 4")]).contains("3 3 4")
    );
    assert!(error(&all, 4, &[("disk_filter_interval", "0 offers")]).contains("0 offers"));
    assert!(error(&all, 4, &[("release_order", "random")]).contains("random"));
    assert!(error(&all, 12, &[]).contains("power of two"));
    assert!(error(&[("cpu", 4)], 4, &[]).contains("needs the tier gpu"));
}

#[test]
fn versions_resolve_and_have_rules() {
    for (text, name) in [("kvbm", "kvbm@1.6.1"), ("kvbm@1", "kvbm@1.6.1"), ("kvbm@1.4", "kvbm@1.4.2")] {
        let profile = Profile::parse(text, &[]).unwrap();
        assert_eq!(profile.name(), name);
        assert!(profile.rules().len() > 8);
        assert!(profile.rules().iter().all(|rule| !rule.rule.is_empty() && !rule.source.is_empty()));
    }
    let error = Profile::parse("kvbm@9", &[]).unwrap_err().to_string();
    assert!(error.contains("kvbm@9"), "{error}");
}
