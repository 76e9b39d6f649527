use super::*;
use crate::trace::{ForestBuilder, Kinds, Origin, OutputIds, Quality, Tail};

/// Paths with input lengths and output ids, in blocks of `block_tokens` tokens.
fn trace(rows: &[(&[u64], u32, &[u64])], block_tokens: u32) -> Arc<Trace> {
    let mut builder = ForestBuilder::new();
    let mut requests = Requests::default();
    let mut outputs = OutputIds::default();
    for (path, input_tokens, decoded) in rows {
        requests.node.push(builder.push(0, path, Kinds::Numbers).unwrap());
        requests.input_tokens.push(*input_tokens);
        requests.output_tokens.push(decoded.len() as u32 * block_tokens + 1);
        outputs.push(0, decoded.iter().map(|&id| crate::trace::Id::Number(id))).unwrap();
    }
    requests.outputs = (!outputs.is_empty()).then_some(outputs);
    let (forest, ids) = builder.finish();
    Arc::new(Trace::new(
        forest,
        ids,
        requests,
        block_tokens,
        Tail::Ceil,
        Origin::default(),
        Quality::default(),
    ))
}

/// Named ids of the blocks of a request: listed, decoded.
fn ids(grain: &Grain, request: usize) -> (Vec<u64>, Vec<u64>) {
    let mut paths = Paths::default();
    let request = grain.request(request, &mut paths);
    let name =
        |blocks: &[u32]| blocks.iter().map(|&block| grain.source().ids.number(grain.named(block))).collect();
    (name(request.listed), name(request.decoded))
}

#[test]
fn equal_sizes_keep_the_trace() {
    let source = trace(&[(&[1, 2, 3], 40, &[])], 16);
    let grain = Grain::new(&source, 16, Outputs::Listed).unwrap();
    assert!(Arc::ptr_eq(grain.trace(), &source));
    assert_eq!(ids(&grain, 0), (vec![1, 2, 3], vec![]));
}

#[test]
fn a_block_is_cut_into_engine_blocks_as_far_as_its_tokens_reach() {
    let source = trace(&[(&[1, 2], 20, &[]), (&[1, 3], 32, &[]), (&[1], 16, &[])], 16);
    let grain = Grain::new(&source, 4, Outputs::None).unwrap();
    assert_eq!(ids(&grain, 0).0, [1, 1, 1, 1, 2]);
    assert_eq!(ids(&grain, 1).0, [1, 1, 1, 1, 3, 3, 3, 3]);
    assert_eq!(ids(&grain, 2).0, [1, 1, 1, 1]);
    assert_eq!(grain.trace().forest.blocks(), 12);
    let mut paths = Paths::default();
    let first: Vec<u32> = grain.request(0, &mut paths).listed.to_vec();
    assert_eq!(
        grain.request(2, &mut paths).listed,
        &first[..4],
        "parts of one block are the same everywhere"
    );
}

#[test]
fn blocks_make_an_engine_block_named_by_the_last() {
    let source = trace(&[(&[1, 2, 3, 4, 5], 80, &[]), (&[1, 2, 3, 9], 64, &[]), (&[7], 16, &[])], 16);
    let grain = Grain::new(&source, 32, Outputs::None).unwrap();
    assert_eq!(ids(&grain, 0).0, [2, 4]);
    assert_eq!(ids(&grain, 1).0, [2, 9]);
    assert_eq!(ids(&grain, 2).0, Vec::<u64>::new());
}

#[test]
fn sizes_that_do_not_divide_one_another_are_refused() {
    let source = trace(&[(&[1, 2, 3], 72, &[])], 24);
    let Err(Error::Config { message, hint }) = Grain::new(&source, 16, Outputs::None) else {
        panic!("taken")
    };
    assert_eq!(message, "engine blocks of 16 tokens do not fit trace blocks of 24");
    assert!(hint.contains("block_size"));
    assert!(Grain::new(&source, 48, Outputs::None).is_ok() && Grain::new(&source, 8, Outputs::None).is_ok());
}

#[test]
fn listed_outputs_follow_the_full_blocks_of_the_prompt() {
    let source = trace(&[(&[1, 2], 24, &[8, 9]), (&[1, 8, 9, 5], 64, &[])], 16);
    let grain = Grain::new(&source, 16, Outputs::Listed).unwrap();
    assert_eq!(ids(&grain, 0), (vec![1, 2], vec![8, 9]));
    assert_eq!(ids(&grain, 1), (vec![1, 8, 9, 5], vec![]));
    let mut paths = Paths::default();
    let first = grain.request(0, &mut paths);
    assert_eq!((first.decoded_tokens, first.total_full_blocks()), (32, 3));
    assert_eq!(
        (first.name_of(0).is_some(), first.name_of(1), first.name_of(3)),
        (true, Some(first.decoded[0]), None)
    );
    let (eight, nine) = (first.decoded[0], first.decoded[1]);
    assert_eq!(&grain.request(1, &mut paths).listed[1..3], &[eight, nine]);
    let fine = Grain::new(&source, 8, Outputs::Listed).unwrap();
    assert_eq!(ids(&fine, 0), (vec![1, 1, 2], vec![8, 9, 9]), "the second half of block 8 is decoded");
}

#[test]
fn decoded_tokens_follow_the_option() {
    let source = trace(&[(&[1, 2], 24, &[8, 9])], 16);
    let mut paths = Paths::default();
    for (outputs, tokens) in [(Outputs::Private, 32), (Outputs::Listed, 32), (Outputs::None, 0)] {
        let grain = Grain::new(&source, 16, outputs).unwrap();
        let request = grain.request(0, &mut paths);
        assert_eq!(request.decoded_tokens, tokens, "{outputs:?}");
        assert_eq!(request.decoded.is_empty(), outputs != Outputs::Listed);
    }
}
