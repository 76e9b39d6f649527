//! 2Q, full version: new blocks pass through a FIFO queue, and only those asked for again enter the LRU.
//!
//! Johnson, Shasha, "2Q: A Low Overhead High Performance Buffer Management Replacement Algorithm", VLDB 1994.
//! A1in is the FIFO of new blocks (a quarter of the tier), A1out the ghosts of its victims (half as many
//! names as the tier has blocks), Am the LRU of blocks that came back while they were in A1out. A hit in
//! A1in changes nothing: such uses are taken as correlated.
//!
//! Where we differ: a queue whose blocks are all guarded or protected gives way to the other one.

use super::parts::{Ghost, Queue};
use super::spec::{Args, Param};
use super::{Build, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::Result;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "twoq",
    doc: "a FIFO for new blocks, an LRU for those asked for again soon after they left it",
    parameters: &[
        Param { name: "kin", default: "0.25", doc: "share of the tier for new blocks, 0 to 1" },
        Param { name: "kout", default: "0.5", doc: "ghosts as a share of the tier, 0 to 4" },
    ],
    source: "Johnson and Shasha, VLDB 1994",
    build: |args: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        let share = |share: f64| (f64::from(build.capacity) * share) as u32;
        Ok(Box::new(TwoQ {
            slots: vec![0; build.blocks()],
            list: vec![List::None; build.blocks()],
            a1in: Queue::new(),
            am: Queue::new(),
            a1out: Ghost::default(),
            kin: share(args.number("kin", 0.0..=1.0)?),
            kout: share(args.number("kout", 0.0..=4.0)?),
        }))
    },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum List {
    None,
    A1in,
    Am,
    A1out,
}

struct TwoQ {
    slots: Vec<u32>,
    list: Vec<List>,
    a1in: Queue,
    am: Queue,
    a1out: Ghost,
    kin: u32,
    kout: u32,
}

impl TwoQ {
    #[inline]
    fn evict(&mut self, victim: u32) {
        if self.list[victim as usize] == List::Am {
            self.am.remove(&self.slots, victim);
            self.list[victim as usize] = List::None;
            return;
        }
        self.a1in.remove(&self.slots, victim);
        self.a1out.push(&mut self.slots, victim);
        self.list[victim as usize] = List::A1out;
        if self.a1out.len() > self.kout
            && let Some(gone) = self.a1out.pop(&self.slots)
        {
            self.list[gone as usize] = List::None;
        }
    }
}

impl Policy for TwoQ {
    #[inline]
    fn hit(&mut self, block: u32, room: &Room<'_>) {
        if self.list[block as usize] == List::Am {
            self.am.renew(&mut self.slots, block, room.exposed(block));
        }
    }

    #[inline]
    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        if room.is_full() {
            victim = self.candidate(room);
            if victim.is_none() {
                return Stored::NoRoom;
            }
        }
        let came_back = self.list[block as usize] == List::A1out;
        if came_back {
            self.a1out.remove(&self.slots, block);
        }
        if let Some(victim) = victim {
            self.evict(victim);
        }
        let (queue, list) = if came_back { (&mut self.am, List::Am) } else { (&mut self.a1in, List::A1in) };
        queue.push(&mut self.slots, block, room.exposed(block));
        self.list[block as usize] = list;
        Stored::Done { victim }
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        let queue = if self.list[block as usize] == List::Am { &mut self.am } else { &mut self.a1in };
        queue.remove(&self.slots, block);
        self.list[block as usize] = List::None;
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        let queue = if self.list[block as usize] == List::Am { &mut self.am } else { &mut self.a1in };
        queue.expose(&self.slots, block, exposed);
    }

    #[inline]
    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        let a1in = |q: &mut Self| q.a1in.oldest(&q.slots, room);
        let am = |q: &mut Self| q.am.oldest(&q.slots, room);
        if self.a1in.len() > self.kin {
            a1in(self).or_else(|| am(self))
        } else {
            am(self).or_else(|| a1in(self))
        }
    }

    fn content(&self) -> Vec<u32> {
        self.am.iter().chain(self.a1in.iter()).collect()
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        if self.a1out.len() > self.kout {
            return Err(format!("{} ghosts of at most {}", self.a1out.len(), self.kout));
        }
        validate_content(&self.content(), room)
    }
}
