//! Ordered lists of blocks, oldest to newest, that also hold blocks without a name.
//!
//! Named blocks are numbers below a limit, each in at most one of the lists over the same [`Members`]. A trace
//! may name less than a request has (`floor` traces, decoded blocks): such blocks fill room until they are
//! evicted, but nobody ever finds them. They always arrive together, so a run of them is one entry with a
//! count, and a request of a million unnamed blocks costs what one block costs.

/// The mark of no entry.
const NONE: u32 = u32::MAX;

/// The links of the entries of one or more lists.
#[derive(Debug, Clone, Default)]
pub(crate) struct Members {
    older: Vec<u32>,
    newer: Vec<u32>,
    /// Numbers below are named blocks, the others unnamed runs.
    named: u32,
    /// Length of each unnamed run.
    count: Vec<u64>,
    /// Numbers of runs that have left.
    free: Vec<u32>,
}

/// Which end of a list comes first in a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// From the oldest entry to the newest.
    Oldest,
    /// From the newest entry to the oldest.
    Newest,
}

/// What left a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Member {
    /// A named block.
    Named(u32),
    /// So many unnamed ones, at least one.
    Unnamed(u64),
}

impl Member {
    /// Number of blocks.
    #[must_use]
    pub(crate) fn count(self) -> u64 {
        match self {
            Self::Named(_) => 1,
            Self::Unnamed(count) => count,
        }
    }
}

impl Members {
    /// Members for named blocks below `named`, which must leave room for the runs (see [`Self::MAX_NAMED`]).
    #[must_use]
    pub(crate) fn new(named: u32) -> Self {
        let links = vec![NONE; named as usize];
        Self { older: links.clone(), newer: links, named, count: Vec::new(), free: Vec::new() }
    }

    /// Most named blocks: half of the numbers are left to unnamed runs.
    pub(crate) const MAX_NAMED: u32 = 1 << 31;

    fn new_run(&mut self, count: u64) -> u32 {
        if let Some(entry) = self.free.pop() {
            self.count[(entry - self.named) as usize] = count;
            return entry;
        }
        self.count.push(count);
        self.older.push(NONE);
        self.newer.push(NONE);
        self.older.len() as u32 - 1
    }

    fn run(&mut self, entry: u32) -> Option<&mut u64> {
        let at = entry.checked_sub(self.named)?;
        self.count.get_mut(at as usize)
    }
}

/// One list. All methods take the [`Members`] it shares with others.
#[derive(Debug, Clone, Copy)]
pub(crate) struct List {
    oldest: u32,
    newest: u32,
    len: u64,
}

impl Default for List {
    fn default() -> Self {
        Self { oldest: NONE, newest: NONE, len: 0 }
    }
}

impl List {
    /// Number of blocks, unnamed ones included.
    #[must_use]
    pub(crate) fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none.
    #[must_use]
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a named block at the newest end.
    #[inline]
    pub(crate) fn push(&mut self, members: &mut Members, block: u32) {
        debug_assert!(block < members.named);
        self.link(members, block);
        self.len += 1;
    }

    /// Adds `count` unnamed blocks at the newest end.
    pub(crate) fn push_unnamed(&mut self, members: &mut Members, count: u64) {
        if count == 0 {
            return;
        }
        self.len += count;
        if let Some(run) = members.run(self.newest) {
            *run += count;
            return;
        }
        let entry = members.new_run(count);
        self.link(members, entry);
    }

    /// Takes a named block of this list out.
    #[inline]
    pub(crate) fn remove(&mut self, members: &mut Members, block: u32) {
        self.unlink(members, block);
        self.len -= 1;
    }

    /// Moves a named block of this list to the newest end.
    #[inline]
    pub(crate) fn renew(&mut self, members: &mut Members, block: u32) {
        if self.newest != block {
            self.unlink(members, block);
            self.link(members, block);
        }
    }

    /// The first entry of a walk.
    #[must_use]
    pub(crate) fn first(&self, from: End) -> Option<u32> {
        let entry = if from == End::Oldest { self.oldest } else { self.newest };
        (entry != NONE).then_some(entry)
    }

    /// The entry after `entry` in a walk that began at end `from`.
    #[must_use]
    pub(crate) fn after(members: &Members, entry: u32, from: End) -> Option<u32> {
        let next = if from == End::Oldest { &members.newer } else { &members.older };
        Some(next[entry as usize]).filter(|&entry| entry != NONE)
    }

    /// The named block of an entry, `None` for an unnamed run.
    #[must_use]
    pub(crate) fn named(members: &Members, entry: u32) -> Option<u32> {
        (entry < members.named).then_some(entry)
    }

    /// Blocks of an entry: one, or the length of the unnamed run.
    #[must_use]
    pub(crate) fn blocks(members: &Members, entry: u32) -> u64 {
        if entry < members.named { 1 } else { members.count[(entry - members.named) as usize] }
    }

    /// Takes an entry out, of an unnamed run at most `most` blocks (`most` > 0).
    pub(crate) fn take(&mut self, members: &mut Members, entry: u32, most: u64) -> Member {
        let Some(run) = members.run(entry) else {
            self.remove(members, entry);
            return Member::Named(entry);
        };
        let taken = most.min(*run);
        *run -= taken;
        let empty = *run == 0;
        self.len -= taken;
        if empty {
            self.unlink(members, entry);
            members.free.push(entry);
        }
        Member::Unnamed(taken)
    }

