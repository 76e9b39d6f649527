//! Is the trace chained? An id that is two blocks of one namespace was seen under two parents.

use super::forest::Forest;
use super::ids::IdTable;
use std::collections::{BTreeMap, BTreeSet};

/// Ids that stand for more than one block, and where that shows first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rekeyed {
    /// How many different ids have two or more parents.
    pub ids: u64,
    /// The chain in which such an id first appears for the second time.
    pub first_chain: Option<u32>,
    /// That id's dense block (its second one).
    pub first_block: Option<u32>,
}

/// Finds every id that names two or more blocks of one namespace.
///
/// Works on runs of consecutive ids: sort them, and look for overlaps. Cost O(runs log runs).
#[must_use]
pub fn find_rekeyed(forest: &Forest, ids: &IdTable) -> Rekeyed {
    let pieces = pieces(forest, ids);
    let mut overlaps: Vec<(Space, u64, u64)> = Vec::new();
    let mut reach: Option<(Space, u64)> = None; // the last id covered so far, in its space
    for &(space, first, last) in &pieces {
        match reach {
            Some((s, end)) if s == space && first <= end => {
                overlaps.push((space, first, last.min(end)));
                reach = Some((space, end.max(last)));
            }
            _ => reach = Some((space, last)),
        }
    }
    if overlaps.is_empty() {
        return Rekeyed::default();
    }
    let merged = merge(overlaps);
    let count = merged.iter().map(|&(_, first, last)| last - first + 1).sum();
    let first_block = second_appearance(forest, ids, &merged);
    Rekeyed { ids: count, first_chain: first_block.map(|b| forest.chain_of(b)), first_block }
}

/// Numbers and texts of a namespace are different spaces of ids.
type Space = (u32, bool);

/// Maximal runs of consecutive ids within one chain and kind, sorted by (space, first id).
fn pieces(forest: &Forest, ids: &IdTable) -> Vec<(Space, u64, u64)> {
    let runs = ids.runs();
    let single = forest.namespace.is_empty() && !ids.has_texts();
    let mut out = Vec::with_capacity(runs.block.len());
    for (i, (&block, &id)) in runs.block.iter().zip(&runs.id).enumerate() {
        let end = runs.block.get(i + 1).copied().unwrap_or_else(|| forest.blocks());
        if single {
            out.push(((0, false), id, id + u64::from(end - block - 1)));
            continue;
        }
        for b in block..end {
            let id = id + u64::from(b - block);
            out.push(((forest.namespace(forest.chain_of(b)), ids.is_text(b)), id, id));
        }
    }
    out.sort_unstable();
    out
}

/// Sorted overlapping intervals, merged.
fn merge(mut intervals: Vec<(Space, u64, u64)>) -> Vec<(Space, u64, u64)> {
    intervals.sort_unstable();
    let mut out: Vec<(Space, u64, u64)> = Vec::new();
    for (space, first, last) in intervals {
        match out.last_mut() {
            Some((s, _, end)) if *s == space && first <= *end => *end = (*end).max(last),
            _ => out.push((space, first, last)),
        }
    }
    out
}

/// The first block, in order of appearance, whose id an earlier block of its space has.
fn second_appearance(forest: &Forest, ids: &IdTable, merged: &[(Space, u64, u64)]) -> Option<u32> {
    let by_start: BTreeMap<(Space, u64), u64> = merged.iter().map(|&(s, a, b)| ((s, a), b)).collect();
    let mut seen = BTreeSet::new();
    for chain in 0..forest.chains() as u32 {
        let namespace = forest.namespace(chain);
        for block in forest.first(chain)..forest.first(chain) + forest.chain_len(chain) {
            let key = ((namespace, ids.is_text(block)), ids.number(block));
            let shared =
                by_start.range(..=key).next_back().is_some_and(|(&(s, _), &b)| s == key.0 && key.1 <= b);
            if shared && !seen.insert(key) {
                return Some(block);
            }
        }
    }
    None
}
