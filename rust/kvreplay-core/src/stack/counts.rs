//! Blocks owned per request, with the sum over all later requests: a tree of partial sums of fan-out 16.
//!
//! A level's group of 16 counters is one cache line, so a million requests cost five lines per question,
//! where a Fenwick tree touches up to twenty. Summing half a line costs less than the lines saved;
//! `docs/ideas/stack-distance.md` has the measurement.

const BITS: u32 = 4;
const FAN: usize = 1 << BITS;

/// Counters by request. Sums fit `u32`: they never exceed the number of distinct blocks.
#[derive(Debug)]
pub(super) struct Counts {
    cells: Vec<u32>,
    /// Where each level starts in `cells`, leaves first.
    levels: Vec<usize>,
}

impl Counts {
    /// Zero for `requests` requests.
    pub(super) fn new(requests: usize) -> Self {
        let (mut levels, mut cells, mut width) = (Vec::new(), 0, requests.max(1));
        loop {
            levels.push(cells);
            cells += width.next_multiple_of(FAN);
            if width <= FAN {
                break;
            }
            width = width.div_ceil(FAN);
        }
        Self { cells: vec![0; cells], levels }
    }

    /// Adds to a request's count.
    pub(super) fn add(&mut self, request: u32, blocks: u32) {
        let mut index = request as usize;
        for &level in &self.levels {
            self.cells[level + index] += blocks;
            index >>= BITS;
        }
    }

    /// Takes `blocks` from a request's count and returns the sum over all later requests.
    pub(super) fn take(&mut self, request: u32, blocks: u32) -> u32 {
        let (mut index, mut later) = (request as usize, 0);
        for &level in &self.levels {
            let first = level + (index & !(FAN - 1));
            let group = &mut self.cells[first..first + FAN];
            let own = index & (FAN - 1);
            group[own] -= blocks;
            // Without a branch per cell, so that the compiler sums the line with vector instructions.
            later += group.iter().enumerate().map(|(i, &n)| if i > own { n } else { 0 }).sum::<u32>();
            index >>= BITS;
        }
        later
    }
}

#[cfg(test)]
mod tests {
    use super::Counts;
    use crate::stack::tests::forests::cases;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases(200))]
        #[test]
        fn later_sums_equal_a_loop(counts in prop::collection::vec(0..9_u32, 1..700), picks in prop::collection::vec(any::<prop::sample::Index>(), 1..60)) {
            let mut slow = counts.clone();
            let mut fast = Counts::new(counts.len());
            for (request, &blocks) in counts.iter().enumerate() {
                fast.add(request as u32, blocks);
            }
            for pick in picks {
                let request = pick.index(slow.len());
                let blocks = slow[request].div_ceil(2);
                slow[request] -= blocks;
                let later: u32 = slow[request + 1..].iter().sum();
                prop_assert_eq!(fast.take(request as u32, blocks), later);
            }
        }
    }
}
