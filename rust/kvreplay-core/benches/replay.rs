//! Block references per second of every policy on a generated trace, one tier, both modes.
//!
//! `cargo bench --bench replay` prints criterion's wall times; set `KVREPLAY_BENCH_CPU=all` (or a policy's name)
//! for CPU seconds, which neighbours on the same cores disturb less, and `KVREPLAY_BENCH_TRACE` to the path of
//! a Mooncake-style JSONL file with `KVREPLAY_BENCH_CAPACITY` blocks to replay that one instead.
//! `KVREPLAY_BENCH_MODE` keeps one of `object`, `prefix` and `leaf`, `KVREPLAY_BENCH_RUNS` sets how often.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use kvreplay_core::hierarchy::TierSpec;
use kvreplay_core::policy::{Closure, POLICIES};
use kvreplay_core::progress::Progress;
use kvreplay_core::replay::{Mode, ReplaySpec, replay};
use kvreplay_core::trace::{ForestBuilder, Kinds, Origin, Quality, Requests, Tail, Trace};

/// Sessions that grow turn by turn under a few system prompts, with one-off documents in between.
fn trace(requests: usize) -> Trace {
    let mut state = 0x2545_F491_4F6C_DD1D_u64;
    let mut next = |below: u64| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state % below
    };
    let mut sessions: Vec<Vec<u64>> = vec![Vec::new(); requests / 10 + 1];
    let (mut builder, mut columns, mut fresh) = (ForestBuilder::new(), Requests::default(), 1_u64 << 32);
    let mut extend = |path: &mut Vec<u64>, blocks: u64| {
        path.extend(fresh..fresh + blocks);
        fresh += blocks;
    };
    for request in 0..requests {
        let path = if next(10) == 0 {
            let mut document = Vec::new();
            extend(&mut document, 20 + next(60));
            document
        } else {
            let at = next(sessions.len() as u64) as usize;
            let session = &mut sessions[at];
            if session.is_empty() || session.len() > 120 {
                let prompt = next(40) << 10;
                *session = (prompt..prompt + 8).collect();
            }
            extend(session, 3 + next(12));
            session.clone()
        };
        columns.node.push(builder.push(0, &path, Kinds::Numbers).unwrap());
        columns.input_tokens.push(path.len() as u32 * 16);
        columns.output_tokens.push(1);
        columns.arrival_us.get_or_insert_default().push(request as i64 * 1000);
    }
    let (forest, ids) = builder.finish();
    Trace::new(forest, ids, columns, 16, Tail::Floor, Origin::default(), Quality::default())
}

/// A Mooncake-style file of plain rows; benchmarks take no malformed ones.
fn read(file: &str) -> Trace {
    let (mut builder, mut columns) = (ForestBuilder::new(), Requests::default());
    let text = std::fs::read_to_string(file).expect("the trace can be read");
    for line in text.lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("a row is JSON");
        let ids =
            row["hash_ids"].as_array().expect("a row has ids").iter().filter_map(serde_json::Value::as_u64);
        columns.node.push(builder.push(0, &ids.collect::<Vec<_>>(), Kinds::Numbers).unwrap());
        columns.input_tokens.push(row["input_length"].as_u64().unwrap_or(0) as u32);
        columns.output_tokens.push(1);
        columns.arrival_us.get_or_insert_default().push(row["timestamp"].as_i64().unwrap_or(0) * 1000);
    }
    let (forest, ids) = builder.finish();
    Trace::new(forest, ids, columns, 512, Tail::Ceil, Origin::default(), Quality::default())
}

fn cpu_seconds() -> f64 {
    // utime and stime of this process, in clock ticks of 10 ms on Linux.
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks: Vec<f64> = stat
        .rsplit(')')
        .next()
        .unwrap_or("")
        .split_whitespace()
        .skip(11)
        .take(2)
        .filter_map(|t| t.parse().ok())
        .collect();
    ticks.iter().sum::<f64>() / 100.0
}

fn policies(c: &mut Criterion) {
    let trace = std::env::var("KVREPLAY_BENCH_TRACE").map_or_else(|_| trace(100_000), |file| read(&file));
    let totals = trace.totals();
    let capacity = std::env::var("KVREPLAY_BENCH_CAPACITY").ok().and_then(|blocks| blocks.parse().ok());
    let capacity = capacity.unwrap_or(u64::from(trace.forest.blocks()) / 16);
    let cpu = std::env::var("KVREPLAY_BENCH_CPU").ok();
    eprintln!(
        "{} block references, {} distinct, {capacity} blocks",
        totals.block_refs,
        trace.forest.blocks()
    );
    for (mode, closure, label) in [
        (Mode::Object, Closure::None, "object"),
        (Mode::Prefix, Closure::None, "prefix"),
        (Mode::Prefix, Closure::Leaf, "leaf"),
    ] {
        if std::env::var("KVREPLAY_BENCH_MODE").is_ok_and(|only| only != label) {
            continue;
        }
        let mut group = c.benchmark_group(label);
        group.throughput(Throughput::Elements(totals.block_refs)).sample_size(10);
        for policy in POLICIES {
            let tier = TierSpec { policy: policy.name.to_owned(), closure, ..TierSpec::new("t", capacity) };
            let spec = ReplaySpec { mode, ..ReplaySpec::new(vec![tier]) };
            let run = || replay(&trace, &spec, &Progress::default()).unwrap().tiers[0].counters.served;
            if let Some(only) = &cpu {
                if only != "all" && only != policy.name {
                    continue;
                }
                let hits = run();
                let before = cpu_seconds();
                let runs =
                    std::env::var("KVREPLAY_BENCH_RUNS").ok().and_then(|n| n.parse().ok()).unwrap_or(8_u32);
                for _ in 0..runs {
                    assert_eq!(run(), hits);
                }
                let rate = totals.block_refs as f64 * f64::from(runs) / (cpu_seconds() - before) / 1e6;
                eprintln!("{label:8} {:16} {rate:8.1} M refs/s  hits {hits}", policy.name);
            } else {
                group.bench_function(policy.name, |b| b.iter(run));
            }
        }
        group.finish();
    }
}

criterion_group!(benches, policies);
criterion_main!(benches);
