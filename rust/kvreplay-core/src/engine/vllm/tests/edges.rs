//! Odd requests, odd capacities, and what is refused.

use super::{Lab, cpu, gpu};
use crate::engine::Profile;
use crate::engine::vllm::arc::Arc;
use crate::engine::vllm::lru::Lru;
use crate::error::Error;
use crate::hierarchy::{EventKind, TierSpec};

#[test]
fn empty_prompts_and_tiers_without_room() {
    for blocks in [0, 1, 2] {
        let mut lab = Lab::<Lru>::new((33, 0), &[gpu(blocks), cpu(0)], &[]);
        assert_eq!(lab.serve_tokens(&[], 0, &[], 0), [0, 0]);
        assert_eq!(lab.serve(&[1]), [0, 0]);
        assert_eq!(lab.serve_tokens(&[1], 5, &[], 3), [0, 0]);
        assert!(lab.lists()[0].is_empty());
    }
    let mut lab = Lab::<Arc>::new((33, 0), &[cpu(0)], &[]);
    for _ in 0..3 {
        assert_eq!(lab.serve(&[1, 2]), [0]);
    }
}

#[test]
fn full_blocks_without_a_name_take_room_and_are_never_found() {
    let mut lab = Lab::<Lru>::new((33, 0), &[gpu(9), cpu(4)], &[]);
    // Three full blocks, one named: two more chunks lie in the CPU.
    assert_eq!(lab.serve_tokens(&[1], 12, &[], 0), [0, 0]);
    assert_eq!(lab.lists()[0].len(), 3);
    assert_eq!(lab.serve_tokens(&[1], 12, &[], 0), [4, 0]);
    // Its chunks without a name are new ones; the oldest are gone.
    assert_eq!(lab.lists()[0].len(), 4);
    assert_eq!(lab.serve(&[2, 3, 4, 5]), [0, 0]);
    assert_eq!(lab.lists(), [[5, 4, 3, 2]]);
    let (evicted, counters) = lab.finish(EventKind::Evict);
    // Events name what has a name; counters count all.
    assert_eq!(evicted, [(2, 1, 1)]);
    assert_eq!((counters[1].inserted_compute, counters[1].evicted, counters[1].resident), (9, 5, 4));
    assert_eq!(counters[1].dead_on_arrival, 5);
}

#[test]
fn a_huge_prompt_without_names_costs_no_more_than_the_tier() {
    let mut lab = Lab::<Arc>::new((33, 0), &[cpu(3)], &[]);
    for _ in 0..3 {
        assert_eq!(lab.serve_tokens(&[1, 2], u64::from(u32::MAX), &[], 1 << 40), [0]);
    }
    assert_eq!(lab.serve(&[1, 2]), [0]);
    assert_eq!(lab.lists()[0], [2, 1]);
}

fn refused(profile: &str, tiers: &[TierSpec], options: &[(&str, &str)]) -> (String, String) {
    let options: Vec<(String, String)> =
        options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let profile = Profile::parse(profile, &options).unwrap();
    match profile.build_for(tiers, 9, 16, false) {
        Err(Error::Config { message, hint }) => (message, hint),
        other => panic!("taken: {}", other.is_ok()),
    }
}

fn tier(name: &str, policy: &str, admission: &str) -> TierSpec {
    TierSpec { policy: policy.to_owned(), admission: admission.to_owned(), ..TierSpec::new(name, 8) }
}

#[test]
fn what_a_release_does_not_have_is_refused() {
    let lru = || tier("cpu", "lru", "always");
    let cases = [
        ("vllm@0.10", vec![lru()], "vllm@0.10.2 has no CPU tier"),
        (
            "vllm@0.14",
            vec![tier("cpu", "arc", "always")],
            "vllm@0.14.1 has no working ARC (its first store fails with a KeyError)",
        ),
        ("vllm@0.14", vec![tier("cpu", "lru", "store_threshold(2)")], "vllm@0.14.1 has no store_threshold"),
        ("vllm@0.18", vec![lru(), tier("nvme", "fs", "always")], "vllm@0.18.1 has no secondary tier"),
        ("vllm@0.22", vec![lru(), tier("s3", "obj", "always")], "vllm@0.22.1 has no tier of objects"),
    ];
    for (profile, tiers, message) in cases {
        let (got, hint) = refused(profile, &tiers, &[]);
        assert_eq!(got, message);
        assert!(hint.ends_with("on: give a newer release"), "{hint}");
    }
    let (message, _) = refused("vllm@0.22", &[lru()], &[("offload_decode", "false")]);
    assert_eq!(message, "vllm@0.22.1 offers decoded chunks, too: offload_decode=false is not possible");
}

#[test]
fn tiers_that_make_no_sense_are_refused() {
    let (message, hint) = refused("vllm", &[gpu(9), tier("nvme", "fs", "always")], &[]);
    assert_eq!(message, "tier nvme has no tier cpu before it");
    assert_eq!(hint, "vLLM moves everything through host memory: give a tier cpu first");
    let both = [tier("cpu", "lru", "store_threshold(2)"), tier("nvme", "fs", "always")];
    let (message, _) = refused("vllm", &both, &[]);
    assert_eq!(message, "admission of tier cpu: vLLM refuses store_threshold with secondary tiers");
    let chunks = TierSpec { chunk_blocks: 2, ..cpu(8) };
    let (message, hint) = refused("vllm", &[chunks, tier("nvme", "fs", "always")], &[]);
    assert_eq!(message, "tier nvme has chunks of 1 blocks");
    assert_eq!(hint, "secondary tiers keep the chunks of the CPU tier: give chunk_blocks=2");
    let (message, _) = refused("vllm", &[tier("cpu", "lfu", "always")], &[]);
    assert_eq!(message, "unknown policy of tier cpu under vllm@0.33.0 \"lfu\"");
    for admission in ["store_threshold(70000)", "store_threshold(2, tracker=0)"] {
        assert!(refused("vllm", &[tier("cpu", "lru", admission)], &[]).0.contains("is out of range"));
    }
    let (message, _) = refused("vllm", &[cpu(8)], &[("offload_decode", "maybe")]);
    assert_eq!(message, "vllm: offload_decode=\"maybe\" is not valid");
    let (message, _) = refused("vllm", &[cpu(8), gpu(8)], &[]);
    assert_eq!(message, "vllm@0.33.0 has no tier \"gpu\" at this place");
}

#[test]
fn every_release_shows_its_rules() {
    let shown = |release: &str| {
        let profile = Profile::parse(&format!("vllm@{release}"), &[]).unwrap();
        let rules = profile.rules();
        assert!(rules.iter().all(|rule| rule.rule.ends_with('.') && !rule.source.is_empty()), "{release}");
        rules.into_iter().map(|rule| (rule.topic, rule.rule)).collect::<std::collections::BTreeMap<_, _>>()
    };
    assert_eq!(shown("0.10").get("CPU tier").map(String::as_str), Some("There is none."));
    assert!(!shown("0.14").contains_key("CPU threshold"));
    assert!(shown("0.18")["CPU threshold"].starts_with("store_threshold counts look-ups, all"));
    assert!(shown("0.22").contains_key("secondary tiers: read"));
    assert_ne!(shown("0.23")["CPU LRU"], shown("0.24")["CPU LRU"]);
    assert_ne!(shown("0.32")["CPU LRU"], shown("0.33")["CPU LRU"]);
    assert_ne!(shown("0.29")["CPU ARC victims"], shown("0.30")["CPU ARC victims"]);
}
