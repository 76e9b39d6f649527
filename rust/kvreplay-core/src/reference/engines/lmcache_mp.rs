//! `LMCache`'s multi-process server as a plain program over lists, written from the steps of
//! `golden/engines/README.md` and, for L2, from the rules that the profile shows.

use super::lmcache::{Event, Key};

/// One tier: lists, oldest first.
#[derive(Debug)]
pub(crate) struct Tier {
    pub(crate) capacity: usize,
    pub(crate) policy: &'static str,
    pub(crate) watermark: f64,
    pub(crate) eviction_ratio: f64,
    /// T1, T2, B1, B2; LRU keeps all in the first.
    pub(crate) lists: [Vec<Key>; 4],
    pub(crate) target: f64,
    pub(crate) top: usize,
    pub(crate) events: Vec<Event>,
    pub(crate) hit_chunks: u64,
    pub(crate) no_room: u64,
}

impl Tier {
    pub(crate) fn new(capacity: usize, policy: &'static str, watermark: f64, eviction_ratio: f64) -> Self {
        Self {
            capacity,
            policy,
            watermark,
            eviction_ratio,
            lists: Default::default(),
            target: 0.0,
            top: 0,
            events: Vec::new(),
            hit_chunks: 0,
            no_room: 0,
        }
    }

    pub(crate) fn resident(&self) -> usize {
        self.lists[0].len() + self.lists[1].len()
    }

    fn has(&self, key: Key) -> bool {
        self.lists[0].contains(&key) || self.lists[1].contains(&key)
    }

    fn forget(&mut self, key: Key) {
        for list in &mut self.lists {
            list.retain(|&k| k != key);
        }
    }

    fn touch(&mut self, key: Key) {
        let to = usize::from(self.policy == "arc");
        self.forget(key);
        self.lists[to].push(key);
    }

    /// A chunk comes; `ghosts_to` is the list for one that was in a ghost list.
    fn add(&mut self, key: Key, ghosts_to: usize) {
        let [_, _, b1, b2] = &self.lists;
        let (in_b1, in_b2) = (b1.contains(&key), b2.contains(&key));
        let (b1, b2) = (b1.len() as f64, b2.len() as f64);
        if in_b1 {
            self.target = (self.target + (b2 / b1).max(1.0)).min(self.top as f64);
        } else if in_b2 {
            self.target = (self.target - (b1 / b2).max(1.0)).max(0.0);
        }
        self.forget(key);
        self.lists[if in_b1 || in_b2 { ghosts_to } else { 0 }].push(key);
        self.top = self.top.max(self.resident());
        self.cut();
    }

    fn cut(&mut self) {
        while self.lists[0].len() + self.lists[2].len() > self.top && !self.lists[2].is_empty() {
            self.lists[2].remove(0);
        }
        while self.lists.iter().map(Vec::len).sum::<usize>() > 2 * self.top {
            let ghosts = if self.lists[3].is_empty() { 2 } else { 3 };
            if self.lists[ghosts].is_empty() {
                break;
            }
            self.lists[ghosts].remove(0);
        }
    }

    fn tick(&mut self) {
        let used = self.resident();
        if self.policy == "noop" || used == 0 || (used as f64 / self.capacity as f64) < self.watermark {
            return;
        }
        let share = (used as f64 * self.eviction_ratio) as usize;
        for _ in 0..if self.eviction_ratio > 0.0 { share.max(1) } else { 0 } {
            let recent = self.lists[0].len() >= self.target as usize && !self.lists[0].is_empty();
            let list = usize::from(!recent && !self.lists[1].is_empty());
            let victim = self.lists[list].remove(0);
            if self.policy == "arc" {
                self.lists[list + 2].push(victim);
                self.cut();
            }
            self.events.push(Event::Evict(victim));
        }
    }
}

