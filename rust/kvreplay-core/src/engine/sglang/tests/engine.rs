//! Random requests against what SGLang's own classes did with them, one request at a time, with pools that only
//! count pages and copies that are done at once.
//!
//! * `unified.jsonl`: `UnifiedRadixCache` and `UnifiedTreeCore` of 0.5.23 with and without host memory: match,
//!   load back, evict for what is missing, insert, decode, insert. The walk through storage follows
//!   `prefetch_from_storage` and `insert_host`, with storage that keeps everything.
//! * `releases.jsonl`: `RadixCache` of four releases, with the eviction that each release's allocation asks for.
//!
//! Each line is one case: the configuration, `requests` (path, pages without a name, decoded pages, decoded
//! pages without a name), and one row per request in `results`: pages served by device, host and storage,
//! then after the request the pages on the device and in host memory, and for both the sum of the squares of
//! (block + 1) over named pages.

use super::{Run, tier};
use crate::engine::Release;
use crate::engine::sglang::releases::RADIX;
use serde_json::Value;

fn u32s(value: &Value) -> Vec<u32> {
    value.as_array().unwrap().iter().map(|v| u32::try_from(v.as_u64().unwrap()).unwrap()).collect()
}

fn run_of(case: &Value, blocks: u32) -> Run {
    let number = |name: &str| case[name].as_u64().unwrap();
    let policy = case["policy"].as_str().unwrap();
    let mut tiers = vec![tier("gpu", number("gpu"), policy)];
    let last_token = case["last_token"].to_string();
    let mut options = vec![("last_token", last_token.as_str())];
    let (load_back, prefetch) = (case["load_back"].to_string(), case["prefetch"].to_string());
    if case["cpu"].is_null() {
        options.push(("tree", if case["version"].is_null() { "unified" } else { "radix" }));
    } else {
        tiers.push(tier("cpu", number("cpu"), policy));
        options.push(("write_policy", case["write"].as_str().unwrap()));
        options.push(("load_back_threshold", &load_back));
        options.push(("prefetch_threshold", &prefetch));
        if case["storage"].as_bool().unwrap() {
            tiers.push(tier("storage", 1 << 30, "lru"));
        }
    }
    let version = case["version"].as_str().unwrap_or("0.5.23");
    let release = Release::resolve("sglang", Some(version), RADIX).unwrap();
    Run::of(release, &tiers, blocks, &options).unwrap()
}

fn check(number: usize, case: &Value) {
    let requests = case["requests"].as_array().unwrap();
    let most = requests.iter().flat_map(|r| [u32s(&r[0]), u32s(&r[2])].concat()).max().unwrap_or(0);
    let mut run = run_of(case, most + 1);
    for (at, (request, want)) in requests.iter().zip(case["results"].as_array().unwrap()).enumerate() {
        let private = |i: usize| request[i].as_u64().unwrap();
        let mut got = run.serve(&u32s(&request[0]), private(1), &u32s(&request[2]), private(3));
        got.resize(3, 0);
        let squares = |blocks: Vec<u32>| blocks.into_iter().map(|b| (u64::from(b) + 1).pow(2)).sum::<u64>();
        let host = run
            .model
            .host
            .as_ref()
            .map_or((0, 0), |host| (host.pool.used, squares(run.model.host_content())));
        got.extend([run.model.gpu.used, host.0, squares(run.model.device_content()), host.1]);
        let want: Vec<u64> = want.as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect();
        let mut config = case.clone();
        config.as_object_mut().unwrap().retain(|key, _| key != "requests" && key != "results");
        assert_eq!(got, want, "case {number}, request {at}, {config}");
    }
}

fn check_all(lines: &str) {
    for (number, line) in lines.lines().enumerate() {
        check(number, &serde_json::from_str(line).unwrap());
    }
}

#[test]
fn the_unified_tree_and_hicache_are_met() {
    check_all(include_str!("unified.jsonl"));
}

#[test]
fn the_classic_tree_of_each_release_is_met() {
    check_all(include_str!("releases.jsonl"));
}
