//! The golden values of independent reference simulators, exact (`shared/golden/textbook`).

use super::testing::{golden, golden_trace, jsonl_trace, shared, u64s};
use super::{Mode, ReplayResult, ReplaySpec, replay};
use crate::hierarchy::{Counters, EventKind, FILLS, TOUCHES, TierSpec};
use crate::policy::{Closure, POLICIES};
use crate::progress::Progress;
use crate::trace::Trace;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Our spec of a golden policy, `None` while there is none of that name.
fn policy(name: &str) -> Option<String> {
    let spec = if name == "opt_nobypass" { "opt(bypass=false)" } else { name };
    let plain = spec.split('(').next().unwrap();
    POLICIES.iter().any(|p| p.name == plain).then(|| spec.to_owned())
}

fn tier(policy: &str, capacity: u64) -> TierSpec {
    TierSpec { policy: policy.to_owned(), closure: Closure::None, ..TierSpec::new("t", capacity) }
}

fn run(trace: &Trace, spec: &ReplaySpec) -> ReplayResult {
    replay(trace, spec, &Progress::default()).unwrap()
}

fn trace_files() -> BTreeMap<&'static str, &'static str> {
    BTreeMap::from([
        ("mini", "golden/textbook/mini.jsonl"),
        ("conversation", "traces/conversation_trace.jsonl"),
        ("synthetic", "traces/synthetic_trace.jsonl"),
    ])
}

/// Calls `check` for every trace and policy of `object.json` or `prefix.json` that is there.
fn each_trace(file: &str, check: impl Fn(&Trace, &str, &[u64], &Value)) {
    let Some(all) = golden(file) else { return };
    for (name, item) in all.as_object().unwrap() {
        let Some(path) = shared(trace_files()[name.as_str()]) else { continue };
        let trace =
            jsonl_trace(&path, u32::try_from(item["trace"]["block_tokens"].as_u64().unwrap()).unwrap());
        assert_eq!(u64::from(trace.forest.blocks()), item["trace"]["unique"].as_u64().unwrap());
        let capacities = u64s(&item["capacity"]);
        for (name, want) in item["policies"].as_object().unwrap() {
            if let Some(policy) = policy(name) {
                check(&trace, &policy, &capacities, want);
            }
        }
    }
}

#[test]
fn object_mode_hit_counts() {
    each_trace("object.json", |trace, policy, capacities, want| {
        let got: Vec<(u64, u64)> = capacities
            .iter()
            .map(|&capacity| {
                let spec = ReplaySpec { mode: Mode::Object, ..ReplaySpec::new(vec![tier(policy, capacity)]) };
                let counters = run(trace, &spec).tiers[0].counters;
                (counters.served, counters.usable)
            })
            .collect();
        let want: Vec<(u64, u64)> = u64s(&want["hits"]).into_iter().zip(u64s(&want["usable"])).collect();
        assert_eq!(got, want, "{policy}");
    });
}

#[test]
fn prefix_mode_hit_counts() {
    each_trace("prefix.json", |trace, policy, capacities, want| {
        for (i, &capacity) in capacities.iter().enumerate() {
            let spec = ReplaySpec { per_request: true, ..ReplaySpec::new(vec![tier(policy, capacity)]) };
            let result = run(trace, &spec);
            let counters = result.tiers[0].counters;
            let blocks = &result.requests.unwrap().hit_blocks[0];
            let full = (0..trace.len()).filter(|&r| blocks[r] > 0 && blocks[r] == trace.path_len(r)).count();
            let got = [counters.served, counters.served_tokens, counters.hit_requests, full as u64];
            let fields = ["hit_blocks", "hit_tokens", "hit_requests", "full_hit_requests"];
            assert_eq!(got, fields.map(|field| want[field][i].as_u64().unwrap()), "{policy} at {capacity}");
        }
    });
}

fn random_traces() -> Option<BTreeMap<String, Trace>> {
    let all = golden("random_traces.json")?;
    let named = |item: &Value| (item["name"].as_str().unwrap().to_owned(), golden_trace(item));
    Some(all.as_array().unwrap().iter().map(named).collect())
}

fn evicted(trace: &Trace, result: &ReplayResult, tier: u16) -> Vec<u64> {
    let events = &result.events;
    (0..events.len())
        .filter(|&i| events.tier[i] == tier && events.kind[i] == EventKind::Evict)
        .map(|i| trace.ids.number(events.block[i]))
        .collect()
}

