//! Tail-Optimized LRU: first the blocks that no conversation needs to stay within its latency target.
//!
//! Zhang, Li, Moallemi, Peng, "Tail-Optimized Caching for LLM Inference", arXiv 2510.15152, 2025. A turn meets
//! its target as long as at most xi tokens are computed. With about q new tokens in the next turn, the last
//! xi - q tokens of a conversation can go without harm; those are spent before anything else is taken from
//! anybody. Two LRU queues: `spare` holds the last `slack_tokens` (= xi - q) of each request's path, `needed`
//! the rest; the oldest spare block leaves, and the oldest needed one when none is spare.
//!
//! Where we differ: the paper predicts q and looks at the whole conversation; here q is folded into one
//! parameter, blocks are spared where the latest request that used them put them, and blocks shared by several
//! conversations are judged by the latest. Object mode and demoted blocks have no path: plain LRU.

use super::parts::{BitSet, Queue};
use super::spec::{Args, Param};
use super::{Build, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::Result;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "tail_lru",
    doc: "LRU that first evicts the last slack_tokens of conversations, which they can lose without harm",
    parameters: &[Param {
        name: "slack_tokens",
        default: "1024",
        doc: "tokens a request may compute again without missing its target",
    }],
    source: "Zhang et al., arXiv 2510.15152",
    build: |args: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        let slack_tokens: u32 = args.number("slack_tokens", 0..=u32::MAX)?;
        Ok(Box::new(TailLru {
            slots: vec![0; build.blocks()],
            is_spare: BitSet::new(build.topology.blocks()),
            spare: Queue::new(),
            needed: Queue::new(),
            slack_units: slack_tokens / build.block_tokens.max(1),
            path_units: 0,
        }))
    },
};

struct TailLru {
    slots: Vec<u32>,
    /// Whether a resident block is in the spare queue.
    is_spare: BitSet,
    spare: Queue,
    needed: Queue,
    slack_units: u32,
    /// Blocks of the path now served.
    path_units: u32,
}

impl TailLru {
    /// Whether the request could lose the block without missing its target next time.
    fn can_spare(&self, block: u32, room: &Room<'_>) -> bool {
        // Blocks handed down from above are not of this path: their conversation is not known here.
        room.guards(block) && room.topology().depth(block) > self.path_units.saturating_sub(self.slack_units)
    }

    fn push(&mut self, block: u32, room: &Room<'_>) {
        if self.can_spare(block, room) {
            self.is_spare.set(block);
            self.spare.push(&mut self.slots, block, room.exposed(block));
        } else {
            self.needed.push(&mut self.slots, block, room.exposed(block));
        }
    }
}

impl Policy for TailLru {
    fn hit(&mut self, block: u32, room: &Room<'_>) {
        self.remove(block, room);
        self.push(block, room);
    }

    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        if room.is_full() {
            victim = self.candidate(room);
            let Some(oldest) = victim else { return Stored::NoRoom };
            self.remove(oldest, room);
        }
        self.push(block, room);
        Stored::Done { victim }
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        if self.is_spare.get(block) {
            self.spare.remove(&self.slots, block);
            self.is_spare.clear(block);
        } else {
            self.needed.remove(&self.slots, block);
        }
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        let queue = if self.is_spare.get(block) { &mut self.spare } else { &mut self.needed };
        queue.expose(&self.slots, block, exposed);
    }

    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        self.spare.oldest(&self.slots, room).or_else(|| self.needed.oldest(&self.slots, room))
    }

    fn content(&self) -> Vec<u32> {
        self.needed.iter().chain(self.spare.iter()).collect()
    }

    fn begin(&mut self, path_units: u32, _: Option<i64>) {
        self.path_units = path_units;
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        validate_content(&self.content(), room)
    }
}
