//! Which engine answers a replay: owner runs where they are exact for all that was asked, else blocks.
//!
//! The two agree to the last counter where both can answer (a test holds them against each other); the runs
//! are one to two orders of magnitude cheaper on traces of long prompts.

use super::slices::{self, CoverTier};
use super::{Mode, ReplayResult, ReplaySpec, references, replay, sequences};
use crate::error::Result;
use crate::hierarchy::{Fill, TierSpec, Touch};
use crate::policy::parse_opt;
use crate::policy::spec::Spec;
use crate::progress::Progress;
use crate::stack::{self, SliceTier, exact_slices};
use crate::trace::Trace;

/// What a tier stores and evicts as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Unit {
    /// Blocks, shared between the requests that hold them.
    #[default]
    Block,
    /// The whole sequence of a request, shared with nobody.
    Request,
}

/// The engine that answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Engine {
    /// Owner runs of the LRU stack.
    Stack,
    /// Block by block.
    Blocks,
    /// Future references (`opt`).
    Future,
    /// Whole sequences (`unit=request`).
    Sequences,
}

impl Engine {
    /// The name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Stack => "stack",
            Self::Blocks => "blocks",
            Self::Future => "future",
            Self::Sequences => "sequences",
        }
    }
}

/// Replays with the cheapest engine that is exact for everything the spec asks for, and says which it was.
///
/// # Errors
/// As [`replay`]; [`crate::Error::Config`] for what whole sequences cannot do.
pub fn replay_auto(
    trace: &Trace,
    spec: &ReplaySpec,
    unit: Unit,
    progress: &Progress,
) -> Result<(Engine, ReplayResult)> {
    if unit == Unit::Request {
        return Ok((Engine::Sequences, sequences::replay(trace, spec, progress)?));
    }
    if is_stack_of_references(spec)? {
        return Ok((Engine::Stack, references::replay(trace, spec, progress)?));
    }
    if let Some(tiers) = covers(trace, spec)? {
        return Ok((Engine::Stack, slices::replay(trace, spec, &tiers, progress)?));
    }
    let engine = match spec.tiers.as_slice() {
        [tier] if is_always(tier)? && parse_opt(&tier.policy)?.is_some() => Engine::Future,
        _ => Engine::Blocks,
    };
    Ok((engine, replay(trace, spec, progress)?))
}

/// What the stack engine cannot tell: events and residence are block by block, and rules that shorten a hit or
/// a path break the arithmetic of its counters.
fn asks_for_blocks(spec: &ReplaySpec) -> bool {
    spec.events || spec.residence || spec.last_token || spec.full_blocks_only
}

/// Whether a tier is one LRU of all its blocks.
fn is_plain_lru(tier: &TierSpec) -> Result<bool> {
    Ok(tier.chunk_blocks == 1 && is_always(tier)? && is_lru(tier)?)
}

/// Whether this is a single LRU tier in object mode. One of no blocks refuses everything: that is the block
/// engine's to count, as is the refusal of lists that object mode does not take.
fn is_stack_of_references(spec: &ReplaySpec) -> Result<bool> {
    match spec.tiers.as_slice() {
        [tier] if spec.mode == Mode::Object && tier.capacity_blocks > 0 => {
            Ok(!asks_for_blocks(spec) && is_plain_lru(tier)?)
        }
        _ => Ok(false),
    }
}

/// The tiers as slices of one LRU stack, where the stack engine gives everything asked for.
///
/// Lists of tiers that are not valid are left to the block engine to refuse.
fn covers(trace: &Trace, spec: &ReplaySpec) -> Result<Option<Vec<CoverTier>>> {
    if spec.mode != Mode::Prefix || asks_for_blocks(spec) {
        return Ok(None);
    }
    if spec.tiers.is_empty() || has_equal_names(&spec.tiers) {
        return Ok(None);
    }
    // A tier of no blocks below others refuses what it is handed: those offers are the block engine's to count.
    if spec.tiers[1..].iter().any(|tier| tier.capacity_blocks == 0) {
        return Ok(None);
    }
    for tier in &spec.tiers {
        if !is_plain_lru(tier)? {
            return Ok(None);
        }
    }
    let list: Vec<SliceTier> = spec.tiers.iter().map(slice_of).collect();
    let Some(covers) = exact_slices(&list, trace.totals().longest_path) else { return Ok(None) };
    let mut above = 0;
    let mut tiers = Vec::with_capacity(covers.len());
    for (k, cover) in covers.into_iter().enumerate() {
        let exclusive = k > 0 && spec.tiers[k].fill == Fill::Victim;
        tiers.push(CoverTier { above, cover, exclusive });
        above = cover;
    }
    Ok(Some(tiers))
}

/// Whether `policy=lru`, to be written with an empty argument list too.
fn is_lru(tier: &TierSpec) -> Result<bool> {
    let spec = Spec::parse(&tier.policy)?;
    Ok(spec.name == "lru" && spec.args.is_empty())
}

fn is_always(tier: &TierSpec) -> Result<bool> {
    let spec = Spec::parse(&tier.admission)?;
    Ok(spec.name == "always" && spec.args.is_empty())
}

fn has_equal_names(tiers: &[TierSpec]) -> bool {
    tiers.iter().enumerate().any(|(k, tier)| tiers[..k].iter().any(|other| other.name == tier.name))
}

fn slice_of(tier: &TierSpec) -> SliceTier {
    let fill = match (tier.fill, tier.touch) {
        (Fill::WriteThrough, Touch::Path) => stack::Fill::WriteThrough,
        (Fill::WriteThrough, Touch::Served) => stack::Fill::WriteThroughServed,
        (Fill::WriteBack, _) => stack::Fill::WriteBack,
        (Fill::Victim, _) => stack::Fill::Victim,
    };
    SliceTier { capacity_blocks: u64::from(tier.capacity_units()), fill }
}

#[cfg(test)]
mod tests;
