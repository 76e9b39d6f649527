//! The filter before KVBM v1's disk (`offload/filter.rs` @46b2b3b): a block's number starts at 1 and doubles with
//! each offer, all fall by one at intervals, and a block passes from the threshold on.
//!
//! As in `admission/doubling.rs` a level rises instead of all numbers falling. Here blocks without a name are
//! counted too, and a decay for want of room starts the interval anew.

use super::request::Item;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Numbers stop here (the engine's 64-bit number would overflow far later).
const MOST: u64 = 1 << 30;

/// When numbers fall.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Every {
    /// After so many offers.
    Offers(u64),
    /// After so many microseconds of the trace.
    Us(i64),
}

/// The filter.
#[derive(Debug)]
pub(super) struct Doubling {
    threshold: u64,
    every: Every,
    max_entries: u64,
    /// Level plus number per name; at or below the level: not held.
    values: Vec<u64>,
    level: u64,
    /// Value and name, smallest first; entries whose block has another value now are stale.
    falling: BinaryHeap<Reverse<(u64, u32)>>,
    named: u64,
    /// Blocks without a name, each offered once: they fall at the next decay.
    nameless: u64,
    offers: u64,
    due_us: Option<i64>,
}

impl Doubling {
    pub(super) fn new(threshold: u64, every: Every, max_entries: u64, names: u32) -> Self {
        Self {
            threshold,
            every,
            max_entries,
            values: vec![0; names as usize],
            level: 0,
            falling: BinaryHeap::new(),
            named: 0,
            nameless: 0,
            offers: 0,
            due_us: None,
        }
    }

    /// Lets the intervals end that are over; the first request starts the clock.
    pub(super) fn advance(&mut self, now_us: i64) {
        if let Every::Us(every_us) = self.every {
            let due = self.due_us.unwrap_or_else(|| now_us.saturating_add(every_us));
            let ended = if due <= now_us { now_us.saturating_sub(due) / every_us + 1 } else { 0 };
            self.decay(ended as u64);
            self.due_us = Some(due.saturating_add(ended.saturating_mul(every_us)));
        }
    }

    fn decay(&mut self, by: u64) {
        if by == 0 {
            return;
        }
        self.level += by;
        self.nameless = 0;
        while let Some(&Reverse((value, name))) = self.falling.peek()
            && value <= self.level
        {
            self.falling.pop();
            self.named -= u64::from(self.values[name as usize] == value);
        }
    }

    /// Lets all numbers fall until few enough are left; falls that would drop nothing are taken together.
    fn decay_to_fit(&mut self) {
        while self.named + self.nameless > self.max_entries {
            let lowest = self.falling.peek().map_or(0, |&Reverse((value, _))| value);
            let by = if self.nameless > 0 { 1 } else { lowest.saturating_sub(self.level).max(1) };
            self.decay(by);
        }
    }

    /// Counts an offer and says whether the block passes.
    pub(super) fn admits(&mut self, item: &Item, now_us: Option<i64>) -> bool {
        let number = if let Some(name) = item.name {
            self.double(name)
        } else {
            self.nameless += 1;
            1
        };
        self.offers += 1;
        if let Every::Offers(every) = self.every
            && self.offers >= every
        {
            self.decay(1);
            self.offers = 0;
        }
        if self.named + self.nameless > self.max_entries {
            self.decay_to_fit();
            self.offers = 0;
            if let (Every::Us(every_us), Some(now_us)) = (self.every, now_us) {
                self.due_us = Some(now_us.saturating_add(every_us));
            }
        }
        number >= self.threshold
    }

    fn double(&mut self, name: u32) -> u64 {
        let number = self.values[name as usize].saturating_sub(self.level);
        self.named += u64::from(number == 0);
        let number = (number * 2).clamp(1, MOST);
        self.values[name as usize] = self.level + number;
        self.falling.push(Reverse((self.level + number, name)));
        if self.falling.len() as u64 > 2 * self.named + 64 {
            let values = &self.values;
            self.falling.retain(|&Reverse((value, name))| values[name as usize] == value);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::{Doubling, Every, Item};

    fn item(name: u32) -> Item {
        Item { at: 0, name: Some(name), key: u64::from(name) }
    }

    fn offers(filter: &mut Doubling, offers: &[(u32, i64)]) -> Vec<bool> {
        let one = |&(name, second): &(u32, i64)| {
            filter.advance(second * 1_000_000);
            filter.admits(&item(name), Some(second * 1_000_000))
        };
        offers.iter().map(one).collect()
    }

    #[test]
    fn the_second_offer_passes_within_an_interval() {
        let mut filter = Doubling::new(2, Every::Us(600_000_000), 1_000_000, 8);
        // Block 1: 1, then 2. Block 2: 1, falls to 0 at second 600, so 1 again.
        assert_eq!(offers(&mut filter, &[(1, 0), (2, 1), (1, 599), (2, 600)]), [false, false, true, false]);
        // Block 1 fell to 1 at second 600 and doubles to 2; it survives two intervals from there.
        assert_eq!(offers(&mut filter, &[(1, 700), (1, 1900)]), [true, false]);
    }

    #[test]
    fn too_many_entries_fall_at_once_and_start_the_interval_anew() {
        let mut filter = Doubling::new(2, Every::Us(600_000_000), 2, 8);
        assert_eq!(offers(&mut filter, &[(1, 0), (1, 10), (2, 20), (3, 30)]), [false, true, false, false]);
        // The third entry made all fall: block 1 from 2 to 1, blocks 2 and 3 to 0. The next fall is at 630.
        assert_eq!((filter.named, filter.due_us), (1, Some(630_000_000)));
        assert_eq!(offers(&mut filter, &[(1, 629)]), [true]);
    }

    #[test]
    fn blocks_without_a_name_take_entries() {
        let mut filter = Doubling::new(1, Every::Offers(3), 2, 8);
        let nameless = Item { at: 0, name: None, key: 1 << 33 };
        assert!(filter.admits(&nameless, None) && filter.admits(&item(1), None));
        assert_eq!((filter.named, filter.nameless), (1, 1));
        // The third offer ends the interval: all are gone.
        assert!(filter.admits(&item(2), None));
        assert_eq!((filter.named, filter.nameless), (0, 0));
    }
}
