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
use super::runs::{Order, store_run};
use super::spec::Args;
use super::{Build, Move, Policy, PolicyInfo, Room, Stored, insert_each, validate_content};
use crate::error::Result;
use crate::trace::Run;

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

    /// How many of the first blocks of a run are in the list of its first.
    fn alike(&self, run: Run, order: Order) -> (List, u32) {
        let list = self.list[order.first(run, 1).start as usize];
        let same = |&block: &u32| self.list[block as usize] == list;
        (list, order.each(run).take_while(same).count() as u32)
    }

    fn set_list(&mut self, run: Run, list: List) {
        self.list[run.start as usize..(run.start + run.len) as usize].fill(list);
    }

    /// Case IV for a run of new blocks: the victims of as many steps as take the same branches.
    fn evict_run(&mut self, next: Run, room: &Room<'_>, order: Order) -> Option<Run> {
        let (slot, list, most) = self.choose_run(next.len, room)?;
        let (c, recent) = (self.capacity, self.t1.len() + self.b1.len());
        let all = u64::from(recent) + u64::from(self.t2.len()) + u64::from(self.b2.len());
        let (twice, no_ghosts) = (2 * u64::from(c), recent == c && self.t1.len() == c);
        // Whose oldest ghosts are forgotten, if any, and for how many steps that goes on.
        let (forget, most) = if no_ghosts {
            (List::None, most)
        } else if recent == c {
            (List::B1, most.min(self.b1.len()))
        } else if all >= twice {
            (List::B2, most.min(self.b2.len()).min(c - recent))
        } else {
            (List::None, most.min((twice - all).min(u64::from(c - recent)) as u32))
        };
        let queue = if list == List::T1 { &mut self.t1 } else { &mut self.t2 };
        let run = queue.evict_run_at(slot, room, most.max(1), order, |run| run.len);
        if forget != List::None {
            self.forget(forget, run.len, order);
        }
        if no_ghosts {
            self.set_list(run, List::None);
        } else if list == List::T1 {
            self.b1.push_run(&mut self.slots, run, order);
            self.set_list(run, List::B1);
        } else {
            self.b2.push_run(&mut self.slots, run, order);
            self.set_list(run, List::B2);
        }
        Some(run)
    }

    /// [`Arc::choose`] for up to `most` new blocks: slot and list of the first victim, and how often that list is
    /// the one to take from, T1 growing by what does not come from it.
    fn choose_run(&mut self, most: u32, room: &Room<'_>) -> Option<(usize, List, u32)> {
        let spare = self.p - f64::from(self.t1.len());
        let t1 = |arc: &mut Self| arc.t1.oldest_slot(&arc.slots, room).map(|slot| (slot, List::T1));
        let t2 = |arc: &mut Self| arc.t2.oldest_slot(&arc.slots, room).map(|slot| (slot, List::T2));
        if !self.t1.is_empty() && spare < 0.0 {
            let wanted = t1(self).map(|(slot, list)| (slot, list, most));
            return wanted.or_else(|| t2(self).map(|(slot, list)| (slot, list, 1)));
        }
        let steps = (spare.max(0.0) as u32).saturating_add(1);
        let wanted = t2(self).map(|(slot, list)| (slot, list, most.min(steps)));
        wanted.or_else(|| t1(self).map(|(slot, list)| (slot, list, 1)))
    }

    /// Forgets the `count` oldest ghosts of a list.
    fn forget(&mut self, list: List, mut count: u32, order: Order) {
        while count > 0 {
            let ghosts = if list == List::B1 { &mut self.b1 } else { &mut self.b2 };
            let Some(gone) = ghosts.pop_run(count, order) else { return };
            self.set_list(gone, List::None);
            count -= gone.len;
        }
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

    fn hit_run(&mut self, mut run: Run, order: Order, room: &mut Room<'_>) {
        while run.len > 0 {
            let (list, len) = self.alike(run, order);
            let used = order.first(run, len);
            let queue = if list == List::T1 { &mut self.t1 } else { &mut self.t2 };
            queue.remove_run(&self.slots, used);
            self.t2.push_run(&mut self.slots, used, order, room.exposed_run(used, order));
            self.set_list(used, List::T2);
            run = order.rest(run, len);
        }
    }

    fn insert_run(&mut self, mut run: Run, order: Order, room: &mut Room<'_>, moves: &mut Vec<Move>) {
        while run.len > 0 {
            let (list, len) = self.alike(run, order);
            let next = order.first(run, len);
            // A tier that is filling has no ghosts to look after, unless blocks were taken out of it.
            let by_run = room.is_full() || (self.b1.is_empty() && self.b2.is_empty());
            if list == List::None && by_run {
                let evict = |arc: &mut Self, next: Run, room: &Room<'_>| arc.evict_run(next, room, order);
                let push = |arc: &mut Self, run: Run, exposed| {
                    arc.t1.push_run(&mut arc.slots, run, order, exposed);
                    arc.set_list(run, List::T1);
                };
                store_run(self, next, order, room, moves, evict, push);
            } else {
                insert_each(self, next, order, room, moves);
            }
            run = order.rest(run, len);
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
