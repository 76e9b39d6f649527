//! Small random traces: forests with deep chains, branches at every depth, repeats and empty paths.

use crate::trace::{ForestBuilder, Kinds, Node, Origin, Quality, Requests, Tail, Trace};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// So many cases, the same in every run; a failure is repeated by running again, not from a file.
pub(crate) fn cases(cases: u32) -> ProptestConfig {
    let rng_seed = RngSeed::Fixed(0x5EED_CAFE);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..ProptestConfig::default() }
}

/// A trace and its paths.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) trace: Trace,
    pub(super) paths: Vec<Vec<u32>>,
}

/// How the input lengths of a sample's requests follow from their paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lengths {
    /// A partial last block is listed.
    Ceil,
    /// A remainder is not listed.
    Floor,
    /// Anything, shorter than the path as well, with a block size per request.
    Wild,
}

/// One request: how far along which earlier request's path, how many new blocks, two numbers for lengths.
type Step = (prop::sample::Index, prop::sample::Index, u8, u16, u16);

/// The trace with the given paths of ids, untimed, all of `block_tokens` unless sizes are given.
pub(super) fn trace_of(
    ids: &[Vec<u64>],
    input_tokens: Vec<u32>,
    block_tokens: u32,
    sizes: Vec<u32>,
    tail: Tail,
) -> Trace {
    let mut builder = ForestBuilder::new();
    let node: Vec<Node> = ids.iter().map(|path| builder.push(0, path, Kinds::Numbers).unwrap()).collect();
    let (forest, ids) = builder.finish();
    let output_tokens = vec![0; node.len()];
    let requests = Requests { node, input_tokens, output_tokens, block_tokens: sizes, ..Requests::default() };
    Trace::new(forest, ids, requests, block_tokens, tail, Origin::default(), Quality::default())
}

/// The paths of a trace as dense block numbers.
pub(super) fn paths_of(trace: &Trace) -> Vec<Vec<u32>> {
    let path = |&node: &Node| {
        let mut out = Vec::new();
        trace.forest.path(node, &mut out);
        out
    };
    trace.requests.node.iter().map(path).collect()
}

fn build(steps: &[Step], lengths: Lengths) -> Sample {
    let (mut ids, mut fresh): (Vec<Vec<u64>>, u64) = (Vec::new(), 0);
    let (mut input, mut sizes, mut arrival_us) = (Vec::new(), Vec::new(), Vec::new());
    let mut now = -50;
    for (from, cut, new, a, b) in steps {
        let base = if ids.is_empty() { &[][..] } else { &ids[from.index(ids.len())][..] };
        // Every fourth request repeats a whole path, so that ends and tails meet.
        let keep = if new % 4 == 0 { base.len() } else { cut.index(base.len() + 1) };
        let mut path = base[..keep].to_vec();
        for _ in 0..(if new % 4 == 0 && keep > 0 { 0 } else { new % 9 }) {
            path.push(fresh);
            fresh += 1;
        }
        let listed = path.len() as u32;
        let (size, extra) = (1 + u32::from(a % 6), u32::from(*b));
        match lengths {
            Lengths::Ceil => input.push(listed * 5 - if listed > 0 { extra % 5 } else { 0 }),
            Lengths::Floor => input.push(listed * 5 + extra % 5),
            Lengths::Wild => {
                input.push(if extra % 3 == 0 { extra % 20 } else { listed * size + extra % 7 });
                sizes.push(size);
            }
        }
        now += i64::from(a % 7 / 2 * (b % 100));
        arrival_us.push(now);
        ids.push(path);
    }
    let tail = if lengths == Lengths::Floor { Tail::Floor } else { Tail::Ceil };
    let mut trace = trace_of(&ids, input, 5, sizes, tail);
    trace.requests.arrival_us = Some(arrival_us);
    let paths = paths_of(&trace);
    Sample { trace, paths }
}

/// Samples of up to `requests` requests.
pub(super) fn samples(requests: usize) -> impl Strategy<Value = Sample> {
    let index = any::<prop::sample::Index>;
    let step = (index(), index(), any::<u8>(), any::<u16>(), any::<u16>());
    let lengths = prop_oneof![Just(Lengths::Ceil), Just(Lengths::Floor), Just(Lengths::Wild)];
    (prop::collection::vec(step, 0..requests), lengths).prop_map(|(steps, lengths)| build(&steps, lengths))
}

/// Number of distinct blocks.
pub(super) fn distinct(sample: &Sample) -> u64 {
    u64::from(sample.trace.forest.blocks())
}

/// Sum of the tokens that hits of these block counts cover.
pub(super) fn tokens(trace: &Trace, hits: &[u32]) -> u64 {
    hits.iter().enumerate().map(|(request, &hit)| trace.tokens(request, hit)).sum()
}
