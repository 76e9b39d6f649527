//! Generated traces are what they say: deterministic, chained, exact in number and consistent in length.

use super::*;
use crate::trace::Id;
use proptest::prelude::*;
use std::collections::HashSet;

const NAMES: [&str; 7] =
    ["multi_turn", "shared_prefix", "rag_documents", "agent", "cyclic_scan", "unique", "mixed"];

fn spec(kind: &str, requests: u64, seed: u64, block_tokens: u32) -> GenerateSpec {
    GenerateSpec { kind: kind.to_owned(), requests, seed, block_tokens, parameters: Vec::new() }
}

fn with(mut spec: GenerateSpec, parameters: &[(&str, f64)]) -> GenerateSpec {
    spec.parameters = parameters.iter().map(|&(name, value)| (name.to_owned(), value)).collect();
    spec
}

fn paths(trace: &Trace) -> Vec<Vec<u64>> {
    let mut path = Vec::new();
    let ids = |path: &[u32]| path.iter().map(|&b| trace.ids.number(b)).collect();
    (0..trace.len())
        .map(|r| {
            trace.forest.path(trace.requests.node[r], &mut path);
            ids(&path)
        })
        .collect()
}

/// Leading blocks of each path that an earlier path has as well: the hits of an infinite cache.
fn reused(paths: &[Vec<u64>]) -> Vec<usize> {
    let mut seen = HashSet::new();
    let mut out = Vec::new();
    for path in paths {
        out.push(path.iter().take_while(|id| seen.contains(*id)).count());
        seen.extend(path.iter().copied());
    }
    out
}

/// Hit blocks of a request-atomic LRU cache, the head of a path most recent.
fn lru_hits(paths: &[Vec<u64>], capacity: usize) -> usize {
    let mut cache: Vec<u64> = Vec::new();
    let mut hits = 0;
    for path in paths {
        let held: HashSet<u64> = cache.iter().copied().collect();
        hits += path.iter().take_while(|id| held.contains(*id)).count();
        let new: HashSet<u64> = path.iter().copied().collect();
        cache.retain(|id| !new.contains(id));
        cache.splice(0..0, path.iter().copied());
        cache.truncate(capacity);
    }
    hits
}

fn message(result: Result<Trace>) -> (String, String) {
    match result.err() {
        Some(Error::Config { message, hint }) => (message, hint),
        other => panic!("not a configuration error: {other:?}"),
    }
}

proptest! {
    #[test]
    fn every_kind_keeps_the_rules_of_a_trace(
        kind in 0..NAMES.len(), requests in 1..120_u64, seed: u64, block_tokens in 1..600_u32,
    ) {
        let spec = spec(NAMES[kind], requests, seed, block_tokens.max(8));
        let (a, b) = (generate(&spec).unwrap(), generate(&spec).unwrap());
        prop_assert_eq!(a.sha256(), b.sha256());
        prop_assert_eq!(a.len() as u64, requests);
        prop_assert!(a.origin.chained);
        prop_assert!(a.quality.findings().is_empty());
        let arrivals = a.requests.arrival_us.as_ref().unwrap();
        prop_assert!(arrivals.windows(2).all(|w| w[0] <= w[1]));
        prop_assert!(arrivals.iter().all(|t| *t >= 0 && t % 1000 == 0));
        for r in 0..a.len() {
            let input = a.requests.input_tokens[r];
            prop_assert!(input > 0 && a.requests.output_tokens[r] > 0);
            prop_assert_eq!(a.path_len(r), input.div_ceil(spec.block_tokens));
        }
        let mut other = spec.clone();
        other.seed = seed.wrapping_add(1);
        prop_assert!(generate(&other).unwrap().sha256() != a.sha256());
    }

    #[test]
    fn any_values_are_taken_or_refused(
        kind in 0..NAMES.len(), which in 0..12_usize, value in prop_oneof![
            Just(f64::NAN), Just(f64::INFINITY), Just(-1.0), Just(0.0), Just(1e300), -1e7..1e7_f64, 0.0..3.0_f64],
    ) {
        let kind = kinds()[kind];
        let parameter = kind.parameters[which % kind.parameters.len()];
        let mut spec = spec(kind.name, 3, 0, 1024);
        spec.parameters = vec![(parameter.name.to_owned(), value)];
        let fits = (parameter.min..=parameter.max).contains(&value)
            && (!parameter.whole || value.fract() == 0.0);
        match generate(&spec) {
            Ok(trace) => prop_assert!(fits && trace.len() == 3),
            Err(error) => prop_assert!(matches!(error, Error::Config { .. }), "{error}"),
        }
    }
}

#[test]
fn the_registry_describes_every_kind() {
    assert_eq!(kinds().iter().map(|k| k.name).collect::<Vec<_>>(), NAMES);
    for kind in kinds() {
        assert!(!kind.doc.is_empty() && !kind.models.is_empty(), "{}", kind.name);
        let names: HashSet<&str> = kind.parameters.iter().map(|p| p.name).collect();
        assert_eq!(names.len(), kind.parameters.len(), "{}", kind.name);
        for p in kind.parameters {
            assert!((p.min..=p.max).contains(&p.default) && !p.doc.is_empty(), "{} {}", kind.name, p.name);
        }
    }
    let scan = kinds().iter().find(|k| k.name == "cyclic_scan").unwrap();
    assert_eq!(scan.parameters_text(), "documents=10, document_tokens=5008, output_tokens=64, interval_s=1");
}

