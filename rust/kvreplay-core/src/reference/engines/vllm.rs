//! vLLM step by step: the GPU's free queue as a plain list, chunks of the CPU by ranks or in plain lists.
//!
//! Written from the rules of the golden vectors (`golden/engines/README.md`) and, where releases differ, from their
//! sources; the order of request-scoped LRU is taken from ranks (request, minus position), as vLLM has it.

use std::collections::{BTreeSet, HashMap, HashSet, VecDeque};

/// What is cached: a block or chunk of the trace, or one that it does not name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Name {
    Block(u32),
    Unnamed(u32, u64),
}

/// One request; blocks as in `EngineRequest`.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub(crate) listed: Vec<u32>,
    pub(crate) decoded: Vec<u32>,
    pub(crate) prompt_tokens: u64,
    pub(crate) decoded_tokens: u64,
}

/// The rules.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) block_tokens: u64,
    /// Usable blocks of the GPU, and whether blocks without a hash are appended when freed.
    pub(crate) gpu: Option<(usize, bool)>,
    pub(crate) cpu: Option<Cpu>,
}

/// The rules of the CPU tier.
#[derive(Debug, Clone)]
pub(crate) struct Cpu {
    /// The release is 0.`minor`.
    pub(crate) minor: u16,
    pub(crate) chunks: usize,
    pub(crate) chunk_blocks: u64,
    pub(crate) arc: bool,
    /// Count and table size.
    pub(crate) threshold: Option<(u32, usize)>,
    pub(crate) decode: bool,
    /// Chunks that a secondary tier has room for.
    pub(crate) files: Option<usize>,
}

impl Cpu {
    fn is_scoped(&self) -> bool {
        self.minor >= 31
    }
}

/// What a request did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) gpu_hit: u64,
    pub(crate) cpu_hit: u64,
    pub(crate) file_hit: u64,
    pub(crate) gpu_evicted: Vec<u32>,
    pub(crate) cpu_evicted: Vec<u32>,
    pub(crate) cpu_stored: BTreeSet<u32>,
    pub(crate) file_stored: BTreeSet<u32>,
}

/// The engine.
#[derive(Debug)]
pub(crate) struct Vllm {
    rules: Rules,
    served: u32,
    queue: VecDeque<usize>,
    holds: Vec<Option<Name>>,
    copies: HashMap<Name, Vec<usize>>,
    /// LRU: chunks with their ranks. Touch rule: the rank is a clock.
    ranks: HashMap<Name, (u64, i64)>,
    clock: u64,
    /// The rank of all that the running request uses.
    rank: u64,
    t1: Vec<Name>,
    t2: Vec<Name>,
    b1: Vec<Name>,
    b2: Vec<Name>,
    p: f64,
    tracker: Vec<(Name, u32)>,
    seen: Vec<(usize, Name)>,
    reused: HashSet<Name>,
    written: HashSet<Name>,
    adapted: HashSet<Name>,
    promoted: HashSet<Name>,
    files: HashSet<Name>,
    out: Outcome,
}

fn renew(list: &mut Vec<Name>, name: Name) {
    list.retain(|&other| other != name);
    list.push(name);
}

impl Request {
    fn name(&self, index: u32, at: u64, block_tokens: u64) -> Name {
        let prompt = self.prompt_tokens / block_tokens;
        let found =
            if at < prompt { self.listed.get(at as usize) } else { self.decoded.get((at - prompt) as usize) };
        found.map_or(Name::Unnamed(index, at), |&block| Name::Block(block))
    }
}

impl Vllm {
    pub(crate) fn new(rules: Rules) -> Self {
        let slots = rules.gpu.map_or(0, |(usable, _)| usable);
        Self {
            rules,
            served: 0,
            queue: (0..slots).collect(),
            holds: vec![None; slots],
            copies: HashMap::new(),
            ranks: HashMap::new(),
            clock: 0,
            rank: 0,
            t1: Vec::new(),
            t2: Vec::new(),
            b1: Vec::new(),
            b2: Vec::new(),
            p: 0.0,
            tracker: Vec::new(),
            seen: Vec::new(),
            reused: HashSet::new(),
            written: HashSet::new(),
            adapted: HashSet::new(),
            promoted: HashSet::new(),
            files: HashSet::new(),
            out: Outcome::default(),
        }
    }

