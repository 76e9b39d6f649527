//! Traces for the tests of this module.

use crate::trace::{ForestBuilder, Kinds, Origin, Quality, Requests, Tail, Trace};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// A trace of paths with one request a millisecond.
pub(crate) fn trace_of(paths: &[Vec<u64>], input_tokens: &[u32], block_tokens: u32) -> Trace {
    let times: Vec<i64> = (0..paths.len() as i64).collect();
    timed(paths, input_tokens, &times, block_tokens)
}

/// A trace of paths that are full blocks of one token each.
pub(crate) fn full_blocks(paths: &[Vec<u64>]) -> Trace {
    let tokens: Vec<u32> = paths.iter().map(|path| path.len() as u32).collect();
    trace_of(paths, &tokens, 1)
}

fn timed(paths: &[Vec<u64>], input_tokens: &[u32], times_ms: &[i64], block_tokens: u32) -> Trace {
    let mut order: Vec<usize> = (0..paths.len()).collect();
    order.sort_by_key(|&i| times_ms[i]);
    let mut builder = ForestBuilder::new();
    let mut requests = Requests { arrival_us: Some(Vec::new()), ..Requests::default() };
    for i in order {
        requests.node.push(builder.push(0, &paths[i], Kinds::Numbers).unwrap());
        requests.input_tokens.push(input_tokens[i]);
        requests.output_tokens.push(1);
        requests.arrival_us.as_mut().unwrap().push(times_ms[i] * 1000);
    }
    let (forest, ids) = builder.finish();
    Trace::new(forest, ids, requests, block_tokens, Tail::Ceil, Origin::default(), Quality::default())
}

/// The shared data beside the checkout, where there is one.
pub(crate) fn shared(name: &str) -> Option<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().ok()?;
    // A worktree lies one level deeper than the checkout itself.
    let found =
        root.ancestors().skip(1).take(2).map(|up| up.join("shared").join(name)).find(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: ../shared/{name} is not there");
    }
    found
}

/// A file of golden values.
pub(crate) fn golden(name: &str) -> Option<Value> {
    let text = std::fs::read_to_string(shared(&format!("golden/textbook/{name}"))?).unwrap();
    Some(serde_json::from_str(&text).unwrap())
}

pub(crate) fn u64s(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect()
}

fn u32s(value: &Value) -> Vec<u32> {
    u64s(value).into_iter().map(|v| u32::try_from(v).unwrap()).collect()
}

fn paths(value: &Value) -> Vec<Vec<u64>> {
    value.as_array().unwrap().iter().map(u64s).collect()
}

/// A trace of `random_traces.json` or `counterexamples.json`.
pub(crate) fn golden_trace(item: &Value) -> Trace {
    let paths = paths(&item["paths"]);
    let times = item["timestamp"].as_array().map_or_else(
        || (0..paths.len() as i64).collect(),
        |times| times.iter().map(|t| t.as_i64().unwrap()).collect::<Vec<_>>(),
    );
    let block_tokens = u32::try_from(item["block_tokens"].as_u64().unwrap()).unwrap();
    timed(&paths, &u32s(&item["input_tokens"]), &times, block_tokens)
}

/// A trace file in the shape of `mini.jsonl`.
pub(crate) fn jsonl_trace(file: &Path, block_tokens: u32) -> Trace {
    let rows: Vec<Value> = std::fs::read_to_string(file)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let tokens: Vec<u32> =
        rows.iter().map(|r| u32::try_from(r["input_length"].as_u64().unwrap()).unwrap()).collect();
    let times: Vec<i64> = rows.iter().map(|r| r["timestamp"].as_i64().unwrap()).collect();
    let paths: Vec<Vec<u64>> = rows.iter().map(|r| u64s(&r["hash_ids"])).collect();
    timed(&paths, &tokens, &times, block_tokens)
}
