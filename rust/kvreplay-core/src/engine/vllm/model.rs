//! The model of vLLM: one request from look-up to the release of its blocks.

use super::Gpu;
use super::offload::Offload;
use super::policy::ChunkPolicy;
use crate::engine::{EngineModel, EngineRequest, Recorder};

/// vLLM with a GPU, a CPU tier or both.
pub(super) struct Vllm<P> {
    /// The GPU and its position in the replay.
    pub(super) gpu: Option<(usize, Gpu)>,
    /// The CPU tier and its position in the replay.
    pub(super) cpu: Option<(usize, Offload<P>)>,
}

impl<P: ChunkPolicy> EngineModel for Vllm<P> {
    fn serve(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        match (&mut self.gpu, &mut self.cpu) {
            (Some((_, gpu)), _) if !gpu.fits(request) => {}
            (Some((_, gpu)), None) => {
                let hits = gpu.look_up(request);
                gpu.report(request, hits, out);
                gpu.admit(request, hits, 0, out);
                gpu.decode(request, request.total_tokens(), out);
                gpu.free();
            }
            (None, Some((_, cpu))) => {
                cpu.start(request, request.total_tokens());
                cpu.load(request, 0, out);
                cpu.step(request.total_tokens(), out);
                cpu.end(request.total_tokens(), out);
            }
            (Some((_, gpu)), Some((_, cpu))) => serve_both(gpu, cpu, request, out),
            (None, None) => {}
        }
    }

    fn content(&self, tier: usize) -> Vec<u32> {
        if let Some((_, gpu)) = self.gpu.as_ref().filter(|(at, _)| *at == tier) {
            return gpu.content();
        }
        let Some((at, cpu)) = &self.cpu else { return Vec::new() };
        if *at == tier { cpu.content() } else { cpu.secondaries().content(tier).unwrap_or_default() }
    }

    fn validate(&self) -> Result<(), String> {
        self.gpu.iter().try_for_each(|(_, gpu)| gpu.validate())?;
        self.cpu.iter().try_for_each(|(_, cpu)| cpu.validate())
    }
}

/// The steps of the engine: one for the prompt, then one per block of generated tokens. After each the CPU tier
/// is offered what is new.
fn serve_both<P: ChunkPolicy>(
    gpu: &mut Gpu,
    cpu: &mut Offload<P>,
    request: &EngineRequest<'_>,
    out: &mut Recorder,
) {
    let block_tokens = u64::from(request.block_tokens);
    let tokens = request.total_tokens().min(gpu.tokens(request.block_tokens));
    let hits = gpu.look_up(request);
    gpu.report(request, hits, out);
    cpu.start(request, tokens);
    let loaded = cpu.load(request, u64::from(hits) * block_tokens, out);
    gpu.admit(request, hits, loaded / block_tokens, out);
    let mut done = request.prompt_tokens;
    cpu.step(done, out);
    while done < tokens {
        done = tokens.min(done + block_tokens);
        gpu.decode(request, done, out);
        cpu.step(done, out);
    }
    cpu.end(tokens, out);
    gpu.free();
}
