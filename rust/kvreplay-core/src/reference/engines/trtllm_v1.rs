//! `TensorRT-LLM`'s C++ manager over real tokens: every block lies in a plain list, nothing is indexed.

use super::sequence::{Sequence, Token};
use crate::engine::EngineRequest;
use std::collections::BTreeSet;

/// What the deployment sets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) capacities: [usize; 2],
    pub(crate) priority: Option<u8>,
    pub(crate) priority_tokens: u64,
    pub(crate) duration_us: i64,
    pub(crate) decode_priority: u8,
    pub(crate) min_priority: u8,
    pub(crate) emptied_to_front: bool,
    pub(crate) partial_reuse: bool,
    pub(crate) copy_on_partial_reuse: bool,
}

/// Where a block hangs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// Not in the tree.
    Out,
    Root,
    Below(usize),
}

#[derive(Debug, Clone)]
struct Block {
    tokens: Vec<Token>,
    label: Option<u32>,
    level: usize,
    priority: u8,
    duration_us: i64,
    expires_us: Option<i64>,
    place: Place,
    used: bool,
}

/// The manager and what the last request did.
#[derive(Debug)]
pub(crate) struct Manager {
    options: Options,
    blocks: Vec<Block>,
    /// Free blocks in order of release, over all levels and priorities.
    free: Vec<usize>,
    /// Blocks in the tree in order of storing.
    stored: Vec<usize>,
    /// Blocks counted under their label.
    counted: BTreeSet<usize>,
    unknown: u64,
    now_us: i64,
    pub(crate) hit_tokens: [u64; 2],
    pub(crate) events: Vec<String>,
}

const TIERS: [&str; 2] = ["gpu", "cpu"];

impl Manager {
    pub(crate) fn new(options: Options) -> Self {
        let block = |level| Block {
            tokens: Vec::new(),
            label: None,
            level,
            priority: 35,
            duration_us: 0,
            expires_us: None,
            place: Place::Out,
            used: false,
        };
        let [gpu, host] = options.capacities;
        let blocks: Vec<Block> = (0..gpu + host).map(|at| block(usize::from(at >= gpu))).collect();
        let free = (0..blocks.len()).collect();
        Self {
            options,
            blocks,
            free,
            stored: Vec::new(),
            counted: BTreeSet::new(),
            unknown: 0,
            now_us: 0,
            hit_tokens: [0; 2],
            events: Vec::new(),
        }
    }

    pub(crate) fn serve(&mut self, request: &EngineRequest<'_>) {
        (self.hit_tokens, self.events) = ([0; 2], Vec::new());
        self.now_us = request.now_us.unwrap_or(0);
        self.expire();
        let size = request.block_tokens as usize;
        let sequence = Sequence::new(request, &mut self.unknown);
        if request.prompt_tokens == 0 || sequence.blocks.len() > self.options.capacities[0] {
            return;
        }
        let mut keys = sequence.prompt.clone();
        keys.last_mut().unwrap().pop();
        let (mut held, mut root, mut searching) = (Vec::new(), Place::Root, true);
        for (at, key) in keys.iter().enumerate() {
            let covered =
                self.options.priority_tokens == 0 || ((at * size) as u64) < self.options.priority_tokens;
            let (priority, duration_us) =
                if covered { (self.options.priority, self.options.duration_us) } else { (None, 0) };
            let found = if searching { self.find(root, key, true) } else { None };
            let block = match found {
                Some((block, matched)) if matched == size => {
                    root = Place::Below(block);
                    self.hit(block, matched);
                    self.claim(block, priority, duration_us);
                    self.onboard(block);
                    block
                }
                Some((block, matched)) => {
                    searching = false;
                    self.hit(block, matched);
                    if self.blocks[block].used || self.has_children(block) {
                        let old = self.blocks[block].clone();
                        self.allocate(old.priority, old.duration_us)
                    } else {
                        self.leave(block);
                        self.claim(block, priority, duration_us);
                        self.onboard(block);
                        block
                    }
                }
                None => {
                    searching = false;
                    self.allocate(priority.unwrap_or(35), duration_us)
                }
            };
            held.push(block);
        }
        while held.len() < sequence.blocks.len() {
            let block = self.allocate(self.options.decode_priority, 0);
            held.push(block);
        }
        self.store(&sequence, &held);
        for &block in held.iter().rev() {
            self.release(block, false);
        }
    }

    /// What a level holds, the last to be taken first.
    pub(crate) fn content(&self, level: usize) -> Vec<u32> {
        let mut order: Vec<usize> =
            self.free.iter().copied().filter(|&block| self.blocks[block].level == level).collect();
        order.sort_by_key(|&block| self.blocks[block].priority);
        let counted = order.iter().rev().filter(|block| self.counted.contains(block));
        counted.map(|&block| self.blocks[block].label.unwrap()).collect()
    }

    fn children(&self, of: Place) -> Vec<usize> {
        self.stored.iter().copied().filter(|&block| self.blocks[block].place == of).collect()
    }

    fn has_children(&self, block: usize) -> bool {
        !self.children(Place::Below(block)).is_empty()
    }

