//! Slow, obvious twins of the policies, filters and fill rules, and the differential tests against them.
//!
//! Lists are vectors, oldest first; nothing is indexed. The twins follow the text of the golden README and
//! of the papers, not the product's code.

mod counts;
mod filters;
mod future;
mod ghosts;
mod hierarchy;
mod lists;
mod tests;
mod tinylfu;

/// What a twin may ask about a block.
pub(crate) struct Ask<'a> {
    /// Whether the block may leave now.
    pub(super) may_leave: &'a dyn Fn(u32) -> bool,
    /// Depth of a block, from 1.
    pub(super) depth: &'a dyn Fn(u32) -> u32,
    /// Whether the request holds the block.
    pub(super) guarded: &'a dyn Fn(u32) -> bool,
}

/// A policy as a plain list program.
pub(crate) trait Slow {
    fn begin(&mut self, _path_units: u32, _now_us: i64) {}
    fn expired(&mut self, _ask: &Ask<'_>) -> Option<u32> {
        None
    }
    fn hit(&mut self, block: u32, ask: &Ask<'_>);
    /// The victim of a full tier that can evict; `full` tells whether one is needed.
    fn insert(&mut self, block: u32, full: bool, ask: &Ask<'_>) -> Option<u32>;
    fn remove(&mut self, block: u32);
}

/// Takes `block` out of a list.
pub(super) fn cut(list: &mut Vec<u32>, block: u32) -> bool {
    match list.iter().position(|&b| b == block) {
        Some(at) => {
            list.remove(at);
            true
        }
        None => false,
    }
}

/// Takes the oldest block that may leave out of a list.
pub(super) fn oldest(list: &mut Vec<u32>, ask: &Ask<'_>) -> Option<u32> {
    let at = list.iter().position(|&b| (ask.may_leave)(b))?;
    Some(list.remove(at))
}

/// The twin of a policy by name, with its default parameters.
pub(crate) fn slow(name: &str, capacity: u32, block_tokens: u32) -> Option<Box<dyn Slow>> {
    Some(match name {
        "lru" => Box::new(lists::Lru::default()),
        "fifo" => Box::new(lists::Fifo::default()),
        "slru" => Box::new(lists::Slru::new(capacity)),
        "tail_lru" => Box::new(lists::TailLru::new(1024 / block_tokens)),
        "ttl" => Box::new(lists::Ttl::new(600_000_000)),
        "sieve" => Box::new(lists::Sieve::default()),
        "arc" => Box::new(ghosts::Arc::new(capacity)),
        "twoq" => Box::new(ghosts::TwoQ::new(capacity)),
        "s3fifo" => Box::new(ghosts::S3Fifo::new(capacity)),
        "lfu" => Box::new(counts::Lfu::default()),
        "lruk" => Box::new(counts::Lru2::default()),
        "gdsf" => Box::new(counts::GreedyDual::new(None)),
        "recompute_cost" => Box::new(counts::GreedyDual::new(Some(f64::from(block_tokens)))),
        "wtinylfu" => Box::new(tinylfu::WTinyLfu::new(capacity)),
        _ => return None,
    })
}
