//! Checks the tiers of a `vllm@` replay and builds its model.

use super::arc::Arc;
use super::lru::Lru;
use super::model::Vllm;
use super::offload::{Offload, Setting, Threshold};
use super::policy::ChunkPolicy;
use super::releases;
use super::tiering::{Secondaries, Secondary};
use super::tracker::Tracker;
use super::{CPU_ROLE, Flags, Gpu};
use crate::engine::{EngineModel, Release, Setup};
use crate::error::{Error, Result};
use crate::hierarchy::TierSpec;
use crate::policy::spec::{Args, Spec};

pub(super) fn build(setup: &Setup<'_>) -> Result<Box<dyn EngineModel>> {
    let cpu = setup.tier("cpu").map(|(_, tier)| Spec::parse(&tier.policy)).transpose()?;
    Ok(if cpu.is_some_and(|policy| policy.name == "arc") {
        Box::new(model::<Arc>(setup)?)
    } else {
        Box::new(model::<Lru>(setup)?)
    })
}

pub(super) fn model<P: ChunkPolicy>(setup: &Setup<'_>) -> Result<Vllm<P>> {
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
        return Ok(Vllm { gpu, cpu: None });
    };
    check_release("a CPU tier", releases::CPU, setup)?;
    if Spec::parse(&tier.policy)?.name == "arc" {
        check_release("a working ARC (its first store fails with a KeyError)", releases::ARC, setup)?;
    }
    let set = setting(setup, flags, at, tier, gpu.is_some())?;
    Ok(Vllm { gpu, cpu: Some((at, Offload::new(set))) })
}

fn setting(setup: &Setup<'_>, flags: Flags, at: usize, cpu: &TierSpec, behind_gpu: bool) -> Result<Setting> {
    let chunk_blocks = cpu.chunk_blocks.max(1);
    let secondaries = secondaries(setup, at, chunk_blocks)?;
    let threshold = threshold(setup, cpu)?;
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
        flags,
        threshold,
        offload_decode: offload_decode(setup)?,
        behind_gpu,
        secondaries,
    })
}

fn threshold(setup: &Setup<'_>, cpu: &TierSpec) -> Result<Option<Threshold>> {
    let spec = Spec::parse(&cpu.admission)?;
    if spec.name == "always" {
        return Ok(None);
    }
    let args = Args::new(&spec, CPU_ROLE.admissions[0].parameters)?;
    let count = args.number("n", 0..=65_535)?;
    let tracker = Tracker::new(args.number("tracker", 1..=1 << 30)?);
    if count < 2 {
        return Ok(None);
    }
    check_release("store_threshold", releases::THRESHOLD, setup)?;
    Ok(Some(Threshold { count, tracker }))
}

fn offload_decode(setup: &Setup<'_>) -> Result<bool> {
    let has_option = setup.releases[0] >= releases::PROMPT_ONLY;
    if setup.options.text("offload_decode").is_empty() {
        return Ok(!has_option);
    }
    let given = setup.options.flag("offload_decode")?;
    if !given && !has_option {
        return Err(Error::config(
            format!(
                "vllm@{} offers decoded chunks, too: offload_decode=false is not possible",
                setup.releases[0]
            ),
            format!("leave it out, or give vllm@{} or a newer release", releases::PROMPT_ONLY),
        ));
    }
    Ok(given)
}

fn secondaries(setup: &Setup<'_>, cpu: usize, chunk_blocks: u32) -> Result<Secondaries> {
    let mut tiers = Vec::new();
    for (at, tier) in setup.tiers.iter().enumerate().skip(cpu + 1) {
        let objects = Spec::parse(&tier.policy)?.name == "obj";
        let since = if objects { releases::OBJECTS } else { releases::TIERING };
        check_release(if objects { "a tier of objects" } else { "a secondary tier" }, since, setup)?;
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

fn check_release(what: &str, since: Release, setup: &Setup<'_>) -> Result<()> {
    if setup.releases[0] >= since {
        return Ok(());
    }
    Err(Error::config(
        format!("vllm@{} has no {}", setup.releases[0], what.trim_start_matches("a ")),
        format!("it is known from vllm@{since} on: give a newer release"),
    ))
}
