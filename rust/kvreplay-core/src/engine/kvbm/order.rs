//! In which order the inactive blocks of a pool leave.

use super::lineage::{Lineage, Releaf};
use crate::engine::parts::Links;

/// The lists of the multi-level order.
pub(super) const LISTS: u32 = 4;

/// An order over nodes.
#[derive(Debug)]
pub(super) enum Order {
    /// Lists of blocks by when they became inactive; the first list that has any gives the victim.
    Lists(Links),
    /// Leaves of the lineage graph.
    Lineage(Lineage),
}

impl Order {
    /// Lists over so many nodes.
    pub(super) fn lists(nodes: u32) -> Self {
        Self::Lists(Links::new(LISTS, nodes))
    }

    /// The graph over so many nodes.
    pub(super) fn lineage(nodes: u32, releaf: Releaf) -> Self {
        Self::Lineage(Lineage::new(nodes, releaf))
    }

    /// One more node.
    pub(super) fn add(&mut self) {
        match self {
            Self::Lists(links) => {
                links.add();
            }
            Self::Lineage(lineage) => lineage.add(),
        }
    }

    /// A node becomes inactive: the newest of a list, or a child of another node.
    pub(super) fn insert(&mut self, node: u32, parent: u32, list: u32) {
        match self {
            Self::Lists(links) => links.push(list, node + LISTS),
            Self::Lineage(lineage) => lineage.insert(node, parent),
        }
    }

    /// A node stops being inactive.
    pub(super) fn remove(&mut self, node: u32) {
        match self {
            Self::Lists(links) => links.remove(node + LISTS),
            Self::Lineage(lineage) => lineage.remove(node),
        }
    }

    /// Takes the node that leaves next.
    pub(super) fn evict(&mut self) -> Option<u32> {
        match self {
            Self::Lists(links) => {
                let node = (0..LISTS).find_map(|list| links.oldest(list))?;
                links.remove(node);
                Some(node - LISTS)
            }
            Self::Lineage(lineage) => lineage.evict(),
        }
    }

    /// Inactive nodes, the last to leave first.
    pub(super) fn last_first(&self) -> Vec<u32> {
        match self {
            Self::Lists(links) => {
                let mut order: Vec<u32> = (0..LISTS).flat_map(|list| links.iter(list)).collect();
                order.reverse();
                order.into_iter().map(|node| node - LISTS).collect()
            }
            Self::Lineage(lineage) => lineage.last_first(),
        }
    }

    pub(super) fn validate(&self) -> Result<(), String> {
        match self {
            Self::Lists(_) => Ok(()),
            Self::Lineage(lineage) => lineage.validate(),
        }
    }
}
