//! Times of use, of as few bits as order needs: a count of uses that is renumbered when it is spent.
//!
//! Policies compare times of use and never subtract them, so times may be replaced by their ranks. That needs
//! no list of all of them: it goes window by window over the time, each marking what lies in it in a bit set.

use super::BitSet;

/// Gives out stamps 1, 2, 3 and so on. 0 stands for no use.
#[derive(Debug, Clone)]
pub struct Stamps {
    last: u32,
    most: u32,
}

/// Stamps per window at least: 8 KiB of bits.
const WINDOW: usize = 1 << 16;

impl Stamps {
    /// Stamps of `bits` bits (1 to 32).
    #[must_use]
    pub fn new(bits: u32) -> Self {
        Self { last: 0, most: u32::MAX >> (32 - bits) }
    }

    /// Whether [`Stamps::renumber`] has to come before the next [`Stamps::take`].
    #[inline]
    #[must_use]
    pub fn are_spent(&self) -> bool {
        self.last == self.most
    }

    /// The next stamp, larger than all before.
    #[inline]
    pub fn take(&mut self) -> u32 {
        debug_assert!(!self.are_spent());
        self.last += 1;
        self.last
    }

    /// Replaces each stamp by its rank among all there are; `read` and `write` reach the stamps `0 .. each` of an
    /// item. They must be different from each other and fewer than stamps can be.
    #[cold]
    pub fn renumber<T>(
        &mut self,
        items: &mut [T],
        each: usize,
        read: impl Fn(&T, usize) -> u32,
        write: impl Fn(&mut T, usize, u32),
    ) {
        let window = (2 * each * items.len()).clamp(WINDOW, 1 << 31) as u32;
        let (mut first, mut given) = (1_u64, 0);
        while first <= u64::from(self.last) {
            let place = |stamp: u32| u64::from(stamp).checked_sub(first).filter(|&at| at < u64::from(window));
            let mut seen = BitSet::new(window);
            for item in &*items {
                for i in 0..each {
                    if let Some(at) = place(read(item, i)) {
                        seen.set(at as u32);
                    }
                }
            }
            let ranks = seen.ranks();
            // A rank is no larger than its stamp, so what is written is not met again in a later window.
            for item in &mut *items {
                for i in 0..each {
                    if let Some(at) = place(read(item, i)) {
                        write(item, i, given + seen.rank(&ranks, at as u32) + 1);
                    }
                }
            }
            given += seen.count() as u32;
            first += u64::from(window);
        }
        self.last = given;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ranks by sorting, over more than one window, with items that hold fewer stamps than they could.
    #[test]
    fn stamps_become_their_ranks() {
        let mut stamps = Stamps::new(20);
        let mut items = vec![[0_u32; 2]; 500];
        for i in 0..(1 << 20) - 1 {
            assert!(!stamps.are_spent());
            let item = &mut items[(i * 7919 % 1009) % 500];
            *item = if i % 5 == 0 { [0, 0] } else { [stamps.last + 1, item[0]] };
            stamps.take();
        }
        assert!(stamps.are_spent());
        let mut all: Vec<u32> = items.iter().flatten().copied().filter(|&stamp| stamp > 0).collect();
        all.sort_unstable();
        let rank = |stamp: u32| if stamp == 0 { 0 } else { all.partition_point(|&s| s <= stamp) as u32 };
        let expected: Vec<[u32; 2]> = items.iter().map(|item| item.map(rank)).collect();
        stamps.renumber(&mut items, 2, |item, i| item[i], |item, i, stamp| item[i] = stamp);
        assert_eq!(items, expected);
        assert_eq!(stamps.take() as usize, all.len() + 1);
    }

    #[test]
    fn nothing_to_renumber() {
        let mut stamps = Stamps::new(1);
        assert_eq!(stamps.take(), 1);
        assert!(stamps.are_spent());
        stamps.renumber(&mut [0_u32; 0], 1, |&stamp, _| stamp, |item, _, stamp| *item = stamp);
        assert_eq!(stamps.take(), 1);
    }
}