fn content(trace: &Trace, result: &ReplayResult, tier: usize) -> Vec<u64> {
    let mut ids: Vec<u64> = result.tiers[tier].content.iter().map(|&block| trace.ids.number(block)).collect();
    ids.sort_unstable();
    ids
}

fn list(value: &Value) -> Vec<u64> {
    if value.is_null() { Vec::new() } else { u64s(value) }
}

#[test]
fn single_tiers_step_by_step() {
    let (Some(traces), Some(items)) = (random_traces(), golden("random_single.json")) else { return };
    for item in items.as_array().unwrap() {
        let trace = &traces[item["trace"].as_str().unwrap()];
        for want in item["runs"].as_array().unwrap() {
            let name = want["policy"].as_str().unwrap();
            let Some(policy) = policy(name) else { continue };
            single_tier(trace, &policy, want, item["trace"].as_str().unwrap());
        }
    }
}

fn single_tier(trace: &Trace, policy: &str, want: &Value, name: &str) {
    let capacity = want["capacity"].as_u64().unwrap();
    let spec =
        ReplaySpec { per_request: true, events: true, ..ReplaySpec::new(vec![tier(policy, capacity)]) };
    let result = run(trace, &spec);
    let case = format!("{name} {policy} at {capacity}");
    let hits: Vec<u64> =
        result.requests.as_ref().unwrap().hit_blocks[0].iter().map(|&b| u64::from(b)).collect();
    assert_eq!(hits, u64s(&want["hit_blocks"]), "{case}");
    assert_eq!(result.tiers[0].counters.served_tokens, want["hit_tokens"].as_u64().unwrap(), "{case}");
    if !policy.starts_with("opt") {
        assert_eq!(evicted(trace, &result, 0), list(&want["evicted"]), "{case}");
        assert_eq!(content(trace, &result, 0), list(&want["final"]), "{case}");
        assert_eq!(result.tiers[0].counters.stranded, want["stranded"].as_u64().unwrap_or(0), "{case}");
    }
    let object = ReplaySpec { mode: Mode::Object, ..ReplaySpec::new(vec![tier(policy, capacity)]) };
    let counters = run(trace, &object).tiers[0].counters;
    if let Some(hits) = want["object_hits"].as_u64() {
        assert_eq!(counters.served, hits, "{case} object mode");
    }
    if let Some(usable) = want["object_usable"].as_u64() {
        assert_eq!(counters.usable, usable, "{case} object mode");
    }
}

fn admission(spec: &Value) -> String {
    match spec["kind"].as_str() {
        None | Some("always") => "always".to_owned(),
        Some("min_count") => format!("min_count({}, tracker={})", spec["n"], spec["entries"]),
        Some("doubling") => format!(
            "doubling(threshold={}, decay_every=\"{} offers\", max_entries={})",
            spec["threshold"], spec["decay_every"], spec["max_entries"]
        ),
        Some(other) => panic!("unknown filter {other}"),
    }
}

fn golden_tiers(item: &Value) -> Option<Vec<TierSpec>> {
    let tiers = item["tiers"].as_array().unwrap().iter().enumerate();
    tiers
        .map(|(k, t)| {
            let mut tier = tier(&policy(t["policy"].as_str().unwrap())?, t["capacity"].as_u64().unwrap());
            tier.name = format!("t{}", k + 1);
            tier.admission = admission(&t["admission"]);
            if crate::admission::FILTERS.iter().all(|f| !tier.admission.starts_with(f.name)) {
                return None;
            }
            if let Some(fill) = t["fill"].as_str() {
                tier.fill = FILLS.iter().find(|f| f.name == fill).unwrap().fill;
            }
            if let Some(touch) = t["touch"].as_str() {
                tier.touch = TOUCHES.iter().find(|(name, _)| *name == touch).unwrap().1;
            }
            Some(tier)
        })
        .collect()
}

