//! Golden numbers of an independent simulator (`../shared/golden/textbook`), where that folder is there.

use super::forests::{Sample, paths_of, tokens, trace_of};
use crate::progress::Progress;
use crate::reference::{hierarchy, opt as literal_opt, stack as literal};
use crate::replay::lru_each;
use crate::stack::{Curve, Fill, Opt, Point, SliceTier, ceiling, exact_slices, slices};
use crate::trace::{Tail, find_rekeyed};
use serde_json::Value;
use std::fs;
use std::path::PathBuf;

fn shared(path: &str) -> Option<String> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let text = fs::read_to_string(root.join(path)).ok();
    if text.is_none() {
        eprintln!("skipped: there is no ../shared/{path}");
    }
    text
}

fn json(path: &str) -> Option<Value> {
    shared(path).map(|text| serde_json::from_str(&text).unwrap())
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).collect()
}

fn small(value: &Value) -> Vec<u32> {
    numbers(value).into_iter().map(|n| u32::try_from(n).unwrap()).collect()
}

/// Requests `(time, input tokens, ids)` in file order, as a trace in replay order.
fn sample(mut rows: Vec<(u64, u32, Vec<u64>)>, block_tokens: u32, tail: Tail) -> Sample {
    rows.sort_by_key(|row| row.0);
    let ids: Vec<Vec<u64>> = rows.iter().map(|row| row.2.clone()).collect();
    let input = rows.iter().map(|row| row.1).collect();
    let trace = trace_of(&ids, input, block_tokens, vec![], tail);
    let paths = paths_of(&trace);
    Sample { trace, paths }
}

fn jsonl(path: &str, block_tokens: u32) -> Option<Sample> {
    let row = |line: &str| {
        let row: Value = serde_json::from_str(line).unwrap();
        let number = |key: &str| row[key].as_u64().unwrap();
        (number("timestamp"), number("input_length") as u32, numbers(&row["hash_ids"]))
    };
    Some(sample(shared(path)?.lines().map(row).collect(), block_tokens, Tail::Ceil))
}

fn columns(trace: &Value) -> Sample {
    let (times, inputs) = (numbers(&trace["timestamp"]), small(&trace["input_tokens"]));
    let paths = trace["paths"].as_array().unwrap().iter().map(numbers);
    let rows = times.into_iter().zip(inputs).zip(paths).map(|((at, input), path)| (at, input, path));
    let tail = if trace["tail"] == "floor" { Tail::Floor } else { Tail::Ceil };
    sample(rows.collect(), trace["block_tokens"].as_u64().unwrap() as u32, tail)
}

fn assert_curve(sample: &Sample, capacities: &[u64], blocks: &[u64], tokens: &[u64]) {
    let curve = Curve::of(&sample.trace, None, &Progress::default()).unwrap();
    let points = curve.at(capacities);
    let column = |of: fn(&Point) -> u64| points.iter().map(of).collect::<Vec<_>>();
    assert_eq!(column(|point| point.hit_blocks), blocks);
    assert_eq!(column(|point| point.hit_tokens), tokens);
}

#[test]
fn the_mini_trace_at_every_capacity() {
    let (Some(sample), Some(want)) =
        (jsonl("golden/textbook/mini.jsonl", 64), json("golden/textbook/lru_curve_mini.json"))
    else {
        return;
    };
    let blocks = numbers(&want["hit_blocks"]);
    let capacities: Vec<u64> = (0..blocks.len() as u64).collect();
    assert_curve(&sample, &capacities, &blocks, &numbers(&want["hit_tokens"]));
    let curve = Curve::of(&sample.trace, None, &Progress::default()).unwrap();
    assert_eq!(curve.last_capacity_blocks(), blocks.len() as u64 - 1);
}