    /// Serves one request.
    pub(crate) fn serve(&mut self, request: &Request) -> Outcome {
        self.out = Outcome::default();
        self.served += 1;
        let block = self.rules.block_tokens;
        let usable = self.rules.gpu.map(|(usable, _)| usable as u64);
        if usable.is_some_and(|usable| request.prompt_tokens.div_ceil(block) > usable) {
            return self.out.clone();
        }
        let total = request.prompt_tokens + request.decoded_tokens;
        let total = usable.map_or(total, |usable| total.min(usable * block));
        let hits = self.gpu_hits(request);
        self.out.gpu_hit = hits.len() as u64 * block;
        let mut start = self.cpu_load(request);
        let mut held = hits;
        self.queue.retain(|slot| !held.contains(slot));
        let mut tokens = request.prompt_tokens;
        let mut refused;
        if self.rules.gpu.is_none() {
            tokens = total;
        }
        loop {
            self.gpu_grow(request, &mut held, tokens);
            (start, refused) = self.cpu_step(request, start, tokens, total);
            if tokens == total {
                break;
            }
            tokens = total.min(tokens + block);
        }
        if refused && self.rules.gpu.is_some() && self.rules.cpu.as_ref().is_some_and(|cpu| cpu.minor >= 26) {
            self.cpu_step(request, start, total, total);
        }
        self.cpu_finish();
        self.gpu_free(held);
        self.out.clone()
    }

    fn gpu_hits(&self, request: &Request) -> Vec<usize> {
        let limit = request.prompt_tokens.saturating_sub(1) / self.rules.block_tokens;
        (0..limit)
            .map(|at| self.copies.get(&request.name(self.served, at, self.rules.block_tokens)))
            .map_while(|slots| slots.map(|slots| slots[0]))
            .collect()
    }

    fn gpu_grow(&mut self, request: &Request, held: &mut Vec<usize>, tokens: u64) {
        if self.rules.gpu.is_none() {
            return;
        }
        let block = self.rules.block_tokens;
        while (held.len() as u64) < tokens.div_ceil(block) {
            let slot = self.queue.pop_front().unwrap();
            if let Some(name) = self.holds[slot].take() {
                let slots = self.copies.get_mut(&name).unwrap();
                slots.retain(|&other| other != slot);
                if slots.is_empty() {
                    self.copies.remove(&name);
                }
                if let Name::Block(block) = name {
                    self.out.gpu_evicted.push(block);
                }
            }
            held.push(slot);
        }
        for at in 0..tokens / block {
            let slot = held[at as usize];
            if self.holds[slot].is_none() {
                let name = request.name(self.served, at, block);
                self.holds[slot] = Some(name);
                self.copies.entry(name).or_default().push(slot);
            }
        }
    }

    fn gpu_free(&mut self, held: Vec<usize>) {
        for slot in held.into_iter().rev() {
            if self.holds[slot].is_none() && self.rules.gpu.is_some_and(|(_, appends)| !appends) {
                self.queue.push_front(slot);
            } else {
                self.queue.push_back(slot);
            }
        }
    }

    fn keys(&self, request: &Request, cpu: &Cpu, tokens: u64) -> Vec<Name> {
        let block = self.rules.block_tokens;
        let chunks = tokens / (block * cpu.chunk_blocks);
        (0..chunks).map(|c| request.name(self.served, (c + 1) * cpu.chunk_blocks - 1, block)).collect()
    }

    fn holds_chunk(&self, name: Name) -> bool {
        self.ranks.contains_key(&name) || self.t1.contains(&name) || self.t2.contains(&name)
    }

    fn resident(&self) -> usize {
        self.ranks.len() + self.t1.len() + self.t2.len()
    }

