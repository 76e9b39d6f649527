//! Blocks of the request at hand as the tiers see them.

use crate::engine::EngineRequest;

/// A full block on its way into a tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Item {
    /// Its place in the sequence.
    pub(super) at: u64,
    /// Its name; nobody finds a block without one.
    pub(super) name: Option<u32>,
    /// What hashes it: equal for equal blocks, another number for every block without a name.
    pub(super) key: u64,
}

/// Makes items; counts blocks without a name.
#[derive(Debug, Default)]
pub(super) struct Items {
    nameless: u64,
}

impl Items {
    /// Block number `at` of a request. A block without a name is a new one at every call.
    pub(super) fn item(&mut self, request: &EngineRequest<'_>, at: u64) -> Item {
        let name = request.name_of(at);
        let key = name.map_or_else(
            || {
                self.nameless += 1;
                (1 << 32) + self.nameless
            },
            u64::from,
        );
        Item { at, name, key }
    }
}

/// How many blocks of a list come before the first that fails.
pub(super) fn run(blocks: &[u32], has: impl Fn(u32) -> bool) -> usize {
    blocks.iter().take_while(|&&block| has(block)).count()
}

/// The name of the block before block `at`, if that has one.
pub(super) fn parent_of(request: &EngineRequest<'_>, at: u64) -> Option<u32> {
    at.checked_sub(1).and_then(|before| request.name_of(before))
}
