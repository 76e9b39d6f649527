//! Belady by sorting everything after every request.

/// Hit blocks per request of request-granular Belady with bypass: after each request keep, of the
/// resident blocks and the request's own, the `capacity` with the nearest next request; on ties the
/// shallower; blocks never used again are dropped.
#[must_use]
pub fn hits(paths: &[Vec<u32>], capacity: usize) -> Vec<u32> {
    let mut cache: Vec<u32> = Vec::new();
    let mut hits = Vec::new();
    for (request, path) in paths.iter().enumerate() {
        hits.push(path.iter().take_while(|block| cache.contains(block)).count() as u32);
        let fresh: Vec<u32> = path.iter().copied().filter(|block| !cache.contains(block)).collect();
        cache.extend(fresh);
        // (next request, depth on its path, block)
        let mut ranked: Vec<(usize, usize, u32)> = cache
            .iter()
            .filter_map(|&block| {
                let mut later = paths.iter().enumerate().skip(request + 1);
                let (next, depth) =
                    later.find_map(|(i, p)| Some((i, p.iter().position(|&b| b == block)?)))?;
                Some((next, depth, block))
            })
            .collect();
        ranked.sort_unstable();
        ranked.truncate(capacity);
        cache = ranked.into_iter().map(|(_, _, block)| block).collect();
    }
    hits
}
