//! The forest against the obvious map from (parent, id) to a number.

use super::*;
use proptest::prelude::*;
use std::collections::HashMap;

/// Numbers blocks by first appearance of (namespace or parent, id).
fn slow(paths: &[(u32, Vec<u64>)]) -> (Vec<Vec<u32>>, usize) {
    let mut numbers = HashMap::new();
    let mut out = Vec::new();
    for (namespace, path) in paths {
        let mut parent = Err(*namespace);
        let mut dense = Vec::new();
        for &id in path {
            let fresh = numbers.len() as u32;
            let block = *numbers.entry((parent, id)).or_insert(fresh);
            dense.push(block);
            parent = Ok(block);
        }
        out.push(dense);
    }
    (out, numbers.len())
}

fn paths() -> impl Strategy<Value = Vec<(u32, Vec<u64>)>> {
    let ids = prop_oneof![
        prop::collection::vec(0..4_u64, 0..12),
        // Ids that count up: the first of a few runs, with a break at any place.
        prop::collection::vec((0..12_u64, 1..6_u64), 0..4)
            .prop_map(|runs| runs.into_iter().flat_map(|(first, count)| first..first + count).collect()),
    ];
    prop::collection::vec((0..3_u32, ids), 0..60)
}

proptest! {
    #[test]
    fn forest_equals_the_obvious_map(paths in paths()) {
        let mut builder = ForestBuilder::new();
        let nodes: Vec<Node> =
            paths.iter().map(|(ns, path)| builder.push(*ns, path, Kinds::Numbers).unwrap()).collect();
        let (forest, ids) = builder.finish();
        let (want, blocks) = slow(&paths);
        prop_assert_eq!(forest.blocks() as usize, blocks);
        let (mut path, mut runs) = (Vec::new(), Vec::new());
        for ((node, want), (_, given)) in nodes.iter().zip(&want).zip(&paths) {
            forest.path(*node, &mut path);
            prop_assert_eq!(&path, want);
            let back: Vec<u64> = path.iter().map(|&b| ids.number(b)).collect();
            prop_assert_eq!(&back, given);
            forest.runs(*node, &mut runs);
            let flat: Vec<u32> = runs.iter().flat_map(|r| r.start..r.start + r.len).collect();
            prop_assert_eq!(&flat, want);
            for cut in 0..=path.len() {
                let mut short = Vec::new();
                forest.path(forest.truncate(*node, cut as u32), &mut short);
                prop_assert_eq!(&short[..], &want[..cut]);
            }
            for pair in path.windows(2) {
                prop_assert_eq!(forest.parent_block(pair[1]), Some(pair[0]));
            }
        }
        let (again, ids_again, nodes_again) = reintern(&forest, &ids, nodes.iter().copied()).unwrap();
        prop_assert_eq!(&again, &forest);
        prop_assert_eq!(ids_again, ids.clone());
        prop_assert_eq!(nodes_again, nodes);
    }

    #[test]
    fn rekeyed_ids_are_counted(paths in paths(), hashed: bool, single: bool) {
        let mut builder = ForestBuilder::new();
        for (ns, path) in &paths {
            let mix = |&id: &u64| if hashed { id.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15) } else { id };
            let path: Vec<u64> = path.iter().map(mix).collect();
            builder.push(if single { 0 } else { *ns }, &path, Kinds::Numbers).unwrap();
        }
        let (forest, ids) = builder.finish();
        let mut blocks_of: HashMap<(u32, u64), Vec<u32>> = HashMap::new();
        for block in 0..forest.blocks() {
            let key = (forest.namespace(forest.chain_of(block)), ids.number(block));
            blocks_of.entry(key).or_default().push(block);
        }
        let twice: Vec<u32> = blocks_of.values().filter(|b| b.len() > 1).map(|b| b[1]).collect();
        let found = find_rekeyed(&forest, &ids);
        prop_assert_eq!(found.ids, twice.len() as u64);
        prop_assert_eq!(found.first_block, twice.iter().copied().min());
    }
}

