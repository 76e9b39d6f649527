//! What `LMCache` cannot be asked, and what the error says.

use super::tier;
use crate::engine::Profile;
use crate::error::Error;
use crate::hierarchy::TierSpec;

fn refused(profile: &str, tiers: &[TierSpec], options: &[(&str, &str)]) -> (String, String) {
    let options: Vec<(String, String)> =
        options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let model = Profile::parse(profile, &options).and_then(|profile| profile.build_for(tiers, 9, 16, false));
    match model {
        Err(Error::Config { message, hint }) => (message, hint),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("{profile} was built"),
    }
}

#[test]
fn tiers_in_another_order_or_with_other_policies() {
    let lru = |name| tier(name, 9, "lru");
    let (message, hint) = refused("lmcache", &[lru("disk"), lru("cpu")], &[]);
    assert_eq!(message, "lmcache@0.5.6 has no tier \"cpu\" at this place");
    assert!(hint.contains("cpu, disk, remote, others"));
    let (message, hint) = refused("lmcache", &[lru("cpu"), tier("disk", 9, "lfu")], &[]);
    assert_eq!(message, "tier disk has policy=lfu, memory has lru");
    assert!(hint.contains("one cache_policy"));
    assert!(refused("lmcache", &[tier("cpu", 9, "arc")], &[]).1.contains("lru, lfu, fifo, mru"));
    assert!(refused("lmcache", &[tier("remote", 9, "fifo")], &[]).1.contains("known: lru, none"));
    assert!(refused("lmcache-mp", &[tier("cpu", 9, "fifo")], &[]).1.contains("lru, arc, noop"));
    assert_eq!(refused("lmcache-mp", &[lru("fs")], &[]).0, "the multi-process server has no tier cpu here");
    assert_eq!(refused("vllm+lmcache", &[lru("cpu")], &[]).0, "vLLM has no tier gpu here");
    assert_eq!(refused("vllm+lmcache", &[lru("gpu")], &[]).0, "LMCache has no tier here");
}

#[test]
fn chunks_of_two_sizes() {
    let chunks = |name, chunk_blocks| TierSpec { chunk_blocks, ..TierSpec::new(name, 64) };
    let tiers = [TierSpec::new("gpu", 9), chunks("cpu", 16), chunks("disk", 8)];
    let (message, hint) = refused("vllm+lmcache", &tiers, &[]);
    assert_eq!(message, "tier disk has chunk_blocks=8, not 16");
    assert!(hint.contains("one chunk_size"));
    assert!(refused("lmcache", &[chunks("cpu", 2)], &[]).0.contains("keeps single blocks"));
}

#[test]
fn options_out_of_range() {
    let cpu = [tier("cpu", 9, "lru")];
    let mp = |option: &str, value: &str| refused("lmcache-mp", &cpu, &[(option, value)]).1;
    assert!(mp("watermark", "1.5").contains("from 0 to 1"));
    assert!(mp("eviction_ratio", "NaN").contains("from 0 to 1"));
    assert!(mp("tick_every_requests", "0").contains("from 1"));
    assert!(mp("prefetch_policy", "keep").contains("default or retain"));
    assert!(mp("store_policy", "retain").contains("default or skip_l1"));
    assert!(mp("end_session_touch", "yes").contains("true or false"));
    assert!(refused("lmcache", &cpu, &[("watermark", "0.5")]).1.contains("min_retrieve_tokens=0"));
    assert!(refused("lmcache@0.4", &cpu, &[]).1.contains("lmcache@0.5.6"));
}
