//! Twins of the policies made of one or two queues.

use super::{Ask, Slow, cut, oldest};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub(super) struct Lru(Vec<u32>);

impl Slow for Lru {
    fn hit(&mut self, block: u32, _: &Ask<'_>) {
        cut(&mut self.0, block);
        self.0.push(block);
    }
    fn insert(&mut self, block: u32, full: bool, ask: &Ask<'_>) -> Option<u32> {
        let victim = if full { oldest(&mut self.0, ask) } else { None };
        self.0.push(block);
        victim
    }
    fn remove(&mut self, block: u32) {
        cut(&mut self.0, block);
    }
}

#[derive(Default)]
pub(super) struct Fifo(Vec<u32>);

impl Slow for Fifo {
    fn hit(&mut self, _: u32, _: &Ask<'_>) {}
    fn insert(&mut self, block: u32, full: bool, ask: &Ask<'_>) -> Option<u32> {
        let victim = if full { oldest(&mut self.0, ask) } else { None };
        self.0.push(block);
        victim
    }
    fn remove(&mut self, block: u32) {
        cut(&mut self.0, block);
    }
}

pub(super) struct Slru {
    probation: Vec<u32>,
    protected: Vec<u32>,
    most: usize,
}

impl Slru {
    pub(super) fn new(capacity: u32) -> Self {
        Self { probation: vec![], protected: vec![], most: (f64::from(capacity) * 0.8) as usize }
    }
}

impl Slow for Slru {
    fn hit(&mut self, block: u32, _: &Ask<'_>) {
        self.remove(block);
        self.protected.push(block);
        // A block that was protected already leaves the size as it was.
        if self.protected.len() > self.most {
            let back = self.protected.remove(0);
            self.probation.push(back);
        }
    }
    fn insert(&mut self, block: u32, full: bool, ask: &Ask<'_>) -> Option<u32> {
        let victim = if full {
            oldest(&mut self.probation, ask).or_else(|| oldest(&mut self.protected, ask))
        } else {
            None
        };
        self.probation.push(block);
        victim
    }
    fn remove(&mut self, block: u32) {
        cut(&mut self.probation, block);
        cut(&mut self.protected, block);
    }
}

pub(super) struct TailLru {
    spare: Vec<u32>,
    needed: Vec<u32>,
    slack: u32,
    path: u32,
}

impl TailLru {
    pub(super) fn new(slack: u32) -> Self {
        Self { spare: vec![], needed: vec![], slack, path: 0 }
    }
    fn put(&mut self, block: u32, ask: &Ask<'_>) {
        let spare = (ask.guarded)(block) && (ask.depth)(block) + self.slack > self.path;
        if spare { self.spare.push(block) } else { self.needed.push(block) }
    }
}

impl Slow for TailLru {
    fn begin(&mut self, path_units: u32, _: i64) {
        self.path = path_units;
    }
    fn hit(&mut self, block: u32, ask: &Ask<'_>) {
        self.remove(block);
        self.put(block, ask);
    }
    fn insert(&mut self, block: u32, full: bool, ask: &Ask<'_>) -> Option<u32> {
        let victim =
            if full { oldest(&mut self.spare, ask).or_else(|| oldest(&mut self.needed, ask)) } else { None };
        self.put(block, ask);
        victim
    }
    fn remove(&mut self, block: u32) {
        cut(&mut self.spare, block);
        cut(&mut self.needed, block);
    }
}

pub(super) struct Ttl {
    list: Vec<u32>,
    used: BTreeMap<u32, i64>,
    idle: i64,
    now: i64,
}

impl Ttl {
    pub(super) fn new(idle: i64) -> Self {
        Self { list: vec![], used: BTreeMap::new(), idle, now: 0 }
    }
}

impl Slow for Ttl {
    fn begin(&mut self, _: u32, now_us: i64) {
        self.now = now_us;
    }
    fn expired(&mut self, ask: &Ask<'_>) -> Option<u32> {
        let oldest = *self.list.iter().find(|&&b| (ask.may_leave)(b))?;
        (self.now - self.used[&oldest] > self.idle).then_some(oldest)
    }
    fn hit(&mut self, block: u32, _: &Ask<'_>) {
        cut(&mut self.list, block);
        self.list.push(block);
        self.used.insert(block, self.now);
    }
    fn insert(&mut self, block: u32, full: bool, ask: &Ask<'_>) -> Option<u32> {
        let victim = if full { oldest(&mut self.list, ask) } else { None };
        self.list.push(block);
        self.used.insert(block, self.now);
        victim
    }
    fn remove(&mut self, block: u32) {
        cut(&mut self.list, block);
    }
}

#[derive(Default)]
pub(super) struct Sieve {
    /// Oldest first.
    list: Vec<u32>,
    visited: BTreeSet<u32>,
    /// The block the hand rests on; none = the oldest.
    hand: Option<u32>,
}

impl Sieve {
    fn take(&mut self, at: usize) -> u32 {
        let block = self.list[at];
        if self.hand == Some(block) {
            self.hand = self.list.get(at + 1).copied();
        }
        self.visited.remove(&block);
        self.list.remove(at)
    }
}

impl Slow for Sieve {
    fn hit(&mut self, block: u32, _: &Ask<'_>) {
        self.visited.insert(block);
    }
    fn insert(&mut self, block: u32, full: bool, ask: &Ask<'_>) -> Option<u32> {
        let mut victim = None;
        if full {
            let mut at = self.hand.map_or(0, |hand| self.list.iter().position(|&b| b == hand).unwrap());
            loop {
                let here = self.list[at];
                if (ask.may_leave)(here) && !self.visited.remove(&here) {
                    break;
                }
                at = (at + 1) % self.list.len();
            }
            self.hand = Some(self.list[at]);
            victim = Some(self.take(at));
        }
        self.list.push(block);
        victim
    }
    fn remove(&mut self, block: u32) {
        let at = self.list.iter().position(|&b| b == block).unwrap();
        self.take(at);
    }
}
