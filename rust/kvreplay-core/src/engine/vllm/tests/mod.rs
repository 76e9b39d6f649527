//! Tests of the vLLM model: the golden vectors, sequences worked out by hand for the rules that no vector covers, and
//! the twin.

mod arc;
mod edges;
mod gpu;
mod lru;
mod threshold;
mod tiering;
mod twin;

use super::model::Vllm;
use super::policy::ChunkPolicy;
use super::{VLLM, build};
use crate::engine::tests::golden;
use crate::engine::{EngineModel, EngineRequest, Recorder, Release, Row, Setup};
use crate::hierarchy::{Counters, EventKind, TierSpec};
use crate::policy::spec::{Args, Spec};

#[test]
fn golden_vectors_of_the_gpu() {
    golden::check("vllm", |entry| entry["config"]["tiers"] == "gpu");
}

#[test]
fn golden_vectors_of_the_cpu_tier() {
    golden::check("vllm", |entry| entry["config"]["tiers"] != "gpu");
}

#[test]
fn the_conversation_trace() {
    for run in golden::external("vllm", |_| true) {
        run.check();
    }
}

const BLOCK_TOKENS: u32 = 4;

/// A model of one release, step by step. Blocks are below 50 and have 4 tokens.
struct Lab<P> {
    model: Vllm<P>,
    out: Recorder,
    served: u32,
    tiers: usize,
}

fn cpu(chunks: u64) -> TierSpec {
    TierSpec::new("cpu", chunks)
}

fn gpu(blocks: u64) -> TierSpec {
    TierSpec::new("gpu", blocks)
}

impl<P: ChunkPolicy> Lab<P> {
    /// Release 0.`minor`.`patch` with some tiers and options.
    fn new((minor, patch): (u16, u16), tiers: &[TierSpec], options: &[(&str, &str)]) -> Self {
        let args =
            options.iter().map(|(key, value)| (Some((*key).to_owned()), (*value).to_owned())).collect();
        let spec = Spec { name: "vllm".to_owned(), args };
        let setup = Setup {
            releases: &[Release(0, minor, patch)],
            tiers,
            options: &Args::new(&spec, VLLM.options).unwrap(),
            blocks: 50,
            block_tokens: BLOCK_TOKENS,
            timed: false,
        };
        let model = build::model(&setup).unwrap();
        Self { model, out: Recorder::new(tiers, 50, true), served: 0, tiers: tiers.len() }
    }

    /// A prompt of whole blocks; returns the hit tokens per tier.
    fn serve(&mut self, path: &[u32]) -> Vec<u64> {
        self.serve_tokens(path, path.len() as u64 * u64::from(BLOCK_TOKENS), &[], 0)
    }

    /// Any request; returns the hit tokens per tier.
    fn serve_tokens(
        &mut self,
        listed: &[u32],
        prompt_tokens: u64,
        decoded: &[u32],
        decoded_tokens: u64,
    ) -> Vec<u64> {
        let request = EngineRequest {
            index: self.served,
            listed,
            prompt_tokens,
            decoded,
            decoded_tokens,
            block_tokens: BLOCK_TOKENS,
            now_us: None,
        };
        self.served += 1;
        self.out.begin(request.index);
        self.model.serve(&request, &mut self.out);
        self.out.end(&request);
        self.model.validate().unwrap();
        self.out.rows().iter().map(|row: &Row| row.tokens).collect()
    }

    /// The lists of the CPU tier, oldest first.
    fn lists(&self) -> Vec<Vec<u32>> {
        self.model.cpu.as_ref().unwrap().1.policy().lists()
    }

    /// The free queue of the GPU, without slots never used.
    fn queue(&self) -> Vec<Option<u32>> {
        self.model.gpu.as_ref().unwrap().1.queue()
    }

    /// Events of a kind as (request, tier, block), and the counters.
    fn finish(self, kind: EventKind) -> (Vec<(u32, u16, u32)>, Vec<Counters>) {
        let content: Vec<Vec<u32>> = (0..self.tiers).map(|tier| self.model.content(tier)).collect();
        let (events, counters) = self.out.finish(&content);
        let found = (0..events.len()).filter(|&i| events.kind[i] == kind);
        (found.map(|i| (events.request[i], events.tier[i], events.block[i])).collect(), counters)
    }
}
