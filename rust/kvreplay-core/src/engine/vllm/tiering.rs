//! Secondary tiers of the `TieringOffloadingSpec`: files or objects behind the CPU, written with everything the
//! CPU stores and never evicted (vLLM 0.33.0, `v1/kv_offload/tiering/`).

use crate::engine::{Cause, Recorder};
use crate::policy::parts::BitSet;

/// One secondary tier.
#[derive(Debug)]
pub(super) struct Secondary {
    /// Its position in the replay.
    pub(super) tier: usize,
    /// Chunks the medium has room for.
    pub(super) capacity: u32,
    held: BitSet,
    len: u32,
}

impl Secondary {
    /// An empty tier for `blocks` distinct blocks.
    pub(super) fn new(tier: usize, capacity: u32, blocks: u32) -> Self {
        Self { tier, capacity, held: BitSet::new(blocks), len: 0 }
    }
}

/// The secondary tiers in the order in which they are asked.
#[derive(Debug, Default)]
pub(super) struct Secondaries(pub(super) Vec<Secondary>);

impl Secondaries {
    /// The first tier that holds a chunk (its position in the replay). Chunks without a name are never asked for.
    pub(super) fn find(&self, key: u32) -> Option<usize> {
        self.0.iter().find(|tier| tier.held.get(key)).map(|tier| tier.tier)
    }

    /// A chunk was stored in the CPU: every tier writes it, unless it has it.
    pub(super) fn write(&mut self, key: Option<u32>, out: &mut Recorder) {
        for tier in &mut self.0 {
            if key.is_some_and(|key| tier.held.get(key)) {
                out.already_held(tier.tier, 1);
                continue;
            }
            if tier.len == tier.capacity {
                out.no_room(tier.tier, 1);
                continue;
            }
            tier.len += 1;
            match key {
                Some(key) => {
                    tier.held.set(key);
                    out.insert(tier.tier, key, Cause::Compute);
                }
                None => out.insert_unnamed(tier.tier, Cause::Compute),
            }
        }
    }

    /// Chunks with a name in the tier at a position, by number.
    pub(super) fn content(&self, tier: usize) -> Option<Vec<u32>> {
        let found = self.0.iter().find(|secondary| secondary.tier == tier)?;
        Some(found.held.iter().collect())
    }
}
