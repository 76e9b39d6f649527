//! Dynamo's frequency filter: a block's number starts at 1 and doubles with each offer, all fall by one
//! at intervals, and a block passes from `threshold` on.
//!
//! KVBM `FrequencyFilter` (ai-dynamo). The interval is a time or a number of offers; numbers that fall to 0
//! are dropped, and while more than `max_entries` are held all fall once more. Numbers stop at 2^30.
//!
//! The fall is not carried out block by block: a level rises instead, and a block's number is what its
//! stored value lies above the level. Blocks that the level reaches are found through a heap.

use super::{Filter, FilterInfo, Offer};
use crate::error::Result;
use crate::policy::Build;
use crate::policy::spec::{Args, Param};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

pub(super) const INFO: FilterInfo = FilterInfo {
    name: "doubling",
    doc: "a number per block doubles with each offer and falls by one at intervals; it passes at the threshold",
    parameters: &[
        Param { name: "threshold", default: "2", doc: "number from which a block passes, 1 to 2^30" },
        Param {
            name: "decay_every",
            default: "600 s",
            doc: "interval: a time like \"600 s\" or \"20 offers\"",
        },
        Param { name: "max_entries", default: "1000000", doc: "blocks held at once, from 1" },
    ],
    source: "NVIDIA Dynamo KVBM FrequencyFilter",
    build,
};

const MOST: u64 = 1 << 30;

fn build(args: &Args<'_>, build: &Build<'_>) -> Result<Box<dyn Filter>> {
    Ok(Box::new(Doubling {
        value: vec![0; build.blocks()],
        level: 0,
        falling: BinaryHeap::new(),
        held: 0,
        threshold: args.number("threshold", 1..=MOST)?,
        every: interval(args, build.timed)?,
        offers: 0,
        due_us: None,
        max_entries: args.number("max_entries", 1..=u32::MAX)? as usize,
    }))
}

/// How often numbers fall.
#[derive(Debug, Clone, Copy)]
enum Every {
    Offers(u64),
    Us(i64),
}

fn interval(args: &Args<'_>, timed: bool) -> Result<Every> {
    let text = args.text("decay_every");
    if let Some(count) = text.strip_suffix("offers").or_else(|| text.strip_suffix("offer")) {
        let offers = count.trim().parse().ok().filter(|&n| n > 0);
        return offers.map(Every::Offers).ok_or_else(|| args.bad("decay_every", text, "like \"20 offers\""));
    }
    let us = args.duration_us("decay_every")?;
    if timed {
        Ok(Every::Us(us))
    } else {
        Err(args.bad("decay_every", text, "a number of offers in a trace without times, like \"20 offers\""))
    }
}

struct Doubling {
    /// Level plus number per block; at or below the level: not held.
    value: Vec<u64>,
    level: u64,
    /// Value and block, smallest first; entries whose block has another value now are stale.
    falling: BinaryHeap<Reverse<(u64, u32)>>,
    held: usize,
    threshold: u64,
    every: Every,
    offers: u64,
    /// When numbers fall next; unknown until the first offer.
    due_us: Option<i64>,
    max_entries: usize,
}

impl Doubling {
    /// All numbers fall by `by`; blocks at 0 are dropped.
    fn decay(&mut self, by: u64) {
        self.level += by;
        while let Some(&Reverse((value, block))) = self.falling.peek()
            && value <= self.level
        {
            self.falling.pop();
            self.held -= usize::from(self.value[block as usize] == value);
        }
    }

    /// The intervals that ended before `now_us`.
    fn decay_until(&mut self, now_us: i64, every_us: i64) {
        let due = self.due_us.unwrap_or_else(|| now_us.saturating_add(every_us));
        let ended = if due <= now_us { now_us.saturating_sub(due) / every_us + 1 } else { 0 };
        self.decay(ended as u64);
        self.due_us = Some(due.saturating_add(ended.saturating_mul(every_us)));
    }

    /// Doubles the number of a block and returns it.
    fn double(&mut self, block: u32) -> u64 {
        let number = self.value[block as usize].saturating_sub(self.level);
        self.held += usize::from(number == 0);
        let number = (number * 2).clamp(1, MOST);
        self.value[block as usize] = self.level + number;
        self.falling.push(Reverse((self.level + number, block)));
        if self.falling.len() > 2 * self.held + 64 {
            let value = &self.value;
            self.falling.retain(|&Reverse((at, block))| value[block as usize] == at);
        }
        number
    }
}

impl Filter for Doubling {
    fn admits(&mut self, offer: &Offer) -> bool {
        if let (Every::Us(every_us), Some(now_us)) = (self.every, offer.now_us) {
            self.decay_until(now_us, every_us);
        }
        let passes = self.double(offer.block) >= self.threshold;
        self.offers += 1;
        if let Every::Offers(every) = self.every
            && self.offers.is_multiple_of(every)
        {
            self.decay(1);
        }
        while self.held > self.max_entries {
            // Falls that drop nothing are taken together: numbers grow to 2^30.
            let lowest = self.falling.peek().map_or(0, |&Reverse((value, _))| value);
            self.decay(lowest.saturating_sub(self.level).max(1));
        }
        passes
    }
}

#[cfg(test)]
mod tests {
    use super::{BinaryHeap, Doubling, Every, Filter, Offer};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn filter(threshold: u64, every: Every, max_entries: usize) -> Doubling {
        Doubling {
            value: vec![0; 8],
            level: 0,
            falling: BinaryHeap::new(),
            held: 0,
            threshold,
            every,
            offers: 0,
            due_us: None,
            max_entries,
        }
    }

    fn offer(block: u32, now_us: i64) -> Offer {
        Offer { block, depth_units: 1, path_units: 1, rival: None, now_us: Some(now_us) }
    }

    #[test]
    fn numbers_fall_with_time() {
        let mut filter = filter(4, Every::Us(10), 100);
        // 1, 2 at time 0; one interval later 1, then 2, 4; then ten intervals: forgotten.
        let passes: Vec<bool> =
            [(1, 0), (1, 0), (1, 10), (1, 19), (1, 125)].map(|(b, t)| filter.admits(&offer(b, t))).to_vec();
        assert_eq!(passes, [false, false, false, true, false]);
        assert_eq!(filter.due_us, Some(130));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn equals_the_plain_table(
            blocks in prop::collection::vec(0u32..8, 0..200),
            threshold in 1u64..9,
            every in 1u64..12,
            max_entries in 1usize..6,
        ) {
            let mut filter = filter(threshold, Every::Offers(every), max_entries);
            let mut table: BTreeMap<u32, u64> = BTreeMap::new();
            for (i, &block) in blocks.iter().enumerate() {
                let number = table.entry(block).and_modify(|n| *n *= 2).or_insert(1);
                prop_assert_eq!(filter.admits(&offer(block, 0)), *number >= threshold);
                let mut falls = u64::from((i as u64 + 1).is_multiple_of(every));
                loop {
                    for _ in 0..falls {
                        for number in table.values_mut() {
                            *number -= 1;
                        }
                        table.retain(|_, n| *n > 0);
                    }
                    falls = 1;
                    if table.len() <= max_entries {
                        break;
                    }
                }
                prop_assert_eq!(filter.held, table.len());
            }
        }
    }
}
