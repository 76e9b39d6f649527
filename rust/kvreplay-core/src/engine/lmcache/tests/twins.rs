//! Random small traces against the slow twins of `reference/engines`.

use crate::engine::lmcache::cache::Front;
use crate::engine::lmcache::chunks::ChunkPaths;
use crate::engine::lmcache::{RELEASES, in_process, mp};
use crate::engine::{EngineModel, EngineRequest, Profile, Recorder, Setup};
use crate::hierarchy::{EventKind, Events, TierSpec};
use crate::policy::spec::{Args, Param, Spec};
use crate::reference::engines::lmcache::{Backend, Engine, Event, Key, Kind, UNNAMED};
use crate::reference::engines::lmcache_mp::{Server, Tier};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

fn seeded(cases: u32) -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(0x5EED_0005);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

const BLOCK_TOKENS: u64 = 4;
const BLOCKS: u32 = 1 << 12;

/// A request of a random trace: a path in a tree that branches at its first blocks.
#[derive(Debug, Clone)]
struct Ask {
    listed: Vec<u32>,
    prompt_tokens: u64,
    decoded: Vec<u32>,
    decoded_tokens: u64,
    held_blocks: u64,
    last_token: bool,
}

fn asks() -> impl Strategy<Value = Vec<Ask>> {
    let ask = (0u32..8, 0u32..8, 0usize..3, 0u64..4, 0u64..13, 0usize..4, 0u64..5, any::<bool>());
    let ask =
        ask.prop_map(|(branch, depth, unlisted, extra, decoded_tokens, named, held_blocks, last_token)| {
            // The low bits of the branch are the way down; a block is named by its depth and that way.
            let block = |depth: u32| (1 << depth) | (branch & ((1 << depth) - 1));
            let prompt_tokens = u64::from(depth) * BLOCK_TOKENS + extra;
            let mut listed: Vec<u32> = (1..=depth).map(block).collect();
            if unlisted == 0 && extra > 0 {
                listed.push(block(depth + 1));
            } else {
                listed.truncate(listed.len().saturating_sub(unlisted));
            }
            let full = (prompt_tokens + decoded_tokens) / BLOCK_TOKENS - u64::from(depth);
            let decoded = (1..=full.min(named as u64) as u32).map(|k| block(depth + k)).collect();
            Ask { listed, prompt_tokens, decoded, decoded_tokens, held_blocks, last_token }
        });
    prop::collection::vec(ask, 1..25)
}

impl Ask {
    fn request(&self, index: usize) -> EngineRequest<'_> {
        EngineRequest {
            index: index as u32,
            listed: &self.listed,
            prompt_tokens: self.prompt_tokens,
            decoded: &self.decoded,
            decoded_tokens: self.decoded_tokens,
            block_tokens: BLOCK_TOKENS as u32,
            now_us: None,
        }
    }

    /// Complete chunks of the prompt and those that get full later.
    fn chunks(&self, chunk_blocks: u64, unnamed: &mut Key) -> (Vec<Key>, Vec<Key>) {
        let in_prompt = self.prompt_tokens / BLOCK_TOKENS;
        let mut name = |chunk: u64| {
            let last = chunk * chunk_blocks + chunk_blocks - 1;
            let block = if last < in_prompt {
                self.listed.get(last as usize)
            } else {
                self.decoded.get((last - in_prompt) as usize)
            };
            *unnamed += 1;
            block.map_or(UNNAMED + *unnamed, |&block| u64::from(block))
        };
        let whole = |tokens: u64| tokens / (chunk_blocks * BLOCK_TOKENS);
        let (end, all) = (whole(self.prompt_tokens), whole(self.prompt_tokens + self.decoded_tokens));
        ((0..end).map(&mut name).collect(), (end..all).map(&mut name).collect())
    }

    fn held_tokens(&self) -> u64 {
        self.held_blocks.min(self.prompt_tokens.saturating_sub(1) / BLOCK_TOKENS) * BLOCK_TOKENS
    }
}

