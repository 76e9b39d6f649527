//! LRU of the CPU tier.
//!
//! `policies/lru.py` (before 0.22: `lru_manager.py`). From 0.33.0 on chunks are ranked by (request of the last use,
//! minus position), so what the running request used is most recent, its deepest chunk first to be evicted; in
//! 0.31.0 and 0.32.0 a request moves what it used at its end only, and chunks enter at the recent end, head
//! first. Before, chunks move to the recent end when touched, and from 0.24.0 on when their transfer ends, as they
//! are out of the order until then.

use super::path::{Path, USED};
use super::policy::{ChunkPolicy, Recency};
use super::releases::Flags;
use crate::engine::parts::Links;

const LIST: u32 = 0;

/// The chunks in order of recency.
#[derive(Debug)]
pub(super) struct Lru {
    links: Links,
    resident: Vec<bool>,
    len: u32,
    recency: Recency,
    /// Buffer for the victims of one call.
    chosen: Vec<u32>,
}

fn node(key: u32) -> u32 {
    key + 1
}

impl Lru {
    /// Puts a lone chunk at its place among those the request used: the next deeper one is the next older one.
    fn place(&mut self, path: &Path, at: usize) {
        let in_place = |&at: &usize| path.has(at, USED) && self.holds(path.keys[at]);
        let used = path.deepest().map_or(0, |deepest| deepest + 1);
        let newer = if let Some(older) = (at + 1..used).find(in_place) {
            self.links.next(node(path.keys[older]))
        } else {
            (0..at.min(used)).rev().find(in_place).map_or(LIST, |newer| node(path.keys[newer]))
        };
        self.links.insert_before(newer, node(path.keys[at]));
    }

    fn enter(&mut self, path: &mut Path, at: usize) {
        self.resident[path.keys[at] as usize] = true;
        self.len += 1;
        path.set(at, USED);
    }
}

impl ChunkPolicy for Lru {
    fn new(_capacity: u32, flags: Flags) -> Self {
        Self {
            links: Links::new(1, 0),
            resident: Vec::new(),
            len: 0,
            recency: flags.recency,
            chosen: Vec::new(),
        }
    }

    fn extend(&mut self, end: usize) {
        while self.resident.len() < end {
            self.resident.push(false);
            self.links.add();
        }
    }

    fn holds(&self, key: u32) -> bool {
        self.resident[key as usize]
    }

    fn knows(&self, key: u32) -> bool {
        self.holds(key)
    }

    fn len(&self) -> u32 {
        self.len
    }

    fn reuse(&mut self, path: &mut Path, at: usize) {
        if self.recency == Recency::AtUse && !path.has(at, USED) {
            self.links.remove(node(path.keys[at]));
            self.place(path, at);
        }
        path.set(at, USED);
    }

    fn miss(&mut self, _path: &mut Path, _at: usize) {}

    fn insert(&mut self, path: &mut Path, places: &[u32]) {
        if self.recency == Recency::AtUse {
            // From the tail on, the next deeper place in use is never far.
            for &at in places.iter().rev() {
                self.place(path, at as usize);
                self.enter(path, at as usize);
            }
        } else {
            for &at in places {
                self.links.push(LIST, node(path.keys[at as usize]));
                self.enter(path, at as usize);
            }
        }
    }

    fn evict(
        &mut self,
        count: u32,
        spared: impl Fn(u32) -> bool,
        victims: &mut Vec<u32>,
        gone: &mut Vec<u32>,
    ) -> bool {
        let candidates = self.links.iter(LIST).map(|node| node - 1).filter(|&key| !spared(key));
        self.chosen.clear();
        self.chosen.extend(candidates.take(count as usize));
        if self.chosen.len() < count as usize {
            return false;
        }
        for &victim in &self.chosen {
            self.links.remove(node(victim));
            self.resident[victim as usize] = false;
        }
        self.len -= count;
        victims.extend(&self.chosen);
        gone.extend(&self.chosen);
        true
    }

    fn finish(&mut self, path: &Path) {
        // With `AtUse` the chunks are in this order already.
        if self.recency == Recency::AtEnd {
            for (at, &key) in path.keys.iter().enumerate().rev() {
                if path.has(at, USED) && self.holds(key) {
                    self.links.renew(LIST, node(key));
                }
            }
        }
    }

    fn touch(&mut self, key: u32, _written: bool) {
        if self.holds(key) {
            self.links.renew(LIST, node(key));
        }
    }

    fn transferred(&mut self, key: u32) {
        if self.recency == Recency::TouchAndTransfer {
            self.links.renew(LIST, node(key));
        }
    }

    fn content(&self) -> Vec<u32> {
        let mut keys: Vec<u32> = self.links.iter(LIST).map(|node| node - 1).collect();
        keys.reverse();
        keys
    }

    fn validate(&self) -> Result<(), String> {
        let listed = self.links.iter(LIST).filter(|&node| self.holds(node - 1)).count();
        let resident = self.resident.iter().filter(|&&resident| resident).count();
        if listed != resident || listed as u32 != self.len {
            return Err(format!("{listed} chunks in order, {resident} resident, {} counted", self.len));
        }
        Ok(())
    }

    #[cfg(test)]
    fn lists(&self) -> Vec<Vec<u32>> {
        vec![self.links.iter(LIST).map(|node| node - 1).collect()]
    }
}
