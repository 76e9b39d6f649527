//! `TensorRT-LLM`'s `kv_cache_manager_v2` in plain lists: full blocks, one pool, pages never used first.

use crate::engine::EngineRequest;

/// Where a page hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Not in the tree.
    Out,
    Root,
    Below(usize),
}

#[derive(Debug, Clone)]
struct Page {
    name: Option<u32>,
    level: usize,
    priority: u8,
    place: Place,
}

/// The manager and what the last request did.
#[derive(Debug)]
pub(crate) struct Manager {
    capacities: Vec<usize>,
    priority: Option<u8>,
    priority_tokens: u64,
    decode_priority: u8,
    /// Every page ever made; those that are gone are on no level.
    pages: Vec<Option<Page>>,
    /// Evictable pages in order of queueing.
    queue: Vec<usize>,
    pub(crate) hit_tokens: Vec<u64>,
    pub(crate) events: Vec<String>,
}

const TIERS: [&str; 3] = ["gpu", "cpu", "disk"];

impl Manager {
    pub(crate) fn new(
        capacities: Vec<usize>,
        priority: Option<u8>,
        priority_tokens: u64,
        decode_priority: u8,
    ) -> Self {
        Self {
            hit_tokens: vec![0; capacities.len()],
            capacities,
            priority,
            priority_tokens,
            decode_priority,
            pages: Vec::new(),
            queue: Vec::new(),
            events: Vec::new(),
        }
    }

    pub(crate) fn serve(&mut self, request: &EngineRequest<'_>) {
        self.events.clear();
        self.hit_tokens.fill(0);
        let size = u64::from(request.block_tokens);
        let needed = request.total_tokens().div_ceil(size) as usize;
        if request.prompt_tokens == 0 || needed > self.capacities[0] {
            return;
        }
        let mut held = Vec::new();
        for &name in request.blocks_before_last_token() {
            let Some(page) = self.find(name) else { break };
            let level = self.page(page).level;
            self.hit_tokens[level] += size;
            self.events.push(format!("hit {} {name}", TIERS[level]));
            self.queue.retain(|&queued| queued != page);
            held.push(page);
        }
        let low: Vec<usize> = held.iter().copied().filter(|&page| self.page(page).level > 0).collect();
        self.prepare(0, low.len(), Vec::new());
        for page in low {
            let (level, name) = (self.page(page).level, self.page(page).name.unwrap());
            self.events.push(format!("move {} {name}", TIERS[level]));
            self.events.push(format!("insert gpu {name}"));
            self.pages[page].as_mut().unwrap().level = 0;
        }
        let prompt = request.prompt_tokens.div_ceil(size) as usize;
        self.prepare(0, prompt - held.len(), Vec::new());
        while held.len() < needed {
            let token = held.len() as u64 * size;
            if token >= request.prompt_tokens {
                self.prepare(0, 1, Vec::new());
            }
            let covered = self.priority_tokens == 0 || token < self.priority_tokens;
            let prompt_priority = if covered { self.priority.unwrap_or(35) } else { 35 };
            let priority = if token < request.prompt_tokens { prompt_priority } else { self.decode_priority };
            self.pages.push(Some(Page { name: None, level: 0, priority, place: Place::Out }));
            held.push(self.pages.len() - 1);
        }
        self.close(request, held);
    }

    pub(crate) fn content(&self, level: usize) -> Vec<u32> {
        let mut order = self.of_level(level);
        order.sort_by_key(|&page| self.page(page).priority);
        let in_tree = order.iter().rev().filter(|&&page| self.page(page).place != Place::Out);
        in_tree.filter_map(|&page| self.page(page).name).collect()
    }

    fn page(&self, page: usize) -> &Page {
        self.pages[page].as_ref().unwrap()
    }

    fn find(&self, name: u32) -> Option<usize> {
        let is = |page: &Option<Page>| {
            page.as_ref().is_some_and(|page| page.name == Some(name) && page.place != Place::Out)
        };
        self.pages.iter().position(is)
    }

    fn of_level(&self, level: usize) -> Vec<usize> {
        self.queue.iter().copied().filter(|&page| self.page(page).level == level).collect()
    }

    fn free(&self, level: usize) -> usize {
        let used = self.pages.iter().flatten().filter(|page| page.level == level).count();
        self.capacities[level] - used
    }

    /// Frees `goal` slots of a level, with pages falling in from above.
    fn prepare(&mut self, level: usize, goal: usize, fallen: Vec<usize>) {
        let free = self.free(level);
        let evictable = self.of_level(level).len();
        let count = (goal + fallen.len()).saturating_sub(free).min(evictable);
        let mut order = self.of_level(level);
        order.sort_by_key(|&page| self.page(page).priority);
        let evicted = order[..count].to_vec();
        self.queue.retain(|page| !evicted.contains(page));
        let (mut moving, room);
        if level + 1 == self.capacities.len() {
            for page in evicted {
                self.lose(page);
            }
            moving = fallen;
            room = self.free(level) - goal;
        } else {
            moving = evicted;
            moving.extend(fallen);
            room = free + count - goal;
        }
        let staying = moving.split_off(moving.len() - moving.len().min(room));
        if level + 1 == self.capacities.len() {
            for page in moving {
                self.lose(page);
            }
        } else if !moving.is_empty() {
            self.prepare(level + 1, 0, moving);
        }
        for page in staying {
            let from = self.page(page).level;
            if let Some(name) = self.page(page).name.filter(|_| self.page(page).place != Place::Out) {
                self.events.push(format!("evict {} {name}", TIERS[from]));
                self.events.push(format!("insert {} {name}", TIERS[level]));
            }
            self.pages[page].as_mut().unwrap().level = level;
            self.queue.push(page);
        }
    }

    /// A page is gone; what hangs below it and is queued too.
    fn lose(&mut self, page: usize) {
        if self.page(page).place != Place::Out {
            let mut order = vec![page];
            let mut at = 0;
            while at < order.len() {
                let below = |other: &usize| {
                    self.pages[*other].as_ref().is_some_and(|page| page.place == Place::Below(order[at]))
                };
                let children: Vec<usize> = (0..self.pages.len()).rev().filter(below).collect();
                order.extend(children);
                at += 1;
            }
            for &below in order.iter().rev() {
                let Page { name, level, .. } = *self.page(below);
                if let Some(name) = name {
                    self.events.push(format!("evict {} {name}", TIERS[level]));
                }
                self.pages[below].as_mut().unwrap().place = Place::Out;
            }
            for below in order {
                if self.queue.contains(&below) {
                    self.queue.retain(|&queued| queued != below);
                    self.pages[below] = None;
                }
            }
        }
        self.pages[page] = None;
    }

    fn close(&mut self, request: &EngineRequest<'_>, held: Vec<usize>) {
        let full = request.total_full_blocks() as usize;
        let (mut place, mut matching, mut known) = (Place::Root, true, true);
        for (at, &page) in held.iter().enumerate().take(full) {
            let name = request.name_of(at as u64).filter(|_| known);
            known = name.is_some();
            let there = name.filter(|_| matching).and_then(|name| self.find(name));
            if there.is_none() {
                matching = false;
                let stored = self.pages[page].as_mut().unwrap();
                (stored.name, stored.place) = (name, place);
                if let Some(name) = name {
                    self.events.push(format!("insert gpu {name}"));
                }
            }
            place = Place::Below(there.unwrap_or(page));
        }
        for page in held.into_iter().rev() {
            if self.page(page).place == Place::Out {
                self.pages[page] = None;
            } else {
                self.queue.push(page);
            }
        }
    }
}
