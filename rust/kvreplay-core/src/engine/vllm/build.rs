//! Checks the tiers of a `vllm@` replay and builds its model.

use super::arc::Arc;
use super::lru::Lru;
use super::model::Vllm;
use super::offload::{Offload, Setting, Threshold};
use super::policy::ChunkPolicy;
use super::releases::{self, Flags};
use super::tiering::{Secondaries, Secondary};
use super::tracker::Tracker;
use super::{CPU_ROLE, Gpu};
use crate::engine::{EngineModel, Release, Setup};
use crate::error::{Error, Result};
use crate::hierarchy::TierSpec;
use crate::policy::spec::{Args, Spec};

pub(super) fn build(setup: &Setup<'_>) -> Result<Box<dyn EngineModel>> {
    let flags = Flags::of(setup.releases[0]);
    let gpu = setup
        .tier("gpu")
        .map(|(at, tier)| (at, Gpu::new(at, tier.capacity_blocks, flags.free_rule, setup.blocks)));
    let Some((at, tier)) = setup.tier("cpu") else {
        if let Some(other) = setup.tiers.iter().find(|tier| tier.name != "gpu") {
            return Err(Error::config(
                format!("tier {} has no tier cpu before it", other.name),
                "vLLM moves everything through host memory: give a tier cpu first",
            ));
        }
        return Ok(Box::new(Vllm::<Lru> { gpu, cpu: None }));
    };
    check_release("a CPU tier", flags.has_cpu, releases::CPU, setup)?;
    let set = setting(setup, &flags, at, tier, gpu.is_some())?;
    Ok(if Spec::parse(&tier.policy)?.name == "arc" {
        Box::new(with_cpu::<Arc>(gpu, at, set))
    } else {
        Box::new(with_cpu::<Lru>(gpu, at, set))
    })
}

fn with_cpu<P: ChunkPolicy>(gpu: Option<(usize, Gpu)>, at: usize, set: Setting) -> Vllm<P> {
    Vllm { gpu, cpu: Some((at, Offload::new(set))) }
}

fn setting(setup: &Setup<'_>, flags: &Flags, at: usize, cpu: &TierSpec, behind_gpu: bool) -> Result<Setting> {
    let chunk_blocks = cpu.chunk_blocks.max(1);
    let secondaries = secondaries(setup, at, chunk_blocks)?;
    let threshold = threshold(cpu, flags)?;
    if threshold.is_some() && !secondaries.0.is_empty() {
        return Err(Error::config(
            "admission of tier cpu: vLLM refuses store_threshold with secondary tiers",
            "leave admission out, or the secondary tiers",
        ));
    }
    Ok(Setting {
        tier: at,
        capacity: cpu.capacity_units(),
        chunk_blocks,
        block_tokens: setup.block_tokens,
        blocks: setup.blocks,
        recency: flags.recency,
        threshold,
        offload_decode: setup.options.flag("offload_decode")?,
        behind_gpu,
        secondaries,
    })
}

fn threshold(cpu: &TierSpec, flags: &Flags) -> Result<Option<Threshold>> {
    let spec = Spec::parse(&cpu.admission)?;
    if spec.name == "always" {
        return Ok(None);
    }
    let args = Args::new(&spec, CPU_ROLE.admissions[0].parameters)?;
    let count = args.number("n", 0..=65_535)?;
    let tracker = Tracker::new(args.number("tracker", 1..=1 << 30)?);
    Ok((count >= 2).then_some(Threshold { count, offers: flags.offers_count, tracker }))
}

fn secondaries(setup: &Setup<'_>, cpu: usize, chunk_blocks: u32) -> Result<Secondaries> {
    let mut tiers = Vec::new();
    for (at, tier) in setup.tiers.iter().enumerate().skip(cpu + 1) {
        check_release("secondary tiers", Flags::of(setup.releases[0]).has_tiering, releases::TIERING, setup)?;
        if tier.chunk_blocks.max(1) != chunk_blocks {
            return Err(Error::config(
                format!("tier {} has chunks of {} blocks", tier.name, tier.chunk_blocks),
                format!("secondary tiers keep the chunks of the CPU tier: give chunk_blocks={chunk_blocks}"),
            ));
        }
        tiers.push(Secondary::new(at, tier.capacity_units(), setup.blocks));
    }
    Ok(Secondaries(tiers))
}

fn check_release(what: &str, has_it: bool, since: Release, setup: &Setup<'_>) -> Result<()> {
    if has_it {
        return Ok(());
    }
    Err(Error::config(
        format!("vllm@{} has no {}", setup.releases[0], what.trim_start_matches("a ")),
        format!("{what} is known from vllm@{since} on: give a newer release"),
    ))
}
