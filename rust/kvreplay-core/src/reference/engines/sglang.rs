//! SGLang's cache from the steps of the golden vectors' notes and of the engine's code: nodes in one list,
//! keys as plain lists of blocks, every search a scan.
//!
//! Pages without a name are blocks of their own here: the caller gives them numbers that nothing else has.

/// Eviction strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Strategy {
    /// Longest not accessed first.
    Lru,
    /// Fewest insertions first.
    Lfu,
    /// Oldest first.
    Fifo,
    /// Last accessed first.
    Mru,
    /// Youngest first.
    Filo,
    /// Those with fewer insertions than this first.
    Slru(u64),
    /// Lower priority first.
    Priority,
}

/// When nodes are copied to host memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Write {
    /// At this many insertions.
    Through(u64),
    /// When they leave the device.
    Back,
}

/// What a cache is made of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Config {
    /// Pages on the device.
    pub(crate) gpu: usize,
    /// Pages in host memory, and when it is written; `None` for the device alone.
    pub(crate) host: Option<(usize, Write)>,
    /// Pages in storage and the share left filled when it evicts.
    pub(crate) storage: Option<(usize, f64)>,
    /// Eviction strategy.
    pub(crate) strategy: Strategy,
    /// The unified tree instead of the classic one.
    pub(crate) unified: bool,
    /// Fewest pages loaded from host memory.
    pub(crate) load_back: usize,
    /// Fewest pages read from storage.
    pub(crate) prefetch: usize,
}

#[derive(Debug, Clone, Default)]
struct Node {
    key: Vec<u32>,
    parent: Option<usize>,
    children: Vec<usize>,
    device: bool,
    host: bool,
    locked: bool,
    hits: u64,
    priority: u64,
    access: u64,
    created: u64,
}

/// A block that came to a tier (`true`) or left it: tier, block.
pub(crate) type Change = (bool, usize, u32);

/// The cache; tiers are device 0, host memory 1, storage 2.
#[derive(Debug)]
pub(crate) struct Cache {
    config: Config,
    /// The root is node 0. Nodes that left stay in the list with an empty key.
    nodes: Vec<Node>,
    /// Nodes on the device and in host memory, in the order noted.
    twice: Vec<usize>,
    /// Nodes that the request loads.
    loading: Vec<usize>,
    /// Pages in storage, the next to leave first.
    storage: Vec<u32>,
    clock: u64,
    /// What happened, in order.
    pub(crate) changes: Vec<Change>,
}

