//! The profiles as a replay uses them: a trace in blocks, refined to pages.

use super::tier;
use crate::engine::{Grain, Outputs, Profile};
use crate::hierarchy::TierSpec;
use crate::progress::Progress;
use crate::replay::testing::trace_of;
use crate::replay::{ReplayResult, replay_profile};
use std::sync::Arc;

fn replayed(name: &str, tiers: &[TierSpec], options: &[(&str, &str)]) -> ReplayResult {
    // Two prompts of 40 tokens, the first one again, and one that only begins like it.
    let paths = [vec![1, 2, 3], vec![7, 8, 9], vec![1, 2, 3], vec![1, 4]];
    let trace = Arc::new(trace_of(&paths, &[40, 40, 40, 32], 16));
    let options: Vec<(String, String)> =
        options.iter().map(|&(key, value)| (key.to_owned(), value.to_owned())).collect();
    let profile = Profile::parse(name, &options).unwrap();
    let grain = Grain::new(&trace, profile.block_tokens().unwrap(), Outputs::Private).unwrap();
    replay_profile(&grain, &profile, tiers, true, false, false, &Progress::default()).unwrap()
}

fn hit_tokens(result: &ReplayResult) -> &[Vec<u32>] {
    &result.requests.as_ref().unwrap().hit_tokens
}

#[test]
fn a_page_is_one_token_unless_told() {
    let gpu = [tier("gpu", 200, "lru")];
    let result = replayed("sglang", &gpu, &[]);
    assert_eq!(hit_tokens(&result), [[0, 0, 39, 16]]);
    // 40 + 40 tokens, then 16 behind the block they share; the token computed again is given back.
    assert_eq!(result.tiers[0].counters.resident, 96);
    let result = replayed("sglang@0.5.23", &gpu, &[("block_size", "16")]);
    assert_eq!(hit_tokens(&result), [[0, 0, 32, 16]]);
    assert_eq!(result.tiers[0].counters.resident, 5);
    let result = replayed("sglang@0.5.9", &gpu, &[("block_size", "8"), ("last_token", "false")]);
    assert_eq!(hit_tokens(&result), [[0, 0, 40, 16]]);
}

#[test]
fn a_host_tier_serves_what_left_the_device() {
    let tiers = [tier("gpu", 60, "lru"), tier("cpu", 200, "lru")];
    let result = replayed("sglang-hicache", &tiers, &[]);
    assert_eq!(hit_tokens(&result), [[0, 0, 0, 16], [0, 0, 39, 0]]);
    // Pages of 16 tokens: what is loaded is 32 tokens, which is below this threshold.
    let tiers = [tier("gpu", 3, "lru"), tier("cpu", 20, "lru")];
    let options = [("block_size", "16"), ("load_back_threshold", "33")];
    let result = replayed("sglang-hicache", &tiers, &options);
    assert_eq!(hit_tokens(&result), [[0, 0, 0, 16], [0, 0, 0, 0]]);
}

#[test]
fn every_release_says_how_it_differs() {
    let rules = |name: &str| -> String {
        let rules = Profile::parse(name, &[]).unwrap().rules();
        assert!(rules.iter().all(|rule| !rule.topic.is_empty() && !rule.rule.is_empty()));
        rules.into_iter().map(|rule| rule.rule + "\n").collect()
    };
    for (name, words) in [
        ("sglang@0.5.9", "never counted, so lfu is lru"),
        ("sglang@0.5.14", "a request that decodes inserts its prompt twice"),
        ("sglang@0.5.18", "leaves are evicted for what is missing"),
        ("sglang@0.5.23", "a request adds one to every node of its path"),
        ("sglang", "a request adds one to every node of its path"),
        ("sglang-hicache", "the copies stay"),
    ] {
        assert!(rules(name).contains(words), "{name}: {}", rules(name));
    }
    assert!(Profile::parse("sglang@0.5.10", &[]).is_err());
    assert!(Profile::parse("sglang-hicache@0.5.18", &[]).is_err());
}
