//! A heap of blocks by key that finds the block with the smallest key among those allowed to leave.
//!
//! Keys mostly rise. A hit then changes a key in the table and leaves the heap alone: what the heap holds
//! is a lower bound, corrected when it comes to the top. A key that falls is sifted at once. Blocks protected by children are kept out
//! of the heap; guarded ones are set aside when a search meets them and return when the guard changes.

use super::{NONE, Room};

/// A heap keyed by `K`; keys must be different for different blocks.
#[derive(Debug, Clone)]
pub struct Heap<K> {
    /// Slot in `entries` per block, [`NONE`] when absent.
    slot: Vec<u32>,
    entries: Vec<Entry<K>>,
    free: Vec<u32>,
    /// A binary heap of slots, each with a key it had.
    order: Vec<(K, u32)>,
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
    #[inline]
    pub fn update(&mut self, block: u32, key: K) {
        let entry = &mut self.entries[self.slot[block as usize] as usize];
        let fell = key < entry.key;
        entry.key = key;
        let place = entry.place as usize;
        if fell && place != NONE as usize && key < self.order[place].0 {
            self.order[place].0 = key;
            self.sift_up(place);
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
            let &(key, slot) = self.order.first()?;
            let entry = self.entries[slot as usize];
            if room.guards(entry.block) {
                self.withdraw(slot);
                self.aside.push(entry.block);
            } else if entry.key > key {
                self.order[0].0 = entry.key;
                self.sift_down(0);
            } else {
                return Some(entry.block);
            }
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
        let place = self.order.len();
        self.order.push((self.entries[slot as usize].key, slot));
        self.entries[slot as usize].place = place as u32;
        self.sift_up(place);
    }

    fn withdraw(&mut self, slot: u32) {
        let place = std::mem::replace(&mut self.entries[slot as usize].place, NONE);
        if place == NONE {
            return;
        }
        let place = place as usize;
        self.order.swap_remove(place);
        if let Some(&(_, moved)) = self.order.get(place) {
            self.entries[moved as usize].place = place as u32;
            self.sift_down(place);
            self.sift_up(self.entries[moved as usize].place as usize);
        }
    }

    fn put(&mut self, place: usize, item: (K, u32)) {
        self.order[place] = item;
        self.entries[item.1 as usize].place = place as u32;
    }

    fn sift_up(&mut self, mut place: usize) {
        let item = self.order[place];
        while place > 0 {
            let above = (place - 1) / 2;
            if item.0 >= self.order[above].0 {
                break;
            }
            self.put(place, self.order[above]);
            place = above;
        }
        self.put(place, item);
    }

    fn sift_down(&mut self, mut place: usize) {
        let item = self.order[place];
        loop {
            let mut child = 2 * place + 1;
            if child >= self.order.len() {
                break;
            }
            if child + 1 < self.order.len() && self.order[child + 1].0 < self.order[child].0 {
                child += 1;
            }
            if item.0 <= self.order[child].0 {
                break;
            }
            self.put(place, self.order[child]);
            place = child;
        }
        self.put(place, item);
    }
}
