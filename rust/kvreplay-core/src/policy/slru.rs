//! Segmented LRU: a block is on probation until it is used again, then protected.
//!
//! Karedla, Love, Wherry, "Caching Strategies to Improve Disk System Performance", IEEE Computer 1994. Two LRU
//! queues. A hit on probation moves the block to the newest end of the protected queue, whose oldest block
//! returns to the newest end of probation when the queue is over its share (whether it is guarded or not:
//! nothing leaves the tier). The oldest block on probation leaves; if none may, the oldest protected one.

use super::parts::{BitSet, Queue};
use super::spec::{Args, Param};
use super::{Build, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::Result;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "slru",
    doc: "two LRU queues: blocks used again are protected from blocks used once",
    parameters: &[Param {
        name: "protected",
        default: "0.8",
        doc: "share of the tier for blocks used again, 0 to 1",
    }],
    source: "Karedla et al., IEEE Computer 1994",
    build: |args: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        let share: f64 = args.number("protected", 0.0..=1.0)?;
        Ok(Box::new(Slru {
            slots: vec![0; build.blocks()],
            is_protected: BitSet::new(build.topology.blocks()),
            probation: Queue::new(),
            protected: Queue::new(),
            most_protected: (f64::from(build.capacity) * share) as u32,
        }))
    },
};

struct Slru {
    slots: Vec<u32>,
    /// Whether a resident block is in the protected queue.
    is_protected: BitSet,
    probation: Queue,
    protected: Queue,
    most_protected: u32,
}

impl Policy for Slru {
    fn hit(&mut self, block: u32, room: &Room<'_>) {
        if self.is_protected.get(block) {
            self.protected.renew(&mut self.slots, block, room.exposed(block));
            return;
        }
        self.probation.remove(&self.slots, block);
        self.protected.push(&mut self.slots, block, room.exposed(block));
        self.is_protected.set(block);
        if self.protected.len() > self.most_protected
            && let Some(oldest) = self.protected.oldest_any()
        {
            self.protected.remove(&self.slots, oldest);
            self.probation.push(&mut self.slots, oldest, room.exposed(oldest));
            self.is_protected.clear(oldest);
        }
    }

    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        if room.is_full() {
            victim = self.candidate(room);
            let Some(oldest) = victim else { return Stored::NoRoom };
            self.remove(oldest, room);
        }
        self.probation.push(&mut self.slots, block, room.exposed(block));
        Stored::Done { victim }
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        if self.is_protected.get(block) {
            self.protected.remove(&self.slots, block);
            self.is_protected.clear(block);
        } else {
            self.probation.remove(&self.slots, block);
        }
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        let queue = if self.is_protected.get(block) { &mut self.protected } else { &mut self.probation };
        queue.expose(&self.slots, block, exposed);
    }

    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        self.probation.oldest(&self.slots, room).or_else(|| self.protected.oldest(&self.slots, room))
    }

    fn content(&self) -> Vec<u32> {
        self.protected.iter().chain(self.probation.iter()).collect()
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        if self.protected.len() > self.most_protected {
            return Err(format!(
                "{} blocks in a protected queue of {}",
                self.protected.len(),
                self.most_protected
            ));
        }
        validate_content(&self.content(), room)
    }
}
