//! The radix tree: nodes, splits, locks and the leaves that may be evicted.
//!
//! A block number fixes everything above it, so a child is found by the number of its first block in a flat
//! table, and no step costs more than the runs of the node at hand.

use super::key::Key;
use super::leaves::Leaves;
use super::strategy::{Rank, Strategy, Usage};

/// The root, which holds nothing and is never evicted.
pub(super) const ROOT: u32 = 0;

/// No node.
pub(super) const NONE: u32 = u32::MAX;

/// Whose clock rules a tree follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Flavor {
    /// `radix_cache.py`: a split makes an upper node that is new, created and accessed now.
    Radix,
    /// `unified_cache/`: the upper node takes over the creation time, and the lower one counts as accessed.
    Unified,
}

/// Where a tree keeps its pages; a node without either has left the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Device,
    Host,
}

/// A node of the tree.
#[derive(Debug, Clone, Default)]
pub(super) struct Node {
    pub(super) key: Key,
    pub(super) usage: Usage,
    pub(super) parent: u32,
    /// Children in the order in which they were first added.
    first_child: u32,
    last_child: u32,
    previous: u32,
    next: u32,
    pub(super) children: u32,
    pub(super) device_children: u32,
    /// Whether its pages are on the device.
    pub(super) device: bool,
    /// Whether its pages have a copy in host memory.
    pub(super) host: bool,
    /// On the path of the running request.
    pub(super) locked: bool,
    /// When it was noted as held twice, 0 if it is not; see `host`.
    pub(super) noted: u64,
}

/// The end of a walk along a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Found {
    /// The last node found.
    pub(super) node: u32,
    /// Pages found.
    pub(super) pages: u32,
    /// The last node found on the device.
    pub(super) device_node: u32,
    /// Pages found on the device, the leading ones.
    pub(super) device_pages: u32,
    /// Whether `node` is new: the upper part of a node that the path ended inside of.
    pub(super) split: bool,
}

/// A radix tree over named blocks.
#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    free: Vec<u32>,
    /// Node whose key starts with a block, [`ROOT`] when there is none.
    heads: Vec<u32>,
    strategy: Strategy,
    flavor: Flavor,
    clock: u64,
    /// The node that a prefetch goes on from, which stays in host memory meanwhile.
    pinned: u32,
    device_leaves: Leaves,
    host_leaves: Leaves,
}

impl Tree {
    /// An empty tree for `blocks` distinct blocks.
    pub(super) fn new(blocks: u32, strategy: Strategy, flavor: Flavor) -> Self {
        let root = Node { parent: NONE, device: true, ..Node::childless() };
        Self {
            nodes: vec![root],
            free: Vec::new(),
            heads: vec![ROOT; blocks as usize],
            strategy,
            flavor,
            clock: 0,
            pinned: NONE,
            device_leaves: Leaves::default(),
            host_leaves: Leaves::default(),
        }
    }

    pub(super) fn node(&self, node: u32) -> &Node {
        &self.nodes[node as usize]
    }

    pub(super) fn node_mut(&mut self, node: u32) -> &mut Node {
        &mut self.nodes[node as usize]
    }

    /// Nodes in the tree, the root not counted.
    pub(super) fn len(&self) -> usize {
        self.nodes.len() - 1 - self.free.len()
    }

    /// The next moment.
    pub(super) fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    /// The child below which `path` goes on, and how many pages of the child it shares.
    pub(super) fn step(&self, path: &[u32]) -> Option<(u32, u32)> {
        let child = self.heads[*path.first()? as usize];
        (child != ROOT).then(|| (child, self.node(child).key.common(path)))
    }

    /// Finds the longest known part of `path`, refreshes it, and splits a node that it ends inside of.
    pub(super) fn find(&mut self, path: &[u32]) -> Found {
        let mut found = Found { node: ROOT, pages: 0, device_node: ROOT, device_pages: 0, split: false };
        let now = if self.flavor == Flavor::Radix { self.tick() } else { 0 };
        while let Some((child, common)) = self.step(&path[found.pages as usize..]) {
            if self.flavor == Flavor::Radix {
                self.node_mut(child).usage.access = now;
            }
            let whole = u64::from(common) == self.node(child).key.len();
            found.node = if whole { child } else { self.split(child, common) };
            found.pages += common;
            if self.node(found.node).device {
                (found.device_node, found.device_pages) = (found.node, found.pages);
            }
            if !whole {
                found.split = true;
                break;
            }
        }
        if self.flavor == Flavor::Unified && found.node != ROOT {
            // In the engine each node is a hair older than its child; nodes of one path are never compared.
            let now = self.tick();
            let mut node = found.node;
            while node != ROOT {
                self.node_mut(node).usage.access = now;
                node = self.node(node).parent;
            }
        }
        found
    }

