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
/// Ids that count up are compared as runs: sort them and look for overlaps, O(runs log runs). Ids that do
/// not (hashes) are compared one by one, see `repeated`.
#[must_use]
pub fn find_rekeyed(forest: &Forest, ids: &IdTable) -> Rekeyed {
    let single = !forest.has_namespaces() && !ids.has_texts();
    let merged = match ids.flat() {
        Some(flat) if single => repeated(flat).into_iter().map(|id| (Space::default(), id, id)).collect(),
        _ => merge(overlaps(&pieces(forest, ids, single))),
    };
    if merged.is_empty() {
        return Rekeyed::default();
    }
    let count = merged.iter().map(|&(_, first, last)| last - first + 1).sum();
    let first_block = second_appearance(forest, ids, &merged);
    Rekeyed { ids: count, first_chain: first_block.map(|b| forest.chain_of(b)), first_block }
}

/// The numbers that occur twice or more, ascending.
///
/// Numbers are spread over buckets that fit the cache and sorted there, a quarter of them at a time: the
/// copy then takes a quarter of the table's memory, when the table is the largest thing there is.
fn repeated(flat: &[u64]) -> Vec<u64> {
    const QUARTERS: u64 = 4;
    const BUCKETS: usize = 1 << 10;
    // Odd multiplication is a bijection of the 64-bit numbers: equal keys mean equal ids.
    let key = |id: u64| id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let bucket = |key: u64| (key >> 52) as usize % BUCKETS;
    let mut out = Vec::new();
    let mut spread = Vec::new();
    for quarter in 0..QUARTERS {
        let chosen = || flat.iter().copied().filter(move |&id| key(id) >> 62 == quarter);
        let mut ends = vec![0_usize; BUCKETS + 1];
        chosen().for_each(|id| ends[bucket(key(id)) + 1] += 1);
        (0..BUCKETS).for_each(|b| ends[b + 1] += ends[b]);
        let starts = ends.clone();
        spread.clear();
        spread.resize(starts[BUCKETS], 0_u64);
        for id in chosen() {
            let at = &mut ends[bucket(key(id))];
            spread[*at] = id;
            *at += 1;
        }
        for b in 0..BUCKETS {
            let ids = &mut spread[starts[b]..starts[b + 1]];
            ids.sort_unstable();
            out.extend(ids.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]));
        }
    }
    out.sort_unstable();
    out.dedup();
    out
}

/// Numbers and texts of a namespace are different spaces of ids.
type Space = (u32, bool);

/// Maximal runs of consecutive ids within one space, sorted by (space, first id).
fn pieces(forest: &Forest, ids: &IdTable, single: bool) -> Vec<(Space, u64, u64)> {
    let runs = ids.runs();
    let mut out = Vec::with_capacity(runs.block.len());
    let mut chain = 0; // of the block at hand: blocks ascend, and so do chains
    for (i, (&block, &id)) in runs.block.iter().zip(&runs.id).enumerate() {
        let end = runs.block.get(i + 1).copied().unwrap_or_else(|| forest.blocks());
        let mut at = block;
        while at < end {
            let (space, stop) = if single {
                (Space::default(), end)
            } else {
                while forest.first(chain) + forest.chain_len(chain) <= at {
                    chain += 1;
                }
                let chain_end = end.min(forest.first(chain) + forest.chain_len(chain));
                let is_text = ids.is_text(at);
                let stop = if ids.has_texts() {
                    (at..chain_end).find(|&b| ids.is_text(b) != is_text).unwrap_or(chain_end)
                } else {
                    chain_end
                };
                ((forest.namespace(chain), is_text), stop)
            };
            let first = id + u64::from(at - block);
            out.push((space, first, first + u64::from(stop - at - 1)));
            at = stop;
        }
    }
    out.sort_unstable();
    out
}

/// The parts of sorted intervals that an interval before them covers.
fn overlaps(pieces: &[(Space, u64, u64)]) -> Vec<(Space, u64, u64)> {
    let mut out = Vec::new();
    let mut reach: Option<(Space, u64)> = None; // the last id covered so far, in its space
    for &(space, first, last) in pieces {
        match reach {
            Some((s, end)) if s == space && first <= end => {
                out.push((space, first, last.min(end)));
                reach = Some((space, end.max(last)));
            }
            _ => reach = Some((space, last)),
        }
    }
    out
}

/// Overlapping intervals, merged.
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
