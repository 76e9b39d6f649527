//! A set of request numbers that knows its largest member: a bit per number, and above each word a bit
//! that says whether it holds any (64-ary, so four levels for sixteen million requests).

const BITS: u32 = 6;

#[derive(Debug)]
pub(super) struct MaxSet {
    /// Words per level, members first; the last level is one word.
    levels: Vec<Vec<u64>>,
}

impl MaxSet {
    /// The empty set of numbers below `size`.
    pub(super) fn new(size: usize) -> Self {
        let (mut levels, mut words) = (Vec::new(), size.max(1));
        loop {
            words = words.div_ceil(1 << BITS);
            levels.push(vec![0; words]);
            if words == 1 {
                return Self { levels };
            }
        }
    }

    pub(super) fn insert(&mut self, mut number: u32) {
        for level in &mut self.levels {
            let word = &mut level[(number >> BITS) as usize];
            let had = *word != 0;
            *word |= 1 << (number & 63);
            if had {
                return;
            }
            number >>= BITS;
        }
    }

    pub(super) fn remove(&mut self, mut number: u32) {
        for level in &mut self.levels {
            let word = &mut level[(number >> BITS) as usize];
            *word &= !(1 << (number & 63));
            if *word != 0 {
                return;
            }
            number >>= BITS;
        }
    }

    pub(super) fn max(&self) -> Option<u32> {
        let mut word = 0;
        for level in self.levels.iter().rev() {
            let bits = level[word as usize];
            if bits == 0 {
                return None;
            }
            word = word << BITS | bits.ilog2();
        }
        Some(word)
    }
}

#[cfg(test)]
mod tests {
    use super::MaxSet;
    use crate::stack::tests::forests::cases;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #![proptest_config(cases(200))]
        #[test]
        fn equals_a_tree(size in 1..9000_u32, steps in prop::collection::vec((any::<bool>(), any::<u32>()), 0..120)) {
            let (mut fast, mut slow) = (MaxSet::new(size as usize), BTreeSet::new());
            for (insert, number) in steps {
                // A third of the removals hit the largest member, so that words run empty.
                let number = if insert || number % 3 > 0 { number % size } else { slow.last().copied().unwrap_or(0) };
                if insert {
                    fast.insert(number);
                    slow.insert(number);
                } else if slow.remove(&number) {
                    fast.remove(number);
                }
                prop_assert_eq!(fast.max(), slow.last().copied());
            }
        }
    }
}