#[test]
fn names_and_values_are_checked_with_help() {
    let (text, hint) = message(generate(&spec("multi_turns", 1, 0, 16)));
    assert_eq!(text, "unknown kind of trace: \"multi_turns\"");
    assert!(hint.starts_with("did you mean multi_turn? known: multi_turn, shared_prefix, "), "{hint}");
    let (_, hint) = message(generate(&spec("zzzzzzzzzzzz", 1, 0, 16)));
    assert!(hint.starts_with("known: "), "{hint}");
    let scan = spec("cyclic_scan", 1, 0, 16);
    let (text, hint) = message(generate(&with(scan.clone(), &[("document", 3.0)])));
    assert_eq!(text, "unknown parameter of cyclic_scan: \"document\"");
    assert!(hint.starts_with("did you mean documents? known: documents, "), "{hint}");
    let (text, hint) = message(generate(&with(scan.clone(), &[("documents", 2.5)])));
    assert_eq!(text, "documents is 2.5");
    assert_eq!(hint, "documents must be a whole number from 1 to 1000000 (default 10)");
    let (text, _) = message(generate(&with(scan, &[("documents", 2.0), ("documents", 3.0)])));
    assert_eq!(text, "documents is given twice");
    for (requests, block_tokens) in [(0, 16), (MAX_REQUESTS + 1, 16), (1, 0), (1, MAX_BLOCK_TOKENS + 1)] {
        message(generate(&spec("unique", requests, 0, block_tokens)));
    }
    let rag = with(spec("rag_documents", 1, 0, 16), &[("documents", 2.0)]);
    assert_eq!(message(generate(&rag)).1, "documents_per_request must be at most documents");
    let agent = with(spec("agent", 1, 0, 16), &[("context_tokens", 14_000.0)]);
    assert_eq!(message(generate(&agent)).1, "context_tokens must be larger than system_tokens");
    let weights: Vec<(&str, f64)> = NAMES.iter().filter(|n| **n != "mixed").map(|n| (*n, 0.0)).collect();
    assert_eq!(message(generate(&with(spec("mixed", 1, 0, 16), &weights))).0, "all weights are 0");
}

#[test]
fn traces_that_would_not_fit_are_refused() {
    let one = with(
        spec("rag_documents", 1, 0, 1),
        &[("documents", 1000.0), ("document_tokens", 1e6), ("documents_per_request", 100.0)],
    );
    assert!(message(generate(&one)).0.ends_with("blocks in one request"));
    let many = with(spec("unique", 1000, 0, 1), &[("prompt_tokens", 1e6)]);
    assert!(
        message(generate(&many)).0.ends_with("distinct blocks")
            || message(generate(&many)).0.contains("one request")
    );
}

#[test]
fn a_cancelled_call_stops() {
    let progress = Progress::default();
    progress.cancel();
    let result = generate_with_progress(&spec("unique", 5, 0, 16), &progress);
    assert!(matches!(result, Err(Error::Cancelled)));
}

#[test]
fn a_cyclic_scan_is_all_or_nothing() {
    let scan = with(spec("cyclic_scan", 30, 0, 16), &[("documents", 10.0), ("document_tokens", 5008.0)]);
    let trace = generate(&scan).unwrap();
    assert_eq!(trace.forest.blocks(), 10 * 313);
    assert_eq!(trace.totals().block_refs, 30 * 313);
    let paths = paths(&trace);
    assert_eq!(lru_hits(&paths, 9 * 313), 0);
    assert_eq!(lru_hits(&paths, 10 * 313), 20 * 313);
    assert_eq!(trace.requests.arrival_us.as_ref().unwrap()[29], 29_000_000);
    assert!(trace.requests.columns.is_empty());
}

#[test]
fn unique_prompts_reuse_nothing() {
    let trace = generate(&spec("unique", 500, 3, 16)).unwrap();
    assert_eq!(u64::from(trace.forest.blocks()), trace.totals().block_refs);
}

#[test]
fn chats_extend_themselves() {
    let trace = generate(&spec("multi_turn", 400, 9, 16)).unwrap();
    let session = &trace.requests.columns[0];
    assert_eq!(session.name, "session");
    let paths = paths(&trace);
    let mut last: Vec<Option<usize>> = vec![None; session.texts.len()];
    let mut followed = 0;
    for (r, path) in paths.iter().enumerate() {
        // 600 tokens of system prompt: 37 full blocks shared by everybody.
        assert_eq!(path[..37], paths[0][..37]);
        if let Some(before) = last[session.codes[r] as usize].replace(r) {
            let full = trace.full_blocks(before) as usize;
            assert_eq!(path[..full], paths[before][..full]);
            assert!(trace.requests.input_tokens[r] > trace.requests.input_tokens[before]);
            followed += 1;
        }
    }
    assert!(followed > 100, "{followed} second turns");
}

