//! The golden vectors of the engines' own code (`shared/golden/engines`), exact.
//!
//! A room calls [`check`] with the name of its engine: every wanted vector is replayed under the profile and the tiers
//! that its entry in the manifest describes, the model checks itself after every request, and each line is
//! compared. [`external`] lists the runs on the Mooncake conversation trace, [`Run::check`] makes one.

use crate::engine::{EngineModel, EngineRequest, Grain, Outputs, Profile, Recorder};
use crate::hierarchy::{EventKind, Events, TierSpec};
use crate::ingest::{ReadOptions, Source, read};
use crate::progress::Progress;
use crate::replay::replay_profile;
use crate::replay::testing::{shared, u64s};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

const FOLDER: &str = "golden/engines";

/// A profile and its tiers, as an entry of the manifest describes them.
pub(crate) struct Run {
    /// The whole entry.
    pub(crate) entry: Value,
    profile: Profile,
    pub(crate) tiers: Vec<TierSpec>,
}

/// Requests of a trace with dense block numbers in order of appearance.
struct Rows {
    paths: Vec<Row>,
    ids: Vec<u64>,
}

struct Row {
    listed: Vec<u32>,
    decoded: Vec<u32>,
    prompt_tokens: u64,
}

/// What one request did.
struct Done {
    hit_tokens: Vec<u64>,
    prompt_tokens: u64,
    /// Whether the last tier had no room for something.
    no_room: bool,
}

