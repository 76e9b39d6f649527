//! Time to live: LRU, and a block unused for longer than `idle` is gone before the next request looks.
//!
//! What prompt caches of API providers do. One queue in order of use, so the blocks past their time are at
//! its oldest end. An expired block counts as evicted (and as expired) and is not handed to a lower tier. With
//! `closure="leaf"` a block stays while it has a resident child; a path is used as a whole, so no block
//! outlives the one above it in tier 1.

use super::parts::Queue;
use super::spec::{Args, Param};
use super::{Build, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::{Error, Result};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "ttl",
    doc: "LRU whose blocks expire when unused for longer than idle",
    parameters: &[Param {
        name: "idle",
        default: "600 s",
        doc: "time without use after which a block is gone, like \"10 m\"",
    }],
    source: "API prompt caches; idle time to live",
    build: |args: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        if !build.timed {
            return Err(Error::config(
                "ttl needs a trace with times",
                "use lru, or a trace with arrival times",
            ));
        }
        Ok(Box::new(Ttl {
            slots: vec![0; build.blocks()],
            queue: Queue::new(),
            used_us: vec![0; build.blocks()],
            idle_us: args.duration_us("idle")?,
            now_us: 0,
        }))
    },
};

struct Ttl {
    slots: Vec<u32>,
    queue: Queue,
    used_us: Vec<i64>,
    idle_us: i64,
    now_us: i64,
}

impl Policy for Ttl {
    #[inline]
    fn hit(&mut self, block: u32, room: &Room<'_>) {
        self.used_us[block as usize] = self.now_us;
        self.queue.renew(&mut self.slots, block, room.exposed(block));
    }

    #[inline]
    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        if room.is_full() {
            victim = self.queue.evict(&self.slots, room);
            if victim.is_none() {
                return Stored::NoRoom;
            }
        }
        self.used_us[block as usize] = self.now_us;
        self.queue.push(&mut self.slots, block, room.exposed(block));
        Stored::Done { victim }
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        self.queue.remove(&self.slots, block);
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        self.queue.expose(&self.slots, block, exposed);
    }

    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        self.queue.oldest(&self.slots, room)
    }

    fn content(&self) -> Vec<u32> {
        self.queue.iter().collect()
    }

    fn begin(&mut self, _: u32, now_us: Option<i64>) {
        self.now_us = now_us.unwrap_or(0);
    }

    fn expired(&mut self, room: &Room<'_>) -> Option<u32> {
        let oldest = self.queue.oldest(&self.slots, room)?;
        let age_us = self.now_us.saturating_sub(self.used_us[oldest as usize]);
        (age_us > self.idle_us).then_some(oldest)
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        validate_content(&self.content(), room)
    }
}
