//! SGLang: the radix cache (`sglang`) and its copy in host memory and storage (`sglang-hicache`).
//!
//! Read from SGLang 0.5.23 (and, for the radix cache, 0.5.9, 0.5.14 and 0.5.18): `srt/mem_cache/radix_cache.py`, `evict_policy.py`, `unified_radix_cache.py`,
//! `unified_cache/unified_tree_core.py`, `unified_cache/components/full.py`, `storage/file/` and
//! `srt/managers/`. The cache is one tree whose nodes are runs of pages; whole nodes are evicted, from the
//! leaves up. A page is an engine block here, and pages of one node stay a run of numbers.

mod check;
mod host;
mod key;
mod leaves;
mod model;
mod pages;
mod prefetch;
mod releases;
mod rules;
mod storage;
mod strategy;
#[cfg(test)]
mod tests;
mod tree;

use self::host::{Host, Write};
use self::model::{Model, Pool};
use self::pages::LookUp;
use self::releases::Rules;
use self::storage::Storage;
use self::strategy::{STRATEGIES, Strategy};
use self::tree::{Flavor, Tree};
use super::registry::{Choice, Component, ProfileInfo, Role};
use super::{EngineModel, Release, Setup};
use crate::error::{Error, Result};
use crate::hierarchy::TierSpec;
use crate::policy::spec::{Param, Spec};

const LAST_TOKEN: Param = Param {
    name: "last_token",
    default: "true",
    doc: "the last token of a prompt is always computed; false looks up the whole prompt",
};

const LISTED_PATHS: Param = Param {
    name: "listed_paths",
    default: "false",
    doc: "a partial last block that the trace lists counts as a page; false: full pages only, as the engine does",
};

const GPU: Role = Role {
    name: "gpu",
    doc: "token pool on the device; capacity is the usable pool in pages (max_total_num_tokens / page_size)",
    policies: STRATEGIES,
    admissions: &[],
    chunks: false,
};

/// The `sglang` profile.
pub(super) const SGLANG: ProfileInfo = ProfileInfo {
    name: "sglang",
    doc: "SGLang's radix cache: whole nodes are evicted, from the leaves up",
    components: &[Component { name: "sglang", releases: releases::RADIX }],
    options: &[
        LAST_TOKEN,
        LISTED_PATHS,
        Param {
            name: "tree",
            default: "radix",
            doc: "radix: the classic tree; unified: the tree that servers use by default (differs for fifo and filo)",
        },
    ],
    block_tokens: 1,
    roles: &[GPU],
    source: "SGLang 0.5.23, python/sglang/srt/mem_cache",
    rules: rules::sglang,
    build: build_sglang,
};

/// The `sglang-hicache` profile.
pub(super) const SGLANG_HICACHE: ProfileInfo = ProfileInfo {
    name: "sglang-hicache",
    doc: "SGLang's HiCache: the radix cache with copies of its nodes in host memory and pages in storage",
    components: &[Component { name: "sglang-hicache", releases: releases::HICACHE }],
    options: &[
        LAST_TOKEN,
        LISTED_PATHS,
        Param {
            name: "write_policy",
            default: "write_through",
            doc: "write_through, write_through_selective (from the second request on) or write_back (on eviction)",
        },
        Param {
            name: "load_back_threshold",
            default: "10",
            doc: "tokens below which pages in host memory are computed again instead of loaded",
        },
        Param {
            name: "prefetch_threshold",
            default: "256",
            doc: "tokens below which storage is not asked, or its hit not used; at least a page",
        },
        Param {
            name: "storage_eviction_ratio",
            default: "0.9",
            doc: "share of the storage tier left filled when it evicts, above 0 up to 1",
        },
    ],
    block_tokens: 1,
    roles: &[
        GPU,
        Role {
            name: "cpu",
            doc: "host pool in pages (hicache_ratio x the device's, 2.0 unless set); evicts by the device's strategy",
            policies: STRATEGIES,
            admissions: &[],
            chunks: false,
        },
        Role {
            name: "storage",
            doc: "pages in storage as the file backend keeps them (its max_size in pages)",
            policies: &[Choice { name: "lru", doc: "the page written or read longest ago", parameters: &[] }],
            admissions: &[],
            chunks: false,
        },
    ],
    source: "SGLang 0.5.23, python/sglang/srt/mem_cache/unified_cache",
    rules: rules::hicache,
    build: build_hicache,
};

