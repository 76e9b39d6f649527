//! Twins of the policies that order blocks by a value.

use super::{Ask, Slow};
use std::collections::BTreeMap;

/// The resident block with the smallest value that may leave; times are unique, so values are.
fn least<V: PartialOrd + Copy>(of: &BTreeMap<u32, V>, ask: &Ask<'_>) -> Option<u32> {
    let mut best: Option<(u32, V)> = None;
    for (&block, &value) in of {
        if (ask.may_leave)(block) && best.is_none_or(|(_, least)| value < least) {
            best = Some((block, value));
        }
    }
    best.map(|(block, _)| block)
}

#[derive(Default)]
pub(super) struct Lfu {
    of: BTreeMap<u32, (u64, u64)>,
    clock: u64,
}

impl Slow for Lfu {
    fn hit(&mut self, block: u32, _: &Ask<'_>) {
        self.clock += 1;
        let uses = self.of[&block].0 + 1;
        self.of.insert(block, (uses, self.clock));
    }
    fn insert(&mut self, block: u32, full: bool, ask: &Ask<'_>) -> Option<u32> {
        let victim = if full { least(&self.of, ask) } else { None };
        victim.map(|v| self.of.remove(&v));
        self.clock += 1;
        self.of.insert(block, (1, self.clock));
        victim
    }
    fn remove(&mut self, block: u32) {
        self.of.remove(&block);
    }
}

/// LRU-2: (second last use or -1, last use).
#[derive(Default)]
pub(super) struct Lru2 {
    of: BTreeMap<u32, (i64, i64)>,
    clock: i64,
}

impl Slow for Lru2 {
    fn hit(&mut self, block: u32, _: &Ask<'_>) {
        self.clock += 1;
        let last = self.of[&block].1;
        self.of.insert(block, (last, self.clock));
    }
    fn insert(&mut self, block: u32, full: bool, ask: &Ask<'_>) -> Option<u32> {
        let victim = if full { least(&self.of, ask) } else { None };
        victim.map(|v| self.of.remove(&v));
        self.clock += 1;
        self.of.insert(block, (-1, self.clock));
        victim
    }
    fn remove(&mut self, block: u32) {
        self.of.remove(&block);
    }
}

/// GDSF, and with a block size the variant worth its recompute time.
pub(super) struct GreedyDual {
    of: BTreeMap<u32, (f64, u64)>,
    uses: BTreeMap<u32, u32>,
    l: f64,
    clock: u64,
    block_tokens: Option<f64>,
}

impl GreedyDual {
    pub(super) fn new(block_tokens: Option<f64>) -> Self {
        Self { of: BTreeMap::new(), uses: BTreeMap::new(), l: 0.0, clock: 0, block_tokens }
    }
    fn set(&mut self, block: u32, uses: u32, ask: &Ask<'_>) {
        self.clock += 1;
        let worth = self
            .block_tokens
            .map_or(1.0, |tokens| 1.0 + (f64::from((ask.depth)(block)) - 0.5) * tokens / 26_700.0);
        self.of.insert(block, (self.l + f64::from(uses) * worth, self.clock));
        self.uses.insert(block, uses);
    }
}

impl Slow for GreedyDual {
    fn hit(&mut self, block: u32, ask: &Ask<'_>) {
        self.set(block, self.uses[&block] + 1, ask);
    }
    fn insert(&mut self, block: u32, full: bool, ask: &Ask<'_>) -> Option<u32> {
        let victim = if full { least(&self.of, ask) } else { None };
        if let Some(victim) = victim {
            self.l = self.of.remove(&victim).unwrap().0;
        }
        self.set(block, 1, ask);
        victim
    }
    fn remove(&mut self, block: u32) {
        self.of.remove(&block);
    }
}