    /// Cuts `node` after its first `len` pages. The upper part is the new node, which is returned.
    pub(super) fn split(&mut self, node: u32, len: u32) -> u32 {
        let upper = self.allocate();
        let mut key = std::mem::take(&mut self.node_mut(upper).key);
        let lower = self.node_mut(node);
        lower.key.split_head(len, &mut key);
        let (first, rest, old) = (key.first(), lower.key.first(), lower.usage);
        let (access, created) = (self.tick(), self.tick());
        let usage = match self.flavor {
            Flavor::Radix => Usage { access, created, ..old },
            Flavor::Unified => {
                self.node_mut(node).usage.access = self.tick();
                Usage { access, ..old }
            }
        };
        let lower = self.node(node);
        let fresh = Node {
            key,
            usage,
            parent: lower.parent,
            previous: lower.previous,
            next: lower.next,
            children: 1,
            device_children: u32::from(lower.device),
            first_child: node,
            last_child: node,
            noted: 0,
            ..*lower
        };
        self.replace_child(&fresh, upper);
        self.nodes[upper as usize] = fresh;
        let lower = self.node_mut(node);
        (lower.parent, lower.previous, lower.next) = (upper, NONE, NONE);
        for (block, node) in [(first, upper), (rest, node)] {
            if let Some(block) = block {
                self.heads[block as usize] = node;
            }
        }
        self.offer(node);
        upper
    }

    /// Puts `upper` where the node it was cut from was in its parent's list.
    fn replace_child(&mut self, fresh: &Node, upper: u32) {
        match fresh.previous {
            NONE => self.node_mut(fresh.parent).first_child = upper,
            previous => self.node_mut(previous).next = upper,
        }
        match fresh.next {
            NONE => self.node_mut(fresh.parent).last_child = upper,
            next => self.node_mut(next).previous = upper,
        }
    }

    /// Adds a leaf of the pages `path` and `unnamed` more.
    pub(super) fn add(&mut self, parent: u32, path: &[u32], unnamed: u32, place: Place) -> u32 {
        let leaf = self.allocate();
        let mut key = std::mem::take(&mut self.node_mut(leaf).key);
        key.set(path, unnamed);
        let (access, created) = (self.tick(), self.tick());
        let above = self.node_mut(parent);
        let previous = std::mem::replace(&mut above.last_child, leaf);
        if previous == NONE {
            above.first_child = leaf;
        } else {
            self.node_mut(previous).next = leaf;
        }
        let above = self.node_mut(parent);
        above.children += 1;
        above.device_children += u32::from(place == Place::Device);
        let priority = if place == Place::Host { above.usage.priority } else { 0 };
        if let Some(&block) = path.first() {
            self.heads[block as usize] = leaf;
        }
        self.nodes[leaf as usize] = Node {
            key,
            usage: Usage { hits: 0, access, created, priority },
            parent,
            previous,
            device: place == Place::Device,
            host: place == Place::Host,
            ..Node::childless()
        };
        self.offer(leaf);
        leaf
    }

    /// Takes a node without children out of the tree.
    pub(super) fn remove(&mut self, node: u32) {
        let Node { parent, previous, next, device, .. } = *self.node(node);
        debug_assert_eq!(self.node(node).children, 0);
        match previous {
            NONE => self.node_mut(parent).first_child = next,
            previous => self.node_mut(previous).next = next,
        }
        match next {
            NONE => self.node_mut(parent).last_child = previous,
            next => self.node_mut(next).previous = previous,
        }
        let above = self.node_mut(parent);
        above.children -= 1;
        above.device_children -= u32::from(device);
        if let Some(block) = self.node(node).key.first() {
            self.heads[block as usize] = ROOT;
        }
        let gone = self.node_mut(node);
        (gone.parent, gone.device, gone.host) = (NONE, false, false);
        self.free.push(node);
        self.offer(parent);
    }