fn build_sglang(setup: &Setup<'_>) -> Result<Box<dyn EngineModel>> {
    Ok(Box::new(model(setup, flavor(setup)?)?))
}

fn flavor(setup: &Setup<'_>) -> Result<Flavor> {
    match setup.options.text("tree") {
        "radix" => Ok(Flavor::Radix),
        "unified" if release(setup) < Release(0, 5, 23) => Err(Error::config(
            "tree=unified of an old release",
            "the unified tree is known as 0.5.23 has it: take that release, or tree=radix",
        )),
        "unified" => Ok(Flavor::Unified),
        other => Err(setup.options.bad("tree", other, "radix or unified")),
    }
}

fn build_hicache(setup: &Setup<'_>) -> Result<Box<dyn EngineModel>> {
    Ok(Box::new(hicache(setup)?))
}

/// The release; profiles of one engine have one.
fn release(setup: &Setup<'_>) -> Release {
    setup.releases[0]
}

/// The tree over the device alone.
fn model(setup: &Setup<'_>, flavor: Flavor) -> Result<Model> {
    let (position, tier) = tier(setup, "gpu")?;
    let strategy = Strategy::parse(&tier.policy)?;
    let release = release(setup);
    releases::check_strategy(release, &tier.policy)?;
    Ok(Model {
        tree: Tree::new(setup.blocks, strategy, flavor),
        flavor,
        rules: Rules::of(release),
        look_up: LookUp {
            last_token: setup.options.flag("last_token")?,
            listed_paths: setup.options.flag("listed_paths")?,
        },
        gpu: pool(position, tier),
        host: None,
        storage: None,
        sequence: Vec::new(),
    })
}

fn hicache(setup: &Setup<'_>) -> Result<Model> {
    let options = setup.options;
    let mut model = model(setup, Flavor::Unified)?;
    let (position, cpu) = tier(setup, "cpu")?;
    check_strategy(&tier(setup, "gpu")?.1.policy, &cpu.policy)?;
    let write = match options.text("write_policy") {
        "write_through" => Write::Through,
        "write_through_selective" => Write::ThroughSelective,
        "write_back" => Write::Back,
        other => {
            let expected = "write_through, write_through_selective or write_back";
            return Err(options.bad("write_policy", other, expected));
        }
    };
    let tokens = |name: &str| options.number(name, 0..=u64::from(u32::MAX));
    let ratio = options.number("storage_eviction_ratio", f64::MIN_POSITIVE..=1.0)?;
    let prefetch_tokens = tokens("prefetch_threshold")?;
    model.host = Some(Host::new(pool(position, cpu), write, tokens("load_back_threshold")?));
    model.storage = setup.tier("storage").map(|(position, tier)| {
        let capacity = u64::from(tier.capacity_units());
        Storage::new(position, capacity, ratio, prefetch_tokens, setup.blocks)
    });
    Ok(model)
}

fn tier<'a>(setup: &'a Setup<'_>, name: &str) -> Result<(usize, &'a TierSpec)> {
    setup.tier(name).ok_or_else(|| {
        Error::config(
            format!("SGLang without a tier {name:?}"),
            if name == "cpu" {
                "give HiCache a tier cpu, or use the profile sglang for the device alone"
            } else {
                "give it a tier gpu: the tree is on the device"
            },
        )
    })
}

fn pool(tier: usize, spec: &TierSpec) -> Pool {
    Pool { tier, capacity: u64::from(spec.capacity_units()), used: 0 }
}

/// One strategy serves both pools, so host memory may name the same or leave it at the default.
fn check_strategy(gpu: &str, cpu: &str) -> Result<()> {
    if Strategy::parse(cpu)? == Strategy::parse(gpu)? || Spec::parse(cpu)?.name == "lru" {
        return Ok(());
    }
    Err(Error::config(
        format!("policy {cpu} of tier cpu beside {gpu} of tier gpu"),
        "SGLang evicts from host memory by the device's strategy: leave the policy of cpu out",
    ))
}
