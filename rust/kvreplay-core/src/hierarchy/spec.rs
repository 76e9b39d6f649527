//! What a tier is asked to be, and which lists of tiers make sense.

use super::{Fill, Touch};
use crate::error::{Error, Result};
use crate::policy::Closure;
use crate::policy::spec::Spec;

/// One tier of a replay, capacities already in blocks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TierSpec {
    /// Its name in results, unique in a list.
    pub name: String,
    /// Most blocks it holds; floored to whole chunks.
    pub capacity_blocks: u64,
    /// Policy spec, see [`crate::policy::POLICIES`].
    pub policy: String,
    /// Admission spec, see [`crate::admission::FILTERS`].
    pub admission: String,
    /// How blocks get in (tiers after the first).
    pub fill: Fill,
    /// What refreshes blocks (tiers after the first, not `victim`).
    pub touch: Touch,
    /// Whether prefixes are kept whole.
    pub closure: Closure,
    /// Blocks per chunk, stored and evicted together.
    pub chunk_blocks: u32,
}

impl TierSpec {
    /// A tier of `capacity_blocks` with the defaults of `kv.Tier`: LRU, always, write through.
    #[must_use]
    pub fn new(name: &str, capacity_blocks: u64) -> Self {
        Self {
            name: name.to_owned(),
            capacity_blocks,
            policy: "lru".to_owned(),
            admission: "always".to_owned(),
            fill: Fill::default(),
            touch: Touch::default(),
            closure: Closure::default(),
            chunk_blocks: 1,
        }
    }

    /// Chunks it holds, at most what block numbers can count.
    #[must_use]
    pub fn capacity_units(&self) -> u32 {
        let units = self.capacity_blocks / u64::from(self.chunk_blocks.max(1));
        u32::try_from(units).unwrap_or(u32::MAX)
    }
}

/// Checks what concerns the list as a whole.
pub(super) fn check(tiers: &[TierSpec]) -> Result<()> {
    if tiers.is_empty() {
        return Err(Error::config("no tier is given", "give at least one tier, like gpu=5000 blocks"));
    }
    for (k, tier) in tiers.iter().enumerate() {
        if tiers[..k].iter().any(|t| t.name == tier.name) {
            return Err(Error::config(
                format!("two tiers are named {:?}", tier.name),
                "give every tier a name of its own",
            ));
        }
        if tier.chunk_blocks == 0 {
            return Err(Error::config(
                format!("{}: chunk_blocks=0 is out of range", tier.name),
                "chunk_blocks is a number from 1",
            ));
        }
        if k == 0 && tiers.len() > 1 && !takes_all(tier)? {
            return Err(Error::config(
                format!("{}: admission={} on tier 1 of a hierarchy", tier.name, tier.admission),
                "a request's blocks are computed in tier 1, so it takes them all: give the filter to a lower tier",
            ));
        }
        if k > 0 {
            check_chunks(&tiers[k - 1], tier)?;
        }
    }
    Ok(())
}

/// Whether a tier has no filter.
fn takes_all(tier: &TierSpec) -> Result<bool> {
    Ok(Spec::parse(&tier.admission)?.name == "always")
}

/// Chunks of neighbours must fit into one another.
fn check_chunks(upper: &TierSpec, lower: &TierSpec) -> Result<()> {
    if !lower.chunk_blocks.is_multiple_of(upper.chunk_blocks) {
        return Err(Error::config(
            format!(
                "{}: chunk_blocks={} is not a multiple of {}'s {}",
                lower.name, lower.chunk_blocks, upper.name, upper.chunk_blocks
            ),
            "chunks of a lower tier are made of whole chunks of the tier above",
        ));
    }
    if lower.fill.takes_evictions() && lower.chunk_blocks != upper.chunk_blocks {
        return Err(Error::config(
            format!("{}: fill={} needs the chunk_blocks of the tier above", lower.name, lower.fill.name()),
            format!(
                "blocks evicted one by one make no whole chunk; use fill=write_through, or chunk_blocks={} in both",
                lower.chunk_blocks
            ),
        ));
    }
    Ok(())
}
