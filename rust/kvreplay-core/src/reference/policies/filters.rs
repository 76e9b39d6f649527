//! Twins of the admission filters.

use std::collections::BTreeMap;

/// A filter as a plain table.
pub(super) trait SlowFilter {
    fn admits(&mut self, block: u32, path_units: u32) -> bool;
    fn is_always(&self) -> bool {
        false
    }
}

pub(super) struct Always;

impl SlowFilter for Always {
    fn admits(&mut self, _: u32, _: u32) -> bool {
        true
    }
    fn is_always(&self) -> bool {
        true
    }
}

/// `min_count(n, tracker=entries)`: blocks and counts, the one offered longest ago first.
pub(super) struct MinCount {
    pub(super) n: u32,
    pub(super) entries: usize,
    pub(super) table: Vec<(u32, u32)>,
}

impl SlowFilter for MinCount {
    fn admits(&mut self, block: u32, _: u32) -> bool {
        let at = self.table.iter().position(|&(b, _)| b == block);
        let count = at.map_or(0, |at| self.table.remove(at).1) + 1;
        self.table.push((block, count));
        if self.table.len() > self.entries {
            self.table.remove(0);
        }
        count >= self.n
    }
}

/// `doubling` with an interval in offers.
pub(super) struct Doubling {
    pub(super) threshold: u64,
    pub(super) every: u64,
    pub(super) most: usize,
    pub(super) offers: u64,
    pub(super) table: BTreeMap<u32, u64>,
}

impl SlowFilter for Doubling {
    fn admits(&mut self, block: u32, _: u32) -> bool {
        let number = self.table.entry(block).and_modify(|n| *n *= 2).or_insert(1);
        let passes = *number >= self.threshold;
        self.offers += 1;
        let mut fall = self.offers.is_multiple_of(self.every);
        while fall || self.table.len() > self.most {
            for number in self.table.values_mut() {
                *number -= 1;
            }
            self.table.retain(|_, n| *n > 0);
            fall = false;
        }
        passes
    }
}

/// `second_touch`.
#[derive(Default)]
pub(super) struct SecondTouch(pub(super) std::collections::BTreeSet<u32>);

impl SlowFilter for SecondTouch {
    fn admits(&mut self, block: u32, _: u32) -> bool {
        !self.0.insert(block)
    }
}

/// `min_prefix_depth` in blocks.
pub(super) struct MinDepth(pub(super) u32);

impl SlowFilter for MinDepth {
    fn admits(&mut self, _: u32, path_units: u32) -> bool {
        path_units >= self.0
    }
}
