//! A queue of blocks in order of arrival, oldest to newest, that finds the oldest block allowed to leave.
//!
//! Blocks sit in a ring of slots; a removed block leaves an empty slot, and the ring is packed when it is
//! full. Appending and passing over a run of blocks is sequential memory, which a linked list is not. A
//! tree of bits marks the slots whose block is *exposed* (no resident child), so blocks that closure
//! protects are never walked over. Guarded blocks are set aside when a search meets them and return when
//! the guard changes.
//!
//! The slot of a block lies in an array shared by all queues of a policy, since a block is in one queue
//! at a time: four bytes per distinct block, and at most eight more per block in the queue.

mod runs;

use super::{BitTree, NONE, Room};

/// A queue. All methods take `slots`, the array of slots per block.
#[derive(Debug, Clone)]
pub struct Queue {
    /// Blocks by slot; the live ones lie in `head .. tail`, going round, and both ends are live.
    ring: Vec<u32>,
    head: usize,
    tail: usize,
    len: u32,
    exposed: BitTree,
    /// A place in the order (the hand of SIEVE): a slot, [`OLDEST`] until set.
    mark: usize,
    aside: Vec<u32>,
    epoch: u64,
}

impl Default for Queue {
    fn default() -> Self {
        Self::new()
    }
}

const SMALLEST: usize = 64;

/// The mark of the oldest end.
const OLDEST: usize = usize::MAX;

