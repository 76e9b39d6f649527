//! vLLM's ARC for the CPU tier, which is not that of FAST'03.
//!
//! T1, T2 and their ghosts B1, B2 with a target p, as published, but (`policies/arc.py`): every insert goes to T1,
//! also after a ghost hit; T1 is taken from when `|T1| >= int(p)`; adaptation is separate from eviction; each
//! ghost list is bounded by the capacity alone. Up to 0.30.0 touches promote and adapt, from 0.31.0 on a request
//! counts once: a chunk about to be stored adapts, and the rest happens when the request ends.

use super::path::{ADAPTED, Path, REUSED, WRITTEN};
use super::policy::ChunkPolicy;
use super::releases::Flags;
use crate::engine::parts::Links;

const T1: u32 = 0;
const T2: u32 = 1;
const B1: u32 = 2;
const B2: u32 = 3;
const LISTS: u32 = 4;
const NOWHERE: u8 = 4;

/// The four lists.
#[derive(Debug)]
pub(super) struct Arc {
    links: Links,
    /// Which list a chunk is in.
    list: Vec<u8>,
    lens: [u32; LISTS as usize],
    /// Target size of T1.
    p: f64,
    capacity: u32,
    is_atomic: bool,
    falls_back: bool,
    /// Buffer for the victims of one call.
    chosen: Vec<u32>,
}

fn node(key: u32) -> u32 {
    key + LISTS
}

impl Arc {
    fn list_of(&self, key: u32) -> u32 {
        u32::from(self.list[key as usize])
    }

    /// To the recent end of a list, from wherever it is.
    fn renew(&mut self, list: u32, key: u32) {
        if self.list[key as usize] != NOWHERE {
            self.lens[self.list_of(key) as usize] -= 1;
        }
        self.links.renew(list, node(key));
        self.list[key as usize] = list as u8;
        self.lens[list as usize] += 1;
    }

    /// A ghost was asked for: p moves towards the list it came from.
    fn adapt(&mut self, key: u32) {
        let (b1, b2) = (f64::from(self.lens[B1 as usize]), f64::from(self.lens[B2 as usize]));
        match self.list_of(key) {
            B1 => self.p = (self.p + (b2 / b1).max(1.0)).min(f64::from(self.capacity)),
            B2 => self.p = (self.p - (b1 / b2).max(1.0)).max(0.0),
            _ => return,
        }
        self.renew(self.list_of(key), key);
    }

    /// The first chunk from node `at` on that is not spared; the node behind it goes on.
    fn unspared(&self, at: &mut u32, spared: &impl Fn(u32) -> bool) -> Option<u32> {
        while !self.links.is_end(*at) {
            let key = *at - LISTS;
            *at = self.links.next(*at);
            if !spared(key) {
                return Some(key);
            }
        }
        None
    }

    fn choose(&mut self, count: u32, spared: &impl Fn(u32) -> bool) {
        let mut t1_len = self.lens[T1 as usize];
        let (mut at_t1, mut at_t2) = (self.links.next(T1), self.links.next(T2));
        self.chosen.clear();
        for _ in 0..count {
            let is_t1 = t1_len >= self.p as u32;
            let mut victim = if is_t1 { self.unspared(&mut at_t1, spared) } else { None };
            let mut from_t1 = victim.is_some();
            victim = victim.or_else(|| self.unspared(&mut at_t2, spared));
            if victim.is_none() && self.falls_back {
                victim = self.unspared(&mut at_t1, spared);
                from_t1 = true;
            }
            let Some(victim) = victim else { return };
            t1_len -= u32::from(from_t1);
            self.chosen.push(victim);
        }
    }

    /// Cuts a ghost list to the capacity.
    fn cut(&mut self, list: u32, gone: &mut Vec<u32>) {
        while self.lens[list as usize] > self.capacity {
            let Some(oldest) = self.links.oldest(list) else { break };
            self.links.remove(oldest);
            self.lens[list as usize] -= 1;
            self.list[(oldest - LISTS) as usize] = NOWHERE;
            gone.push(oldest - LISTS);
        }
    }

