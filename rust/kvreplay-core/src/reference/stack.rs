//! LRU by a plain list: stack distances, owners, and hits at one capacity.

/// One block of a path, just before its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Access {
    /// Number of distinct blocks at or above it in the LRU stack.
    pub distance: u32,
    /// The last request that held it.
    pub owner: u32,
}

/// For every request and block: where it lies in the LRU stack just before the request, `None` for a
/// block never seen. A request puts its whole path on top, root most recent.
#[must_use]
pub fn accesses(paths: &[Vec<u32>]) -> Vec<Vec<Option<Access>>> {
    let mut stack: Vec<(u32, u32)> = Vec::new(); // (block, owner), most recent first
    let mut out = Vec::new();
    for (request, path) in paths.iter().enumerate() {
        let find = |block: &u32| {
            let depth = stack.iter().position(|entry| entry.0 == *block)?;
            Some(Access { distance: depth as u32 + 1, owner: stack[depth].1 })
        };
        out.push(path.iter().map(find).collect());
        stack.retain(|entry| !path.contains(&entry.0));
        let top: Vec<(u32, u32)> = path.iter().map(|&block| (block, request as u32)).collect();
        stack.splice(0..0, top);
    }
    out
}

/// Hit blocks per request of one LRU of `capacity` blocks in prefix mode, and its content at the end,
/// most recent first: look up the leading run, then touch or insert `b_m .. b_1`, `m = min(n, capacity)`.
#[must_use]
pub fn lru(paths: &[Vec<u32>], capacity: usize) -> (Vec<u32>, Vec<u32>) {
    let mut cache: Vec<u32> = Vec::new();
    let mut hits = Vec::new();
    for path in paths {
        hits.push(path.iter().take_while(|block| cache.contains(block)).count() as u32);
        for block in path.iter().take(capacity).rev() {
            cache.retain(|other| other != block);
            cache.insert(0, *block);
        }
        cache.truncate(capacity);
    }
    (hits, cache)
}

/// Hit blocks per request of an endless cache.
#[must_use]
pub fn ceiling(paths: &[Vec<u32>]) -> Vec<u32> {
    let hit = |i: usize| {
        let seen = |block: &&u32| paths[..i].iter().any(|path| path.contains(block));
        paths[i].iter().take_while(seen).count() as u32
    };
    (0..paths.len()).map(hit).collect()
}