impl Cache {
    /// An empty cache.
    pub(crate) fn new(config: Config) -> Self {
        let root = Node { device: true, ..Node::default() };
        let (twice, loading, storage, changes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        Self { config, nodes: vec![root], twice, loading, storage, clock: 0, changes }
    }

    /// Serves a prompt of which the first `limit` pages are looked up, and which generates `decoded`. Returns
    /// the pages served by each tier.
    pub(crate) fn serve(&mut self, prompt: &[u32], limit: usize, decoded: &[u32]) -> [usize; 3] {
        if prompt.len() > self.config.gpu {
            return [0; 3];
        }
        let fetched = self.prefetch(&prompt[..limit]);
        let (node, pages) = self.find(&prompt[..limit]);
        self.set_locked(node, true);
        let (mut top, mut below) = (node, Vec::new());
        while !self.nodes[top].device {
            below.push(top);
            top = self.nodes[top].parent.unwrap();
        }
        let count: usize = below.iter().map(|&n| self.nodes[n].key.len()).sum();
        let device = pages - count;
        let loads = count >= self.config.load_back.max(1);
        if loads {
            self.make_room(count);
            for &n in below.iter().rev() {
                self.nodes[n].device = true;
                self.loading.push(n);
                self.report(true, 0, n);
            }
        } else {
            for &n in &below {
                self.nodes[n].locked = false;
            }
        }
        let hit = if loads { pages } else { device };
        self.make_room(prompt.len() - hit);
        self.loading.clear();
        for n in below {
            self.note(n);
        }
        let end = self.insert(prompt, 0);
        self.set_locked(end, true);
        let decoded = &decoded[..decoded.len().min(self.config.gpu - prompt.len())];
        if !decoded.is_empty() {
            self.make_room(decoded.len());
            let last = self.insert(&[prompt, decoded].concat(), prompt.len());
            self.set_locked(last, true);
            for n in self.up(end) {
                self.nodes[n].priority = 1;
            }
            self.nodes[0].priority = 1;
        }
        for n in &mut self.nodes {
            n.locked = false;
        }
        if loads { [device, count - fetched, fetched] } else { [device, 0, 0] }
    }

    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// A node and those above it, without the root.
    fn up(&self, mut node: usize) -> Vec<usize> {
        let mut path = Vec::new();
        while node != 0 {
            path.push(node);
            node = self.nodes[node].parent.unwrap();
        }
        path
    }

    fn set_locked(&mut self, node: usize, locked: bool) {
        for n in self.up(node) {
            self.nodes[n].locked = locked;
        }
    }

    fn used(&self, host: bool) -> usize {
        let there = |n: &&Node| if host { n.host } else { n.device };
        self.nodes.iter().filter(there).map(|n| n.key.len()).sum()
    }

    fn report(&mut self, came: bool, tier: usize, node: usize) {
        let key = self.nodes[node].key.clone();
        self.changes.extend(key.into_iter().map(|block| (came, tier, block)));
    }

    /// The child of `node` that goes on with `path`, and how many pages they share.
    fn child(&self, node: usize, path: &[u32]) -> Option<(usize, usize)> {
        let first = path.first()?;
        let child = *self.nodes[node].children.iter().find(|&&c| self.nodes[c].key[0] == *first)?;
        let shared = self.nodes[child].key.iter().zip(path).take_while(|(a, b)| a == b).count();
        Some((child, shared))
    }

    fn split(&mut self, node: usize, len: usize) -> usize {
        let upper = self.nodes.len();
        let (access, created) = (self.tick(), self.tick());
        let mut new = self.nodes[node].clone();
        new.key.truncate(len);
        new.children = vec![node];
        new.access = access;
        if self.config.unified {
            self.nodes[node].access = self.tick();
        } else {
            new.created = created;
        }
        let parent = new.parent.unwrap();
        let place = self.nodes[parent].children.iter().position(|&c| c == node).unwrap();
        self.nodes[parent].children[place] = upper;
        self.nodes[node].key.drain(..len);
        self.nodes[node].parent = Some(upper);
        self.nodes.push(new);
        self.note(upper);
        upper
    }

    fn find(&mut self, path: &[u32]) -> (usize, usize) {
        let (mut node, mut pages) = (0, 0);
        let now = self.tick();
        while let Some((child, shared)) = self.child(node, &path[pages..]) {
            if !self.config.unified {
                self.nodes[child].access = now;
            }
            pages += shared;
            if shared < self.nodes[child].key.len() {
                node = self.split(child, shared);
                break;
            }
            node = child;
        }
        if self.config.unified {
            let now = self.tick();
            for n in self.up(node) {
                self.nodes[n].access = now;
            }
        }
        (node, pages)
    }

    fn insert(&mut self, path: &[u32], counted: usize) -> usize {
        let (mut node, mut pages) = (0, 0);
        let now = self.tick();
        while let Some((child, shared)) = self.child(node, &path[pages..]) {
            self.nodes[child].access = if self.config.unified { self.tick() } else { now };
            node = if shared < self.nodes[child].key.len() { self.split(child, shared) } else { child };
            if !self.nodes[node].device {
                self.nodes[node].device = true;
                self.report(true, 0, node);
                self.note(node);
            }
            pages += shared;
            if pages > counted {
                self.count(node);
            }
        }
        if pages < path.len() {
            node = self.add(node, &path[pages..], 0);
            self.count(node);
        }
        node
    }

    fn add(&mut self, parent: usize, key: &[u32], tier: usize) -> usize {
        let (access, created) = (self.tick(), self.tick());
        let node = self.nodes.len();
        self.nodes.push(Node {
            key: key.to_vec(),
            parent: Some(parent),
            device: tier == 0,
            host: tier == 1,
            priority: if tier == 1 { self.nodes[parent].priority } else { 0 },
            access,
            created,
            ..Node::default()
        });
        self.nodes[parent].children.push(node);
        self.report(true, tier, node);
        node
    }

    fn remove(&mut self, node: usize) {
        let parent = self.nodes[node].parent.unwrap();
        self.nodes[parent].children.retain(|&c| c != node);
        self.nodes[node] = Node::default();
        self.twice.retain(|&n| n != node);
    }

    fn count(&mut self, node: usize) {
        let Some((_, write)) = self.config.host else {
            self.nodes[node].hits += 1;
            return;
        };
        if let Write::Through(threshold) = write {
            self.nodes[node].hits += 1;
            if self.nodes[node].hits >= threshold && !self.nodes[node].host {
                let above = self.up(node).into_iter().take_while(|&n| !self.nodes[n].host);
                let chain: Vec<usize> = above.collect();
                let _ = chain.into_iter().rev().all(|n| self.write_host(n));
            }
        }
    }

    fn rank(&self, node: usize) -> (i128, i128) {
        let n = &self.nodes[node];
        let (hits, access, created) = (n.hits.into(), n.access.into(), n.created.into());
        match self.config.strategy {
            Strategy::Lru => (0, access),
            Strategy::Lfu => (hits, access),
            Strategy::Fifo => (0, created),
            Strategy::Mru => (0, -access),
            Strategy::Filo => (0, -created),
            Strategy::Slru(threshold) => (i128::from(n.hits >= threshold), access),
            Strategy::Priority => (n.priority.into(), access),
        }
    }

    fn is_device_leaf(&self, node: usize) -> bool {
        let n = &self.nodes[node];
        node != 0 && n.device && !n.locked && n.children.iter().all(|&c| !self.nodes[c].device)
    }

    fn make_room(&mut self, pages: usize) {
        while self.config.gpu - self.used(false) < pages {
            let leaves = (1..self.nodes.len()).filter(|&n| self.is_device_leaf(n));
            let Some(node) = leaves.min_by_key(|&n| self.rank(n)) else { return };
            let back = matches!(self.config.host, Some((_, Write::Back)));
            if self.nodes[node].host || back && self.write_host(node) {
                self.report(false, 0, node);
                self.nodes[node].device = false;
            } else {
                self.drop_children(node);
                self.report(false, 0, node);
                self.remove(node);
            }
        }
    }

    fn drop_children(&mut self, node: usize) {
        for child in self.nodes[node].children.clone() {
            self.drop_children(child);
            self.report(false, 1, child);
            self.remove(child);
        }
    }

    fn host_free(&self) -> usize {
        self.config.host.map_or(0, |(pages, _)| pages - self.used(true))
    }

    fn write_host(&mut self, node: usize) -> bool {
        let short = self.nodes[node].key.len().saturating_sub(self.host_free());
        if short > 0 && self.evict_host(short, None) < short {
            return false;
        }
        self.nodes[node].host = true;
        self.report(true, 1, node);
        self.note(node);
        for block in self.nodes[node].key.clone() {
            if !self.store(block) {
                break;
            }
        }
        true
    }

    fn evict_host(&mut self, pages: usize, pinned: Option<usize>) -> usize {
        let mut freed = 0;
        for spare in [true, false] {
            for node in self.twice.clone() {
                let n = &self.nodes[node];
                if freed >= pages {
                    break;
                }
                if !(n.device && n.host) {
                    self.twice.retain(|&other| other != node);
                } else if !(spare && self.is_device_leaf(node)
                    || self.loading.contains(&node)
                    || pinned == Some(node))
                {
                    self.twice.retain(|&other| other != node);
                    freed += n.key.len();
                    self.report(false, 1, node);
                    self.nodes[node].host = false;
                }
            }
        }
        while freed < pages {
            let is_leaf = |&node: &usize| {
                let n = &self.nodes[node];
                n.host && !n.device && !n.locked && n.children.is_empty() && pinned != Some(node)
            };
            let leaves = (1..self.nodes.len()).filter(is_leaf);
            let Some(node) = leaves.min_by_key(|&n| self.rank(n)) else { break };
            freed += self.nodes[node].key.len();
            self.report(false, 1, node);
            self.remove(node);
        }
        freed
    }

    fn note(&mut self, node: usize) {
        let n = &self.nodes[node];
        let back = matches!(self.config.host, Some((_, Write::Back)));
        if back && n.device && n.host && !self.twice.contains(&node) {
            self.twice.push(node);
        }
    }

    fn store(&mut self, block: u32) -> bool {
        let Some((capacity, ratio)) = self.config.storage else { return false };
        if let Some(at) = self.storage.iter().position(|&b| b == block) {
            self.storage.remove(at);
            self.storage.push(block);
            return true;
        }
        if self.storage.len() >= capacity {
            let target = (capacity as f64 * ratio - 1.0).max(0.0);
            while self.storage.len() as f64 > target {
                let gone = self.storage.remove(0);
                self.changes.push((false, 2, gone));
            }
        }
        if self.storage.len() >= capacity {
            return false;
        }
        self.storage.push(block);
        self.changes.push((true, 2, block));
        true
    }

    fn prefetch(&mut self, path: &[u32]) -> usize {
        if self.config.storage.is_none() {
            return 0;
        }
        let (node, pages) = self.find(path);
        let least = self.config.prefetch.max(1);
        let hit = path[pages..].iter().take_while(|block| self.storage.contains(block)).count();
        let anchored = node == 0 || self.nodes[node].host;
        let host = self.config.host.map_or(0, |(pages, _)| pages);
        if !anchored || path.len() - pages < least || hit < least || host < 2 {
            return 0;
        }
        if self.host_free() < hit {
            self.evict_host(hit, Some(node));
        }
        let fetched = self.host_free().min(hit);
        if fetched < least {
            return 0;
        }
        for &block in &path[pages..pages + fetched] {
            self.storage.retain(|&b| b != block);
            self.storage.push(block);
        }
        self.nodes[node].access = self.tick();
        self.add(node, &path[pages..pages + fetched], 1);
        fetched
    }
}
