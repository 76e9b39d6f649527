//! The vectors that SGLang's own tree produced.

use super::tier;
use crate::engine::tests::golden::{check, external};
use crate::engine::{Grain, Outputs, Profile};
use crate::ingest::{ReadOptions, Source, read};
use crate::progress::Progress;
use crate::replay::replay_profile;
use crate::replay::testing::shared;
use std::sync::Arc;

#[test]
fn every_vector_is_met() {
    check("sglang", |_| true);
}

#[test]
fn the_conversation_trace_is_met() {
    for run in external("sglang", |entry| entry["config"]["paths"] == "full") {
        run.check();
    }
}

/// Over all listed blocks the vectors' tokens can exceed a prompt, which kvreplay's never do; blocks and
/// evictions are the same.
#[test]
fn the_conversation_trace_is_met_over_listed_blocks() {
    let Some(path) = shared("traces/conversation_trace.jsonl") else { return };
    let options = ReadOptions { block_tokens: Some(512), ..ReadOptions::default() };
    let trace = Arc::new(read(vec![Source::path(path)], &options, &Progress::default()).unwrap());
    let options =
        [("block_size", "512"), ("outputs", "none"), ("last_token", "false"), ("listed_paths", "true")]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
    let profile = Profile::parse("sglang@0.5.23", &options).unwrap();
    let grain = Grain::new(&trace, 512, Outputs::None).unwrap();
    for run in external("sglang", |entry| entry["config"]["paths"] == "listed") {
        let pages = run.entry["config"]["gpu_blocks_usable"].as_u64().unwrap();
        let tiers = [tier("gpu", pages, "lru")];
        let progress = Progress::default();
        let result = replay_profile(&grain, &profile, &tiers, false, false, false, &progress).unwrap();
        let got = &result.tiers[0].counters;
        let want = &run.entry["totals"];
        assert_eq!(
            (got.served, got.evicted),
            (want["gpu_hit_blocks"].as_u64().unwrap(), want["gpu_evicted_blocks"].as_u64().unwrap(),)
        );
    }
}