    fn adapt(&mut self, name: Name, chunks: usize) {
        let (b1, b2) = (self.b1.len() as f64, self.b2.len() as f64);
        if self.b1.contains(&name) {
            self.p = (self.p + f64::max(1.0, b2 / b1)).min(chunks as f64);
            renew(&mut self.b1, name);
        } else if self.b2.contains(&name) {
            self.p = (self.p - f64::max(1.0, b1 / b2)).max(0.0);
            renew(&mut self.b2, name);
        }
    }

    fn stamp(&mut self, name: Name) {
        self.clock += 1;
        self.ranks.insert(name, (self.clock, 0));
    }

    fn touch(&mut self, keys: &[Name], cpu: &Cpu, new: &[Name]) {
        for &name in keys.iter().rev() {
            if self.ranks.contains_key(&name) {
                self.stamp(name);
            } else if self.t1.contains(&name) && new.contains(&name) {
                renew(&mut self.t1, name);
            } else if self.t1.contains(&name) || self.t2.contains(&name) {
                self.t1.retain(|&other| other != name);
                renew(&mut self.t2, name);
            } else {
                self.adapt(name, cpu.chunks);
            }
        }
    }

    /// A chunk at a position is used: all chunks of a request share one rank.
    fn access(&mut self, at: usize, name: Name) {
        if !self.seen.contains(&(at, name)) {
            self.seen.push((at, name));
        }
        let ranks_at_use = self.rules.cpu.as_ref().is_some_and(|cpu| cpu.minor >= 33);
        if let Some(rank) = self.ranks.get_mut(&name).filter(|_| ranks_at_use) {
            *rank = (self.rank, -(at as i64));
        }
    }

    /// Returns the first chunk to store.
    fn cpu_load(&mut self, request: &Request) -> usize {
        let Some(cpu) = self.rules.cpu.clone() else { return 0 };
        let chunk = self.rules.block_tokens * cpu.chunk_blocks;
        self.clock += 1;
        self.rank = self.clock;
        let keys = self.keys(request, &cpu, request.prompt_tokens);
        let hit = self.out.gpu_hit;
        if (keys.len() as u64) * chunk < hit + chunk {
            if !cpu.is_scoped() {
                self.touch(&keys, &cpu, &[]);
            }
            return 0;
        }
        let first = (hit / chunk) as usize;
        let run = self.run(&keys, first, &cpu);
        if let Some((_, size)) = cpu.threshold.filter(|_| cpu.minor < 29) {
            let seen = if cpu.minor < 22 { keys.len() - first } else { run + 1 };
            for &name in keys[first..].iter().take(seen) {
                self.count(name, size, &[]);
            }
        }
        let end = first + run;
        if (end as u64) * chunk < hit + chunk {
            return 0;
        }
        for (at, name) in keys.iter().enumerate().take(end).skip(first) {
            let tokens = (at as u64 + 1) * chunk - hit.max(at as u64 * chunk);
            let promoted = self.promoted.contains(name);
            *(if promoted { &mut self.out.file_hit } else { &mut self.out.cpu_hit }) += tokens;
        }
        for (at, &name) in keys.iter().enumerate().take(end).skip(first) {
            if cpu.is_scoped() {
                self.access(at, name);
                // What this very request brought is no second use.
                if !self.written.contains(&name) {
                    self.reused.insert(name);
                }
            } else if cpu.minor >= 24 && !cpu.arc {
                self.stamp(name);
            }
        }
        end
    }

    /// Chunks found from `first` on; repeated while that brings chunks from the files.
    fn run(&mut self, keys: &[Name], first: usize, cpu: &Cpu) -> usize {
        let mut look_ups = 0;
        loop {
            look_ups += 1;
            let mut on_the_way = Vec::new();
            let mut end = first;
            while end < keys.len() {
                let name = keys[end];
                let missing = !self.holds_chunk(name);
                if missing && (look_ups == 64 || !self.promote(name, end, &mut on_the_way, cpu)) {
                    break;
                }
                end += 1;
            }
            if !cpu.is_scoped() {
                self.touch(keys, cpu, &on_the_way);
                for &name in on_the_way.iter().filter(|_| cpu.minor >= 24 && !cpu.arc) {
                    self.stamp(name);
                }
            }
            if on_the_way.is_empty() {
                return end - first;
            }
        }
    }