    /// Takes the oldest entry out, of an unnamed run at most `most` blocks.
    pub(crate) fn pop_oldest(&mut self, members: &mut Members, most: u64) -> Option<Member> {
        self.first(End::Oldest).map(|entry| self.take(members, entry, most))
    }

    /// Takes the `count` newest unnamed blocks out.
    pub(crate) fn take_newest_unnamed(&mut self, members: &mut Members, count: u64) {
        let (mut left, mut at) = (count, self.first(End::Newest));
        while let Some(entry) = at.filter(|_| left > 0) {
            at = List::after(members, entry, End::Newest);
            if entry >= members.named {
                left -= self.take(members, entry, left).count();
            }
        }
    }

    /// Named blocks from the newest to the oldest.
    pub(crate) fn iter<'a>(&self, members: &'a Members) -> impl Iterator<Item = u32> + 'a {
        let entries =
            std::iter::successors(self.first(End::Newest), |&entry| List::after(members, entry, End::Newest));
        entries.filter(|&entry| entry < members.named)
    }

    fn link(&mut self, members: &mut Members, entry: u32) {
        members.older[entry as usize] = self.newest;
        members.newer[entry as usize] = NONE;
        match self.newest {
            NONE => self.oldest = entry,
            newest => members.newer[newest as usize] = entry,
        }
        self.newest = entry;
    }

    fn unlink(&mut self, members: &mut Members, entry: u32) {
        let (older, newer) = (members.older[entry as usize], members.newer[entry as usize]);
        match older {
            NONE => self.oldest = newer,
            older => members.newer[older as usize] = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => members.older[newer as usize] = older,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    /// The list as plain values, oldest first; unnamed blocks are `None`.
    fn flat(list: List, members: &Members) -> Vec<Option<u32>> {
        let entries =
            std::iter::successors(list.first(End::Oldest), |&entry| List::after(members, entry, End::Oldest));
        let blocks = entries.flat_map(|entry| match List::named(members, entry) {
            Some(block) => vec![Some(block)],
            None => vec![None; List::blocks(members, entry) as usize],
        });
        blocks.collect()
    }

    #[test]
    fn unnamed_blocks_keep_their_place() {
        let mut members = Members::new(4);
        let mut list = List::default();
        list.push(&mut members, 0);
        list.push_unnamed(&mut members, 2);
        list.push_unnamed(&mut members, 1);
        list.push(&mut members, 3);
        assert_eq!(flat(list, &members), [Some(0), None, None, None, Some(3)]);
        assert_eq!(list.iter(&members).collect::<Vec<_>>(), [3, 0]);
        assert_eq!(list.pop_oldest(&mut members, 2), Some(Member::Named(0)));
        assert_eq!(list.pop_oldest(&mut members, 2), Some(Member::Unnamed(2)));
        assert_eq!((list.len(), flat(list, &members)), (2, vec![None, Some(3)]));
        assert_eq!(list.pop_oldest(&mut members, 2), Some(Member::Unnamed(1)));
        list.push_unnamed(&mut members, 7);
        assert_eq!(members.count, [7], "the number of a run that left is used again");
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 200,
            rng_seed: RngSeed::Fixed(0x5EED_0006),
            failure_persistence: None,
            ..ProptestConfig::default()
        })]
        #[test]
        fn two_lists_equal_two_plain_ones(ops in prop::collection::vec((0u8..6, 0u32..12, 1u64..4), 0..80)) {
            let mut members = Members::new(12);
            let mut lists = [List::default(); 2];
            let mut plain: [Vec<Option<u32>>; 2] = [Vec::new(), Vec::new()];
            for (kind, block, count) in ops {
                let home = (0..2).find(|&k| plain[k].contains(&Some(block)));
                let k = (block % 2) as usize;
                match (kind, home) {
                    (0, None) => { lists[k].push(&mut members, block); plain[k].push(Some(block)); }
                    (1, Some(k)) => {
                        lists[k].renew(&mut members, block);
                        plain[k].retain(|&b| b != Some(block));
                        plain[k].push(Some(block));
                    }
                    (2, Some(k)) => {
                        lists[k].remove(&mut members, block);
                        plain[k].retain(|&b| b != Some(block));
                    }
                    (3, _) => {
                        lists[k].push_unnamed(&mut members, count);
                        plain[k].extend(vec![None; count as usize]);
                    }
                    (4, _) => {
                        let taken = lists[k].pop_oldest(&mut members, count);
                        prop_assert_eq!(taken.is_none(), plain[k].is_empty());
                        let gone: Vec<_> = plain[k].drain(..taken.map_or(0, |m| m.count() as usize)).collect();
                        match taken {
                            Some(Member::Named(block)) => prop_assert_eq!(gone, vec![Some(block)]),
                            Some(Member::Unnamed(n)) => prop_assert_eq!(gone, vec![None; n as usize]),
                            None => {}
                        }
                    }
                    _ => {}
                }
                for k in 0..2 {
                    prop_assert_eq!(flat(lists[k], &members), plain[k].clone());
                    prop_assert_eq!(lists[k].len() as usize, plain[k].len());
                }
            }
        }
    }
}
