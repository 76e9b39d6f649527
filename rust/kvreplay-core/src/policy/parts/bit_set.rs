//! A flat set of block numbers with operations on whole runs, a word at a time.

/// One bit per block.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BitSet {
    words: Vec<u64>,
}

/// Bits `from..to` of a word (`to` up to 64).
fn mask(from: u32, to: u32) -> u64 {
    debug_assert!(from < to && to <= 64);
    (u64::MAX >> (64 - (to - from))) << from
}

/// Splits `start .. start + len` into (word, mask) pieces.
fn pieces(start: u32, len: u32) -> impl Iterator<Item = (usize, u64)> {
    let (mut at, end) = (u64::from(start), u64::from(start) + u64::from(len));
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let stop = ((at | 63) + 1).min(end);
        let piece = ((at >> 6) as usize, mask((at & 63) as u32, (at & 63) as u32 + (stop - at) as u32));
        at = stop;
        Some(piece)
    })
}

impl BitSet {
    /// An empty set for numbers below `len`.
    #[must_use]
    pub fn new(len: u32) -> Self {
        Self { words: vec![0; (len as usize).div_ceil(64)] }
    }

    /// Whether `i` is in the set.
    #[inline]
    #[must_use]
    pub fn get(&self, i: u32) -> bool {
        self.words[i as usize >> 6] >> (i & 63) & 1 != 0
    }

    /// Puts `i` into the set.
    #[inline]
    pub fn set(&mut self, i: u32) {
        self.words[i as usize >> 6] |= 1 << (i & 63);
    }

    /// Takes `i` out of the set.
    #[inline]
    pub fn clear(&mut self, i: u32) {
        self.words[i as usize >> 6] &= !(1 << (i & 63));
    }

    /// Puts `start .. start + len` into the set.
    pub fn set_range(&mut self, start: u32, len: u32) {
        for (word, mask) in pieces(start, len) {
            self.words[word] |= mask;
        }
    }

    /// Takes `start .. start + len` out of the set.
    pub fn clear_range(&mut self, start: u32, len: u32) {
        for (word, mask) in pieces(start, len) {
            self.words[word] &= !mask;
        }
    }

    /// How many of `start .. start + len` are in the set.
    #[must_use]
    pub fn count_range(&self, start: u32, len: u32) -> u32 {
        pieces(start, len).map(|(word, mask)| (self.words[word] & mask).count_ones()).sum()
    }

    /// How many of `start .. start + len` are in the set before the first that is not.
    #[must_use]
    pub fn leading_range(&self, start: u32, len: u32) -> u32 {
        for (word, mask) in pieces(start, len) {
            let holes = !self.words[word] & mask;
            if holes != 0 {
                return (word as u64 * 64 + u64::from(holes.trailing_zeros()) - u64::from(start)) as u32;
            }
        }
        len
    }

    /// How many of `start .. start + len` are not in the set before the first that is.
    #[must_use]
    pub fn leading_absent(&self, start: u32, len: u32) -> u32 {
        for (word, mask) in pieces(start, len) {
            let members = self.words[word] & mask;
            if members != 0 {
                return (word as u64 * 64 + u64::from(members.trailing_zeros()) - u64::from(start)) as u32;
            }
        }
        len
    }

    /// How many of `start .. start + len` are in the set behind the last that is not.
    #[must_use]
    pub fn trailing_range(&self, start: u32, len: u32) -> u32 {
        self.trailing(start, len, u64::MAX)
    }

    /// How many of `start .. start + len` are not in the set behind the last that is.
    #[must_use]
    pub fn trailing_absent(&self, start: u32, len: u32) -> u32 {
        self.trailing(start, len, 0)
    }

    /// How many of the last of `start .. start + len` are like the bits of `like`.
    #[inline]
    fn trailing(&self, start: u32, len: u32, like: u64) -> u32 {
        let mut end = start + len;
        while end > start {
            let word = (end - 1) & !63;
            let from = word.max(start);
            let other = (self.words[word as usize >> 6] ^ like) & mask(from - word, end - word);
            if other != 0 {
                return start + len - (word + other.ilog2() + 1);
            }
            end = from;
        }
        len
    }

    /// Number of members.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.words.iter().map(|w| u64::from(w.count_ones())).sum()
    }

    /// The members in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.words.iter().enumerate().flat_map(|(i, &word)| {
            let mut rest = word;
            std::iter::from_fn(move || {
                (rest != 0).then(|| {
                    let bit = rest.trailing_zeros();
                    rest &= rest - 1;
                    (i as u32) << 6 | bit
                })
            })
        })
    }

    /// Members below the start of each word, for [`BitSet::rank`].
    #[must_use]
    pub fn ranks(&self) -> Vec<u32> {
        let mut below = 0;
        self.words
            .iter()
            .map(|word| {
                let here = below;
                below += word.count_ones();
                here
            })
            .collect()
    }

    /// Number of members below `i`, with the table of [`BitSet::ranks`].
    #[inline]
    #[must_use]
    pub fn rank(&self, ranks: &[u32], i: u32) -> u32 {
        let word = i as usize >> 6;
        ranks[word] + (self.words[word] & !(u64::MAX << (i & 63))).count_ones()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]
        #[test]
        fn equals_a_set_of_numbers(ops in prop::collection::vec((0u8..4, 0u32..300, 0u32..200), 0..60)) {
            let (mut bits, mut set) = (BitSet::new(500), BTreeSet::new());
            for (kind, at, len) in ops {
                match kind {
                    0 => { bits.set(at); set.insert(at); }
                    1 => { bits.clear(at); set.remove(&at); }
                    2 => { bits.set_range(at, len); set.extend(at..at + len); }
                    _ => { bits.clear_range(at, len); set.retain(|&i| i < at || i >= at + len); }
                }
                prop_assert_eq!(bits.count_range(at, len) as usize, set.range(at..at + len).count());
                let lead = (at..at + len).take_while(|i| set.contains(i)).count();
                prop_assert_eq!(bits.leading_range(at, len) as usize, lead);
                let absent = (at..at + len).take_while(|i| !set.contains(i)).count();
                prop_assert_eq!(bits.leading_absent(at, len) as usize, absent);
                let trail = (at..at + len).rev().take_while(|i| set.contains(i)).count();
                prop_assert_eq!(bits.trailing_range(at, len) as usize, trail);
                let absent = (at..at + len).rev().take_while(|i| !set.contains(i)).count();
                prop_assert_eq!(bits.trailing_absent(at, len) as usize, absent);
                prop_assert_eq!(bits.get(at), set.contains(&at));
            }
            prop_assert_eq!(bits.iter().collect::<BTreeSet<_>>(), set.clone());
            prop_assert_eq!(bits.count() as usize, set.len());
            let ranks = bits.ranks();
            for i in 0..500 {
                prop_assert_eq!(bits.rank(&ranks, i) as usize, set.range(..i).count());
            }
        }
    }
}
