//! S3-FIFO: a small FIFO queue filters out blocks used once, a main one holds the rest.
//!
//! Yang, Zhang, Qiu, Yue, Rashmi, "FIFO Queues are All You Need for Cache Eviction", SOSP 2023. S is the
//! small queue (a tenth of the tier), M the main queue, G the ghosts of blocks that left S. A counter per
//! block goes up to 3 with hits. A block leaving S with a counter of `promote_at` or more enters M; one
//! leaving M with a counter above 0 goes round again with one less.
//!
//! Where we differ from the paper's text: S has at least one block; G is looked up also while the tier
//! fills; a block that enters M starts at 0; guarded and protected blocks stay where they are. A queue in
//! which no victim is found gives way to the other one.

use super::parts::{Ghost, Queue};
use super::runs::{Order, store_run};
use super::spec::{Args, Param};
use super::{Build, Move, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::Result;
use crate::trace::Run;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "s3fifo",
    doc: "a small FIFO filters out blocks used once, a main FIFO holds the rest",
    parameters: &[
        Param { name: "small", default: "0.1", doc: "share of the tier for the small queue, 0 to 1" },
        Param {
            name: "promote_at",
            default: "2",
            doc: "hits from which a block enters the main queue, 1 to 3",
        },
    ],
    source: "Yang et al., SOSP 2023",
    build: |args: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        let share: f64 = args.number("small", 0.0..=1.0)?;
        let small = ((f64::from(build.capacity) * share) as u32).max(1);
        Ok(Box::new(S3Fifo {
            slots: vec![0; build.blocks()],
            state: vec![NOWHERE; build.blocks()],
            small: Queue::new(),
            main: Queue::new(),
            ghost: Ghost::default(),
            most_main: build.capacity.saturating_sub(small),
            promote_at: args.number("promote_at", 1..=MOST)?,
        }))
    },
};

/// The state of a block is its list and its counter in one byte.
const NOWHERE: u8 = 0;
const SMALL: u8 = 4;
const MAIN: u8 = 8;
const GHOST: u8 = 12;
const LIST: u8 = 12;
/// The highest count.
const MOST: u8 = 3;

struct S3Fifo {
    slots: Vec<u32>,
    state: Vec<u8>,
    small: Queue,
    main: Queue,
    ghost: Ghost,
    most_main: u32,
    promote_at: u8,
}

impl S3Fifo {
    fn evict_small(&mut self, room: &Room<'_>) -> Option<u32> {
        while let Some(block) = self.small.evict(&self.slots, room) {
            if self.state[block as usize] & MOST >= self.promote_at {
                self.main.push(&mut self.slots, block, room.exposed(block));
                self.state[block as usize] = MAIN;
                continue;
            }
            self.ghost.push(&mut self.slots, block);
            self.state[block as usize] = GHOST;
            if self.ghost.len() > self.most_main
                && let Some(gone) = self.ghost.pop(&self.slots)
            {
                self.state[gone as usize] = NOWHERE;
            }
            return Some(block);
        }
        None
    }

    fn evict_main(&mut self, room: &Room<'_>) -> Option<u32> {
        while let Some(block) = self.main.oldest(&self.slots, room) {
            if self.state[block as usize] & MOST > 0 {
                self.state[block as usize] -= 1;
                self.main.renew(&mut self.slots, block, room.exposed(block));
                continue;
            }
            self.main.remove(&self.slots, block);
            self.state[block as usize] = NOWHERE;
            return Some(block);
        }
        None
    }

    /// [`S3Fifo::evict`] for blocks of a run that come in one after the other, all ghosts or none: more than one leaves
    /// where S is asked each time and gives blocks of a run.
    fn evict_run(&mut self, next: Run, ghosts: bool, room: &Room<'_>, order: Order) -> Option<Run> {
        let one = |s3fifo: &mut Self| {
            s3fifo.revive(order.first(next, u32::from(ghosts)));
            s3fifo.evict(room).map(|start| Run { start, len: 1 })
        };
        if self.main.len() > self.most_main {
            return one(self);
        }
        // What has enough hits moves on first; who leaves is then the oldest of S.
        let slot = loop {
            let Some(slot) = self.small.oldest_slot(&self.slots, room) else { return one(self) };
            let block = self.small.at(slot);
            if self.state[block as usize] & MOST < self.promote_at {
                break slot;
            }
            self.promote(block, room);
        };
        // Ghosts go to M, which may then be too large.
        let most = match self.most_main.checked_sub(self.main.len()) {
            None => 1,
            Some(free) if ghosts => next.len.min(free + 1),
            Some(_) => next.len,
        };
        let (state, promote_at) = (&self.state, self.promote_at);
        let rare = |run: Run| {
            order.each(run).take_while(|&block| state[block as usize] & MOST < promote_at).count() as u32
        };
        let run = self.small.evict_run_at(slot, room, most, order, rare);
        if ghosts {
            self.revive(order.first(next, run.len));
        }
        self.bury(run, order);
        Some(run)
    }

