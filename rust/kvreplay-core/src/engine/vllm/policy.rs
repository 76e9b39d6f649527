//! What the CPU tier asks of its eviction policy.

use super::path::Path;
use super::releases::Flags;

/// How recency is refreshed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recency {
    /// At every look-up and at every call that stores.
    Touch,
    /// The same; and a chunk of an LRU tier moves to the recent end when its transfer ends.
    TouchAndTransfer,
    /// Once per request, at its end.
    AtEnd,
    /// Once per request, at its end; until then LRU ranks all it used as most recent, its deepest chunk lowest.
    AtUse,
}

impl Recency {
    /// Whether a request counts once.
    pub(super) fn is_scoped(self) -> bool {
        matches!(self, Self::AtEnd | Self::AtUse)
    }
}

/// An order of the chunks that are resident, and perhaps of some that were.
pub(super) trait ChunkPolicy: Send {
    /// A policy for a tier of `capacity` chunks under the rules of a release.
    fn new(capacity: u32, flags: Flags) -> Self;

    /// Makes room for keys below `end`.
    fn extend(&mut self, end: usize);

    /// Whether a chunk is resident.
    fn holds(&self, key: u32) -> bool;

    /// Whether a chunk is resident or remembered.
    fn knows(&self, key: u32) -> bool;

    /// Resident chunks.
    fn len(&self) -> u32;

    /// Request-scoped: position `at` of the path, resident, is used.
    fn reuse(&mut self, path: &mut Path, at: usize);

    /// Request-scoped: position `at` of the path, absent, is about to be stored.
    fn miss(&mut self, path: &mut Path, at: usize);

    /// Stores the chunks at `places` of the path, ascending.
    fn insert(&mut self, path: &mut Path, places: &[u32]);

    /// Makes room for a store: evicts `count` chunks (perhaps none) that are not `spared`, appends them to `victims` in
    /// order and to `gone` what is forgotten. Returns false where it cannot, and then (with one exception of ARC)
    /// evicts none.
    fn evict(
        &mut self,
        count: u32,
        spared: impl Fn(u32) -> bool,
        victims: &mut Vec<u32>,
        gone: &mut Vec<u32>,
    ) -> bool;

    /// Request-scoped: the request ends.
    fn finish(&mut self, path: &Path);

    /// Touch rule: a chunk of the path is touched; `written` by the very call.
    fn touch(&mut self, key: u32, written: bool);

    /// Touch rule: the transfer of a resident chunk ends.
    fn transferred(&mut self, key: u32);

    /// Resident chunks, the last to be evicted first.
    fn content(&self) -> Vec<u32>;

    /// Checks itself.
    fn validate(&self) -> Result<(), String>;

    /// Its lists from the oldest to the newest.
    #[cfg(test)]
    fn lists(&self) -> Vec<Vec<u32>>;
}
