//! ARC, the adaptive replacement cache: recency and frequency, balanced by what was evicted too early.
//!
//! Megiddo, Modha, "ARC: A Self-Tuning, Low Overhead Replacement Cache", FAST 2003, figure 4. T1 holds
//! blocks used once, T2 those used again; B1 and B2 are the ghosts of their victims; `p` is the target of
//! T1, a real number. The cases of the paper are named at their branches.
//!
//! Where we differ: a list whose blocks are all guarded or protected gives way to the other one. There are
//! well-known mistakes in ports (openzfs 10548: the target adapted after the ghost was taken out; integer
//! steps); the golden tests would show them.

use super::parts::{Ghost, Queue};
use super::spec::Args;
use super::{Build, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::Result;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "arc",
    doc: "balances blocks used once and blocks used again by what was evicted too early",
    parameters: &[],
    source: "Megiddo and Modha, FAST 2003",
    build: |_: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> { Ok(Box::new(Arc::new(build))) },
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum List {
    None,
    T1,
    T2,
    B1,
    B2,
}

struct Arc {
    slots: Vec<u32>,
    list: Vec<List>,
    t1: Queue,
    t2: Queue,
    b1: Ghost,
    b2: Ghost,
    p: f64,
    capacity: u32,
}

impl Arc {
    fn new(build: &Build<'_>) -> Self {
        Self {
            slots: vec![0; build.blocks()],
            list: vec![List::None; build.blocks()],
            t1: Queue::new(),
            t2: Queue::new(),
            b1: Ghost::default(),
            b2: Ghost::default(),
            p: 0.0,
            capacity: build.capacity,
        }
    }

    /// The block REPLACE would take, and from which list.
    #[inline]
    fn choose(&mut self, room: &Room<'_>, in_b2: bool) -> Option<(u32, List)> {
        let t1 = f64::from(self.t1.len());
        #[allow(clippy::float_cmp, reason = "the paper compares a count with the target exactly")]
        let from_t1 = !self.t1.is_empty() && (t1 > self.p || (in_b2 && t1 == self.p));
        let t1 = |arc: &mut Self| arc.t1.oldest(&arc.slots, room).map(|block| (block, List::T1));
        let t2 = |arc: &mut Self| arc.t2.oldest(&arc.slots, room).map(|block| (block, List::T2));
        if from_t1 { t1(self).or_else(|| t2(self)) } else { t2(self).or_else(|| t1(self)) }
    }

    /// Evicts a chosen block into the ghosts of its list.
    #[inline]
    fn demote(&mut self, (block, list): (u32, List)) -> u32 {
        if list == List::T1 {
            self.t1.remove(&self.slots, block);
            self.b1.push(&mut self.slots, block);
            self.list[block as usize] = List::B1;
        } else {
            self.t2.remove(&self.slots, block);
            self.b2.push(&mut self.slots, block);
            self.list[block as usize] = List::B2;
        }
        block
    }

    fn forget_oldest_b1(&mut self) {
        if let Some(gone) = self.b1.pop(&self.slots) {
            self.list[gone as usize] = List::None;
        }
    }

    /// Cases II and III: the block was evicted too early; the target moves towards its list.
    fn insert_ghost(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let (b1, b2) = (f64::from(self.b1.len()), f64::from(self.b2.len()));
        let in_b2 = self.list[block as usize] == List::B2;
        let before = self.p;
        self.p = if in_b2 {
            (self.p - (b1 / b2).max(1.0)).max(0.0)
        } else {
            (self.p + (b2 / b1).max(1.0)).min(f64::from(self.capacity))
        };
        let mut victim = None;
        if room.is_full() {
            victim = self.choose(room, in_b2);
            if victim.is_none() {
                self.p = before;
                return Stored::NoRoom;
            }
        }
        if in_b2 {
            self.b2.remove(&self.slots, block);
        } else {
            self.b1.remove(&self.slots, block);
        }
        let victim = victim.map(|chosen| self.demote(chosen));
        self.t2.push(&mut self.slots, block, room.exposed(block));
        self.list[block as usize] = List::T2;
        Stored::Done { victim }
    }

    /// Case IV: a block nobody remembers.
    fn insert_new(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        let recent = self.t1.len() + self.b1.len();
        if room.is_full() {
            victim = self.choose(room, false);
            if victim.is_none() {
                return Stored::NoRoom;
            }
        }
        if recent == self.capacity && self.t1.len() == self.capacity {
            // T1 alone fills the tier: its oldest goes without a ghost.
            if let Some((gone, _)) = victim {
                self.t1.remove(&self.slots, gone);
                self.list[gone as usize] = List::None;
            }
        } else {
            if recent == self.capacity {
                self.forget_oldest_b1();
            } else if recent + self.t2.len() + self.b2.len() >= self.capacity.saturating_mul(2)
                && let Some(gone) = self.b2.pop(&self.slots)
            {
                self.list[gone as usize] = List::None;
            }
            if let Some(chosen) = victim {
                self.demote(chosen);
            }
        }
        self.t1.push(&mut self.slots, block, room.exposed(block));
        self.list[block as usize] = List::T1;
        Stored::Done { victim: victim.map(|(gone, _)| gone) }
    }
}

impl Policy for Arc {
    /// Case I: used again.
    #[inline]
    fn hit(&mut self, block: u32, room: &Room<'_>) {
        if self.list[block as usize] == List::T2 {
            self.t2.renew(&mut self.slots, block, room.exposed(block));
        } else {
            self.t1.remove(&self.slots, block);
            self.t2.push(&mut self.slots, block, room.exposed(block));
            self.list[block as usize] = List::T2;
        }
    }

    #[inline]
    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        if self.list[block as usize] == List::None {
            self.insert_new(block, room)
        } else {
            self.insert_ghost(block, room)
        }
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        if self.list[block as usize] == List::T1 {
            self.t1.remove(&self.slots, block);
        } else {
            self.t2.remove(&self.slots, block);
        }
        self.list[block as usize] = List::None;
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        let queue = if self.list[block as usize] == List::T1 { &mut self.t1 } else { &mut self.t2 };
        queue.expose(&self.slots, block, exposed);
    }

    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        self.choose(room, false).map(|(block, _)| block)
    }

    fn content(&self) -> Vec<u32> {
        self.t2.iter().chain(self.t1.iter()).collect()
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        let (recent, c) = (self.t1.len() + self.b1.len(), self.capacity);
        let all = recent + self.t2.len() + self.b2.len();
        if recent > c || u64::from(all) > 2 * u64::from(c) || !(0.0..=f64::from(c)).contains(&self.p) {
            return Err(format!("T1 + B1 = {recent}, all lists {all}, p = {} with capacity {c}", self.p));
        }
        validate_content(&self.content(), room)
    }
}