#[allow(clippy::inline_always, reason = "a few instructions each, in the inner loop of every policy")]
impl Queue {
    /// An empty queue.
    #[must_use]
    pub fn new() -> Self {
        Self {
            ring: vec![NONE; SMALLEST],
            head: 0,
            tail: 0,
            len: 0,
            exposed: BitTree::new(SMALLEST),
            mark: OLDEST,
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
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    fn after(&self, slot: usize) -> usize {
        if slot + 1 == self.ring.len() { 0 } else { slot + 1 }
    }

    #[inline(always)]
    fn before(&self, slot: usize) -> usize {
        if slot == 0 { self.ring.len() - 1 } else { slot - 1 }
    }

    /// Appends a block at the newest end.
    #[inline(always)]
    pub fn push(&mut self, slots: &mut [u32], block: u32, exposed: bool) {
        let mut slot = self.tail;
        let mut next = self.after(slot);
        // One slot stays free, so that equal ends mean an empty queue.
        if next == self.head {
            self.pack(slots, 1);
            slot = self.tail;
            next = self.after(slot);
        }
        self.ring[slot] = block;
        slots[block as usize] = slot as u32;
        if exposed {
            self.exposed.set(slot);
        }
        self.tail = next;
        self.len += 1;
    }

    /// Takes a block out.
    #[inline(always)]
    pub fn remove(&mut self, slots: &[u32], block: u32) {
        let slot = slots[block as usize] as usize;
        debug_assert_eq!(self.ring[slot], block);
        self.take_out(slot);
    }

    #[inline(always)]
    fn take_out(&mut self, slot: usize) {
        self.ring[slot] = NONE;
        self.exposed.clear(slot);
        self.len -= 1;
        if slot == self.head {
            self.trim_head();
        } else if self.after(slot) == self.tail {
            self.trim_tail();
        }
    }

    /// Moves the oldest end to the oldest block.
    #[inline(always)]
    fn trim_head(&mut self) {
        while self.head != self.tail && self.ring[self.head] == NONE {
            self.head = self.after(self.head);
        }
    }

    /// Moves the newest end to the newest block.
    #[inline(always)]
    fn trim_tail(&mut self) {
        while self.head != self.tail && self.ring[self.before(self.tail)] == NONE {
            self.tail = self.before(self.tail);
        }
    }

    /// Moves a block of this queue to the newest end.
    #[inline(always)]
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

    /// The oldest block, whether it may leave or not.
    #[inline]
    #[must_use]
    pub fn oldest_any(&self) -> Option<u32> {
        (self.len > 0).then(|| self.ring[self.head])
    }

    /// The oldest block that may leave.
    #[inline(always)]
    pub fn oldest(&mut self, slots: &[u32], room: &Room<'_>) -> Option<u32> {
        self.oldest_slot(slots, room).map(|slot| self.ring[slot])
    }

    /// The slot of [`Queue::oldest`], good until the queue changes.
    #[inline(always)]
    pub fn oldest_slot(&mut self, slots: &[u32], room: &Room<'_>) -> Option<usize> {
        if self.len > 0 && self.exposed.get(self.head) && !room.guards(self.ring[self.head]) {
            return Some(self.head);
        }
        self.search(slots, room, self.head)
    }

    /// The block in a slot of [`Queue::oldest_slot`].
    #[inline(always)]
    #[must_use]
    pub fn at(&self, slot: usize) -> u32 {
        self.ring[slot]
    }

    /// Takes out the oldest block that may leave.
    #[inline(always)]
    pub fn evict(&mut self, slots: &[u32], room: &Room<'_>) -> Option<u32> {
        let slot = self.oldest_slot(slots, room)?;
        let block = self.ring[slot];
        self.take_out(slot);
        Some(block)
    }

    /// The first block that may leave from the mark on, round and round, that `passes` does not want to pass.
    /// It is asked about each block once per round, and must not pass one for ever.
    pub fn sweep(&mut self, slots: &[u32], room: &Room<'_>, passes: impl FnMut(u32) -> bool) -> Option<u32> {
        self.swept(slots, room, passes).map(|slot| self.ring[slot])
    }

    /// Takes the block of [`Queue::sweep`] out and marks its place.
    #[inline]
    pub fn evict_swept(
        &mut self,
        slots: &[u32],
        room: &Room<'_>,
        passes: impl FnMut(u32) -> bool,
    ) -> Option<u32> {
        let slot = self.swept(slots, room, passes)?;
        let block = self.ring[slot];
        self.mark = slot;
        self.take_out(slot);
        // Behind the newest block, or before the oldest one: the oldest end.
        if !self.spans(slot) {
            self.mark = OLDEST;
        }
        Some(block)
    }

    #[inline]
    fn swept(
        &mut self,
        slots: &[u32],
        room: &Room<'_>,
        mut passes: impl FnMut(u32) -> bool,
    ) -> Option<usize> {
        let mut at = if self.mark == OLDEST { self.head } else { self.mark };
        // The rest of the round, a whole round in which every block is passed, and one that finds.
        for _ in 0..3 {
            loop {
                // Most often the next slot will do, and no search is needed.
                let here = at != self.tail && self.exposed.get(at) && self.epoch == room.epoch();
                let slot = if here && !room.guards(self.ring[at]) {
                    at
                } else {
                    match self.search(slots, room, at) {
                        Some(slot) => slot,
                        None => break,
                    }
                };
                if !passes(self.ring[slot]) {
                    return Some(slot);
                }
                at = self.after(slot);
            }
            at = self.head;
        }
        None
    }

    /// Takes the marked block or another one out; the mark moves to the newer neighbour, or to the oldest
    /// end where there is none.
    pub fn remove_keeping_mark(&mut self, slots: &[u32], block: u32) {
        self.remove(slots, block);
        if self.mark != OLDEST && !self.spans(self.mark) {
            self.mark = OLDEST;
        }
    }

    /// Puts the mark on a block.
    pub fn set_mark(&mut self, slots: &[u32], block: u32) {
        self.mark = slots[block as usize] as usize;
    }

    /// Whether a slot lies between the ends.
    fn spans(&self, slot: usize) -> bool {
        if self.head <= self.tail {
            self.head <= slot && slot < self.tail
        } else {
            slot >= self.head || slot < self.tail
        }
    }

    /// The first slot from `from` to the newest end whose block may leave.
    fn search(&mut self, slots: &[u32], room: &Room<'_>, from: usize) -> Option<usize> {
        self.restore(slots, room);
        let mut at = from;
        while at != self.tail && !self.is_empty() {
            let slot = self.next_exposed(at)?;
            if !room.guards(self.ring[slot]) {
                return Some(slot);
            }
            self.exposed.clear(slot);
            self.aside.push(self.ring[slot]);
            at = self.after(slot);
        }
        None
    }

    /// The first exposed slot from `at` to the newest end.
    fn next_exposed(&self, at: usize) -> Option<usize> {
        let found = self.exposed.next(at);
        if self.head < self.tail || at < self.tail {
            return found.filter(|&slot| slot < self.tail);
        }
        found.or_else(|| self.exposed.next(0).filter(|&slot| slot < self.tail))
    }

    /// Blocks set aside under an earlier guard take part again.
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

    /// Blocks from the newest to the oldest.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        let (newer, older) = if self.head <= self.tail {
            (&self.ring[self.head..self.tail], &self.ring[..0])
        } else {
            (&self.ring[..self.tail], &self.ring[self.head..])
        };
        newer.iter().rev().chain(older.iter().rev()).copied().filter(|&block| block != NONE)
    }

    /// Closes the gaps; a ring too small for `more` blocks and some air grows first.
    #[cold]
    #[inline(never)]
    fn pack(&mut self, slots: &mut [u32], more: usize) {
        let mut size = self.ring.len();
        let need = self.len as usize + more;
        if need * 3 > size * 2 {
            size = SMALLEST + need * 2;
        }
        let mut ring = Vec::with_capacity(size);
        let mut exposed = BitTree::new(size);
        let (mut from, mut mark) = (self.head, None);
        while from != self.tail {
            if from == self.mark {
                mark = Some(ring.len());
            }
            let block = self.ring[from];
            if block != NONE {
                if self.exposed.get(from) {
                    exposed.set(ring.len());
                }
                slots[block as usize] = ring.len() as u32;
                ring.push(block);
            }
            from = self.after(from);
        }
        self.head = 0;
        self.tail = ring.len();
        self.mark = mark.unwrap_or(OLDEST);
        ring.resize(size, NONE);
        self.ring = ring;
        self.exposed = exposed;
    }
}
