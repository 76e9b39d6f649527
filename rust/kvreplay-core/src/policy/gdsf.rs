//! Greedy-Dual-Size-Frequency with size and cost 1: value = inflation + uses, the smallest leaves.
//!
//! Cherkasova, "Improving WWW Proxies Performance with Greedy-Dual-Size-Frequency Caching Policy", HP Labs
//! 1998. The inflation is the value of the last victim. Blocks are of one size here, and `recompute_cost`
//! is the variant that knows what a block is worth. Ties by last use.

use super::parts::{GreedyDual, Whole};
use super::spec::Args;
use super::{Build, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::Result;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "gdsf",
    doc: "value = uses + value of the last victim; the smallest leaves",
    parameters: &[],
    source: "Cherkasova, HPL-98-69R1",
    build: |_: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        Ok(Box::new(Gdsf { order: GreedyDual::new(build.blocks()) }))
    },
};

struct Gdsf {
    order: GreedyDual<Whole>,
}

impl Policy for Gdsf {
    fn hit(&mut self, block: u32, _: &Room<'_>) {
        self.order.hit(block, 1.0);
    }

    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        if room.is_full() {
            victim = self.order.evict(room);
            if victim.is_none() {
                return Stored::NoRoom;
            }
        }
        self.order.push(block, 1.0, room.exposed(block));
        Stored::Done { victim }
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        self.order.remove(block);
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        self.order.expose(block, exposed);
    }

    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        self.order.candidate(room)
    }

    fn content(&self) -> Vec<u32> {
        self.order.content()
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        validate_content(&self.content(), room)
    }
}