    /// Notes that the pages of a node came to the device or left it.
    pub(super) fn set_device(&mut self, node: u32, device: bool) {
        debug_assert_ne!(self.node(node).device, device);
        self.node_mut(node).device = device;
        let parent = self.node(node).parent;
        let above = self.node_mut(parent);
        if device {
            above.device_children += 1;
        } else {
            above.device_children -= 1;
        }
        self.offer(node);
        self.offer(parent);
    }

    /// The children of a node, in the order in which they were added.
    pub(super) fn first_child(&self, node: u32) -> Option<u32> {
        let child = self.node(node).first_child;
        (child != NONE).then_some(child)
    }

    /// The child after `node` in its parent's list.
    pub(super) fn next_sibling(&self, node: u32) -> Option<u32> {
        let next = self.node(node).next;
        (next != NONE).then_some(next)
    }

    /// Locks a path against eviction.
    pub(super) fn lock(&mut self, mut node: u32) {
        while node != ROOT {
            self.node_mut(node).locked = true;
            node = self.node(node).parent;
        }
    }

    /// Ends the lock of the path down to `node`, up to (not including) `top`.
    pub(super) fn unlock(&mut self, mut node: u32, top: u32) {
        while node != top {
            self.node_mut(node).locked = false;
            self.offer(node);
            node = self.node(node).parent;
        }
    }

    /// Keeps one node in host memory.
    pub(super) fn pin(&mut self, node: u32) {
        self.pinned = node;
    }

    /// Ends what [`Self::pin`] began.
    pub(super) fn unpin(&mut self) {
        let node = std::mem::replace(&mut self.pinned, NONE);
        self.offer(node);
    }

    /// Whether [`Self::pin`] keeps a node.
    pub(super) fn is_pinned(&self, node: u32) -> bool {
        self.pinned == node
    }

    /// Whether a node may be evicted from the device: nothing below it is there, and nobody uses it.
    pub(super) fn is_device_leaf(&self, node: u32) -> bool {
        let it = self.node(node);
        node != ROOT && it.device && !it.locked && it.device_children == 0
    }

    /// Whether a node may be evicted from host memory: only there, with nothing below it, and unused.
    pub(super) fn is_host_leaf(&self, node: u32) -> bool {
        let it = self.node(node);
        it.host && !it.device && !it.locked && it.children == 0 && node != self.pinned
    }

    /// What an eviction strategy makes of a node.
    pub(super) fn rank(&self, node: u32) -> Rank {
        self.strategy.rank(&self.node(node).usage)
    }

    /// Lets a node be found by the next eviction if it may be evicted.
    ///
    /// To be called whenever a node may have become a leaf or a leaf's rank may have changed; entries that
    /// no longer hold are left in place and dropped when they come to the top.
    pub(super) fn offer(&mut self, node: u32) {
        if self.is_device_leaf(node) {
            self.device_leaves.push(self.rank(node), node);
        } else if self.is_host_leaf(node) {
            self.host_leaves.push(self.rank(node), node);
        }
        if self.device_leaves.len() + self.host_leaves.len() > 4 * self.nodes.len() + 64 {
            self.rebuild_leaves();
        }
    }

    fn rebuild_leaves(&mut self) {
        self.device_leaves.clear();
        self.host_leaves.clear();
        for node in 1..self.nodes.len() as u32 {
            if self.is_device_leaf(node) {
                self.device_leaves.push(self.rank(node), node);
            } else if self.is_host_leaf(node) {
                self.host_leaves.push(self.rank(node), node);
            }
        }
    }

    /// Takes the next victim on the device off the list of leaves.
    pub(super) fn next_device_leaf(&mut self) -> Option<u32> {
        while let Some((rank, node)) = self.device_leaves.pop() {
            if self.is_device_leaf(node) && self.rank(node) == rank {
                return Some(node);
            }
        }
        None
    }

    /// Takes the next victim in host memory off the list of leaves.
    pub(super) fn next_host_leaf(&mut self) -> Option<u32> {
        while let Some((rank, node)) = self.host_leaves.pop() {
            if self.is_host_leaf(node) && self.rank(node) == rank {
                return Some(node);
            }
        }
        None
    }

    fn allocate(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.nodes.push(Node::default());
            self.nodes.len() as u32 - 1
        })
    }
}

impl Node {
    fn childless() -> Self {
        Self { first_child: NONE, last_child: NONE, previous: NONE, next: NONE, ..Self::default() }
    }
}