/// The same paths as runs, one by one, below nodes, and with so many runs that ids are no longer kept as runs.
#[test]
fn all_ways_in_give_one_forest() {
    let path = |r: u64| -> Vec<u64> {
        let is_random = !u64::is_multiple_of(r, 3);
        let random = |i: u64| (r / 3 * 7 + i).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        (0..4 + r % 5).chain((0..3).map(|i| if is_random { random(i) } else { r / 2 * 100 + i })).collect()
    };
    let runs_of = |ids: &[u64]| {
        let mut runs = Vec::new();
        for &id in ids {
            IdRun::append(&mut runs, id);
        }
        runs
    };
    let (mut single, mut runs, mut below) =
        (ForestBuilder::new(), ForestBuilder::new(), ForestBuilder::new());
    let mut flat = ForestBuilder::new();
    let _ = flat.push(0, &[], Kinds::Mixed(&[]));
    let first = flat.push(0, &[5], Kinds::Mixed(&[false])).unwrap();
    let (mut want, mut seen) = (Vec::new(), Vec::new());
    for r in 0..12_000 {
        let ids = path(r);
        let node = single.push(0, &ids, Kinds::Numbers).unwrap();
        assert_eq!(runs.push_runs(0, &runs_of(&ids)).unwrap(), node);
        let cut = (r % 9) as usize % ids.len();
        let above = below.push(0, &ids[..cut], Kinds::Numbers).unwrap();
        seen.push(below.push_below(above, 0, &ids[cut..], Kinds::Numbers).unwrap());
        want.push((node, flat.push_runs(0, &runs_of(&ids)).unwrap()));
    }
    assert!(single.blocks() > 12_000 && single.blocks() == runs.blocks());
    let (forest, ids) = single.finish();
    assert!(ids.flat().is_some());
    assert_eq!(runs.finish(), (forest.clone(), ids.clone()));
    let ((below, below_ids), (flat, flat_ids)) = (below.finish(), flat.finish());
    assert_eq!((below.blocks(), flat.blocks()), (forest.blocks(), forest.blocks() + 1));
    assert_eq!(first, Node { chain: 0, len: 1 });
    let path = |forest: &Forest, ids: &IdTable, node| {
        let mut path = Vec::new();
        forest.path(node, &mut path);
        path.iter().map(|&block| ids.number(block)).collect::<Vec<_>>()
    };
    for ((a, c), b) in want.into_iter().zip(seen) {
        let ids = path(&forest, &ids, a);
        assert_eq!(path(&below, &below_ids, b), ids);
        assert_eq!(path(&flat, &flat_ids, c), ids);
    }
}

#[test]
fn id_zero_and_the_largest_id_are_real_ids() {
    let mut builder = ForestBuilder::new();
    let a = builder.push(0, &[0, u64::MAX], Kinds::Numbers).unwrap();
    let b = builder.push(0, &[0, u64::MAX, 0], Kinds::Numbers).unwrap();
    let (forest, ids) = builder.finish();
    assert_eq!((forest.path_len(a), forest.path_len(b), forest.blocks()), (2, 3, 3));
    assert_eq!([ids.get(0), ids.get(1), ids.get(2)], [Id::Number(0), Id::Number(u64::MAX), Id::Number(0)]);
    assert_eq!(find_rekeyed(&forest, &ids).ids, 1);
}

#[test]
fn a_text_is_never_the_number_it_is_stored_under() {
    let mut builder = ForestBuilder::new();
    let text = builder.text_number("sha256:aa");
    assert_eq!(text, 0);
    let a = builder.push(0, &[text, 7], Kinds::Mixed(&[true, false])).unwrap();
    let b = builder.push(0, &[0, 7], Kinds::Numbers).unwrap();
    let c = builder.push(0, &[text, 7], Kinds::Mixed(&[true, false])).unwrap();
    let (forest, ids) = builder.finish();
    assert_eq!(a, c);
    assert_ne!(a, b);
    assert_eq!(forest.blocks(), 4);
    assert_eq!([ids.get(0), ids.get(2)], [Id::Text("sha256:aa"), Id::Number(0)]);
    // 7 stands below two parents.
    assert_eq!(find_rekeyed(&forest, &ids).ids, 1);
}

