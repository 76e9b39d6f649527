//! Blocks owned per request, with the sum over all later requests: a Fenwick tree that grows at its end.
//!
//! Growing matters: a request enters with the sum of the few cells below it, and taking blocks from an
//! owner touches only the cells up to now, which are few for the recent owners that most runs have.
//! (A tree of fan-out 16, one cache line per level, was measured and lost; see
//! `docs/ideas/stack-distance.md`.)

/// Counters by request. Sums fit `u32`: they never exceed the number of distinct blocks.
#[derive(Debug)]
pub(super) struct Counts {
    /// Cell `i` holds the sum over the requests `i - lowest bit of i .. i`; cell 0 is not used.
    cells: Vec<u32>,
    total: u32,
}

impl Counts {
    /// No requests yet; `requests` will come.
    pub(super) fn new(requests: usize) -> Self {
        let mut cells = Vec::with_capacity(requests + 1);
        cells.push(0);
        Self { cells, total: 0 }
    }

    /// Adds the next request.
    pub(super) fn push(&mut self, blocks: u32) {
        let at = self.cells.len();
        let (mut sum, mut child) = (blocks, 1);
        while child < lowest_bit(at) {
            sum += self.cells[at - child];
            child <<= 1;
        }
        self.cells.push(sum);
        self.total += blocks;
    }

    /// Takes `blocks` from a request's count and returns the sum over all later requests.
    pub(super) fn take(&mut self, request: u32, blocks: u32) -> u32 {
        let own = request as usize + 1;
        let (mut at, mut upto) = (own, 0);
        while at > 0 {
            upto += self.cells[at];
            at &= at - 1;
        }
        let later = self.total - upto;
        at = own;
        while let Some(cell) = self.cells.get_mut(at) {
            *cell -= blocks;
            at += lowest_bit(at);
        }
        self.total -= blocks;
        later
    }
}

fn lowest_bit(n: usize) -> usize {
    n & n.wrapping_neg()
}

#[cfg(test)]
mod tests {
    use super::Counts;
    use crate::stack::tests::forests::cases;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases(200))]
        #[test]
        fn later_sums_equal_a_loop(
            steps in prop::collection::vec((0..9_u32, prop::option::of(any::<prop::sample::Index>())), 1..700),
        ) {
            let (mut slow, mut fast) = (Vec::new(), Counts::new(0));
            for (blocks, pick) in steps {
                slow.push(blocks);
                fast.push(blocks);
                if let Some(pick) = pick {
                    let request = pick.index(slow.len());
                    let taken = slow[request].div_ceil(2);
                    slow[request] -= taken;
                    let later: u32 = slow[request + 1..].iter().sum();
                    prop_assert_eq!(fast.take(request as u32, taken), later);
                }
            }
        }
    }
}
