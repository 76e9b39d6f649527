//! Hand-worked traces, every event of every request.

use crate::engine::tests::steps::{Step, Steps};
use crate::engine::{Profile, Release};
use crate::hierarchy::TierSpec;

const V1: Release = Release(1, 0, 0);

fn tiers(capacities: &[u64]) -> Vec<TierSpec> {
    ["gpu", "cpu", "disk"].iter().zip(capacities).map(|(name, &blocks)| TierSpec::new(name, blocks)).collect()
}

fn steps(release: Release, capacities: &[u64], options: &[(&str, &str)]) -> Steps {
    Steps::new("trtllm", release, options, &tiers(capacities), 64, 4).unwrap()
}

/// Full blocks of four tokens, and one token more that is always computed.
fn path(listed: &[u32]) -> Step {
    Step::new(listed, 4, 1)
}

/// A prompt of `tokens` tokens that lists blocks, the last one perhaps in part.
fn prompt(listed: &[u32], tokens: u64) -> Step {
    Step { listed: listed.to_vec(), prompt_tokens: tokens, ..Step::default() }
}

/// A prompt of full blocks at a second.
fn at(listed: &[u32], seconds: f64) -> Step {
    Step { now_us: Some((seconds * 1e6) as i64), ..Step::new(listed, 4, 0) }
}

#[test]
fn tails_leave_before_heads() {
    let mut steps = steps(V1, &[4], &[]);
    assert_eq!(steps.text(&path(&[1, 2, 3])), "0: insert gpu 1, insert gpu 2, insert gpu 3");
    assert_eq!(steps.content(0), [1, 2, 3]);
    // The nameless last block is the first to be used again, then block 3.
    assert_eq!(steps.text(&path(&[1, 4])), "4: hit gpu 1, evict gpu 3, insert gpu 4");
    assert_eq!(steps.content(0), [1, 4, 2]);
    let all = "0: evict gpu 2, evict gpu 4, evict gpu 1, insert gpu 5, insert gpu 6, insert gpu 7";
    assert_eq!(steps.text(&path(&[5, 6, 7])), all);
    steps.finish();
}

#[test]
fn descendants_leave_the_tree_and_stay_in_their_queues() {
    let mut steps = steps(V1, &[3], &[("priority", "10"), ("priority_tokens", "4")]);
    assert_eq!(steps.text(&prompt(&[1, 2], 8)), "0: insert gpu 1, insert gpu 2");
    // Block 1 has a low priority and is taken even before the block that was never used; block 2 cannot be
    // found without it.
    assert_eq!(steps.text(&path(&[3])), "0: evict gpu 2, evict gpu 1, insert gpu 3");
    assert_eq!(steps.content(0), [3]);
    assert_eq!(steps.text(&prompt(&[1, 2], 8)), "0: evict gpu 3, insert gpu 1, insert gpu 2");
    steps.finish();
}

#[test]
fn the_last_token_is_computed_and_the_block_before_it_reused_in_part() {
    let mut steps = steps(V1, &[4], &[]);
    steps.run(&prompt(&[1, 2], 8));
    // A leaf nobody needs: its first three tokens are kept and the block is written into.
    assert_eq!(steps.text(&prompt(&[1, 2], 8)), "7: hit gpu 1, hit gpu 2, evict gpu 2, insert gpu 2");
    assert_eq!(steps.content(0), [1, 2]);
    steps.finish();
}

#[test]
fn a_part_of_a_block_with_children_is_copied() {
    let trace = |options: &[(&str, &str)]| {
        let mut steps = steps(V1, &[5], options);
        steps.run(&prompt(&[1, 2, 3], 12));
        let text = steps.text(&prompt(&[1, 2], 8));
        assert_eq!(steps.content(0), [1, 2, 3], "the copy is a second block 2 that nobody finds");
        // The copy and block 1 were released last, so blocks 3 and 2 go before them.
        let next = steps.text(&prompt(&[4, 5, 6], 12));
        assert_eq!(next, "0: evict gpu 3, evict gpu 2, insert gpu 4, insert gpu 5, insert gpu 6");
        steps.finish();
        text
    };
    assert_eq!(trace(&[]), "7: hit gpu 1, hit gpu 2");
    assert_eq!(trace(&[("copy_on_partial_reuse", "false")]), "4: hit gpu 1");
    assert_eq!(trace(&[("partial_reuse", "false")]), "4: hit gpu 1");
}