fn manifest() -> Option<Value> {
    let text = std::fs::read_to_string(shared(&format!("{FOLDER}/manifest.json"))?).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

fn runs(entries: &Value, engine: &str, wanted: impl Fn(&Value) -> bool) -> Vec<Run> {
    let entries = entries.as_array().unwrap().iter();
    entries.filter(|entry| entry["engine"] == engine && wanted(entry)).cloned().map(Run::new).collect()
}

/// Replays every wanted vector of an engine and fails with the first difference of each.
pub(crate) fn check(engine: &str, wanted: impl Fn(&Value) -> bool) {
    let Some(manifest) = manifest() else { return };
    let vectors = runs(&manifest["vectors"], engine, wanted);
    assert!(!vectors.is_empty(), "no vector of {engine}");
    let bad: Vec<String> = vectors.iter().filter_map(|vector| vector.compare().err()).collect();
    assert!(bad.is_empty(), "{} of {} vectors differ:\n{}", bad.len(), vectors.len(), bad.join("\n"));
}

/// The wanted runs of an engine on the Mooncake conversation trace.
pub(crate) fn external(engine: &str, wanted: impl Fn(&Value) -> bool) -> Vec<Run> {
    let Some(manifest) = manifest() else { return Vec::new() };
    runs(&manifest["external_trace"]["runs"], engine, wanted)
}

impl Run {
    fn new(entry: Value) -> Self {
        let (profile, options, tiers) = spec_of(&entry);
        let options: Vec<(String, String)> =
            options.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        let profile = Profile::parse(&profile, &options)
            .unwrap_or_else(|error| panic!("{}: {error}", entry["name"].as_str().unwrap()));
        Self { entry, profile, tiers }
    }

    pub(crate) fn name(&self) -> &str {
        self.entry["name"].as_str().unwrap()
    }

    fn compare(&self) -> Result<(), String> {
        let folder = shared(FOLDER).unwrap();
        let rows = Rows::read(&folder.join(self.entry["trace"].as_str().unwrap()));
        let want = std::fs::read_to_string(folder.join(self.entry["expected"].as_str().unwrap())).unwrap();
        let want: Vec<Value> = want.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(rows.paths.len() + 1, want.len());
        let mut model = self.model(rows.ids.len() as u32);
        let mut out = Recorder::new(&self.tiers, rows.ids.len() as u32, true);
        let mut done = Vec::new();
        for (index, row) in rows.paths.iter().enumerate() {
            let request = row.request(index as u32, self.profile.block_tokens().unwrap());
            let no_room = |out: &Recorder| out.counters()[self.tiers.len() - 1].no_room;
            let before = no_room(&out);
            out.begin(request.index);
            model.serve(&request, &mut out);
            out.end(&request);
            model.validate().map_err(|error| format!("{} request {index}: {error}", self.name()))?;
            let hit_tokens = out.rows().iter().map(|row| row.tokens).collect();
            let no_room = no_room(&out) > before;
            done.push(Done { hit_tokens, prompt_tokens: row.prompt_tokens, no_room });
        }
        let content: Vec<Vec<u32>> = (0..self.tiers.len()).map(|tier| model.content(tier)).collect();
        let (events, _) = out.finish(&content);
        let events = Log::new(&events, &rows.ids);
        for (index, (done, want)) in done.iter().zip(&want).enumerate() {
            self.compare_request(index as u32, done, &events, want)
                .map_err(|error| format!("{} request {index}: {error}", self.name()))?;
        }
        Ok(())
    }

    fn model(&self, blocks: u32) -> Box<dyn EngineModel> {
        self.profile.build_for(&self.tiers, blocks, self.profile.block_tokens().unwrap(), false).unwrap()
    }

    fn compare_request(&self, index: u32, done: &Done, events: &Log, want: &Value) -> Result<(), String> {
        for (k, tier) in self.tiers.iter().enumerate() {
            let hits = if tier.name == "cpu" && !want["loaded_tokens"].is_null() {
                "loaded_tokens".to_owned()
            } else {
                format!("{}_hit_tokens", tier.name)
            };
            same(&hits, &Value::from(done.hit_tokens[k]), &want[&hits])?;
            let evicted = Value::from(events.evicted.get(&(index, k)).cloned().unwrap_or_default());
            same("evicted", &evicted, &want[&format!("{}_evicted", tier.name)])?;
            let nodes: Vec<u64> =
                want["gpu_evicted_nodes"].as_array().into_iter().flatten().flat_map(u64s).collect();
            if !want["gpu_evicted_nodes"].is_null() {
                same("evicted nodes", &evicted, &Value::from(nodes))?;
            }
            let mut stored = events.stored.get(&(index, k)).cloned().unwrap_or_default();
            stored.sort_unstable();
            same("stored", &Value::from(stored), &want[&format!("{}_stored", tier.name)])?;
        }
        if self.entry["engine"] == "lmcache" {
            let refused = want["store_refused"] == true || want["store_truncated"] == true;
            same("stores without room", &Value::from(done.no_room), &Value::from(refused))?;
        }
        let computed = done.prompt_tokens - done.hit_tokens.iter().sum::<u64>();
        same("computed_tokens", &Value::from(computed), &want["computed_tokens"])
    }

    /// Replays the Mooncake conversation trace and compares totals and the digest of all hits.
    pub(crate) fn check(&self) {
        let Some(path) = shared("traces/conversation_trace.jsonl") else { return };
        let options = ReadOptions { block_tokens: Some(512), ..ReadOptions::default() };
        let trace = Arc::new(read(vec![Source::path(path)], &options, &Progress::default()).unwrap());
        let grain = Grain::new(&trace, self.profile.block_tokens().unwrap(), Outputs::Listed).unwrap();
        let result =
            replay_profile(&grain, &self.profile, &self.tiers, true, false, false, &Progress::default())
                .unwrap();
        let requests = result.requests.unwrap();
        for (k, tier) in self.tiers.iter().enumerate() {
            let name = format!("{}_hit_tokens", tier.name);
            let hits = &requests.hit_tokens[k];
            let text = hits.iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
            let digest = hex(&Sha256::digest(text));
            let total = hits.iter().map(|&tokens| u64::from(tokens)).sum::<u64>();
            let want = &self.entry["totals"];
            assert_eq!(Value::from(total), want[&name], "{} {name}", self.name());
            assert_eq!(Value::from(digest), self.entry[&format!("{name}_sha256")], "{} {name}", self.name());
            let evicted = &want[&format!("{}_evicted", tier.name)];
            if !evicted.is_null() {
                let chunk = u64::from(tier.chunk_blocks);
                assert_eq!(
                    Value::from(result.tiers[k].counters.evicted / chunk),
                    *evicted,
                    "{}",
                    self.name()
                );
            }
        }
    }
}

/// Ids of events by request and tier, in order.
#[derive(Default)]
struct Log {
    evicted: HashMap<(u32, usize), Vec<u64>>,
    stored: HashMap<(u32, usize), Vec<u64>>,
}

impl Log {
    fn new(events: &Events, ids: &[u64]) -> Self {
        let mut log = Self::default();
        for i in 0..events.len() {
            let map = match events.kind[i] {
                EventKind::Evict => &mut log.evicted,
                EventKind::Insert => &mut log.stored,
                EventKind::Hit | EventKind::Reject | EventKind::Move => continue,
            };
            let key = (events.request[i], usize::from(events.tier[i]));
            map.entry(key).or_default().push(ids[events.block[i] as usize]);
        }
        log
    }
}

impl Rows {
    fn read(file: &Path) -> Self {
        let mut rows = Self { paths: Vec::new(), ids: Vec::new() };
        let mut numbers = HashMap::new();
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            let mut path = |ids: &Value| -> Vec<u32> {
                let ids = ids.as_array().map_or_else(Vec::new, |_| u64s(ids));
                let number = |id| {
                    *numbers.entry(id).or_insert_with(|| {
                        rows.ids.push(id);
                        rows.ids.len() as u32 - 1
                    })
                };
                ids.into_iter().map(number).collect()
            };
            let (listed, decoded) = (path(&line["hash_ids"]), path(&line["output_hash_ids"]));
            rows.paths.push(Row { listed, decoded, prompt_tokens: line["input_length"].as_u64().unwrap() });
        }
        rows
    }
}