    /// The target size of T1.
    #[cfg(test)]
    pub(super) fn target(&self) -> f64 {
        self.p
    }
}

impl ChunkPolicy for Arc {
    fn new(capacity: u32, flags: Flags) -> Self {
        Self {
            links: Links::new(LISTS, 0),
            list: Vec::new(),
            lens: [0; LISTS as usize],
            p: 0.0,
            capacity,
            is_atomic: flags.arc_is_atomic,
            falls_back: flags.arc_falls_back,
            chosen: Vec::new(),
        }
    }

    fn extend(&mut self, end: usize) {
        while self.list.len() < end {
            self.list.push(NOWHERE);
            self.links.add();
        }
    }

    fn holds(&self, key: u32) -> bool {
        self.list_of(key) <= T2
    }

    fn knows(&self, key: u32) -> bool {
        self.list[key as usize] != NOWHERE
    }

    fn len(&self) -> u32 {
        self.lens[T1 as usize] + self.lens[T2 as usize]
    }

    fn reuse(&mut self, _path: &mut Path, _at: usize) {
        // Counts at the end of the request.
    }

    fn miss(&mut self, path: &mut Path, at: usize) {
        if !path.has(at, ADAPTED) {
            path.set(at, ADAPTED);
            self.adapt(path.keys[at]);
        }
    }

    fn insert(&mut self, path: &mut Path, places: &[u32]) {
        for &at in places {
            self.renew(T1, path.keys[at as usize]);
        }
    }

    fn evict(
        &mut self,
        count: u32,
        spared: impl Fn(u32) -> bool,
        victims: &mut Vec<u32>,
        gone: &mut Vec<u32>,
    ) -> bool {
        self.choose(count, &spared);
        let is_enough = self.chosen.len() == count as usize;
        if !is_enough && self.is_atomic {
            return false;
        }
        for i in 0..self.chosen.len() {
            let victim = self.chosen[i];
            let ghosts = if self.list_of(victim) == T1 { B1 } else { B2 };
            self.renew(ghosts, victim);
            victims.push(victim);
        }
        if is_enough {
            self.cut(B1, gone);
            self.cut(B2, gone);
        }
        is_enough
    }

    fn finish(&mut self, path: &Path) {
        for (at, &key) in path.keys.iter().enumerate().rev() {
            if !self.holds(key) {
                continue;
            }
            if path.has(at, REUSED) {
                self.renew(T2, key);
            } else if path.has(at, WRITTEN) {
                self.renew(self.list_of(key), key);
            }
        }
    }

    fn touch(&mut self, key: u32, written: bool) {
        match self.list_of(key) {
            T1 if written => self.renew(T1, key),
            T1 | T2 => self.renew(T2, key),
            B1 | B2 => self.adapt(key),
            _ => {}
        }
    }

    fn transferred(&mut self, _key: u32) {}

    fn content(&self) -> Vec<u32> {
        let list = |list| self.links.iter(list).map(|node| node - LISTS);
        let mut keys: Vec<u32> = list(T1).chain(list(T2)).collect();
        keys.reverse();
        keys
    }

    fn validate(&self) -> Result<(), String> {
        for list in T1..LISTS {
            let keys: Vec<u32> = self.links.iter(list).map(|node| node - LISTS).collect();
            let marked = self.list.iter().filter(|&&at| u32::from(at) == list).count();
            if keys.len() != marked || marked as u32 != self.lens[list as usize] {
                return Err(format!("list {list} holds {}, {marked} are marked", keys.len()));
            }
            if keys.iter().any(|&key| self.list_of(key) != list) {
                return Err(format!("list {list} holds a chunk of another one"));
            }
        }
        if !(0.0..=f64::from(self.capacity)).contains(&self.p) {
            return Err(format!("p = {} is out of range", self.p));
        }
        Ok(())
    }

    #[cfg(test)]
    fn lists(&self) -> Vec<Vec<u32>> {
        (T1..LISTS).map(|list| self.links.iter(list).map(|node| node - LISTS).collect()).collect()
    }
}
