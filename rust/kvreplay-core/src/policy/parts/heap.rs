//! A heap of blocks by key that finds the block with the smallest key among those allowed to leave.
//!
//! Blocks protected by children are kept out of the heap; guarded ones are set aside when a search meets
//! them and return when the guard changes. Keys of all residents stay in a table by slot.

use super::{NONE, Room};

/// A heap keyed by `K`; keys must be different for different blocks.
#[derive(Debug, Clone)]
pub struct Heap<K> {
    /// Slot in `entries` per block, [`NONE`] when absent.
    slot: Vec<u32>,
    entries: Vec<Entry<K>>,
    free: Vec<u32>,
    /// Slots as a binary heap.
    order: Vec<u32>,
    aside: Vec<u32>,
    epoch: u64,
}

#[derive(Debug, Clone, Copy)]
struct Entry<K> {
    key: K,
    block: u32,
    /// Place in `order`, [`NONE`] when protected or set aside.
    place: u32,
}

impl<K: Copy + PartialOrd> Heap<K> {
    /// An empty heap for blocks below `blocks`.
    #[must_use]
    pub fn new(blocks: usize) -> Self {
        Self {
            slot: vec![NONE; blocks],
            entries: Vec::new(),
            free: Vec::new(),
            order: Vec::new(),
            aside: Vec::new(),
            epoch: 0,
        }
    }

    /// The key of a resident block.
    #[must_use]
    pub fn key(&self, block: u32) -> K {
        self.entries[self.slot[block as usize] as usize].key
    }

    /// Adds a block.
    pub fn push(&mut self, block: u32, key: K, exposed: bool) {
        let entry = Entry { key, block, place: NONE };
        let slot = if let Some(slot) = self.free.pop() {
            self.entries[slot as usize] = entry;
            slot
        } else {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        };
        self.slot[block as usize] = slot;
        if exposed {
            self.enter(slot);
        }
    }

    /// Takes a block out and returns its key.
    pub fn remove(&mut self, block: u32) -> K {
        let slot = std::mem::replace(&mut self.slot[block as usize], NONE);
        self.withdraw(slot);
        self.free.push(slot);
        self.entries[slot as usize].block = NONE;
        self.entries[slot as usize].key
    }

    /// Changes the key of a resident block.
    pub fn update(&mut self, block: u32, key: K) {
        let slot = self.slot[block as usize];
        let entry = &mut self.entries[slot as usize];
        entry.key = key;
        if entry.place != NONE {
            let place = entry.place as usize;
            self.sift_down(place);
            self.sift_up(self.entries[slot as usize].place as usize);
        }
    }

    /// Notes that a child came (`false`) or the last one left (`true`).
    pub fn expose(&mut self, block: u32, exposed: bool) {
        let slot = self.slot[block as usize];
        match (exposed, self.entries[slot as usize].place == NONE) {
            (true, true) => self.enter(slot),
            (false, false) => self.withdraw(slot),
            _ => {}
        }
    }

    /// The block with the smallest key among those that may leave.
    pub fn smallest(&mut self, room: &Room<'_>) -> Option<u32> {
        self.restore(room);
        loop {
            let slot = *self.order.first()?;
            let block = self.entries[slot as usize].block;
            if !room.guards(block) {
                return Some(block);
            }
            self.withdraw(slot);
            self.aside.push(block);
        }
    }

    /// The resident blocks, the largest key first.
    #[must_use]
    pub fn content(&self) -> Vec<u32> {
        let mut entries: Vec<&Entry<K>> = self.entries.iter().filter(|e| e.block != NONE).collect();
        entries.sort_by(|a, b| b.key.partial_cmp(&a.key).unwrap_or(std::cmp::Ordering::Equal));
        entries.into_iter().map(|entry| entry.block).collect()
    }

    fn restore(&mut self, room: &Room<'_>) {
        if self.epoch == room.epoch() {
            return;
        }
        self.epoch = room.epoch();
        while let Some(block) = self.aside.pop() {
            let slot = self.slot[block as usize];
            if slot != NONE && self.entries[slot as usize].place == NONE && room.exposed(block) {
                self.enter(slot);
            }
        }
    }

    fn enter(&mut self, slot: u32) {
        self.entries[slot as usize].place = self.order.len() as u32;
        self.order.push(slot);
        self.sift_up(self.order.len() - 1);
    }

    fn withdraw(&mut self, slot: u32) {
        let place = std::mem::replace(&mut self.entries[slot as usize].place, NONE) as usize;
        if place == NONE as usize {
            return;
        }
        self.order.swap_remove(place);
        if let Some(&moved) = self.order.get(place) {
            self.entries[moved as usize].place = place as u32;
            self.sift_down(place);
            self.sift_up(self.entries[moved as usize].place as usize);
        }
    }

    fn key_at(&self, place: usize) -> K {
        self.entries[self.order[place] as usize].key
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.order.swap(a, b);
        self.entries[self.order[a] as usize].place = a as u32;
        self.entries[self.order[b] as usize].place = b as u32;
    }

    fn sift_up(&mut self, mut place: usize) {
        while place > 0 {
            let above = (place - 1) / 2;
            if self.key_at(place) >= self.key_at(above) {
                return;
            }
            self.swap(place, above);
            place = above;
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let mut least = place;
            for child in [2 * place + 1, 2 * place + 2] {
                if child < self.order.len() && self.key_at(child) < self.key_at(least) {
                    least = child;
                }
            }
            if least == place {
                return;
            }
            self.swap(place, least);
            place = least;
        }
    }
}
