//! The one list of engine profiles: the command line, its help and the documentation read it too.

use super::{EngineModel, Release, Setup};
use crate::error::Result;
use crate::policy::spec::Param;

/// A policy or filter of an engine's tier, in the engine's own words.
#[derive(Debug, Clone, Copy)]
pub struct Choice {
    /// The name in specs.
    pub name: &'static str,
    /// One line.
    pub doc: &'static str,
    /// Its parameters.
    pub parameters: &'static [Param],
}

/// A tier that a profile knows.
#[derive(Debug, Clone, Copy)]
pub struct Role {
    /// Its name; `*` stands for any further name, as often as wanted.
    pub name: &'static str,
    /// What its capacity counts and what it is.
    pub doc: &'static str,
    /// Its policies; the first one is the engine's default.
    pub policies: &'static [Choice],
    /// Its filters besides `always`.
    pub admissions: &'static [Choice],
    /// Whether it may keep chunks of several blocks.
    pub chunks: bool,
}

/// One rule of an engine, as the documentation shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// What it is about (`look-up`, `eviction order`, ...).
    pub topic: &'static str,
    /// What this release does.
    pub rule: String,
    /// Since which release, where that is known; empty otherwise.
    pub since: &'static str,
    /// Where it was read.
    pub source: &'static str,
}

/// One engine of a profile and its known releases, oldest first.
#[derive(Debug, Clone, Copy)]
pub struct Component {
    /// The name before the `@`.
    pub name: &'static str,
    /// Known releases, ascending.
    pub releases: &'static [Release],
}

/// An engine profile as users see it.
#[derive(Debug, Clone, Copy)]
pub struct ProfileInfo {
    /// Names of the components joined by `+`.
    pub name: &'static str,
    /// One line.
    pub doc: &'static str,
    /// The engines it is made of, one unless the name has a `+`.
    pub components: &'static [Component],
    /// Options besides `block_size` and `outputs`, which every profile has.
    pub options: &'static [Param],
    /// Tokens per block unless `block_size` says otherwise.
    pub block_tokens: u32,
    /// Tiers it knows, fastest first. A replay gives some of them, in this order.
    pub roles: &'static [Role],
    /// Where the rules were read.
    pub source: &'static str,
    /// The rules of a release.
    pub rules: fn(&[Release]) -> Vec<Rule>,
    /// Constructor of the model.
    pub build: fn(&Setup<'_>) -> Result<Box<dyn EngineModel>>,
}

/// Every profile.
pub const PROFILES: &[ProfileInfo] = &[
    super::kvbm::INFO,
    super::lmcache::LMCACHE,
    super::lmcache::LMCACHE_MP,
    super::sglang::SGLANG,
    super::sglang::SGLANG_HICACHE,
    super::trtllm::INFO,
    super::vllm::VLLM,
    super::lmcache::VLLM_LMCACHE,
];