    /// The child with these tokens, else the newest of those with most leading tokens.
    fn find(&self, root: Place, key: &[Token], partial: bool) -> Option<(usize, usize)> {
        let children = self.children(root);
        if key.is_empty() {
            return None;
        }
        if let Some(&same) = children.iter().find(|&&block| self.blocks[block].tokens == key) {
            return Some((same, key.len()));
        }
        if !partial || !self.options.partial_reuse {
            return None;
        }
        let mut best = None;
        for &block in children.iter().rev() {
            let writable = !self.blocks[block].used && !self.has_children(block);
            let tokens = self.blocks[block].tokens.iter().zip(key);
            let matched = tokens.take_while(|(a, b)| a == b).count();
            let most = best.map_or(0, |(_, most)| most);
            if (self.options.copy_on_partial_reuse || writable) && matched > most {
                best = Some((block, matched));
            }
        }
        best
    }

    fn hit(&mut self, block: usize, tokens: usize) {
        let level = self.blocks[block].level;
        self.hit_tokens[level] += tokens as u64;
        self.event("hit", block, level);
    }

    fn event(&mut self, what: &str, block: usize, level: usize) {
        if self.counted.contains(&block) {
            let label = self.blocks[block].label.unwrap();
            self.events.push(format!("{what} {} {label}", TIERS[level]));
        }
    }

    /// The first free block of the level, lowest priority first.
    fn victim(&self, level: usize) -> Option<usize> {
        let of_level = self.free.iter().copied().filter(|&block| self.blocks[block].level == level);
        of_level.min_by_key(|&block| self.blocks[block].priority)
    }

    fn claim(&mut self, block: usize, priority: Option<u8>, duration_us: i64) {
        self.free.retain(|&free| free != block);
        let block = &mut self.blocks[block];
        (block.used, block.expires_us, block.duration_us) = (true, None, duration_us);
        block.priority = priority.unwrap_or(block.priority);
    }

    fn release(&mut self, block: usize, to_front: bool) {
        let at = if to_front { 0 } else { self.free.len() };
        self.free.insert(at, block);
        let block = &mut self.blocks[block];
        block.used = false;
        let expires = block.duration_us > 0 && block.priority != 35;
        block.expires_us = expires.then_some(self.now_us + block.duration_us);
    }

    fn expire(&mut self) {
        let due = |manager: &Self| {
            let waiting = manager.free.iter().copied();
            let over = waiting.filter_map(|block| manager.blocks[block].expires_us.map(|us| (us, block)));
            over.filter(|&(us, _)| us <= manager.now_us).min_by_key(|&(us, _)| us)
        };
        while let Some((_, block)) = due(self) {
            self.free.retain(|&free| free != block);
            self.free.push(block);
            (self.blocks[block].priority, self.blocks[block].expires_us) = (35, None);
        }
    }

    fn onboard(&mut self, block: usize) {
        if self.blocks[block].level == 0 {
            return;
        }
        let emptied = self.allocate(35, 0);
        (self.blocks[block].level, self.blocks[emptied].level) = (0, 1);
        self.event("move", block, 1);
        self.event("insert", block, 0);
        if self.options.emptied_to_front {
            self.blocks[emptied].priority = 0;
        }
        self.release(emptied, self.options.emptied_to_front);
    }

    fn allocate(&mut self, priority: u8, duration_us: i64) -> usize {
        let mut block = self.victim(0).unwrap();
        let worth =
            !self.blocks[block].tokens.is_empty() && self.blocks[block].priority >= self.options.min_priority;
        if let Some(lower) = self.victim(1).filter(|_| worth) {
            self.drop_below(lower);
            self.event("evict", block, 0);
            self.event("insert", block, 1);
            self.claim(block, None, 0);
            self.blocks[block].level = 1;
            self.release(block, false);
            self.blocks[lower].level = 0;
            block = lower;
        } else {
            self.drop_below(block);
        }
        self.claim(block, Some(priority), duration_us);
        self.blocks[block].tokens.clear();
        block
    }

    /// A block and all below it leave the tree, the last level first.
    fn drop_below(&mut self, block: usize) {
        if self.blocks[block].place == Place::Out {
            return;
        }
        let mut order = vec![block];
        let mut at = 0;
        while at < order.len() {
            // Newest sibling first, as the product's lists have them.
            order.extend(self.children(Place::Below(order[at])).iter().rev());
            at += 1;
        }
        for block in order.into_iter().rev() {
            self.leave(block);
        }
    }

    fn leave(&mut self, block: usize) {
        self.event("evict", block, self.blocks[block].level);
        self.counted.remove(&block);
        self.stored.retain(|&stored| stored != block);
        self.blocks[block].place = Place::Out;
    }

    fn store(&mut self, sequence: &Sequence, held: &[usize]) {
        let (mut root, mut matching) = (Place::Root, true);
        for ((&block, tokens), &label) in held.iter().zip(&sequence.blocks).zip(&sequence.labels) {
            let found = if matching { self.find(root, tokens, false) } else { None };
            self.blocks[block].tokens.clone_from(tokens);
            root = Place::Below(if let Some((same, _)) = found {
                same
            } else {
                matching = false;
                self.blocks[block].place = root;
                self.blocks[block].label = label;
                self.stored.push(block);
                let known = self.counted.iter().any(|&other| self.blocks[other].label == label);
                if label.is_some() && !known {
                    self.counted.insert(block);
                }
                self.event("insert", block, 0);
                block
            });
        }
    }
}
