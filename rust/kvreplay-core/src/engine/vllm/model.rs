//! The model of vLLM: one request from look-up to the release of its blocks.

use super::{Flags, Gpu};
use crate::engine::{EngineModel, EngineRequest, Recorder, Setup};

/// vLLM.
#[derive(Debug)]
pub(super) struct Vllm {
    gpu: Gpu,
}

impl Vllm {
    pub(super) fn new(setup: &Setup<'_>) -> Self {
        let flags = Flags::of(setup.releases[0]);
        let (at, tier) = setup.tier("gpu").expect("the one tier of this profile");
        Self { gpu: Gpu::new(at, tier.capacity_blocks, flags.free_rule, setup.blocks) }
    }
}

impl EngineModel for Vllm {
    fn serve(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        if !self.gpu.fits(request) {
            return;
        }
        let hits = self.gpu.look_up(request);
        self.gpu.report(request, hits, out);
        self.gpu.admit(request, hits, 0, out);
        self.gpu.decode(request, request.total_tokens(), out);
        self.gpu.free();
    }

    fn content(&self, _tier: usize) -> Vec<u32> {
        self.gpu.content()
    }

    fn validate(&self) -> Result<(), String> {
        self.gpu.validate()
    }
}
