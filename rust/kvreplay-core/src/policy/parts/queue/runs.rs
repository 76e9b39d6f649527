//! Runs of consecutive blocks in a queue.
//!
//! Requests list runs of consecutive block numbers, which come in together and mostly leave together. A run
//! that came in one piece lies in consecutive slots, so it moves with a few words of bits and sequential memory
//! instead of block by block. Each operation equals its one-block counterpart repeated in the given [`Order`].

use super::{NONE, OLDEST, Queue};
use crate::policy::Order;
use crate::policy::parts::{BitSet, Room};
use crate::trace::Run;

/// Numbers compared at once: few enough not to be in vain, enough for the compiler to use wide registers.
const CHUNK: usize = 8;

/// How many of `values` are the numbers that follow `first`, each one more (less, when `down`).
#[inline]
fn following(values: &[u32], first: u32, down: bool) -> usize {
    // Below 0 there is no number, and the mark of an empty slot must not be taken for one.
    let values = if down { &values[..values.len().min(first as usize)] } else { values };
    let want = |i: u32| if down { first - i } else { first.wrapping_add(i) };
    let mut next = 1;
    for chunk in values.chunks_exact(CHUNK) {
        let differ =
            chunk.iter().zip(next..next + CHUNK as u32).fold(0, |or, (&value, i)| or | (value ^ want(i)));
        if differ != 0 {
            break;
        }
        next += CHUNK as u32;
    }
    let rest = &values[next as usize - 1..];
    next as usize - 1 + rest.iter().zip(next..).take_while(|&(&value, i)| value == want(i)).count()
}

impl Queue {
    /// Appends the blocks of a run, of which the first `exposed` to come have no resident child.
    pub fn push_run(&mut self, slots: &mut [u32], run: Run, order: Order, exposed: u32) {
        self.make_room(slots, run.len as usize);
        self.len += run.len;
        let mut done = 0;
        while done < run.len {
            let tail = self.tail;
            let here = (run.len - done).min((self.ring.len() - tail) as u32);
            let low = match order {
                Order::Forward => run.start + done,
                Order::Back => run.start + run.len - done - here,
            };
            let ring = &mut self.ring[tail..tail + here as usize];
            let places = &mut slots[low as usize..(low + here) as usize];
            // Ranges of known length, which the compiler turns into wide stores.
            let (blocks, taken) = (low..low + here, tail as u32..tail as u32 + here);
            match order {
                Order::Forward => {
                    ring.iter_mut().zip(blocks).for_each(|(slot, block)| *slot = block);
                    places.iter_mut().zip(taken).for_each(|(place, slot)| *place = slot);
                }
                Order::Back => {
                    ring.iter_mut().zip(blocks.rev()).for_each(|(slot, block)| *slot = block);
                    places.iter_mut().zip(taken.rev()).for_each(|(place, slot)| *place = slot);
                }
            }
            self.exposed.set_range(tail, exposed.saturating_sub(done).min(here) as usize);
            self.tail = self.around(tail + here as usize);
            done += here;
        }
    }

    /// Takes out the blocks of a run, all in this queue.
    pub fn remove_run(&mut self, slots: &[u32], run: Run) {
        let (mut block, end) = (run.start as usize, (run.start + run.len) as usize);
        while block < end {
            let (slot, rest) = (slots[block], &slots[block + 1..end]);
            let down = slot > 0 && rest.first() == Some(&(slot - 1));
            let len = 1 + following(rest, slot, down);
            self.take_out_run(slot as usize + 1 - if down { len } else { 1 }, len);
            block += len;
        }
    }

    /// Moves the blocks of a run, all in this queue, to the newest end.
    pub fn renew_run(&mut self, slots: &mut [u32], run: Run, order: Order, exposed: u32) {
        self.remove_run(slots, run);
        self.push_run(slots, run, order, exposed);
    }

