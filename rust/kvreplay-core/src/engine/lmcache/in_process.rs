//! The profile `lmcache@`: the in-process engine, with no serving engine's cache in front.

use super::cache::{Cache, Front, Options};
use super::chunks::ChunkPaths;
use super::order::Policy;
use super::tier::{Kind, Tier};
use crate::engine::{EngineModel, EngineRequest, Recorder, Setup};
use crate::error::{Error, Result};
use crate::hierarchy::TierSpec;
use crate::policy::spec::{Param, Spec};

/// Options of the in-process engine, alone or behind a serving engine.
pub(super) const OPTIONS: &[Param] = &[
    Param {
        name: "min_retrieve_tokens",
        default: "0",
        doc: "a load of fewer tokens is not made; what was found is still not stored again",
    },
    Param {
        name: "save_decode_cache",
        default: "false",
        doc: "whether chunks that fill while decoding are stored",
    },
];

/// The in-process engine alone.
#[derive(Debug)]
pub(super) struct InProcess {
    cache: Cache,
    paths: ChunkPaths,
}

pub(super) fn build(setup: &Setup<'_>) -> Result<Box<dyn EngineModel>> {
    let cache = cache(setup, 0)?;
    Ok(Box::new(InProcess { cache, paths: ChunkPaths::default() }))
}

/// The engine over the tiers from position `first` on.
pub(super) fn cache(setup: &Setup<'_>, first: usize) -> Result<Cache> {
    super::check_blocks(setup)?;
    let options = Options {
        min_retrieve_tokens: setup.options.number("min_retrieve_tokens", 0..=u64::from(u32::MAX))?,
        save_decode_cache: setup.options.flag("save_decode_cache")?,
    };
    let tiers = &setup.tiers[first..];
    let chunk_blocks = tiers.first().map_or(1, |tier| tier.chunk_blocks.max(1));
    let (mut cpu, mut below, mut local) = (None, Vec::new(), None);
    for (k, spec) in tiers.iter().enumerate() {
        if spec.chunk_blocks.max(1) != chunk_blocks {
            return Err(Error::config(
                format!("tier {} has chunk_blocks={}, not {chunk_blocks}", spec.name, spec.chunk_blocks),
                "LMCache has one chunk_size: give all its tiers the same chunk_blocks",
            ));
        }
        let (policy, kind) = policy(spec, &mut local)?;
        let units = u64::from(spec.capacity_units());
        let tier = Tier::new(first + k, units, policy, kind, setup.blocks);
        if spec.name == "cpu" {
            cpu = Some(tier);
        } else {
            below.push(tier);
        }
    }
    Ok(Cache::new(cpu, below, chunk_blocks, options))
}

/// The policy of a tier. Memory and disk share one setting (`cache_policy`).
fn policy(spec: &TierSpec, local: &mut Option<String>) -> Result<(Policy, Kind)> {
    let name = Spec::parse(&spec.policy)?.name;
    if spec.name != "cpu" && spec.name != "disk" {
        let kind = if name == "none" { Kind::Append } else { Kind::Remote };
        return Ok((Policy::Lru, kind));
    }
    let chosen = local.get_or_insert_with(|| name.clone());
    if *chosen != name {
        return Err(Error::config(
            format!("tier {} has policy={name}, memory has {chosen}", spec.name),
            "LMCache has one cache_policy for memory and disk: give both tiers the same policy",
        ));
    }
    Ok((Policy::named(&name), Kind::Local))
}

impl EngineModel for InProcess {
    fn serve(&mut self, request: &EngineRequest<'_>, out: &mut Recorder) {
        let chunks = self.paths.read(request, 1);
        self.cache.look_up(&chunks, out);
        self.cache.load(request, &chunks, Front::default(), out);
        self.cache.store(&chunks, out);
    }

    fn content(&self, tier: usize) -> Vec<u32> {
        self.cache.tier(tier).map_or_else(Vec::new, Tier::content)
    }

    fn validate(&self) -> std::result::Result<(), String> {
        self.cache.validate()
    }
}
