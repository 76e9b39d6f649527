//! An ordered set of small numbers: bits with summaries, 64 to one, so that the next member is a few words away.

/// A set of numbers below a fixed limit with next and previous member in O(log64 limit).
#[derive(Debug, Clone, Default)]
pub struct BitTree {
    /// The members.
    bits: Vec<u64>,
    /// A bit of level k says that a word of level k - 1 is not zero, the members being below level 0.
    upper: Vec<Vec<u64>>,
}

/// Splits `from .. from + len` into (word, mask) pieces.
fn pieces(from: usize, len: usize) -> impl Iterator<Item = (usize, u64)> {
    let (mut at, end) = (from, from + len);
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let stop = ((at | 63) + 1).min(end);
        let piece = (at >> 6, (u64::MAX >> (64 - (stop - at))) << (at & 63));
        at = stop;
        Some(piece)
    })
}

impl BitTree {
    /// An empty set for numbers below `len`.
    #[must_use]
    pub fn new(len: usize) -> Self {
        let bits = vec![0; len.div_ceil(64).max(1)];
        let mut upper = Vec::new();
        let mut words = bits.len();
        while words > 1 {
            words = words.div_ceil(64);
            upper.push(vec![0; words]);
        }
        Self { bits, upper }
    }

    /// Numbers below this fit.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.bits.len() * 64
    }

    /// Whether `i` is a member.
    #[inline]
    #[must_use]
    pub fn get(&self, i: usize) -> bool {
        self.bits[i >> 6] >> (i & 63) & 1 != 0
    }

    /// Adds `i`.
    #[inline]
    pub fn set(&mut self, i: usize) {
        let word = &mut self.bits[i >> 6];
        let before = *word;
        *word = before | 1 << (i & 63);
        if before == 0 {
            self.raise(i >> 6);
        }
    }

    /// Removes `i`.
    #[inline]
    pub fn clear(&mut self, i: usize) {
        let word = &mut self.bits[i >> 6];
        let before = *word;
        *word = before & !(1 << (i & 63));
        if before != 0 && *word == 0 {
            self.lower(i >> 6);
        }
    }

    /// Adds `from .. from + len`.
    pub fn set_range(&mut self, from: usize, len: usize) {
        for (word, mask) in pieces(from, len) {
            let before = self.bits[word];
            self.bits[word] |= mask;
            if before == 0 {
                self.raise(word);
            }
        }
    }

    /// Removes `from .. from + len` and returns how many members that were.
    pub fn clear_range(&mut self, from: usize, len: usize) -> usize {
        let mut gone = 0;
        for (word, mask) in pieces(from, len) {
            let before = self.bits[word];
            gone += (before & mask).count_ones() as usize;
            self.bits[word] &= !mask;
            if before != 0 && before & !mask == 0 {
                self.lower(word);
            }
        }
        gone
    }

    /// Members among `from .. from + len`.
    #[must_use]
    pub fn count_range(&self, from: usize, len: usize) -> usize {
        pieces(from, len).map(|(word, mask)| (self.bits[word] & mask).count_ones() as usize).sum()
    }

    /// Members from `from` on before the first number that is none, at most `len`.
    #[must_use]
    pub fn leading_range(&self, from: usize, len: usize) -> usize {
        for (word, mask) in pieces(from, len) {
            let holes = !self.bits[word] & mask;
            if holes != 0 {
                return word * 64 + holes.trailing_zeros() as usize - from;
            }
        }
        len
    }

    /// A word of level 0 is not zero any more.
    fn raise(&mut self, mut at: usize) {
        for words in &mut self.upper {
            let before = words[at >> 6];
            words[at >> 6] |= 1 << (at & 63);
            if before != 0 {
                return;
            }
            at >>= 6;
        }
    }

    /// A word of level 0 is zero now.
    fn lower(&mut self, mut at: usize) {
        for words in &mut self.upper {
            words[at >> 6] &= !(1 << (at & 63));
            if words[at >> 6] != 0 {
                return;
            }
            at >>= 6;
        }
    }

    /// The smallest member that is at least `i`.
    #[inline]
    #[must_use]
    pub fn next(&self, i: usize) -> Option<usize> {
        let word = self.bits.get(i >> 6)? & (u64::MAX << (i & 63));
        if word != 0 {
            return Some(i & !63 | word.trailing_zeros() as usize);
        }
        self.next_word((i >> 6) + 1)
    }

    /// The smallest member in word `at` or later.
    fn next_word(&self, mut at: usize) -> Option<usize> {
        for (level, words) in self.upper.iter().enumerate() {
            let word = words.get(at >> 6)? & (u64::MAX << (at & 63));
            if word != 0 {
                return Some(self.descend(
                    level,
                    at & !63 | word.trailing_zeros() as usize,
                    u64::trailing_zeros,
                ));
            }
            at = (at >> 6) + 1;
        }
        None
    }

    /// The largest member that is at most `i`.
    #[must_use]
    pub fn previous(&self, i: usize) -> Option<usize> {
        let i = i.min(self.limit().checked_sub(1)?);
        let last = |word: u64| word.ilog2();
        let word = self.bits[i >> 6] & (u64::MAX >> (63 - (i & 63)));
        if word != 0 {
            return Some(i & !63 | last(word) as usize);
        }
        let mut at = (i >> 6).checked_sub(1)?;
        for (level, words) in self.upper.iter().enumerate() {
            let word = words[at >> 6] & (u64::MAX >> (63 - (at & 63)));
            if word != 0 {
                return Some(self.descend(level, at & !63 | last(word) as usize, last));
            }
            at = (at >> 6).checked_sub(1)?;
        }
        None
    }

    /// From a set bit of an upper level down to a member, `pick` choosing within a word.
    fn descend(&self, level: usize, mut at: usize, pick: impl Fn(u64) -> u32) -> usize {
        for words in self.upper[..level].iter().rev() {
            at = at << 6 | pick(words[at]) as usize;
        }
        at << 6 | pick(self.bits[at]) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn equals_an_ordered_set(
            limit in 1usize..300_000,
            ops in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), 0usize..200), 0..80),
        ) {
            let (mut tree, mut set) = (BitTree::new(limit), BTreeSet::new());
            for (add, at, len) in ops {
                let i = at.index(limit);
                let len = len.min(limit - i);
                let count = set.range(i..i + len).count();
                prop_assert_eq!(tree.count_range(i, len), count);
                prop_assert_eq!(tree.leading_range(i, len), (i..i + len).take_while(|j| set.contains(j)).count());
                if len > 100 {
                    if add {
                        tree.set_range(i, len);
                        set.extend(i..i + len);
                    } else {
                        prop_assert_eq!(tree.clear_range(i, len), count);
                        set.retain(|&j| j < i || j >= i + len);
                    }
                    continue;
                }
                if add { tree.set(i); set.insert(i); } else { tree.clear(i); set.remove(&i); }
                for probe in [0, i / 2, i, i + 1, limit - 1, limit + 70] {
                    prop_assert_eq!(tree.next(probe), set.range(probe..).next().copied());
                    prop_assert_eq!(tree.previous(probe), set.range(..=probe).next_back().copied());
                }
                prop_assert_eq!(tree.get(i), add);
            }
        }
    }
}
