//! What a replay is asked to do.

use crate::error::{Error, Result};
use crate::hierarchy::TierSpec;
use crate::policy::Closure;

/// How references become accesses (`semantics.md` sections 3 and 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Request-atomic: the longest leading run hits, then one pass over the path.
    #[default]
    Prefix,
    /// Every block an access of its own, no prefix rule. One tier, no closure.
    Object,
}

/// A replay of one hierarchy.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[allow(clippy::struct_excessive_bools, reason = "independent options of kv.replay")]
pub struct ReplaySpec {
    /// Tiers, fastest first.
    pub tiers: Vec<TierSpec>,
    /// Mode.
    pub mode: Mode,
    /// A hit never covers the last input token.
    pub last_token: bool,
    /// The partial last block neither hits nor stays.
    pub full_blocks_only: bool,
    /// Keep hits per request.
    pub per_request: bool,
    /// Keep the resident blocks of each tier after each request, beside the hits per request.
    pub occupancy: bool,
    /// Keep events.
    pub events: bool,
    /// Measure residence (4 bytes per distinct block and tier).
    pub residence: bool,
}

impl ReplaySpec {
    /// A replay of `tiers` in prefix mode that keeps counters only.
    #[must_use]
    pub fn new(tiers: Vec<TierSpec>) -> Self {
        Self { tiers, ..Self::default() }
    }

    /// Checks what concerns the mode; object mode is set to ignore closure.
    pub(super) fn check(&self) -> Result<()> {
        if self.mode == Mode::Prefix {
            return Ok(());
        }
        if self.tiers.len() > 1 {
            return Err(Error::config(
                "mode=object takes one tier",
                "compare policies tier by tier, or use mode=prefix for a hierarchy",
            ));
        }
        if self.tiers.iter().any(|t| t.chunk_blocks > 1) {
            return Err(Error::config("mode=object knows no chunks", "use chunk_blocks=1 or mode=prefix"));
        }
        Ok(())
    }

    /// The tiers as they are built: object mode has no prefixes to keep whole.
    pub(super) fn built_tiers(&self) -> Vec<TierSpec> {
        let mut tiers = self.tiers.clone();
        if self.mode == Mode::Object {
            for tier in &mut tiers {
                tier.closure = Closure::None;
            }
        }
        tiers
    }
}
