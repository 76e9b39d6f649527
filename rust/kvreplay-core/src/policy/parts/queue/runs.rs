//! Runs of consecutive blocks in a queue, for tiers in which any block may leave at any time (object mode).
//!
//! Requests list runs of consecutive block numbers, which come in together and mostly leave together. A run
//! that came in one piece lies in consecutive slots, so it moves with a few words of bits and sequential memory
//! instead of block by block. Each operation equals its one-block counterpart repeated.

use super::{NONE, Queue};
use crate::policy::Move;
use crate::policy::parts::Room;
use crate::trace::Run;

/// How many of `values` continue the sequence after `first`.
#[inline]
fn ascending(values: &[u32], first: u32) -> usize {
    values.iter().zip(first + 1..).take_while(|&(&value, want)| value == want).count()
}

impl Queue {
    /// Appends the blocks of a run, none of them protected.
    pub fn push_run(&mut self, slots: &mut [u32], run: Run) {
        let mut len = run.len as usize;
        let used = if self.head <= self.tail {
            self.tail - self.head
        } else {
            self.tail + self.ring.len() - self.head
        };
        if used + len >= self.ring.len() {
            self.pack(slots, len);
        }
        self.len += run.len;
        let mut block = run.start;
        while len > 0 {
            let here = len.min(self.ring.len() - self.tail);
            for (slot, value) in self.ring[self.tail..][..here].iter_mut().zip(block..) {
                *slot = value;
            }
            for (place, slot) in slots[block as usize..][..here].iter_mut().zip(self.tail as u32..) {
                *place = slot;
            }
            self.exposed.set_range(self.tail, here);
            self.tail += here;
            if self.tail == self.ring.len() {
                self.tail = 0;
            }
            block += here as u32;
            len -= here;
        }
    }

    /// Moves the blocks of a run, all in this queue, to the newest end one after the other.
    pub fn renew_run(&mut self, slots: &mut [u32], run: Run) {
        let (mut block, end) = (run.start as usize, (run.start + run.len) as usize);
        while block < end {
            let slot = slots[block];
            let len = 1 + ascending(&slots[block + 1..end], slot);
            self.take_out_run(slot as usize, len);
            block += len;
        }
        self.push_run(slots, run);
    }

    /// Takes out the oldest blocks as far as they are a run, at most `most`.
    pub fn evict_run(&mut self, most: u32) -> Option<Run> {
        if self.is_empty() || most == 0 {
            return None;
        }
        let run = self.run_at(self.head, most);
        self.take_out_run(self.head, run.len as usize);
        Some(run)
    }

    /// Stores absent blocks of a run one after the other, the oldest leaving for them.
    #[inline]
    pub fn store_run(&mut self, slots: &mut [u32], run: Run, room: &mut Room<'_>, moves: &mut Vec<Move>) {
        let (mut block, end) = (run.start, run.start + run.len);
        while block < end {
            let free = room.capacity() - room.len();
            let most = end - block;
            let victims = if free > 0 { None } else { self.evict_run(most) };
            let len = victims.map_or(free.min(most), |victims| victims.len);
            if len == 0 {
                return; // a tier of no blocks
            }
            let came = Run { start: block, len };
            self.push_run(slots, came);
            room.exchange(came, victims);
            moves.push(Move { block, victim: victims.map(|victims| victims.start), len });
            block += len;
        }
    }

    /// The run of blocks in consecutive slots from `slot` on, at most `most`.
    #[inline]
    fn run_at(&self, slot: usize, most: u32) -> Run {
        let start = self.ring[slot];
        // Slots without a block hold a number no block has.
        let most = (most as usize).min(self.ring.len() - slot);
        Run { start, len: 1 + ascending(&self.ring[slot + 1..slot + most], start) as u32 }
    }

    /// A slot number that may be just behind the ring.
    #[inline]
    fn behind(&self, slot: usize) -> usize {
        if slot == self.ring.len() { 0 } else { slot }
    }

    /// Takes out the blocks of consecutive slots.
    #[inline]
    fn take_out_run(&mut self, slot: usize, len: usize) {
        self.ring[slot..slot + len].fill(NONE);
        self.exposed.clear_range(slot, len);
        self.len -= len as u32;
        if slot == self.head {
            self.head = self.behind(slot + len);
            self.trim_head();
        } else if self.behind(slot + len) == self.tail {
            self.trim_tail();
        }
    }
}
