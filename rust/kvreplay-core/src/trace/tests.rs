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
    prop::collection::vec((0..3_u32, prop::collection::vec(0..4_u64, 0..12)), 0..60)
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
    fn rekeyed_ids_are_counted(paths in paths()) {
        let mut builder = ForestBuilder::new();
        for (ns, path) in &paths {
            builder.push(*ns, path, Kinds::Numbers).unwrap();
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