    /// Takes out the oldest blocks, as far as that is a run of at most `most`, whether they may leave or not.
    pub fn pop_run(&mut self, most: u32, order: Order) -> Option<Run> {
        if self.is_empty() || most == 0 {
            return None;
        }
        let run = self.run_at(self.head, most, order);
        self.take_out_run(self.head, run.len as usize);
        Some(run)
    }

    /// Takes out the oldest blocks that may leave, one after the other, as far as they are a run of at most `most`.
    pub fn evict_run(&mut self, slots: &[u32], room: &Room<'_>, most: u32, order: Order) -> Option<Run> {
        let slot = self.oldest_slot(slots, room).filter(|_| most > 0)?;
        Some(self.evict_run_at(slot, room, most, order, |run| run.len))
    }

    /// [`Queue::evict_run`] from the slot of [`Queue::oldest_slot`] on, as far as `limit` allows: it is told the run
    /// and says how many of it, at least one.
    pub fn evict_run_at(
        &mut self,
        slot: usize,
        room: &Room<'_>,
        most: u32,
        order: Order,
        limit: impl FnOnce(Run) -> u32,
    ) -> Run {
        let run = room.leaving(self.run_at(slot, most, order), order);
        let run = order.first(run, limit(run));
        self.take_out_run(slot, run.len as usize);
        run
    }

    /// Takes out what [`Queue::evict_swept`] would take one after the other, blocks in `visited` being passed and
    /// taken out of the set, as far as that is a run of at most `most`; for each of them a block comes in.
    pub fn evict_swept_run(
        &mut self,
        slots: &[u32],
        room: &Room<'_>,
        visited: &mut BitSet,
        most: u32,
        order: Order,
    ) -> Option<Run> {
        let passes = |block| {
            let was = visited.get(block);
            if was {
                visited.clear(block);
            }
            was
        };
        let slot = self.swept(slots, room, passes).filter(|_| most > 0)?;
        let run = room.leaving(self.run_at(slot, most, order), order);
        let mut len = match order {
            Order::Forward => visited.leading_absent(run.start, run.len),
            Order::Back => visited.trailing_absent(run.start, run.len),
        };
        if len > 1 && self.around(slot + len as usize) == self.tail {
            // What comes in for the others will lie behind the newest block, and the hand moves on to it.
            len -= 1;
        }
        self.mark = slot + len as usize - 1;
        self.take_out_run(slot, len as usize);
        if !self.spans(self.mark) {
            self.mark = OLDEST;
        }
        Some(order.first(run, len))
    }

    /// The run of blocks in consecutive slots from `slot` on, at most `most`.
    #[inline]
    fn run_at(&self, slot: usize, most: u32, order: Order) -> Run {
        let first = self.ring[slot];
        let most = (most as usize).min(self.ring.len() - slot);
        // Slots without a block hold a number no block has.
        let len = 1 + following(&self.ring[slot + 1..slot + most], first, order == Order::Back) as u32;
        let start = if order == Order::Back { first + 1 - len } else { first };
        Run { start, len }
    }

    /// Takes out the blocks of consecutive slots.
    #[inline]
    fn take_out_run(&mut self, slot: usize, len: usize) {
        self.ring[slot..slot + len].fill(NONE);
        self.exposed.clear_range(slot, len);
        self.len -= len as u32;
        if slot == self.head {
            self.head = self.around(slot + len);
            self.trim_head();
        } else if self.around(slot + len) == self.tail {
            self.trim_tail();
        }
    }

    /// A slot number that may be just behind the ring.
    #[inline]
    fn around(&self, slot: usize) -> usize {
        if slot == self.ring.len() { 0 } else { slot }
    }

    /// Packs the ring where `more` blocks do not fit behind the newest one.
    fn make_room(&mut self, slots: &mut [u32], more: usize) {
        let (from, to) = (self.head, self.tail);
        let used = if from <= to { to - from } else { to + self.ring.len() - from };
        // One slot stays free, so that equal ends mean an empty queue.
        if used + more >= self.ring.len() {
            self.pack(slots, more);
        }
    }
}

#[cfg(test)]
mod tests;