#[test]
fn a_partial_last_block_is_stored_and_found_by_its_leading_tokens() {
    let mut steps = steps(V1, &[4], &[]);
    assert_eq!(steps.text(&prompt(&[1, 9], 6)), "0: insert gpu 1, insert gpu 9");
    assert_eq!(steps.text(&prompt(&[1, 9], 6)), "5: hit gpu 1, hit gpu 9, evict gpu 9, insert gpu 9");
    assert_eq!(steps.content(0), [1, 9]);
    // Its only token is the last one: nothing to look for.
    assert_eq!(steps.text(&prompt(&[1, 8], 5)), "4: hit gpu 1, insert gpu 8");
    steps.finish();
}

#[test]
fn decoded_tokens_fill_the_prompts_last_block() {
    let mut steps = steps(V1, &[4], &[]);
    let private = Step { decoded_tokens: 2, ..prompt(&[1, 9], 6) };
    assert_eq!(steps.text(&private), "0: insert gpu 1");
    assert_eq!(steps.text(&private), "5: hit gpu 1", "one of its two tokens is the last one");
    let listed = Step { decoded: vec![7], decoded_tokens: 2, ..prompt(&[2, 9], 6) };
    assert_eq!(steps.text(&listed), "0: insert gpu 2, insert gpu 7");
    assert_eq!(steps.text(&prompt(&[2, 7], 9)), "8: hit gpu 2, hit gpu 7", "the whole block has a name");
    // It is found by its prompt part too, and copied since a block hangs below it now.
    assert_eq!(steps.text(&listed), "5: hit gpu 2, hit gpu 7, evict gpu 1");
    steps.finish();
}

#[test]
fn a_hit_on_the_host_can_lose_its_own_continuation() {
    let first = "0+0: evict gpu 2, insert cpu 2, evict gpu 1, insert cpu 1, insert gpu 3, insert gpu 4";
    let up = "0+4: hit cpu 1, evict cpu 2, evict gpu 4, insert cpu 4, move cpu 1, insert gpu 1, ";
    for (slot, down, host) in [
        // The emptied slot waits behind block 4, so block 4 goes: the host holds one block less.
        ("back", "evict cpu 4, evict gpu 3, insert cpu 3, insert gpu 2", &[3][..]),
        ("front", "evict gpu 3, insert cpu 3, insert gpu 2", &[3, 4]),
    ] {
        let mut steps = steps(V1, &[2, 2], &[("emptied_slot", slot)]);
        steps.run(&prompt(&[1, 2], 8));
        assert_eq!(steps.text(&prompt(&[3, 4], 8)), first);
        assert_eq!(steps.content(1), [1, 2]);
        assert_eq!(steps.text(&prompt(&[1, 2], 8)), format!("{up}{down}"));
        assert_eq!(steps.content(0), [1, 2]);
        assert_eq!(steps.content(1), host);
        steps.finish();
    }
}

#[test]
fn a_low_priority_is_not_offloaded() {
    let second = |options: &[(&str, &str)]| {
        let mut steps = steps(V1, &[2, 2], options);
        steps.run(&prompt(&[1, 2], 8));
        let text = steps.text(&prompt(&[3, 4], 8));
        steps.finish();
        text
    };
    let offloads = "0+0: evict gpu 2, insert cpu 2, evict gpu 1, insert cpu 1, insert gpu 3, insert gpu 4";
    let drops = "0+0: evict gpu 2, evict gpu 1, insert gpu 3, insert gpu 4";
    assert_eq!(second(&[]), offloads);
    assert_eq!(second(&[("secondary_offload_min_priority", "36")]), drops);
    // Host slots never used queue at priority 35, behind a block of priority 30: one slot is never filled.
    let wasteful =
        "0+0: evict gpu 2, insert cpu 2, evict cpu 2, evict gpu 1, insert cpu 1, insert gpu 3, insert gpu 4";
    assert_eq!(second(&[("priority", "30")]), wasteful);
    assert_eq!(second(&[("priority", "30"), ("secondary_offload_min_priority", "35")]), drops);
    assert_eq!(second(&[("priority", "29")]), drops);
}

#[test]
fn a_priority_ends_with_its_duration() {
    let mut steps = steps(V1, &[3], &[("priority", "80"), ("duration", "10 s")]);
    for (block, second) in [(1, 0.0), (2, 1.0), (3, 2.0)] {
        steps.run(&at(&[block], second));
    }
    assert_eq!(steps.text(&at(&[4], 5.0)), "0: evict gpu 1, insert gpu 4", "all at priority 80: the oldest");
    assert_eq!(steps.text(&at(&[5], 11.5)), "0: evict gpu 2, insert gpu 5", "over since second 11");
    assert_eq!(steps.text(&at(&[6], 12.0)), "0: evict gpu 3, insert gpu 6", "over right now");
    // A hit holds block 4 for another ten seconds, in which block 5 falls.
    assert_eq!(steps.text(&at(&[4], 14.0)), "3: hit gpu 4, evict gpu 4, insert gpu 4");
    assert_eq!(steps.text(&at(&[7], 21.5)), "0: evict gpu 5, insert gpu 7");
    steps.finish();
}