/// Calls `build` with a setup of these tiers and options.
fn with_setup<T>(
    tiers: &[TierSpec],
    params: &'static [Param],
    options: &[(&str, String)],
    build: impl FnOnce(&Setup<'_>) -> T,
) -> T {
    let args = options.iter().map(|(key, value)| (Some((*key).to_owned()), value.clone())).collect();
    let spec = Spec { name: "lmcache".to_owned(), args };
    let options = Args::new(&spec, params).unwrap();
    let block_tokens = BLOCK_TOKENS as u32;
    build(&Setup { releases: RELEASES, tiers, options: &options, blocks: BLOCKS, block_tokens, timed: false })
}

/// Events of a tier that concern named chunks.
fn named(events: &[Event]) -> Vec<(EventKind, u32)> {
    let of = |event: &Event| match *event {
        Event::Hit(key) => (EventKind::Hit, key),
        Event::Insert(key) => (EventKind::Insert, key),
        Event::Evict(key) => (EventKind::Evict, key),
    };
    let known = events.iter().map(of).filter(|&(_, key)| key < UNNAMED);
    known.map(|(kind, key)| (kind, key as u32)).collect()
}

fn logged(events: &Events, tier: usize) -> Vec<(EventKind, u32)> {
    let here = (0..events.len()).filter(|&i| usize::from(events.tier[i]) == tier);
    here.map(|i| (events.kind[i], events.block[i])).collect()
}

fn names(keys: impl IntoIterator<Item = Key>) -> Vec<u32> {
    keys.into_iter().filter(|&key| key < UNNAMED).map(|key| key as u32).collect()
}

proptest! {
    #![proptest_config(seeded(400))]
    #[test]
    fn the_in_process_engine_equals_its_twin(
        asks in asks(),
        capacities in [0usize..9, 0usize..9, 0usize..9],
        present in 1usize..8,
        policy in prop::sample::select(vec!["lru", "lfu", "fifo", "mru"]),
        remote in prop::sample::select(vec!["lru", "none"]),
        chunk_blocks in 1u64..4,
        min_retrieve_tokens in prop::sample::select(vec![0, 5, 12]),
        save_decode_cache in any::<bool>(),
    ) {
        let kinds = [
            ("cpu", Kind::Cpu, policy),
            ("disk", Kind::Disk, policy),
            ("remote", Kind::Remote(remote == "lru"), "lru"),
        ];
        let chosen: Vec<usize> = (0..3).filter(|k| present >> k & 1 == 1).collect();
        let tiers: Vec<TierSpec> = chosen.iter().map(|&k| TierSpec {
            policy: if k == 2 { remote } else { policy }.to_owned(),
            chunk_blocks: chunk_blocks as u32,
            ..TierSpec::new(kinds[k].0, capacities[k] as u64 * chunk_blocks)
        }).collect();
        let options = [
            ("min_retrieve_tokens", min_retrieve_tokens.to_string()),
            ("save_decode_cache", save_decode_cache.to_string()),
        ];
        let mut cache =
            with_setup(&tiers, in_process::OPTIONS, &options, |setup| in_process::cache(setup, 0)).unwrap();
        let backends = chosen.iter().map(|&k| Backend::new(kinds[k].1, capacities[k], kinds[k].2)).collect();
        let chunk_tokens = chunk_blocks * BLOCK_TOKENS;
        let mut twin = Engine { backends, chunk_tokens, min_retrieve_tokens, save_decode_cache };
        let mut out = Recorder::new(&tiers, BLOCKS, true);
        let (mut paths, mut unnamed) = (ChunkPaths::default(), 0);
        let mut hits = vec![0; tiers.len()];
        for (index, ask) in asks.iter().enumerate() {
            let request = ask.request(index);
            let front = Front { held_tokens: ask.held_tokens(), computes_last_token: ask.last_token };
            out.begin(request.index);
            let chunks = paths.read(&request, chunk_blocks as u32);
            cache.look_up(&chunks, &mut out);
            let loaded = cache.load(&request, &chunks, front, &mut out);
            cache.store(&chunks, &mut out);
            out.end(&request);
            prop_assert_eq!(cache.validate(), Ok(()));
            prop_assert_eq!(loaded, out.rows().iter().map(|row| row.tokens).sum::<u64>());
            let (prompt, decoded) = ask.chunks(chunk_blocks, &mut unnamed);
            twin.serve(ask.prompt_tokens, &prompt, &decoded, front.held_tokens, front.computes_last_token);
            for (k, backend) in twin.backends.iter().enumerate() {
                hits[k] += out.rows()[k].tokens;
                prop_assert_eq!(hits[k], backend.hit_tokens, "request {} tier {}", index, k);
                prop_assert_eq!(out.counters()[k].resident as usize, backend.keys.len());
                prop_assert_eq!(out.counters()[k].no_room, backend.no_room);
                let mut content = cache.tier(k).unwrap().content();
                content.reverse();
                prop_assert_eq!(content, names(backend.by_victim()), "request {} tier {}", index, k);
            }
        }
        let contents: Vec<Vec<u32>> = (0..tiers.len()).map(|k| cache.tier(k).unwrap().content()).collect();
        let (events, _) = out.finish(&contents);
        for (k, backend) in twin.backends.iter().enumerate() {
            prop_assert_eq!(logged(&events, k), named(&backend.events), "tier {}", k);
        }
    }

    #[test]
    fn vllm_with_lmcache_is_vllm_alone_and_the_twin_behind_it(
        asks in asks(),
        gpu_blocks in 0u64..14,
        cpu_chunks in 0usize..9,
        disk_chunks in 0usize..9,
        policy in prop::sample::select(vec!["lru", "lfu", "fifo", "mru"]),
        chunk_blocks in 1u64..4,
    ) {
        let behind = |name: &str, chunks: usize| TierSpec {
            policy: policy.to_owned(),
            chunk_blocks: chunk_blocks as u32,
            ..TierSpec::new(name, chunks as u64 * chunk_blocks)
        };
        let tiers = [TierSpec::new("gpu", gpu_blocks), behind("cpu", cpu_chunks), behind("disk", disk_chunks)];
        let build = |profile: &str, tiers: &[TierSpec]| {
            Profile::parse(profile, &[]).unwrap().build_for(tiers, BLOCKS, BLOCK_TOKENS as u32, false).unwrap()
        };
        let (mut model, mut vllm) = (build("vllm+lmcache", &tiers), build("vllm", &tiers[..1]));
        let mut twin = Engine {
            backends: vec![
                Backend::new(Kind::Cpu, cpu_chunks, policy),
                Backend::new(Kind::Disk, disk_chunks, policy),
            ],
            chunk_tokens: chunk_blocks * BLOCK_TOKENS,
            min_retrieve_tokens: 0,
            save_decode_cache: false,
        };
        let mut out = Recorder::new(&tiers, BLOCKS, true);
        let mut alone = Recorder::new(&tiers[..1], BLOCKS, true);
        let (mut hits, mut unnamed) = ([0; 2], 0);
        for (index, ask) in asks.iter().enumerate() {
            let request = ask.request(index);
            for (model, out) in [(&mut model, &mut out), (&mut vllm, &mut alone)] {
                out.begin(request.index);
                model.serve(&request, out);
                out.end(&request);
                prop_assert_eq!(model.validate(), Ok(()));
            }
            prop_assert_eq!(out.rows()[0], alone.rows()[0]);
            if ask.prompt_tokens.div_ceil(BLOCK_TOKENS) < gpu_blocks {
                let (prompt, decoded) = ask.chunks(chunk_blocks, &mut unnamed);
                twin.serve(ask.prompt_tokens, &prompt, &decoded, alone.rows()[0].tokens, true);
            }
            for (k, backend) in twin.backends.iter().enumerate() {
                hits[k] += out.rows()[k + 1].tokens;
                prop_assert_eq!(hits[k], backend.hit_tokens, "request {} tier {}", index, k);
            }
        }
        let contents: Vec<Vec<u32>> = (0..3).map(|k| model.content(k)).collect();
        prop_assert_eq!(&contents[0], &vllm.content(0));
        let (events, _) = out.finish(&contents);
        let (gpu_events, _) = alone.finish(&contents[..1]);
        prop_assert_eq!(logged(&events, 0), logged(&gpu_events, 0));
        for (k, backend) in twin.backends.iter().enumerate() {
            prop_assert_eq!(logged(&events, k + 1), named(&backend.events), "tier {}", k);
        }
    }

    #[test]
    fn the_server_equals_its_twin(
        asks in asks(),
        capacities in [0usize..12, 0usize..12, 0usize..12],
        l2 in 0usize..3,
        policies in prop::sample::select(vec![
            ["lru"; 3],
            ["arc"; 3],
            ["arc", "lru", "noop"],
            ["noop", "arc", "arc"],
        ]),
        watermark in prop::sample::select(vec![0.0, 0.5, 0.8, 1.0]),
        eviction_ratio in prop::sample::select(vec![0.0, 0.2, 0.5, 1.0]),
        tick_every_requests in 1usize..4,
        retain in any::<bool>(),
        skip_l1 in any::<bool>(),
        save_decode_cache in any::<bool>(),
        end_session_touch in any::<bool>(),
    ) {
        let chosen: Vec<usize> = (0..=l2).collect();
        let tiers: Vec<TierSpec> = chosen.iter().map(|&k| TierSpec {
            policy: policies[k].to_owned(),
            ..TierSpec::new(["cpu", "fs", "s3"][k], capacities[k] as u64)
        }).collect();
        let options = [
            ("watermark", watermark.to_string()),
            ("eviction_ratio", eviction_ratio.to_string()),
            ("l2_watermark", watermark.to_string()),
            ("l2_eviction_ratio", eviction_ratio.to_string()),
            ("tick_every_requests", tick_every_requests.to_string()),
            ("prefetch_policy", if retain { "retain" } else { "default" }.to_owned()),
            ("store_policy", if skip_l1 { "skip_l1" } else { "default" }.to_owned()),
            ("save_decode_cache", save_decode_cache.to_string()),
            ("end_session_touch", end_session_touch.to_string()),
        ];
        let mut model: Box<dyn EngineModel> =
            with_setup(&tiers, mp::OPTIONS, &options, mp::build).unwrap();
        let tier = |&k: &usize| Tier::new(capacities[k], policies[k], watermark, eviction_ratio);
        let mut twin = Server {
            tiers: chosen.iter().map(tier).collect(),
            tick_every_requests,
            retain,
            skip_l1,
            save_decode_cache,
            end_session_touch,
            requests: 0,
        };
        let mut out = Recorder::new(&tiers, BLOCKS, true);
        let (mut hits, mut unnamed) = (vec![0; tiers.len()], 0);
        for (index, ask) in asks.iter().enumerate() {
            let request = ask.request(index);
            out.begin(request.index);
            model.serve(&request, &mut out);
            out.end(&request);
            prop_assert_eq!(model.validate(), Ok(()));
            let (prompt, decoded) = ask.chunks(1, &mut unnamed);
            twin.serve(&prompt, &decoded);
            for (k, tier) in twin.tiers.iter().enumerate() {
                hits[k] += out.rows()[k].tokens;
                prop_assert_eq!(hits[k], tier.hit_chunks * BLOCK_TOKENS, "request {} tier {}", index, k);
                prop_assert_eq!(out.counters()[k].resident as usize, tier.resident());
                prop_assert_eq!(out.counters()[k].no_room, tier.no_room);
                let mut content = model.content(k);
                content.reverse();
                prop_assert_eq!(content, names(tier.lists[..2].concat()), "request {} tier {}", index, k);
            }
        }
        let contents: Vec<Vec<u32>> = (0..tiers.len()).map(|k| model.content(k)).collect();
        let (events, _) = out.finish(&contents);
        for (k, tier) in twin.tiers.iter().enumerate() {
            prop_assert_eq!(logged(&events, k), named(&tier.events), "tier {}", k);
        }
    }
}
