//! What a model is built from.

use super::release::Release;
use crate::hierarchy::TierSpec;
use crate::policy::spec::Args;

/// What a model is built from. The tiers have been checked against the profile's roles already: their names,
/// order, policies and filters are known ones.
#[derive(Debug)]
pub struct Setup<'a> {
    /// The resolved release of each component (`vllm+lmcache` has two).
    pub releases: &'a [Release],
    /// Tiers, fastest first; `policy` and `admission` are specs in the engine's own words, capacities are in
    /// engine blocks.
    pub tiers: &'a [TierSpec],
    /// The profile's options, defaults filled in.
    pub options: &'a Args<'a>,
    /// Number of distinct engine blocks: block numbers are below it.
    pub blocks: u32,
    /// Tokens per engine block.
    pub block_tokens: u32,
    /// Whether the trace has arrival times.
    pub timed: bool,
}

impl Setup<'_> {
    /// The tier with a name and its position.
    #[must_use]
    pub fn tier(&self, name: &str) -> Option<(usize, &TierSpec)> {
        self.tiers.iter().enumerate().find(|(_, tier)| tier.name == name)
    }
}
