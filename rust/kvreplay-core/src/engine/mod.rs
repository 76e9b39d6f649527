//! Engine profiles: what a named release of a serving engine would do, rule by rule.
//!
//! The generic hierarchy (`hierarchy/`) knows tiers, policies and fill rules as the literature has them.
//! Engines deviate in what they free first, what they offer to a lower tier, when recency is refreshed and
//! how they round, so each has a model of its own: **one file (or folder) per engine, one line in the
//! [`registry`]**. A model is an [`EngineModel`]: it is shown the requests one after the other, each finished
//! before the next starts, and says to a [`Recorder`] what it did. Transfers are instant; nothing depends on
//! a clock (`semantics.md` section 9).
//!
//! * [`Profile`] - a parsed `NAME@VERSION` with its options.
//! * [`Grain`] - the trace in the engine's blocks.
//! * [`EngineRequest`] - one request in these blocks.
//! * [`Setup`] - what a model is built from.

mod grain;
mod kvbm;
mod lmcache;
mod parts;
mod profile;
mod recorder;
mod registry;
mod release;
mod request;
mod setup;
mod sglang;
mod trtllm;
mod vllm;

pub use grain::{Grain, Paths};
pub use profile::{Outputs, Profile};
pub use recorder::{Cause, Recorder, Row};
pub use registry::{Choice, Component, PROFILES, ProfileInfo, Role, Rule};
pub use release::Release;
pub use request::EngineRequest;
pub use setup::Setup;

/// A model of one engine: the decisions of its cache code, request by request.
///
/// Contract: [`Self::serve`] looks up first (the hits are decided before the request changes anything), then
/// allocates, stores, evicts and frees as the engine does while this request runs alone, and reports every
/// step to the recorder **in the engine's order** where the engine has one. It keeps flat arrays over
/// [`Setup::blocks`] block numbers and allocates nothing per request in the steady state.
pub trait EngineModel: Send {
    /// Runs one request from look-up to the release of its blocks.
    fn serve(&mut self, request: &EngineRequest<'_>, out: &mut Recorder);

    /// Blocks resident in a tier (position in [`Setup::tiers`]), each once, of a chunk its last block; most
    /// recent (last to be evicted) first.
    fn content(&self, tier: usize) -> Vec<u32>;

    /// Checks the model's own invariants; called by tests after every request.
    ///
    /// # Errors
    /// The invariant that does not hold.
    fn validate(&self) -> std::result::Result<(), String>;
}

#[cfg(test)]
#[cfg(test)]
mod tests;