    /// Takes ghosts out of G.
    fn revive(&mut self, run: Run) {
        self.ghost.remove_run(&self.slots, run);
        self.set_state(run, NOWHERE);
    }

    /// Blocks that left S become ghosts, and the oldest ghosts are forgotten.
    fn bury(&mut self, run: Run, order: Order) {
        self.ghost.push_run(&mut self.slots, run, order);
        self.set_state(run, GHOST);
        while self.ghost.len() > self.most_main
            && let Some(gone) = self.ghost.pop_run(self.ghost.len() - self.most_main, order)
        {
            self.set_state(gone, NOWHERE);
        }
    }

    /// A block with enough hits moves from S to M.
    fn promote(&mut self, block: u32, room: &Room<'_>) {
        self.small.remove(&self.slots, block);
        self.main.push(&mut self.slots, block, room.exposed(block));
        self.state[block as usize] = MAIN;
    }

    fn set_state(&mut self, run: Run, state: u8) {
        self.state[run.start as usize..(run.start + run.len) as usize].fill(state);
    }

    #[inline]
    fn evict(&mut self, room: &Room<'_>) -> Option<u32> {
        if self.main.len() > self.most_main || self.small.is_empty() {
            // What S passes on to M in vain is found there the second time.
            self.evict_main(room).or_else(|| self.evict_small(room)).or_else(|| self.evict_main(room))
        } else {
            self.evict_small(room).or_else(|| self.evict_main(room))
        }
    }
}

impl Policy for S3Fifo {
    #[inline]
    fn hit(&mut self, block: u32, _: &Room<'_>) {
        let state = &mut self.state[block as usize];
        *state += u8::from(*state & MOST < MOST);
    }

    #[inline]
    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        if room.is_full() && self.candidate(room).is_none() {
            return Stored::NoRoom;
        }
        let came_back = self.state[block as usize] == GHOST;
        if came_back {
            self.ghost.remove(&self.slots, block);
            self.state[block as usize] = NOWHERE;
        }
        let victim = if room.is_full() { self.evict(room) } else { None };
        let (queue, list) = if came_back { (&mut self.main, MAIN) } else { (&mut self.small, SMALL) };
        queue.push(&mut self.slots, block, room.exposed(block));
        self.state[block as usize] = list;
        Stored::Done { victim }
    }

    fn hit_run(&mut self, run: Run, _: Order, _: &mut Room<'_>) {
        for state in &mut self.state[run.start as usize..(run.start + run.len) as usize] {
            *state += u8::from(*state & MOST < MOST);
        }
    }

    fn insert_run(&mut self, mut run: Run, order: Order, room: &mut Room<'_>, moves: &mut Vec<Move>) {
        while run.len > 0 {
            let ghosts = order.first(run, 1).start;
            let ghosts = self.state[ghosts as usize] == GHOST;
            let alike = |&block: &u32| (self.state[block as usize] == GHOST) == ghosts;
            let len = order.each(run).take_while(alike).count() as u32;
            let evict =
                |s3fifo: &mut Self, next: Run, room: &Room<'_>| s3fifo.evict_run(next, ghosts, room, order);
            let push = |s3fifo: &mut Self, run: Run, exposed| {
                if ghosts && s3fifo.state[run.start as usize] == GHOST {
                    s3fifo.revive(run); // nobody left for them
                }
                let (queue, list) =
                    if ghosts { (&mut s3fifo.main, MAIN) } else { (&mut s3fifo.small, SMALL) };
                queue.push_run(&mut s3fifo.slots, run, order, exposed);
                s3fifo.set_state(run, list);
            };
            store_run(self, order.first(run, len), order, room, moves, evict, push);
            run = order.rest(run, len);
        }
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        let queue = if self.state[block as usize] & LIST == MAIN { &mut self.main } else { &mut self.small };
        queue.remove(&self.slots, block);
        self.state[block as usize] = NOWHERE;
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        let queue = if self.state[block as usize] & LIST == MAIN { &mut self.main } else { &mut self.small };
        queue.expose(&self.slots, block, exposed);
    }

    #[inline]
    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        let small = |q: &mut Self| q.small.oldest(&q.slots, room);
        let main = |q: &mut Self| q.main.oldest(&q.slots, room);
        if self.main.len() > self.most_main {
            main(self).or_else(|| small(self))
        } else {
            small(self).or_else(|| main(self))
        }
    }

    fn content(&self) -> Vec<u32> {
        self.main.iter().chain(self.small.iter()).collect()
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        if self.ghost.len() > self.most_main {
            return Err(format!("{} ghosts of at most {}", self.ghost.len(), self.most_main));
        }
        validate_content(&self.content(), room)
    }
}
