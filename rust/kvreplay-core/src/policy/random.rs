//! Random: a block drawn evenly among those that may leave, from a seeded generator.
//!
//! The baseline that remembers nothing, and under `closure="none"` the policy that strands the most blocks.
//! Contents are listed by block number, for there is no order.

use super::parts::BitSet;
use super::spec::{Args, Param};
use super::{Build, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::Result;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "random",
    doc: "evicts a block drawn at random (seeded)",
    parameters: &[Param { name: "seed", default: "0", doc: "seed of the generator" }],
    source: "classic",
    build: |args: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        Ok(Box::new(Random {
            place: vec![NONE; build.blocks()],
            pool: Vec::new(),
            aside: Vec::new(),
            epoch: 0,
            state: args.number("seed", 0..=u64::MAX)?,
            resident: BitSet::new(build.topology.blocks()),
        }))
    },
};

struct Random {
    /// Place in `pool` per resident block, [`NONE`] while it is protected, set aside or absent.
    place: Vec<u32>,
    /// Blocks to draw from.
    pool: Vec<u32>,
    aside: Vec<u32>,
    epoch: u64,
    state: u64,
    resident: BitSet,
}

const NONE: u32 = u32::MAX;

impl Random {
    fn enter(&mut self, block: u32) {
        if self.place[block as usize] == NONE {
            self.place[block as usize] = self.pool.len() as u32;
            self.pool.push(block);
        }
    }

    fn withdraw(&mut self, block: u32) {
        let place = std::mem::replace(&mut self.place[block as usize], NONE);
        if place != NONE {
            self.pool.swap_remove(place as usize);
            if let Some(&moved) = self.pool.get(place as usize) {
                self.place[moved as usize] = place;
            }
        }
    }

    /// The next number of splitmix64 (Steele, Lea, Flood, OOPSLA 2014).
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut x = self.state;
        x = (x ^ x >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        x = (x ^ x >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        x ^ x >> 31
    }

    /// A block drawn evenly among those that may leave; guarded ones met on the way are set aside.
    fn pick(&mut self, room: &Room<'_>) -> Option<u32> {
        if self.epoch != room.epoch() {
            self.epoch = room.epoch();
            while let Some(block) = self.aside.pop() {
                if self.resident.get(block) && room.exposed(block) {
                    self.enter(block);
                }
            }
        }
        while !self.pool.is_empty() {
            let at = ((u128::from(self.draw()) * self.pool.len() as u128) >> 64) as usize;
            let block = self.pool[at];
            if !room.guards(block) {
                return Some(block);
            }
            self.withdraw(block);
            self.aside.push(block);
        }
        None
    }
}

impl Policy for Random {
    fn hit(&mut self, _: u32, _: &Room<'_>) {}

    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        if room.is_full() {
            let Some(found) = self.pick(room) else { return Stored::NoRoom };
            self.withdraw(found);
            self.resident.clear(found);
            victim = Some(found);
        }
        self.resident.set(block);
        if room.exposed(block) {
            self.enter(block);
        }
        Stored::Done { victim }
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        self.withdraw(block);
        self.resident.clear(block);
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        if exposed {
            self.enter(block);
        } else {
            self.withdraw(block);
        }
    }

    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        // Looking must not disturb the sequence of draws.
        let state = self.state;
        let block = self.pick(room);
        self.state = state;
        block
    }

    fn content(&self) -> Vec<u32> {
        self.resident.iter().collect()
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        validate_content(&self.content(), room)
    }
}
