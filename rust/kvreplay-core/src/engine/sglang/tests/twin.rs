//! The models against the slow twin: pages served and every block that came or went, in order.

use super::{Run, tier};
use crate::hierarchy::EventKind;
use crate::reference::engines::sglang::{Cache, Change, Config, Strategy as Rule, Write};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;
use std::collections::HashMap;

/// Blocks from here on have no name.
const UNNAMED: u32 = 1 << 24;

/// A prompt, what it decodes, and how many pages of each have no name.
#[derive(Debug, Clone)]
struct Request {
    path: Vec<u32>,
    unnamed: u32,
    decoded: Vec<u32>,
    private: u32,
}

/// Requests that each keep a part of an earlier path and go on with labels of their own.
fn requests() -> impl Strategy<Value = Vec<Request>> {
    let labels = || prop::collection::vec(0u32..3, 0..7);
    let decoded = prop_oneof![
        3 => Just((Vec::new(), 0)),
        1 => prop::collection::vec(0u32..3, 1..4).prop_map(|labels| (labels, 0)),
        1 => (Just(Vec::new()), 1u32..4),
    ];
    let unnamed = prop_oneof![4 => Just(0u32), 1 => 1u32..4];
    let request = (any::<prop::sample::Index>(), 0usize..12, labels(), unnamed, decoded);
    prop::collection::vec(request, 1..70).prop_map(|rows| {
        let mut numbers = HashMap::new();
        let mut number = |above: Option<u32>, label| {
            let next = numbers.len() as u32;
            *numbers.entry((above, label)).or_insert(next)
        };
        let mut paths: Vec<Vec<u32>> = vec![Vec::new()];
        let mut requests = Vec::new();
        for (from, keep, labels, unnamed, (decoded, private)) in rows {
            let mut path = paths[from.index(paths.len())].clone();
            path.truncate(keep);
            for label in labels {
                path.push(number(path.last().copied(), label));
            }
            let mut whole = path.clone();
            for label in if unnamed == 0 { decoded } else { Vec::new() } {
                whole.push(number(whole.last().copied(), label));
            }
            let decoded = whole[path.len()..].to_vec();
            paths.extend([path.clone(), whole]);
            requests.push(Request { path, unnamed, decoded, private });
        }
        requests
    })
}

fn strategies() -> impl Strategy<Value = (&'static str, Rule)> {
    prop::sample::select(vec![
        ("lru", Rule::Lru),
        ("lfu", Rule::Lfu),
        ("fifo", Rule::Fifo),
        ("mru", Rule::Mru),
        ("filo", Rule::Filo),
        ("slru", Rule::Slru(2)),
        ("slru(3)", Rule::Slru(3)),
        ("priority", Rule::Priority),
    ])
}

/// Serves all requests with both and compares them.
fn compare(
    mut run: Run,
    config: Config,
    requests: &[Request],
    last_token: bool,
) -> Result<(), TestCaseError> {
    let mut twin = Cache::new(config);
    let mut fresh = UNNAMED;
    let mut private = |count: u32| {
        fresh += count;
        fresh - count..fresh
    };
    for request in requests {
        let prompt: Vec<u32> = request.path.iter().copied().chain(private(request.unnamed)).collect();
        let decoded: Vec<u32> = request.decoded.iter().copied().chain(private(request.private)).collect();
        let limit = prompt.len() - usize::from(last_token && !prompt.is_empty());
        let want = twin.serve(&prompt, limit, &decoded);
        let got = run.serve(&request.path, request.unnamed.into(), &request.decoded, request.private.into());
        prop_assert_eq!(&got[..], &want.map(|pages| pages as u64)[..got.len()]);
    }
    let (events, _) = run.finish();
    let kept = |i: &usize| matches!(events.kind[*i], EventKind::Insert | EventKind::Evict);
    let change = |i| (events.kind[i] == EventKind::Insert, usize::from(events.tier[i]), events.block[i]);
    let got: Vec<Change> = (0..events.len()).filter(kept).map(change).collect();
    let want: Vec<Change> = twin.changes.into_iter().filter(|&(_, _, block)| block < UNNAMED).collect();
    prop_assert_eq!(got, want);
    Ok(())
}

fn blocks_of(requests: &[Request]) -> u32 {
    requests.iter().flat_map(|r| r.path.iter().chain(&r.decoded)).max().map_or(0, |&block| block + 1)
}

fn seeded(cases: u32) -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(0x5EED_0007);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(seeded(250))]

    #[test]
    fn the_radix_cache_does_what_its_twin_does(
        requests in requests(),
        gpu in 0usize..40,
        (policy, strategy) in strategies(),
        unified: bool,
        last_token: bool,
    ) {
        let config =
            Config { gpu, host: None, storage: None, strategy, unified, load_back: 0, prefetch: 0 };
        let options = [
            ("tree", if unified { "unified" } else { "radix" }),
            ("last_token", if last_token { "true" } else { "false" }),
        ];
        let run = Run::new(&[tier("gpu", gpu as u64, policy)], blocks_of(&requests), &options).unwrap();
        compare(run, config, &requests, last_token)?;
    }

    #[test]
    fn hicache_does_what_its_twin_does(
        requests in requests(),
        (gpu, host) in (8usize..40, 0usize..80),
        storage in prop::option::of((0usize..60, prop::sample::select(vec![0.25, 0.9, 1.0]))),
        (policy, strategy) in strategies(),
        (name, write) in prop::sample::select(vec![
            ("write_through", Write::Through(1)),
            ("write_through_selective", Write::Through(2)),
            ("write_back", Write::Back),
        ]),
        (load_back, prefetch) in (0usize..4, 1usize..4),
        last_token: bool,
    ) {
        let config = Config {
            gpu, host: Some((host, write)), storage, strategy, unified: true, load_back, prefetch,
        };
        let (load_back, prefetch) = (load_back.to_string(), prefetch.to_string());
        let ratio = storage.map_or(0.9, |(_, ratio)| ratio).to_string();
        let options = [
            ("write_policy", name),
            ("load_back_threshold", &load_back),
            ("prefetch_threshold", &prefetch),
            ("storage_eviction_ratio", &ratio),
            ("last_token", if last_token { "true" } else { "false" }),
        ];
        let mut tiers = vec![tier("gpu", gpu as u64, policy), tier("cpu", host as u64, policy)];
        tiers.extend(storage.map(|(pages, _)| tier("storage", pages as u64, "lru")));
        let run = Run::new(&tiers, blocks_of(&requests), &options).unwrap();
        compare(run, config, &requests, last_token)?;
    }
}