impl Row {
    fn request(&self, index: u32, block_tokens: u32) -> EngineRequest<'_> {
        EngineRequest {
            index,
            listed: &self.listed,
            prompt_tokens: self.prompt_tokens,
            decoded: &self.decoded,
            decoded_tokens: self.decoded.len() as u64 * u64::from(block_tokens),
            block_tokens,
            now_us: None,
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

fn same(what: &str, got: &Value, want: &Value) -> Result<(), String> {
    if want.is_null() || got == want {
        return Ok(());
    }
    Err(format!("{what} are {got}, not {want}"))
}

/// Profile, options and tiers of an entry, in the words of interface.md section 5.
fn spec_of(entry: &Value) -> (String, Vec<(&'static str, String)>, Vec<TierSpec>) {
    let (config, version) = (&entry["config"], entry["engine_version"].as_str().unwrap());
    let number = |name: &str| config[name].as_u64();
    let chunk_blocks = number("blocks_per_chunk").unwrap_or(1);
    let gpu = TierSpec {
        policy: sglang_policy(config),
        ..TierSpec::new("gpu", number("gpu_blocks_total").or(number("gpu_blocks_usable")).unwrap_or(0))
    };
    let cpu = |chunk_blocks: u64| TierSpec {
        policy: config["cpu_policy"].as_str().unwrap_or("lru").to_owned(),
        chunk_blocks: chunk_blocks as u32,
        ..TierSpec::new("cpu", number("cpu_chunks").unwrap_or(0) * chunk_blocks)
    };
    let block_tokens = number("block_size").or(number("chunk_size")).unwrap();
    let mut options = vec![("block_size", block_tokens.to_string()), ("outputs", "listed".to_owned())];
    match entry["engine"].as_str().unwrap() {
        "vllm" => {
            let threshold = number("store_threshold").unwrap_or(0);
            let mut cpu = cpu(chunk_blocks);
            if threshold >= 2 {
                let tracker = number("max_tracker_size").unwrap();
                cpu.admission = format!("store_threshold({threshold}, tracker={tracker})");
            }
            if let Some(decode) = config["offload_decode"].as_bool() {
                options.push(("offload_decode", decode.to_string()));
            }
            let tiers = match config["tiers"].as_str().unwrap() {
                "gpu" => vec![gpu],
                "cpu" => vec![cpu],
                _ => vec![gpu, cpu],
            };
            (format!("vllm@{version}"), options, tiers)
        }
        "sglang" => {
            options.push(("last_token", config["last_token_rule"].to_string()));
            options.push(("listed_paths", (config["paths"] == "listed").to_string()));
            (format!("sglang@{version}"), options, vec![gpu])
        }
        "lmcache" if config["mode"] == "in_process" => (format!("lmcache@{version}"), options, vec![cpu(1)]),
        "lmcache" => {
            for name in ["watermark", "eviction_ratio", "tick_every_requests"] {
                options.push((name, config[name].to_string()));
            }
            (format!("lmcache-mp@{version}"), options, vec![cpu(1)])
        }
        _ => {
            let (vllm, lmcache) = version.split_once('+').unwrap();
            let chunk_blocks = number("chunk_size").unwrap() / block_tokens;
            (format!("vllm@{vllm}+lmcache@{lmcache}"), options, vec![gpu, cpu(chunk_blocks)])
        }
    }
}

fn sglang_policy(config: &Value) -> String {
    let policy = config["policy"].as_str().unwrap_or("lru");
    match config["protected_threshold"].as_u64() {
        Some(threshold) => format!("{policy}(protected_threshold={threshold})"),
        None => policy.to_owned(),
    }
}
