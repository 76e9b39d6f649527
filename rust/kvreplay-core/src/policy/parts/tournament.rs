//! Resident blocks by key, and which of those allowed to leave has the smallest.
//!
//! A key lies at the number of its block, so nothing points from one to the other. Groups of consecutive blocks
//! have a winner, the block of the smallest key among those that may leave, and a binary tree over the groups
//! holds winners of winners: numbers only, a quarter of a byte per block. Keys mostly rise, run after run. A
//! change that a winner loses by only marks its group, and the next search looks at each marked group once.
//! Guarded blocks are set aside when a search meets them and return when the guard changes.

use super::{BitSet, NONE, Room};

/// What is kept of a resident block. The default value stands for an absent one.
pub trait Ranked: Copy + Default + PartialEq {
    /// What is compared.
    type Key: Copy + PartialOrd;

    /// The key: different for different blocks.
    fn key(&self) -> Self::Key;
}

/// Blocks per group: a word of flags.
const GROUP: u32 = u32::BITS;

/// Items by block and the order of their keys.
#[derive(Debug, Clone)]
pub struct Tournament<T> {
    items: Vec<T>,
    /// Per group the blocks that take part: resident, exposed and not set aside.
    playing: Vec<u32>,
    /// Winners, [`NONE`] where nobody takes part: the two below node `i` are `2 i` and `2 i + 1`, the groups
    /// come last.
    winners: Vec<u32>,
    /// The groups whose winner is to be found again, each once, and a flag for each.
    marked: Vec<u32>,
    is_marked: BitSet,
    aside: Vec<u32>,
    epoch: u64,
}

impl<T: Ranked> Tournament<T> {
    /// Nobody resident, for blocks below `blocks`.
    #[must_use]
    pub fn new(blocks: usize) -> Self {
        let groups = blocks.div_ceil(GROUP as usize).max(1);
        Self {
            items: vec![T::default(); blocks],
            playing: vec![0; groups],
            winners: vec![NONE; 2 * groups],
            marked: Vec::new(),
            is_marked: BitSet::new(groups as u32),
            aside: Vec::new(),
            epoch: 0,
        }
    }

    /// Bytes of the arrays that grow with the number of blocks.
    #[must_use]
    pub fn bytes(&self) -> usize {
        size_of_val(&*self.items)
            + (self.playing.capacity() + self.winners.capacity() + self.marked.capacity()) * size_of::<u32>()
            + self.playing.len().div_ceil(8)
    }

    /// What is kept of a block.
    #[inline]
    #[must_use]
    pub fn get(&self, block: u32) -> T {
        self.items[block as usize]
    }

    /// What is kept of all blocks, absent ones too. Only changes that leave the order of keys as it is are allowed.
    pub fn items_mut(&mut self) -> &mut [T] {
        &mut self.items
    }

    /// Adds a block.
    #[inline]
    pub fn push(&mut self, block: u32, item: T, exposed: bool) {
        self.items[block as usize] = item;
        if exposed {
            self.enter(block);
        }
    }

    /// Takes a block out and returns what was kept of it.
    #[inline]
    pub fn remove(&mut self, block: u32) -> T {
        self.withdraw(block);
        std::mem::take(&mut self.items[block as usize])
    }

    /// Changes what is kept of a resident block.
    #[inline]
    pub fn update(&mut self, block: u32, item: T) {
        self.items[block as usize] = item;
        let group = block / GROUP;
        if self.playing[group as usize] >> (block % GROUP) & 1 == 0 {
            return;
        }
        let winner = self.winners[self.leaf(group)];
        // The key of a winner has risen, most likely; that of another one may have fallen below it.
        if winner == block || winner == NONE || item.key() < self.items[winner as usize].key() {
            self.mark(group);
        }
    }

    /// Notes that a child came (`false`) or the last one left (`true`).
    pub fn expose(&mut self, block: u32, exposed: bool) {
        if exposed {
            self.enter(block);
        } else {
            self.withdraw(block);
        }
    }

    /// The block with the smallest key among those that may leave.
    pub fn smallest(&mut self, room: &Room<'_>) -> Option<u32> {
        self.restore(room);
        loop {
            while let Some(group) = self.marked.pop() {
                self.is_marked.clear(group);
                self.play(group);
            }
            let winner = self.winners[1];
            if winner == NONE {
                return None;
            }
            if !room.guards(winner) {
                return Some(winner);
            }
            self.withdraw(winner);
            self.aside.push(winner);
        }
    }

    /// The resident blocks, the largest key first.
    #[must_use]
    pub fn content(&self) -> Vec<u32> {
        let absent = T::default();
        let mut blocks: Vec<u32> =
            (0..self.items.len() as u32).filter(|&block| self.get(block) != absent).collect();
        let key = |block: u32| self.get(block).key();
        blocks.sort_by(|&a, &b| key(b).partial_cmp(&key(a)).unwrap_or(std::cmp::Ordering::Equal));
        blocks
    }

