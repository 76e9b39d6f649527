//! `TinyLFU` as an admission filter: a block passes when it was offered more often than the victim.
//!
//! Einziger, Friedman, Manes, "`TinyLFU`: A Highly Efficient Cache Admission Policy", ACM `ToS` 2017. Offers of
//! this tier are counted in a sketch of 4-bit counters that halves with age. While the tier has room every
//! block passes that was offered at least `min_count` times; when it is full, the count must also be above
//! that of the block the tier's policy would look at first (`margin` more than it).

use super::{Filter, FilterInfo, Offer};
use crate::error::Result;
use crate::policy::Build;
use crate::policy::parts::Sketch;
use crate::policy::spec::{Args, Param};

pub(super) const INFO: FilterInfo = FilterInfo {
    name: "sketch",
    doc: "TinyLFU: a block passes when it was offered more often than the block that would leave",
    parameters: &[
        Param {
            name: "margin",
            default: "1",
            doc: "by how many offers it must be ahead of the victim, 1 to 15",
        },
        Param { name: "min_count", default: "1", doc: "offers it takes in any case, 1 to 15" },
    ],
    source: "Einziger et al., ACM ToS 2017; Dynamo KVBM",
    build: |args: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Filter>> {
        Ok(Box::new(SketchFilter {
            // A tier larger than the trace never is full; its sketch need not be larger than the trace.
            sketch: Sketch::new(build.capacity.min(build.topology.blocks())),
            margin: args.number("margin", 1..=15)?,
            min_count: args.number("min_count", 1..=15)?,
        }))
    },
};

struct SketchFilter {
    sketch: Sketch,
    margin: u32,
    min_count: u32,
}

impl Filter for SketchFilter {
    fn admits(&mut self, offer: &Offer) -> bool {
        self.sketch.record(offer.block);
        let count = self.sketch.count(offer.block);
        count >= self.min_count
            && offer.rival.is_none_or(|rival| count >= self.sketch.count(rival) + self.margin)
    }

    fn wants_rival(&self) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{Filter, Offer, Sketch, SketchFilter};

    #[test]
    fn a_block_must_be_ahead_of_the_victim_once_the_tier_is_full() {
        let mut filter = SketchFilter { sketch: Sketch::new(100), margin: 2, min_count: 1 };
        let offer = |block, rival| Offer { block, depth_units: 1, path_units: 1, rival, now_us: None };
        // Counts: 7 is offered once while there is room; 8 must get to 3.
        assert!(filter.admits(&offer(7, None)));
        let passes: Vec<bool> = (0..4).map(|_| filter.admits(&offer(8, Some(7)))).collect();
        assert_eq!(passes, [false, false, true, true]);
    }
}