#[test]
fn the_distances_of_the_mini_trace() {
    let (Some(sample), Some(want)) =
        (jsonl("golden/textbook/mini.jsonl", 64), json("golden/textbook/distances_mini.json"))
    else {
        return;
    };
    let curve = Curve::of(&sample.trace, None, &Progress::default()).unwrap();
    let mut before = 0;
    let mut distances = Vec::new();
    for point in curve.steps() {
        distances.push(vec![point.capacity_blocks, point.hit_blocks - before]);
        before = point.hit_blocks;
    }
    let want_distances: Vec<Vec<u64>> =
        want["stack_distance"].as_array().unwrap().iter().map(numbers).collect();
    assert_eq!(distances, want_distances);
    assert_eq!(u64::from(sample.trace.forest.blocks()), want["first_accesses"].as_u64().unwrap());
}

#[test]
fn the_conversation_trace_at_64_capacities() {
    let (Some(sample), Some(want)) =
        (jsonl("traces/conversation_trace.jsonl", 512), json("golden/textbook/lru_curve_conversation.json"))
    else {
        return;
    };
    let capacities = numbers(&want["capacity"]);
    assert_curve(&sample, &capacities, &numbers(&want["hit_blocks"]), &numbers(&want["hit_tokens"]));
}

#[test]
fn the_random_traces() {
    let (Some(traces), Some(want)) =
        (json("golden/textbook/random_traces.json"), json("golden/textbook/random_single.json"))
    else {
        return;
    };
    for (trace, want) in traces.as_array().unwrap().iter().zip(want.as_array().unwrap()) {
        assert_eq!(trace["name"], want["trace"]);
        assert_random(&columns(trace), want);
    }
}

fn assert_random(sample: &Sample, want: &Value) {
    assert_eq!(ceiling(&sample.trace), small(&want["ceiling_blocks"]));
    let distances = literal::accesses(&sample.paths);
    let distances =
        distances.iter().map(|path| path.iter().map(|a| a.map_or(0, |a| a.distance)).collect::<Vec<_>>());
    let want_distances = want["stack_distance"].as_array().unwrap().iter().map(small);
    assert!(distances.eq(want_distances));
    let blocks = numbers(&want["lru_curve_blocks"]);
    let capacities: Vec<u64> = (0..blocks.len() as u64).collect();
    assert_curve(sample, &capacities, &blocks, &numbers(&want["lru_curve_tokens"]));
    let progress = Progress::default();
    let opt = Opt::of(&sample.trace, &progress).unwrap();
    for run in want["runs"].as_array().unwrap() {
        let capacity = run["capacity"].as_u64().unwrap();
        let hits = match run["policy"].as_str().unwrap() {
            "lru" => slices(&sample.trace, &[capacity], &progress).unwrap().remove(0),
            "opt" => opt.hits(capacity, &progress).unwrap(),
            _ => continue,
        };
        assert_eq!(hits, small(&run["hit_blocks"]));
        assert_eq!(tokens(&sample.trace, &hits), run["hit_tokens"].as_u64().unwrap());
        if run["policy"] == "lru" {
            let counters = lru_each(&sample.trace, &[capacity], &progress).unwrap().remove(0);
            assert_eq!(counters.evicted, run["evicted"].as_array().unwrap().len() as u64);
            assert_eq!(counters.resident, run["final"].as_array().unwrap().len() as u64);
        } else {
            assert_eq!(hits, literal_opt::hits(&sample.paths, capacity as usize));
        }
    }
}

#[test]
fn traces_that_are_not_chained() {
    let Some(want) = json("golden/textbook/nonchained.json") else { return };
    for want in want.as_array().unwrap() {
        let sample = columns(want);
        assert_eq!(u64::from(sample.trace.forest.blocks()), want["nodes"].as_u64().unwrap());
        assert_eq!(
            find_rekeyed(&sample.trace.forest, &sample.trace.ids).ids,
            want["rekeyed_ids"].as_u64().unwrap()
        );
        assert_eq!(
            sample.paths,
            want["dense_paths"].as_array().unwrap().iter().map(small).collect::<Vec<_>>()
        );
        assert_eq!(ceiling(&sample.trace), small(&want["ceiling_blocks"]));
        let hits = slices(&sample.trace, &[6], &Progress::default()).unwrap().remove(0);
        assert_eq!(hits, small(&want["lru6_hit_blocks"]));
    }
}