    fn restore(&mut self, room: &Room<'_>) {
        if self.epoch == room.epoch() {
            return;
        }
        self.epoch = room.epoch();
        while let Some(block) = self.aside.pop() {
            if room.holds(block) && room.exposed(block) {
                self.enter(block);
            }
        }
    }

    /// The node of a group.
    #[inline]
    fn leaf(&self, group: u32) -> usize {
        self.playing.len() + group as usize
    }

    #[inline]
    fn mark(&mut self, group: u32) {
        if !self.is_marked.get(group) {
            self.is_marked.set(group);
            self.marked.push(group);
        }
    }

    /// A block takes part; most often it is no winner, for it comes with a large key.
    #[inline]
    fn enter(&mut self, block: u32) {
        let group = block / GROUP;
        self.playing[group as usize] |= 1 << (block % GROUP);
        let winner = self.winners[self.leaf(group)];
        if winner == NONE || self.get(block).key() < self.get(winner).key() {
            self.mark(group);
        }
    }

    /// A block takes part no more.
    #[inline]
    fn withdraw(&mut self, block: u32) {
        let group = block / GROUP;
        self.playing[group as usize] &= !(1 << (block % GROUP));
        if self.winners[self.leaf(group)] == block {
            self.mark(group);
        }
    }

    /// Finds the winner of a group, and those of all nodes above it.
    fn play(&mut self, group: u32) {
        let mut players = self.playing[group as usize];
        let mut winner = NONE;
        if players != 0 {
            winner = group * GROUP + players.trailing_zeros();
            let mut smallest = self.get(winner).key();
            players &= players - 1;
            while players != 0 {
                let block = group * GROUP + players.trailing_zeros();
                let key = self.get(block).key();
                if key < smallest {
                    (winner, smallest) = (block, key);
                }
                players &= players - 1;
            }
        }
        let mut node = self.leaf(group);
        self.winners[node] = winner;
        while node > 1 {
            let winner = self.better(self.winners[node], self.winners[node ^ 1]);
            node /= 2;
            self.winners[node] = winner;
        }
    }

    /// The block of the smaller key, which another marked group may still have to correct.
    #[inline]
    fn better(&self, a: u32, b: u32) -> u32 {
        if a == NONE || (b != NONE && self.get(b).key() < self.get(a).key()) { b } else { a }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::parts::{Closure, Topology};
    use crate::replay::testing::full_blocks;
    use crate::trace::Run;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    #[derive(Debug, Clone, Copy, Default, PartialEq)]
    struct Item(u64);

    impl Ranked for Item {
        type Key = u64;

        fn key(&self) -> u64 {
            self.0
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        /// Keys rise and fall, blocks come and go, some are guarded: a map and a walk over it agree.
        #[test]
        fn finds_the_smallest_that_may_leave(
            ops in prop::collection::vec((0u8..6, 0u32..100, 1u64..1000), 1..300),
        ) {
            let trace = full_blocks(&(0..100).map(|id| vec![id]).collect::<Vec<_>>());
            let topology = Topology::new(&trace.forest);
            let mut room = Room::new(&topology, 100, Closure::None);
            let (mut fast, mut slow) = (Tournament::new(100), BTreeMap::new());
            let mut guard = Run { start: 0, len: 0 };
            for (i, (op, block, key)) in ops.into_iter().enumerate() {
                // Different keys.
                let item = Item(key * 1000 + i as u64);
                match (op, slow.contains_key(&block)) {
                    (0 | 1, true) => {
                        fast.update(block, item);
                        slow.insert(block, item.0);
                    }
                    (2, true) => {
                        prop_assert_eq!(fast.remove(block).0, slow.remove(&block).unwrap());
                        room.leave(block);
                    }
                    (3, _) => {
                        room.unguard(&[guard]);
                        guard = Run { start: block, len: 10.min(100 - block) };
                        room.guard(&[guard]);
                    }
                    (4, _) => {
                        let free = |block: &u32| !room.guards(*block);
                        let smallest = slow.iter().map(|(&b, &key)| (key, b)).filter(|(_, b)| free(b)).min();
                        prop_assert_eq!(fast.smallest(&room), smallest.map(|(_, b)| b));
                    }
                    (_, false) => {
                        fast.push(block, item, true);
                        slow.insert(block, item.0);
                        room.enter(block);
                    }
                    _ => {}
                }
            }
            let mut content: Vec<(u64, u32)> = slow.iter().map(|(&block, &key)| (key, block)).collect();
            content.sort_unstable_by(|a, b| b.cmp(a));
            prop_assert_eq!(fast.content(), content.iter().map(|&(_, block)| block).collect::<Vec<_>>());
        }
    }
}
