//! A queue of blocks in order of arrival, oldest to newest, that finds the oldest block allowed to leave.
//!
//! Blocks sit in a growing array of slots; a removed block leaves an empty slot, and the array is packed
//! when it is full. Appending and passing over a run of blocks is sequential memory, which a linked list
//! is not. A tree of bits marks the slots whose block is *exposed* (no resident child), so blocks that
//! closure protects are never walked over. Guarded blocks are set aside when a search meets them and
//! return when the guard changes.
//!
//! The slot of a block lies in an array shared by all queues of a policy, since a block is in one queue
//! at a time: four bytes per distinct block.

use super::{BitTree, NONE, Room};

/// A queue. All methods take `slots`, the array of slots per block.
#[derive(Debug, Clone)]
pub struct Queue {
    ring: Vec<u32>,
    /// Slots the array may have before it is packed.
    room: usize,
    exposed: BitTree,
    /// No live slot lies below.
    first: usize,
    len: u32,
    aside: Vec<u32>,
    epoch: u64,
}

impl Default for Queue {
    fn default() -> Self {
        Self::new()
    }
}

const SMALLEST: usize = 64;

impl Queue {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self {
            ring: Vec::new(),
            room: SMALLEST,
            exposed: BitTree::new(SMALLEST),
            first: 0,
            len: 0,
            aside: Vec::new(),
            epoch: 0,
        }
    }

    /// Number of blocks.
    #[inline]
    #[must_use]
    pub fn len(&self) -> u32 {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Appends a block at the newest end.
    #[inline]
    pub fn push(&mut self, slots: &mut [u32], block: u32, exposed: bool) {
        if self.ring.len() == self.room {
            self.pack(slots);
        }
        let slot = self.ring.len();
        self.ring.push(block);
        slots[block as usize] = slot as u32;
        if exposed {
            self.exposed.set(slot);
        }
        self.len += 1;
    }

    /// Takes a block out.
    #[inline]
    pub fn remove(&mut self, slots: &[u32], block: u32) {
        let slot = slots[block as usize] as usize;
        debug_assert_eq!(self.ring[slot], block);
        self.ring[slot] = NONE;
        self.exposed.clear(slot);
        self.len -= 1;
    }

    /// Moves a block of this queue to the newest end.
    #[inline]
    pub fn renew(&mut self, slots: &mut [u32], block: u32, exposed: bool) {
        self.remove(slots, block);
        self.push(slots, block, exposed);
    }

    /// Notes that a child came (`false`) or the last one left (`true`).
    pub fn expose(&mut self, slots: &[u32], block: u32, exposed: bool) {
        let slot = slots[block as usize] as usize;
        debug_assert_eq!(self.ring[slot], block);
        if exposed {
            self.exposed.set(slot);
        } else {
            self.exposed.clear(slot);
        }
    }

    /// The oldest block that may leave.
    #[inline]
    pub fn oldest(&mut self, slots: &[u32], room: &Room<'_>) -> Option<u32> {
        self.next_from(slots, room, 0)
    }

    /// The oldest block that may leave, not older than the one at `slot`.
    pub fn next_from(&mut self, slots: &[u32], room: &Room<'_>, slot: usize) -> Option<u32> {
        self.restore(slots, room);
        let mut at = slot;
        loop {
            let slot = self.exposed.next(at)?;
            let block = self.ring[slot];
            if !room.guards(block) {
                return Some(block);
            }
            self.exposed.clear(slot);
            self.aside.push(block);
            at = slot + 1;
        }
    }

    /// Blocks set aside under an earlier guard take part again.
    #[inline]
    fn restore(&mut self, slots: &[u32], room: &Room<'_>) {
        if self.epoch == room.epoch() {
            return;
        }
        self.epoch = room.epoch();
        for i in 0..self.aside.len() {
            let block = self.aside[i];
            let slot = slots[block as usize] as usize;
            // The block may have left this queue since; its slot then belongs to another one.
            if self.ring.get(slot) == Some(&block) && room.exposed(block) {
                self.exposed.set(slot);
            }
        }
        self.aside.clear();
    }

    /// The oldest block, whether it may leave or not.
    #[inline]
    pub fn oldest_any(&mut self) -> Option<u32> {
        while let Some(&block) = self.ring.get(self.first) {
            if block != NONE {
                return Some(block);
            }
            self.first += 1;
        }
        None
    }

    /// Blocks from the newest to the oldest.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.ring.iter().rev().copied().filter(|&block| block != NONE)
    }

    /// Closes the gaps and makes room for half as many again.
    #[cold]
    fn pack(&mut self, slots: &mut [u32]) {
        let room = SMALLEST + self.len as usize + self.len as usize / 2;
        let mut exposed = BitTree::new(room);
        let mut to = 0;
        for from in 0..self.ring.len() {
            let block = self.ring[from];
            if block == NONE {
                continue;
            }
            if self.exposed.get(from) {
                exposed.set(to);
            }
            self.ring[to] = block;
            slots[block as usize] = to as u32;
            to += 1;
        }
        self.ring.truncate(to);
        if room > self.ring.capacity() {
            self.ring.reserve_exact(room - to);
        }
        self.room = room;
        self.exposed = exposed;
        self.first = 0;
    }
}