fn golden_counters(c: &Counters) -> BTreeMap<&'static str, u64> {
    let all = [
        ("asked_blocks", c.asked),
        ("asked_tokens", c.asked_tokens),
        ("served_blocks", c.served),
        ("served_tokens", c.served_tokens),
        ("stranded", c.stranded),
        ("offered", c.offered),
        ("admitted", c.admitted),
        ("rejected_filter", c.rejected_filter),
        ("rejected_no_parent", c.rejected_no_parent),
        ("no_room", c.no_room),
        ("already_held", c.already_held),
        ("inserted_compute", c.inserted_compute),
        ("inserted_promotion", c.inserted_promotion),
        ("inserted_demotion", c.inserted_demotion),
        ("evicted", c.evicted),
        ("moved_up", c.moved_up),
        ("superseded", c.superseded),
        ("dead_on_arrival", c.dead_on_arrival),
        ("unread_at_end", c.unread_at_end),
        ("residence_requests", c.residence_requests),
        ("residence_ms", (c.residence_us / 1000) as u64),
        ("final_blocks", c.resident),
    ];
    all.into_iter().filter(|&(_, count)| count > 0).collect()
}

#[test]
fn hierarchies_step_by_step() {
    let (Some(traces), Some(items)) = (random_traces(), golden("random_hierarchies.json")) else { return };
    let (mut done, mut left) = (0, BTreeSet::new());
    for (i, item) in items.as_array().unwrap().iter().enumerate() {
        let Some(tiers) = golden_tiers(item) else {
            left.insert(i);
            continue;
        };
        done += 1;
        let trace = &traces[item["trace"].as_str().unwrap()];
        let spec = ReplaySpec { per_request: true, events: true, residence: true, ..ReplaySpec::new(tiers) };
        let result = run(trace, &spec);
        for k in 0..spec.tiers.len() {
            let case = format!("run {i}, tier {k}: {:?}", spec.tiers);
            let hits: Vec<u64> =
                result.requests.as_ref().unwrap().hit_blocks[k].iter().map(|&b| u64::from(b)).collect();
            assert_eq!(hits, u64s(&item["hit_blocks"][k]), "{case}");
            assert_eq!(evicted(trace, &result, k as u16), list(&item["evicted"][k]), "{case}");
            assert_eq!(content(trace, &result, k), list(&item["final"][k]), "{case}");
            let want: BTreeMap<&str, u64> = item["counters"][k]
                .as_object()
                .unwrap()
                .iter()
                .map(|(name, count)| (name.as_str(), count.as_u64().unwrap()))
                .filter(|&(_, count)| count > 0)
                .collect();
            assert_eq!(golden_counters(&result.tiers[k].counters), want, "{case}");
        }
    }
    eprintln!("{done} hierarchies compared, {} left out", left.len());
}

#[test]
fn counterexamples() {
    let Some(items) = golden("counterexamples.json") else { return };
    for item in items.as_array().unwrap() {
        let trace = golden_trace(item);
        let served = |policy: &str, capacity: u64| {
            run(&trace, &ReplaySpec::new(vec![tier(policy, capacity)])).tiers[0].counters
        };
        let claim = item["claim"].as_str().unwrap();
        if let Some(name) = item["policy"].as_str() {
            let Some(policy) = policy(name) else { continue };
            let capacities = list(&item["capacities"]);
            if !capacities.is_empty() {
                let got: Vec<u64> = capacities.iter().map(|&c| served(&policy, c).served).collect();
                assert_eq!(got, u64s(&item["hits"]), "{claim}");
            } else if let Some(capacity) = item["capacity"].as_u64() {
                let got = served(&policy, capacity);
                for (field, value) in [
                    ("policy_blocks", got.served),
                    ("policy_tokens", got.served_tokens),
                    ("without", got.served),
                    ("lru_blocks", served("lru", capacity).served),
                ] {
                    if let Some(want) = item[field].as_u64() {
                        assert_eq!(value, want, "{claim}");
                    }
                }
            }
        } else {
            two_tiers(&trace, item, claim);
        }
    }
}

/// The two counterexamples about hierarchies.
fn two_tiers(trace: &Trace, item: &Value, claim: &str) {
    let capacities = u64s(&item["capacities"]);
    let mut tiers = vec![tier("lru", capacities[0]), tier("lru", capacities[1])];
    tiers[1].name = "u".to_owned();
    let fill = if claim.starts_with("victim") { "victim" } else { "write_through" };
    tiers[1].fill = FILLS.iter().find(|f| f.name == fill).unwrap().fill;
    let spec = ReplaySpec { per_request: true, ..ReplaySpec::new(tiers) };
    let requests = run(trace, &spec).requests.unwrap();
    let got: Vec<u64> =
        (0..trace.len()).map(|r| u64::from(requests.hit_blocks[0][r] + requests.hit_blocks[1][r])).collect();
    assert_eq!(got, u64s(&item["hierarchy"]), "{claim}");
}