    fn promote(&mut self, name: Name, at: usize, on_the_way: &mut Vec<Name>, cpu: &Cpu) -> bool {
        if !self.files.contains(&name) {
            return false;
        }
        if cpu.is_scoped() && self.adapted.insert(name) {
            self.adapt(name, cpu.chunks);
        }
        if self.resident() == cpu.chunks && !self.evict_all(1, on_the_way, cpu) {
            return false;
        }
        self.enter(name, at, cpu);
        self.promoted.insert(name);
        on_the_way.push(name);
        true
    }

    fn count(&mut self, name: Name, size: usize, offered: &[Name]) {
        if let Some(at) = self.tracker.iter().position(|(other, _)| *other == name) {
            let (name, count) = self.tracker.remove(at);
            self.tracker.push((name, count + 1));
            return;
        }
        if self.tracker.len() == size {
            let Some(at) = self.tracker.iter().position(|(other, _)| !offered.contains(other)) else {
                return;
            };
            self.tracker.remove(at);
        }
        self.tracker.push((name, 1));
    }

    fn counted(&self, name: Name) -> u32 {
        self.tracker.iter().find(|(other, _)| *other == name).map_or(0, |(_, count)| *count)
    }

    /// One step of the engine; returns the first chunk still to store and whether the call was refused.
    fn cpu_step(&mut self, request: &Request, start: usize, tokens: u64, total: u64) -> (usize, bool) {
        let Some(cpu) = self.rules.cpu.clone() else { return (0, false) };
        let limit = if cpu.decode { total } else { request.prompt_tokens };
        let keys = self.keys(request, &cpu, tokens.min(limit));
        if keys.len() <= start {
            return (start, false);
        }
        if self.cpu_store(&keys, start, &cpu) { (keys.len(), false) } else { (start, true) }
    }

    fn cpu_store(&mut self, keys: &[Name], start: usize, cpu: &Cpu) -> bool {
        let offered: Vec<Name> = keys[start..].to_vec();
        if let Some((_, size)) = cpu.threshold {
            let (known, unknown): (Vec<Name>, Vec<Name>) =
                offered.iter().partition(|&&name| self.counted(name) > 0);
            if cpu.minor >= 30 {
                for name in known.into_iter().chain(unknown) {
                    self.count(name, size, &offered);
                }
            } else if cpu.minor == 29 {
                for &name in &offered {
                    self.count(name, size, &[]);
                }
            }
        }
        let counted: Vec<Name> = offered
            .iter()
            .copied()
            .filter(|&name| cpu.threshold.is_none_or(|(n, _)| self.counted(name) >= n))
            .collect();
        let wanted: Vec<Name> = counted.iter().copied().filter(|&name| !self.holds_chunk(name)).collect();
        if cpu.is_scoped() {
            for (at, &name) in keys.iter().enumerate().skip(start) {
                if self.holds_chunk(name) {
                    self.access(at, name);
                    if !self.written.contains(&name) {
                        self.reused.insert(name);
                    }
                }
            }
            for &name in wanted.iter().rev() {
                if self.adapted.insert(name) {
                    self.adapt(name, cpu.chunks);
                }
            }
        }
        if wanted.is_empty() {
            return true;
        }
        let need = (wanted.len() + self.resident()).saturating_sub(cpu.chunks);
        let spared = match cpu.minor {
            ..18 => Vec::new(),
            18..31 => counted,
            _ => offered,
        };
        if !self.evict_all(need, &spared, cpu) {
            return false;
        }
        self.insert(keys, &wanted, cpu);
        true
    }

