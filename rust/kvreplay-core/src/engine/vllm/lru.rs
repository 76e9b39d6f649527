//! LRU of the CPU tier.
//!
//! Request-scoped (0.31.0 and later, `policies/lru.py`): chunks are ranked by (request of the last use, minus
//! position), so what the running request used is most recent, its deepest chunk first to be evicted.
//! Touch rule (0.30.0 and earlier): chunks move to the recent end when touched and when their transfer ends.

use super::path::{Path, USED};
use super::policy::{ChunkPolicy, Recency};
use crate::engine::parts::Links;

const LIST: u32 = 0;

/// The chunks in order of recency.
#[derive(Debug)]
pub(super) struct Lru {
    links: Links,
    resident: Vec<bool>,
    len: u32,
    recency: Recency,
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
}

impl ChunkPolicy for Lru {
    fn new(_capacity: u32, recency: Recency) -> Self {
        Self { links: Links::new(1, 0), resident: Vec::new(), len: 0, recency }
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
        if !path.has(at, USED) {
            self.links.remove(node(path.keys[at]));
            self.place(path, at);
            path.set(at, USED);
        }
    }

    fn miss(&mut self, _path: &mut Path, _at: usize) {}

    fn insert(&mut self, path: &mut Path, places: &[u32]) {
        // From the tail on, the next deeper place in use is never far.
        for &at in places.iter().rev() {
            let (at, key) = (at as usize, path.keys[at as usize]);
            match self.recency {
                Recency::RequestScoped => self.place(path, at),
                Recency::Touch => self.links.push(LIST, node(key)),
            }
            self.resident[key as usize] = true;
            path.set(at, USED);
        }
        self.len += places.len() as u32;
    }

    fn evict(
        &mut self,
        count: u32,
        spared: impl Fn(u32) -> bool,
        victims: &mut Vec<u32>,
        gone: &mut Vec<u32>,
    ) {
        let mut at = self.links.next(LIST);
        let mut left = count;
        while left > 0 && !self.links.is_end(at) {
            let (victim, next) = (at - 1, self.links.next(at));
            if !spared(victim) {
                self.links.remove(at);
                self.resident[victim as usize] = false;
                victims.push(victim);
                gone.push(victim);
                left -= 1;
            }
            at = next;
        }
        debug_assert_eq!(left, 0);
        self.len -= count;
    }

    fn finish(&mut self, _path: &Path) {
        // The order of the running request is the order of a finished one: tail first, head most recent.
    }

    fn touch(&mut self, key: u32, _written: bool) {
        if self.holds(key) {
            self.links.renew(LIST, node(key));
        }
    }

    fn transferred(&mut self, key: u32) {
        self.links.renew(LIST, node(key));
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