#[test]
fn decoded_blocks_of_low_priority_go_first() {
    let mut steps = steps(V1, &[4], &[("decode_priority", "10")]);
    steps.run(&Step { decoded_tokens: 8, ..prompt(&[1], 4) });
    for block in [2, 3, 4] {
        assert_eq!(steps.text(&prompt(&[block], 4)), format!("0: insert gpu {block}"));
    }
    assert_eq!(steps.text(&prompt(&[5], 4)), "0: evict gpu 1, insert gpu 5");
    steps.finish();
}

#[test]
fn what_can_never_fit_changes_nothing() {
    for release in [V1, Release(2, 0, 0)] {
        let mut steps = steps(release, &[2], &[]);
        steps.run(&prompt(&[1, 2], 8));
        assert_eq!(steps.text(&path(&[1, 2])), "0: ");
        assert_eq!(steps.text(&Step { decoded_tokens: 5, ..prompt(&[1], 4) }), "0: ");
        assert_eq!(steps.text(&prompt(&[], 0)), "0: ");
        assert_eq!(steps.content(0), [1, 2]);
        steps.finish();
    }
}

#[test]
fn generation_2_lets_pages_fall_level_by_level() {
    let mut steps = steps(Release(2, 0, 0), &[2, 2, 2], &[]);
    steps.run(&prompt(&[1, 2], 8));
    let first = "0+0+0: evict gpu 2, insert cpu 2, evict gpu 1, insert cpu 1, insert gpu 3, insert gpu 4";
    assert_eq!(steps.text(&prompt(&[3, 4], 8)), first);
    // Block 1 is held while block 4 falls, so block 2 makes room below; its page here is a second one.
    let second = "0+4+0: hit cpu 1, evict cpu 2, insert disk 2, evict gpu 4, insert cpu 4, move cpu 1, \
                  insert gpu 1, evict gpu 3, insert cpu 3";
    assert_eq!(steps.text(&prompt(&[1, 2], 8)), second);
    assert_eq!([steps.content(0), steps.content(1), steps.content(2)], [vec![1], vec![3, 4], vec![2]]);
    steps.finish();
}

#[test]
fn generation_2_loses_what_hangs_below_a_lost_page() {
    let mut steps = steps(Release(2, 0, 0), &[2], &[("priority", "10"), ("priority_tokens", "4")]);
    steps.run(&prompt(&[1, 2], 8));
    assert_eq!(steps.text(&prompt(&[3], 4)), "0: evict gpu 2, evict gpu 1, insert gpu 3");
    assert_eq!(steps.text(&prompt(&[4], 4)), "0: insert gpu 4", "both slots are free at once");
    steps.finish();
}

#[test]
fn bad_configurations_are_refused() {
    let error = |release, capacities: &[u64], options: &[(&str, &str)]| {
        let made = Steps::new("trtllm", release, options, &tiers(capacities), 64, 4);
        made.err().expect("was taken").to_string()
    };
    assert!(error(V1, &[2], &[("priority", "101")]).contains("priority=101"));
    assert!(error(V1, &[2], &[("duration", "10 s")]).contains("without priority"));
    assert!(error(V1, &[2], &[("emptied_slot", "middle")]).contains("middle"));
    assert!(error(V1, &[2, 2, 2], &[]).contains("no tier disk"));
    let cpu = [TierSpec::new("cpu", 4)];
    let alone = Steps::new("trtllm", V1, &[], &cpu, 64, 4).err().unwrap().to_string();
    assert!(alone.contains("needs the tier gpu"));
    let odd = Steps::new("trtllm", V1, &[], &tiers(&[2]), 64, 5).err().unwrap().to_string();
    assert!(odd.contains("power of two"));
}

#[test]
fn versions_resolve_and_have_rules() {
    for (text, name) in
        [("trtllm", "trtllm@2.0.0"), ("trtllm@1", "trtllm@1.0.0"), ("trtllm@2.0", "trtllm@2.0.0")]
    {
        let profile = Profile::parse(text, &[]).unwrap();
        assert_eq!(profile.name(), name);
        assert!(profile.rules().len() > 8);
        assert!(profile.rules().iter().all(|rule| !rule.rule.is_empty() && !rule.source.is_empty()));
    }
    let error = Profile::parse("trtllm@9", &[]).unwrap_err().to_string();
    assert!(error.contains("trtllm@9"), "{error}");
}
