//! Content in the order of eviction, and the invariants of the model.

use super::leaves::Leaves;
use super::model::Model;
use super::storage::Storage;
use super::tree::{Node, ROOT, Tree};

impl Model {
    /// Blocks on the device: node after node as evictions would leave them, the last one first.
    pub(super) fn device_content(&self) -> Vec<u32> {
        let nodes = |node: &Node| node.device;
        let below = |node: &Node| node.device_children;
        self.last_evicted_first(nodes, below).flat_map(|node| self.tree.node(node).key.blocks()).collect()
    }

    /// Blocks in host memory: those that are on the device too, in its order, then the others as evictions
    /// would leave them.
    pub(super) fn host_content(&self) -> Vec<u32> {
        let device = self.last_evicted_first(|node| node.device, |node| node.device_children);
        let pinned = device.filter(|&node| self.tree.node(node).host);
        let others = self.last_evicted_first(|node| node.host && !node.device, |node| node.children);
        pinned.chain(others).flat_map(|node| self.tree.node(node).key.blocks()).collect()
    }

    /// The nodes of a place, the last one that evictions would take first; `below` counts children there.
    fn last_evicted_first(
        &self,
        is_there: impl Fn(&Node) -> bool,
        below: impl Fn(&Node) -> u32,
    ) -> impl Iterator<Item = u32> {
        let tree = &self.tree;
        let mut left: Vec<u32> = tree.nodes.iter().map(&below).collect();
        let (mut leaves, mut gone) = (Leaves::default(), Vec::new());
        let there = |node: u32| node != ROOT && is_there(tree.node(node));
        for node in (1..tree.nodes.len() as u32).filter(|&node| there(node) && left[node as usize] == 0) {
            leaves.push(tree.rank(node), node);
        }
        while let Some((_, node)) = leaves.pop() {
            gone.push(node);
            let parent = tree.node(node).parent;
            left[parent as usize] -= 1;
            if there(parent) && left[parent as usize] == 0 {
                leaves.push(tree.rank(parent), parent);
            }
        }
        gone.into_iter().rev()
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let mut used = (0, 0);
        for (node, it) in nodes(&self.tree) {
            used.0 += if it.device { it.key.len() } else { 0 };
            used.1 += if it.host { it.key.len() } else { 0 };
            self.check_node(node, it).map_err(|what| format!("node {node}: {what}"))?;
        }
        let host = self.host.as_ref().map_or((0, 0), |host| (host.pool.used, host.pool.capacity));
        if used != (self.gpu.used, host.0) || self.gpu.used > self.gpu.capacity || host.0 > host.1 {
            return Err(format!("pages {used:?} in nodes, {} and {} in pools", self.gpu.used, host.0));
        }
        self.storage.as_ref().map_or(Ok(()), Storage::check)
    }

    fn check_node(&self, node: u32, it: &Node) -> Result<(), String> {
        let tree = &self.tree;
        let parent = tree.node(it.parent);
        let mut children = (0, 0);
        let mut child = tree.first_child(node);
        while let Some(at) = child {
            children.0 += 1;
            children.1 += u32::from(tree.node(at).device);
            if tree.node(at).parent != node {
                return Err(format!("child {at} has another parent"));
            }
            child = tree.next_sibling(at);
        }
        let expectations = [
            (it.key.len() > 0, "no pages"),
            (it.device || it.host, "nowhere"),
            (!it.device || parent.device, "on the device below a node that is not"),
            (!it.locked && !tree.is_pinned(node), "locked after the request"),
            (children == (it.children, it.device_children), "children are counted wrong"),
            (
                it.host || it.device_children == it.children || self.writes_back(),
                "a copy below a node without",
            ),
            (
                it.key.first().is_none_or(|block| tree.step(&[block]) == Some((node, 1))),
                "not found by its head",
            ),
        ];
        expectations.iter().find(|(holds, _)| !holds).map_or(Ok(()), |(_, what)| Err((*what).to_owned()))
    }
}

/// The nodes in the tree with their numbers.
fn nodes(tree: &Tree) -> impl Iterator<Item = (u32, &Node)> {
    let nodes = tree.nodes.iter().enumerate().skip(1).map(|(node, it)| (node as u32, it));
    nodes.filter(|(_, it)| it.device || it.host)
}
