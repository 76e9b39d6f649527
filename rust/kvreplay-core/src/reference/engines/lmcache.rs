//! `LMCache` in process as a plain program over lists, written from the steps of `golden/engines/README.md` and,
//! for disk and remote backends, from the rules that the profile shows.

use std::collections::HashMap;

/// A chunk: its block number, or one of its own (from [`UNNAMED`] on) for a chunk without a name.
pub(crate) type Key = u64;

/// Chunks from here on have no name.
pub(crate) const UNNAMED: Key = 1 << 40;

/// What a backend is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Cpu,
    Disk,
    /// A remote server, and whether it evicts.
    Remote(bool),
}

/// What happened to a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    Hit(Key),
    Insert(Key),
    Evict(Key),
}

/// One backend.
#[derive(Debug)]
pub(crate) struct Backend {
    pub(crate) kind: Kind,
    pub(crate) capacity: usize,
    pub(crate) policy: &'static str,
    /// Resident chunks as the dictionary of `LMCache` lists them.
    pub(crate) keys: Vec<Key>,
    /// LFU: uses of a chunk, and when it got the last one.
    uses: HashMap<Key, (u64, u64)>,
    clock: u64,
    pub(crate) events: Vec<Event>,
    pub(crate) hit_tokens: u64,
    pub(crate) no_room: u64,
}

impl Backend {
    pub(crate) fn new(kind: Kind, capacity: usize, policy: &'static str) -> Self {
        Self {
            kind,
            capacity,
            policy,
            keys: Vec::new(),
            uses: HashMap::new(),
            clock: 0,
            events: Vec::new(),
            hit_tokens: 0,
            no_room: 0,
        }
    }

    fn has(&self, key: Key) -> bool {
        self.keys.contains(&key)
    }

    fn touch(&mut self, key: Key) {
        match self.policy {
            "lru" | "mru" => {
                self.keys.retain(|&k| k != key);
                self.keys.push(key);
            }
            "lfu" => {
                self.clock += 1;
                let count = self.uses[&key].0;
                self.uses.insert(key, (count + 1, self.clock));
            }
            _ => {}
        }
    }

    fn add(&mut self, key: Key) {
        self.clock += 1;
        self.keys.push(key);
        self.uses.insert(key, (1, self.clock));
        self.events.push(Event::Insert(key));
    }

    fn victim(&self, pinned: &[Key]) -> Option<Key> {
        let mut free = self.keys.iter().copied().filter(|key| !pinned.contains(key));
        match (self.kind, self.policy) {
            (Kind::Remote(false), _) => None,
            (_, "mru") => free.next_back(),
            (_, "lfu") => free.min_by_key(|key| self.uses[key]),
            _ => free.next(),
        }
    }

    /// Resident chunks, the next victim first.
    pub(crate) fn by_victim(&self) -> Vec<Key> {
        let mut keys = self.keys.clone();
        match self.policy {
            "mru" => keys.reverse(),
            "lfu" => keys.sort_by_key(|key| self.uses[key]),
            _ => {}
        }
        keys
    }

    /// One more slot beside the `taken` ones; `false` when there is none to be had.
    fn slot(&mut self, taken: usize, pinned: &[Key]) -> bool {
        if self.keys.len() + taken < self.capacity {
            return true;
        }
        let Some(victim) = self.victim(pinned) else { return false };
        self.keys.retain(|&k| k != victim);
        self.uses.remove(&victim);
        self.events.push(Event::Evict(victim));
        self.keys.len() + taken < self.capacity
    }

    /// What disk and remote backends do with a chunk.
    fn put(&mut self, key: Key) {
        if self.has(key) {
            self.touch(key);
        } else if self.slot(0, &[]) {
            self.add(key);
        } else {
            self.no_room += 1;
        }
    }
}

/// The engine: backends in the order they are asked.
#[derive(Debug)]
pub(crate) struct Engine {
    pub(crate) backends: Vec<Backend>,
    pub(crate) chunk_tokens: u64,
    pub(crate) min_retrieve_tokens: u64,
    pub(crate) save_decode_cache: bool,
}

