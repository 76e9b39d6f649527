//! Twin of `opt`: looks forward through the trace for every decision.

use std::collections::BTreeSet;

/// Next request after `now` that holds `block`.
fn next_request(paths: &[Vec<u32>], now: usize, block: u32) -> Option<usize> {
    (now + 1..paths.len()).find(|&r| paths[r].contains(&block))
}

/// Hit blocks per request in prefix mode.
pub(super) fn prefix(paths: &[Vec<u32>], capacity: usize) -> Vec<u32> {
    let mut cache: BTreeSet<u32> = BTreeSet::new();
    let mut hits = Vec::new();
    for (now, path) in paths.iter().enumerate() {
        hits.push(path.iter().take_while(|b| cache.contains(b)).count() as u32);
        cache.extend(path);
        let depth = |block: u32| paths.iter().find_map(|p| p.iter().position(|&b| b == block)).unwrap();
        let mut wanted: Vec<(usize, usize, u32)> = cache
            .iter()
            .filter_map(|&b| next_request(paths, now, b).map(|next| (next, depth(b), b)))
            .collect();
        wanted.sort_unstable();
        cache = wanted.into_iter().take(capacity).map(|(_, _, b)| b).collect();
    }
    hits
}

/// Hits and usable hits in object mode.
pub(super) fn object(paths: &[Vec<u32>], capacity: usize, bypass: bool) -> (u64, u64) {
    let all: Vec<u32> = paths.concat();
    let next = |at: usize, block: u32| (at + 1..all.len()).find(|&i| all[i] == block).unwrap_or(usize::MAX);
    let mut cache: BTreeSet<u32> = BTreeSet::new();
    let (mut at, mut hits, mut usable) = (0, 0, 0);
    for path in paths {
        let mut leading = true;
        for &block in path {
            let hit = cache.contains(&block);
            leading &= hit;
            hits += u64::from(hit);
            usable += u64::from(leading);
            if bypass {
                cache.insert(block);
                cache.retain(|&b| next(at, b) != usize::MAX);
                if cache.len() > capacity {
                    let last = *cache.iter().max_by_key(|&&b| next(at, b)).unwrap();
                    cache.remove(&last);
                }
            } else if capacity > 0 && !hit {
                if cache.len() == capacity {
                    let last = *cache.iter().max_by_key(|&&b| next(at, b)).unwrap();
                    cache.remove(&last);
                }
                cache.insert(block);
            }
            at += 1;
        }
    }
    (hits, usable)
}