    /// Evicts as many chunks as are needed, or, with one exception, none.
    fn evict_all(&mut self, need: usize, spared: &[Name], cpu: &Cpu) -> bool {
        let victims = self.victims(need, spared, cpu);
        if victims.len() < need && !(cpu.arc && cpu.minor < 22) {
            return false;
        }
        for &victim in &victims {
            self.evict(victim, cpu);
            if let Name::Block(block) = victim {
                self.out.cpu_evicted.push(block);
            }
        }
        if victims.len() < need {
            return false;
        }
        self.b1.drain(..self.b1.len().saturating_sub(cpu.chunks));
        self.b2.drain(..self.b2.len().saturating_sub(cpu.chunks));
        true
    }

    fn enter(&mut self, name: Name, at: usize, cpu: &Cpu) {
        if let Name::Block(block) = name {
            self.out.cpu_stored.insert(block);
        }
        self.written.insert(name);
        if cpu.arc {
            self.b1.retain(|&other| other != name);
            self.b2.retain(|&other| other != name);
            self.t1.push(name);
        } else {
            self.stamp(name);
        }
        if cpu.is_scoped() {
            self.access(at, name);
        }
    }

    fn insert(&mut self, keys: &[Name], wanted: &[Name], cpu: &Cpu) {
        for &name in wanted {
            let at = keys.iter().position(|&other| other == name).unwrap();
            self.enter(name, at, cpu);
            if cpu.files.is_some_and(|room| self.files.len() < room) && self.files.insert(name) {
                self.out.file_stored.extend(if let Name::Block(block) = name { Some(block) } else { None });
            }
        }
        if !cpu.is_scoped() {
            self.touch(keys, cpu, wanted);
            if cpu.minor >= 24 && !cpu.arc {
                for &name in wanted {
                    self.stamp(name);
                }
            }
        }
    }

    /// As many victims as there are, at most `need`.
    fn victims(&self, need: usize, spared: &[Name], cpu: &Cpu) -> Vec<Name> {
        let mut victims = Vec::new();
        if !cpu.arc {
            let mut order: Vec<Name> = self.ranks.keys().copied().collect();
            order.sort_unstable_by_key(|name| self.ranks[name]);
            victims.extend(order.into_iter().filter(|name| !spared.contains(name)).take(need));
            return victims;
        }
        let mut t1_len = self.t1.len();
        for _ in 0..need {
            let pick = |list: &[Name]| {
                list.iter().copied().find(|name| !spared.contains(name) && !victims.contains(name))
            };
            let (t1, t2) = (pick(&self.t1), pick(&self.t2));
            let from_t1 = t1.filter(|_| t1_len as f64 >= self.p.trunc());
            let last = t1.filter(|_| cpu.minor >= 30);
            let Some(victim) = from_t1.or(t2).or(last) else { break };
            t1_len -= usize::from(self.t1.contains(&victim));
            victims.push(victim);
        }
        victims
    }

    fn evict(&mut self, victim: Name, cpu: &Cpu) {
        if !cpu.arc {
            self.ranks.remove(&victim);
            return;
        }
        let ghosts = if self.t1.contains(&victim) { &mut self.b1 } else { &mut self.b2 };
        renew(ghosts, victim);
        self.t1.retain(|&other| other != victim);
        self.t2.retain(|&other| other != victim);
    }

    fn cpu_finish(&mut self) {
        let Some(cpu) = self.rules.cpu.clone() else { return };
        self.seen.sort_unstable_by_key(|(at, _)| *at);
        if cpu.is_scoped() {
            for (_, name) in std::mem::take(&mut self.seen).into_iter().rev() {
                if self.ranks.contains_key(&name) {
                    self.stamp(name);
                } else if self.reused.contains(&name) && self.holds_chunk(name) {
                    self.t1.retain(|&other| other != name);
                    renew(&mut self.t2, name);
                } else if self.t1.contains(&name) {
                    renew(&mut self.t1, name);
                } else if self.t2.contains(&name) {
                    renew(&mut self.t2, name);
                }
            }
        }
        self.seen.clear();
        self.reused.clear();
        self.written.clear();
        self.adapted.clear();
        self.promoted.clear();
    }
}
