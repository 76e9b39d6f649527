//! Blocks pass only when the prefix they belong to is long enough to be worth a write.
//!
//! Short prompts are computed again faster than they are loaded (`LMCache`'s `min_retrieve_tokens` is the
//! same thought on the reading side). The depth is that of the whole path the block is offered with, so a
//! long prompt is stored from its root on; a block handed down on eviction is judged by its own depth.

use super::{Filter, FilterInfo, Offer};
use crate::error::Result;
use crate::policy::Build;
use crate::policy::spec::{Args, Param};

pub(super) const INFO: FilterInfo = FilterInfo {
    name: "min_prefix_depth",
    doc: "a block passes when the path it is offered with has at least `tokens` tokens",
    parameters: &[Param { name: "tokens", default: "1024", doc: "listed tokens of the path, whole blocks" }],
    source: "LMCache min_retrieve_tokens",
    build: |args: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Filter>> {
        let tokens: u64 = args.number("tokens", 0..=u64::MAX)?;
        Ok(Box::new(MinPrefixDepth { units: tokens.div_ceil(u64::from(build.block_tokens.max(1))) }))
    },
};

struct MinPrefixDepth {
    units: u64,
}

impl Filter for MinPrefixDepth {
    fn admits(&mut self, offer: &Offer) -> bool {
        u64::from(offer.path_units) >= self.units
    }
}