/// The tiers of a golden hierarchy, if all are LRU and admit always.
fn lru_tiers(run: &Value) -> Option<Vec<(hierarchy::Tier, SliceTier)>> {
    let tier = |(k, tier): (usize, &Value)| {
        let always = k == 0 || tier["admission"]["kind"] == "always";
        let capacity_blocks = tier["capacity"].as_u64().unwrap();
        let touch_path = tier["touch"] == "path";
        let (literal, fill) = match tier["fill"].as_str() {
            Some("write_back") => (hierarchy::Fill::WriteBack, Fill::WriteBack),
            Some("victim") => (hierarchy::Fill::Victim, Fill::Victim),
            _ if touch_path || k == 0 => (hierarchy::Fill::WriteThrough, Fill::WriteThrough),
            _ => (hierarchy::Fill::WriteThrough, Fill::WriteThroughServed),
        };
        let literal = hierarchy::Tier { capacity: capacity_blocks as usize, fill: literal, touch_path };
        (tier["policy"] == "lru" && always).then_some((literal, SliceTier { capacity_blocks, fill }))
    };
    run["tiers"].as_array().unwrap().iter().enumerate().map(tier).collect()
}

fn assert_counters(got: &hierarchy::Counters, want: &Value) {
    let of = |key: &str| want[key].as_u64().unwrap_or(0);
    let want = hierarchy::Counters {
        asked: of("asked_blocks"),
        served: of("served_blocks"),
        inserted_compute: of("inserted_compute"),
        inserted_promotion: of("inserted_promotion"),
        inserted_demotion: of("inserted_demotion"),
        evicted: of("evicted"),
        moved_up: of("moved_up"),
        superseded: of("superseded"),
        no_room: of("no_room"),
        already_held: of("already_held"),
        dead_on_arrival: of("dead_on_arrival"),
        unread_at_end: of("unread_at_end"),
    };
    assert_eq!(*got, want);
}

#[test]
fn the_literal_hierarchy_and_its_slices() {
    let (Some(traces), Some(runs)) =
        (json("golden/textbook/random_traces.json"), json("golden/textbook/random_hierarchies.json"))
    else {
        return;
    };
    let samples: Vec<Sample> = traces.as_array().unwrap().iter().map(columns).collect();
    let (mut checked, mut exact) = (0, 0);
    for run in runs.as_array().unwrap() {
        let Some(tiers) = lru_tiers(run) else { continue };
        let at = traces.as_array().unwrap().iter().position(|trace| trace["name"] == run["trace"]).unwrap();
        let sample = &samples[at];
        let (plain, slim): (Vec<_>, Vec<_>) = tiers.into_iter().unzip();
        let outcomes = hierarchy::replay(&sample.paths, &plain);
        for (k, outcome) in outcomes.iter().enumerate() {
            assert_eq!(outcome.hits, small(&run["hit_blocks"][k]));
            assert_counters(&outcome.counters, &run["counters"][k]);
            let evicted: Vec<u64> =
                outcome.evicted.iter().map(|&block| sample.trace.ids.number(block)).collect();
            assert_eq!(evicted, numbers(&run["evicted"][k]));
            let mut content: Vec<u64> =
                outcome.content.iter().map(|&block| sample.trace.ids.number(block)).collect();
            content.sort_unstable();
            assert_eq!(content, numbers(&run["final"][k]));
        }
        checked += 1;
        if let Some(covers) = exact_slices(&slim, sample.trace.totals().longest_path) {
            let hits = slices(&sample.trace, &covers, &Progress::default()).unwrap();
            let total: Vec<u32> = hits.last().unwrap().clone();
            let served = (0..sample.trace.len()).map(|r| outcomes.iter().map(|o| o.hits[r]).sum::<u32>());
            assert!(served.eq(total));
            exact += 1;
        }
    }
    assert!(checked > 0, "no golden hierarchy of LRU tiers");
    eprintln!("{checked} hierarchies of LRU tiers, {exact} of them stack slices");
}
