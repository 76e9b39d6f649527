//! The n-th offer of a block passes: what was asked for once is not worth a write.
//!
//! vLLM's `store_threshold` (offers counted in an LRU table of 64,000 entries). The count includes this
//! offer; a block that passed stays in the table.

use super::tracker::Tracker;
use super::{Filter, FilterInfo, Offer};
use crate::error::Result;
use crate::policy::Build;
use crate::policy::spec::{Args, Param};

pub(super) const INFO: FilterInfo = FilterInfo {
    name: "min_count",
    doc: "a block passes from its n-th offer on, counted in a bounded table",
    parameters: &[
        Param { name: "n", default: "2", doc: "offers it takes, from 1" },
        Param {
            name: "tracker",
            default: "64000",
            doc: "blocks counted at once; the one offered longest ago is forgotten",
        },
    ],
    source: "vLLM store_threshold",
    build: |args: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Filter>> {
        let (n, entries) = (args.number("n", 1..=u32::MAX)?, args.number("tracker", 1..=u32::MAX)?);
        Ok(Box::new(MinCount { n, tracker: Tracker::new(build.blocks(), entries) }))
    },
};

struct MinCount {
    n: u32,
    tracker: Tracker,
}

impl Filter for MinCount {
    fn admits(&mut self, offer: &Offer) -> bool {
        self.tracker.count(offer.block) >= self.n
    }
}
