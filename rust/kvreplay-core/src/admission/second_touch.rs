//! The second offer of a block passes, with a memory of one bit per block that never forgets.
//!
//! The idea behind `SGLang`'s `write_through_selective` (hit count of 2) and S3-FIFO's ghost queue without
//! their bounds; `min_count(2)` is the same with a bounded table.

use super::{Filter, FilterInfo, Offer};
use crate::error::Result;
use crate::policy::Build;
use crate::policy::parts::BitSet;
use crate::policy::spec::Args;

pub(super) const INFO: FilterInfo = FilterInfo {
    name: "second_touch",
    doc: "a block passes from its second offer on, however long ago the first was",
    parameters: &[],
    source: "SGLang write_through_selective",
    build: |_: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Filter>> {
        Ok(Box::new(SecondTouch { seen: BitSet::new(build.topology.blocks()) }))
    },
};

struct SecondTouch {
    seen: BitSet,
}

impl Filter for SecondTouch {
    fn admits(&mut self, offer: &Offer) -> bool {
        let again = self.seen.get(offer.block);
        self.seen.set(offer.block);
        again
    }
}
