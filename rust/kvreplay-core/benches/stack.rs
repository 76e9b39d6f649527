//! The stack engine on two shapes: many short sessions with shared prompts, few sessions of many turns.
//!
//! `cargo bench -p kvreplay-core --bench stack`

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use kvreplay_core::Progress;
use kvreplay_core::replay::lru_each;
use kvreplay_core::stack::{Curve, Opt, ceiling, pass, reuse_runs};
use kvreplay_core::trace::{ForestBuilder, Kinds, Origin, Quality, Requests, Tail, Trace};
use std::hint::black_box;

const BLOCK_TOKENS: u32 = 16;

/// A linear congruential generator: the same trace in every run, without a dependency.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}

/// `requests` turns of `sessions` sessions in random order. A session begins with one of 40 system prompts of
/// 20 blocks, every turn replaces the partial last block and adds 3 to 10, and starts anew beyond `longest`.
fn trace(sessions: usize, requests: usize, longest: usize) -> Trace {
    let mut random = Random(7);
    let mut fresh = 1000_u64;
    let mut paths: Vec<Vec<u64>> = vec![Vec::new(); sessions];
    let (mut builder, mut rows) = (ForestBuilder::new(), Requests::default());
    for _ in 0..requests {
        let path = &mut paths[random.below(sessions)];
        if path.is_empty() || path.len() > longest {
            let prompt = random.below(40) as u64 * 20;
            *path = (prompt..prompt + 20).collect();
        } else {
            path.pop();
        }
        for _ in 0..3 + random.below(8) {
            path.push(fresh);
            fresh += 1;
        }
        rows.node.push(builder.push(0, path, Kinds::Numbers).expect("far fewer blocks than 2^32"));
        rows.input_tokens.push(path.len() as u32 * BLOCK_TOKENS - 5);
        rows.output_tokens.push(0);
    }
    let (forest, ids) = builder.finish();
    Trace::new(forest, ids, rows, BLOCK_TOKENS, Tail::Ceil, Origin::default(), Quality::default())
}

fn shape(criterion: &mut Criterion, name: &str, trace: &Trace) {
    let progress = Progress::default();
    let mut group = criterion.benchmark_group(name);
    group.sample_size(10);
    group.bench_function("pass", |b| b.iter(|| pass(black_box(trace), &mut (), &progress)));
    group.bench_function("curve", |b| b.iter(|| Curve::of(black_box(trace), None, &progress)));
    let curve = Curve::of(trace, None, &progress).expect("nobody cancels");
    group.bench_function("steps", |b| b.iter(|| black_box(&curve).steps().count()));
    group.bench_function("reuse_runs", |b| b.iter(|| reuse_runs(black_box(trace), &progress)));
    group.bench_function("ceiling", |b| b.iter(|| ceiling(black_box(trace))));
    group.bench_function("lru_each", |b| b.iter(|| lru_each(black_box(trace), &[50_000], &progress)));
    group.bench_function("opt, one more capacity", |b| {
        let next_uses = Opt::of(trace, &progress).expect("nobody cancels");
        b.iter_batched(|| 50_000, |capacity| next_uses.hits(capacity, &progress), BatchSize::SmallInput);
    });
    group.finish();
}

fn stack(criterion: &mut Criterion) {
    shape(criterion, "200,000 requests of 5,000 chats", &trace(5_000, 200_000, 120));
    shape(criterion, "40,000 requests of 20 agents", &trace(20, 40_000, usize::MAX));
}

criterion_group!(benches, stack);
criterion_main!(benches);