impl Engine {
    /// Serves a prompt of `tokens` tokens whose complete chunks are `prompt`, of which the engine in front holds
    /// the first `held` tokens and computes the last token always if `last_token`; `decoded` get full later.
    pub(crate) fn serve(
        &mut self,
        tokens: u64,
        prompt: &[Key],
        decoded: &[Key],
        held: u64,
        last_token: bool,
    ) {
        let found = self.look_up(prompt);
        let all: usize = found.iter().map(Vec::len).sum();
        let mut end = all as u64 * self.chunk_tokens;
        if last_token && end == tokens {
            end = end.saturating_sub(1);
        }
        if end > held && end - held >= self.min_retrieve_tokens {
            self.load(&prompt[..all], &found, held, end);
        }
        self.store(&prompt[all..]);
        if self.save_decode_cache {
            for &key in decoded {
                self.store(&[key]);
            }
        }
    }

    fn look_up(&mut self, prompt: &[Key]) -> Vec<Vec<Key>> {
        let mut rest = prompt;
        let mut found = Vec::new();
        for backend in &mut self.backends {
            let run: Vec<Key> = rest.iter().copied().take_while(|&key| backend.has(key)).collect();
            rest = &rest[run.len()..];
            if !matches!(backend.kind, Kind::Remote(_)) {
                for &key in run.iter().rev() {
                    backend.touch(key);
                }
            }
            found.push(run);
        }
        found
    }

    fn load(&mut self, found: &[Key], by_backend: &[Vec<Key>], held: u64, end: u64) {
        let start = (held / self.chunk_tokens) as usize;
        let wanted = &found[start..];
        let one: Vec<usize> = (0..by_backend.len()).filter(|&k| !by_backend[k].is_empty()).collect();
        let mut served: Vec<Vec<Key>> = vec![Vec::new(); self.backends.len()];
        if let [only] = one[..] {
            served[only] = wanted.to_vec();
        } else {
            let mut rest = wanted;
            for (k, backend) in self.backends.iter().enumerate() {
                served[k] = rest.iter().copied().take_while(|&key| backend.has(key)).collect();
                rest = &rest[served[k].len()..];
            }
        }
        let has_cpu = self.backends[0].kind == Kind::Cpu;
        let mut pinned = if has_cpu { by_backend[0].clone() } else { Vec::new() };
        let mut at = held;
        let mut chunk = start as u64;
        for (k, keys) in served.iter().enumerate() {
            let mut got = keys.clone();
            if k > 0 && has_cpu {
                let mut taken = 0;
                while taken < got.len() && self.backends[0].slot(taken, &pinned) {
                    taken += 1;
                }
                got.truncate(taken);
            }
            if self.backends[k].kind != Kind::Cpu {
                for &key in &got {
                    self.backends[k].touch(key);
                }
            }
            chunk += got.len() as u64;
            let to = (chunk * self.chunk_tokens).min(end);
            if !got.is_empty() && to > at {
                self.backends[k].hit_tokens += to - at;
                self.backends[k].events.extend(got.iter().map(|&key| Event::Hit(key)));
                at = to;
            }
            if has_cpu {
                for &key in &got {
                    if !self.backends[0].has(key) {
                        self.backends[0].add(key);
                    }
                }
                pinned.extend(&got);
            }
            if got.len() < keys.len() {
                break;
            }
        }
    }

    fn store(&mut self, keys: &[Key]) {
        let mut stored = keys;
        if self.backends[0].kind == Kind::Cpu {
            let cpu = &mut self.backends[0];
            let mut taken = 0;
            while taken < keys.len() && cpu.slot(taken, &[]) {
                taken += 1;
            }
            cpu.no_room += (keys.len() - taken) as u64;
            stored = &keys[..taken];
            for &key in stored {
                if !cpu.has(key) {
                    cpu.add(key);
                }
            }
        }
        for backend in self.backends.iter_mut().filter(|backend| backend.kind != Kind::Cpu) {
            for &key in stored {
                backend.put(key);
            }
        }
    }
}