/// A trace with the given paths; texts stand for ids above 2.
fn trace_of(paths: &[(u32, Vec<u64>)], texts: bool) -> Trace {
    let mut builder = ForestBuilder::new();
    let mut requests = Requests { arrival_us: Some(Vec::new()), ..Requests::default() };
    let mut session = Column::new("session", 0);
    for (i, (namespace, path)) in paths.iter().enumerate() {
        let kinds: Vec<bool> = path.iter().map(|&id| texts && id > 2).collect();
        let ids: Vec<u64> = path
            .iter()
            .zip(&kinds)
            .map(|(&id, &text)| if text { builder.text_number(&format!("t{id}")) } else { id })
            .collect();
        let kinds = if texts { Kinds::Mixed(&kinds) } else { Kinds::Numbers };
        requests.node.push(builder.push(*namespace, &ids, kinds).unwrap());
        requests.input_tokens.push(path.len() as u32 * 16);
        requests.output_tokens.push(if i % 3 == 0 { NO_LENGTH } else { i as u32 });
        requests.arrival_us.as_mut().unwrap().push(i as i64 * 1000);
        session.push((i % 4 > 0).then(|| format!("s{}", i % 4)).as_deref());
    }
    requests.columns.push(session);
    let (forest, ids) = builder.finish();
    let chained = find_rekeyed(&forest, &ids).ids == 0;
    let origin = Origin { chained, ..Origin::default() };
    Trace::new(forest, ids, requests, 16, Tail::Ceil, origin, Quality::default())
}

proptest! {
    #[test]
    fn native_rows_give_the_trace_back(paths in paths(), texts: bool, limit in 1..9_usize) {
        let trace = trace_of(&paths, texts);
        let mut writer = NativeWriter::new(&trace);
        let mut reader = NativeReader::default();
        while let Some(rows) = writer.next_rows(limit) {
            reader.push(&rows).unwrap();
        }
        let header = NativeHeader {
            block_tokens: 16,
            tail: Tail::Ceil,
            origin: trace.origin.clone(),
            quality: Quality::default(),
        };
        let back = reader.finish(header).unwrap();
        prop_assert_eq!(&back.forest, &trace.forest);
        for block in 0..trace.forest.blocks() {
            prop_assert_eq!(back.ids.get(block), trace.ids.get(block));
        }
        if !trace.is_empty() {
            prop_assert_eq!(&back.requests, &trace.requests);
            prop_assert_eq!(back.sha256(), trace.sha256());
        }
    }

    #[test]
    fn damaged_native_rows_are_refused_or_make_a_trace(
        paths in paths(), column in 0..5_usize, row in 0..60_usize, value: u32,
    ) {
        let trace = trace_of(&paths, false);
        let Some(mut rows) = NativeWriter::new(&trace).next_rows(100) else { return Ok(()) };
        let columns =
            [&mut rows.base_back, &mut rows.base_blocks, &mut rows.new_blocks, &mut rows.id_runs, &mut rows.id_blocks];
        let chosen = columns.into_iter().nth(column).unwrap();
        if chosen.is_empty() { return Ok(()) }
        let at = row % chosen.len();
        // Small values only: a huge count of new blocks is refused by its ids, which a row lists.
        chosen[at] = value % 40;
        let mut reader = NativeReader::default();
        if reader.push(&rows).is_ok() {
            let header = NativeHeader {
                block_tokens: 16, tail: Tail::Ceil, origin: Origin::default(), quality: Quality::default(),
            };
            let back = reader.finish(header).unwrap();
            prop_assert_eq!(back.len(), trace.len());
        }
    }

    #[test]
    fn selecting_keeps_whole_requests(paths in paths(), mask: u64) {
        let trace = trace_of(&paths, true);
        let keep: Vec<u32> = (0..trace.len() as u32).filter(|r| mask >> (r % 64) & 1 == 1).collect();
        let part = trace.select(&keep).unwrap();
        let (mut a, mut b) = (Vec::new(), Vec::new());
        for (new, &old) in keep.iter().enumerate() {
            trace.forest.path(trace.requests.node[old as usize], &mut a);
            part.forest.path(part.requests.node[new], &mut b);
            prop_assert_eq!(a.len(), b.len());
            for (&x, &y) in a.iter().zip(&b) {
                prop_assert_eq!(trace.ids.get(x), part.ids.get(y));
            }
            prop_assert_eq!(trace.requests.columns[0].get(old as usize), part.requests.columns[0].get(new));
        }
    }
}