#[test]
fn agents_compact_and_start_sub_agents() {
    let small = [("context_tokens", 30_000.0), ("subagent_share", 0.05), ("steps", 40.0)];
    let trace = generate(&with(spec("agent", 2000, 4, 64), &small)).unwrap();
    let names: Vec<&str> = trace.requests.columns.iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["session", "parent"]);
    let (session, parent) = (&trace.requests.columns[0], &trace.requests.columns[1]);
    let mut last: Vec<Option<u32>> = vec![None; session.texts.len()];
    let (mut shrunk, mut inner) = (0, 0);
    for r in 0..trace.len() {
        let input = trace.requests.input_tokens[r];
        if last[session.codes[r] as usize].replace(input).is_some_and(|before| input < before) {
            shrunk += 1;
        }
        let name = session.get(r).unwrap();
        assert_eq!(parent.get(r), name.split_once('.').map(|(outer, _)| outer), "{name}");
        inner += u32::from(parent.get(r).is_some());
    }
    assert!(shrunk > 20 && inner > 100, "{shrunk} compactions, {inner} requests of sub-agents");
}

fn workload_of(trace: &Trace) -> &Column {
    trace.requests.columns.iter().find(|c| c.name == "workload").unwrap()
}

#[test]
fn mixed_traffic_has_the_shares_it_was_asked_for() {
    let trace = generate(&spec("mixed", 4000, 1, 64)).unwrap();
    let workload = workload_of(&trace);
    for (name, share) in [("shared_prefix", 0.25), ("unique", 0.10), ("cyclic_scan", 0.03)] {
        let count = (0..trace.len()).filter(|&r| workload.get(r) == Some(name)).count();
        let got = count as f64 / trace.len() as f64;
        // Sessions need a while to build up, so the other kinds start above their share.
        assert!((0.9..1.6).contains(&(got / share)), "{name}: {got}");
    }
    let one = with(
        spec("mixed", 50, 1, 64),
        &[
            ("multi_turn", 0.0),
            ("agent", 0.0),
            ("unique", 0.0),
            ("shared_prefix", 0.0),
            ("rag_documents", 0.0),
        ],
    );
    assert!(generate(&one).unwrap().requests.input_tokens.iter().all(|&t| t == 5008));
    // A kind of next to no weight waits for ever.
    let rare = with(spec("mixed", 50, 1, 64), &[("unique", 1e-300)]);
    let rare = generate(&rare).unwrap();
    assert!((0..50).all(|r| workload_of(&rare).get(r) != Some("unique")));
}

#[test]
fn ids_use_all_64_bits() {
    let trace = generate(&spec("shared_prefix", 50, 0, 16)).unwrap();
    let above_i64 = (0..trace.forest.blocks())
        .filter(|&b| matches!(trace.ids.get(b), Id::Number(n) if n > i64::MAX as u64))
        .count();
    assert!(above_i64 as f64 > f64::from(trace.forest.blocks()) * 0.4);
}

/// A number that changes with any id, length or time of a trace.
fn fingerprint(trace: &Trace, paths: &[Vec<u64>]) -> u64 {
    let requests = &trace.requests;
    let arrivals = requests.arrival_us.as_ref().unwrap();
    paths.iter().enumerate().fold(0, |at, (r, path)| {
        let row = [arrivals[r] as u64, requests.input_tokens[r].into(), requests.output_tokens[r].into()];
        row.iter().chain(path).fold(at, |at, &value| random::mix(at, value))
    })
}

#[test]
fn the_bytes_of_a_seed_never_change() {
    // A change here changes every sample in traces/: regenerate them and say so in the changelog.
    let mut got = Vec::new();
    for kind in NAMES {
        let trace = generate(&spec(kind, 300, 42, 16)).unwrap();
        let (totals, paths) = (trace.totals(), paths(&trace));
        let hits = reused(&paths).iter().sum::<usize>() as u64;
        let sums = [totals.block_refs, totals.input_tokens, totals.output_tokens, hits];
        got.push((kind, sums, fingerprint(&trace, &paths)));
    }
    // Block references, input tokens, output tokens, hit blocks of an infinite cache.
    let want = [
        ("multi_turn", [69_583, 1_111_043, 124_787, 41_081], 0xE031_6AB1_06E2_F834),
        ("shared_prefix", [59_655, 952_226, 56_938, 43_131], 0x3FEF_63C8_895E_166E),
        ("rag_documents", [112_435, 1_796_718, 83_541, 20_832], 0x6C08_BEFD_01E5_38F1),
        ("agent", [786_067, 12_574_808, 103_691, 741_871], 0xF8E5_1789_12DB_58FD),
        ("cyclic_scan", [93_900, 1_502_400, 19_200, 90_770], 0x5B46_149B_7CCD_F4B1),
        ("unique", [41_672, 664_596, 59_844, 0], 0x8003_674C_CEA1_A392),
        ("mixed", [64_051, 1_022_693, 73_463, 24_795], 0x6AB9_4F75_2281_E223),
    ];
    assert_eq!(got, want);
}