/// The server; the first tier is L1.
#[allow(clippy::struct_excessive_bools, reason = "each is a switch of the server of its own")]
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) tiers: Vec<Tier>,
    pub(crate) tick_every_requests: usize,
    pub(crate) retain: bool,
    pub(crate) skip_l1: bool,
    pub(crate) save_decode_cache: bool,
    pub(crate) end_session_touch: bool,
    pub(crate) requests: usize,
}

impl Server {
    /// Serves a prompt of complete chunks; `decoded` get full later.
    pub(crate) fn serve(&mut self, prompt: &[Key], decoded: &[Key]) {
        let found = self.load(prompt);
        self.store(&prompt[found..]);
        let decoded = if self.save_decode_cache { decoded } else { &[] };
        for &key in decoded {
            self.store(&[key]);
        }
        if self.end_session_touch {
            for &key in decoded.iter().rev().chain(prompt.iter().rev()) {
                if self.tiers[0].has(key) {
                    self.tiers[0].touch(key);
                }
            }
        }
        self.requests += 1;
        if self.requests.is_multiple_of(self.tick_every_requests) {
            self.tiers.iter_mut().for_each(Tier::tick);
        }
    }

    fn holder(&self, key: Key) -> Option<usize> {
        self.tiers.iter().position(|tier| tier.has(key))
    }

    fn load(&mut self, prompt: &[Key]) -> usize {
        let mut found: Vec<(Key, usize)> =
            prompt.iter().map_while(|&key| self.holder(key).map(|tier| (key, tier))).collect();
        let staged: Vec<Key> = found.iter().filter(|(_, tier)| *tier > 0).map(|(key, _)| *key).collect();
        let fits = self.tiers[0].resident() + staged.len() <= self.tiers[0].capacity;
        if fits {
            for &key in staged.iter().rev() {
                self.tiers[0].add(key, 0);
            }
        } else {
            self.tiers[0].no_room += staged.len() as u64;
            let run = found.iter().take_while(|(_, tier)| *tier == 0).count();
            found.truncate(run);
        }
        for (k, tier) in self.tiers.iter_mut().enumerate() {
            let served: Vec<Key> = found.iter().filter(|(_, from)| *from == k).map(|(key, _)| *key).collect();
            tier.hit_chunks += served.len() as u64;
            tier.events.extend(served.iter().map(|&key| Event::Hit(key)));
            for &key in served.iter().rev().filter(|_| k > 0) {
                tier.touch(key);
            }
        }
        let l1 = &mut self.tiers[0];
        for &(key, _) in found.iter().rev() {
            l1.touch(key);
        }
        for &key in staged.iter().filter(|_| fits) {
            if self.retain {
                l1.events.push(Event::Insert(key));
            } else {
                l1.forget(key);
                l1.cut();
            }
        }
        found.len()
    }

    fn store(&mut self, keys: &[Key]) {
        let absent: Vec<Key> = keys.iter().copied().filter(|&key| !self.tiers[0].has(key)).collect();
        let l1 = &mut self.tiers[0];
        if l1.resident() + absent.len() > l1.capacity {
            l1.no_room += absent.len() as u64;
            return;
        }
        for &key in absent.iter().rev() {
            l1.add(key, 0);
            l1.events.push(Event::Insert(key));
        }
        for tier in &mut self.tiers[1..] {
            let mut stored = Vec::new();
            for &key in &absent {
                if tier.has(key) {
                    continue;
                }
                if tier.resident() + stored.len() < tier.capacity {
                    stored.push(key);
                } else {
                    tier.no_room += 1;
                }
            }
            for &key in stored.iter().rev() {
                tier.add(key, 1);
                tier.events.push(Event::Insert(key));
            }
        }
        if self.skip_l1 && self.tiers.len() > 1 {
            let l1 = &mut self.tiers[0];
            for &key in &absent {
                l1.forget(key);
                l1.events.push(Event::Evict(key));
            }
            l1.cut();
        }
    }
}
