//! Sums of ramps: what owner runs become when only the totals per capacity matter.
//!
//! A run with `above` and `len` adds `min(max(C - above, 0), len)` hit blocks at capacity `C`: a ramp that
//! starts at `above` and ends at `above + len`. Summed over runs, the hits at `C` are the sum of `C - start`
//! over the starts below `C` less that of `C - end` over the ends below `C`, so two sorted lists of
//! 32-bit numbers hold the exact curve. Tokens are blocks times the block size, corrected by ramps of their
//! own where a block counts otherwise: the partial last block of a request, or requests of another block size.

use super::{ReuseRun, radix};
use crate::trace::Trace;

/// Ramps of hit blocks and corrections of tokens.
#[derive(Debug, Default)]
pub(super) struct Ramps {
    pub(super) starts: Vec<u32>,
    pub(super) ends: Vec<u32>,
    /// From capacity `.0` on every further block counts `.1` tokens more.
    pub(super) bends: Vec<(u32, i64)>,
}

impl Ramps {
    /// Adds a run of hits.
    pub(super) fn add(&mut self, trace: &Trace, run: ReuseRun) {
        let end = run.above + run.len;
        match self.ends.last_mut() {
            // Runs that touch in the stack are one ramp.
            Some(last) if *last == run.above => *last = end,
            _ => {
                push(&mut self.starts, run.above);
                push(&mut self.ends, end);
            }
        }
        let size = trace.block_tokens_of(run.request as usize);
        let input = trace.requests.input_tokens[run.request as usize];
        let covered = u64::from(run.start + run.len) * u64::from(size);
        if size != trace.block_tokens || covered > u64::from(input) {
            self.correct(trace.block_tokens, size, input, run);
        }
    }

    /// Bends for the blocks of a run that do not count `usual` tokens.
    fn correct(&mut self, usual: u32, size: u32, input: u32, run: ReuseRun) {
        let full = input / size;
        let end = run.start + run.len;
        let mut from = run.start;
        for (until, tokens) in [(full, size), (full.saturating_add(1), input - full * size), (end, 0)] {
            let until = until.min(end);
            let more = i64::from(tokens) - i64::from(usual);
            if until > from && more != 0 {
                self.bends.push((run.above + (from - run.start), more));
                self.bends.push((run.above + (until - run.start), -more));
            }
            from = from.max(until);
        }
    }

    /// Sorts the lists, joining bends at one capacity.
    pub(super) fn sort(&mut self, scratch: &mut Vec<u32>) {
        radix::sort(&mut self.starts, scratch);
        radix::sort(&mut self.ends, scratch);
        self.bends.sort_unstable();
        self.bends.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 += later.1;
            }
            same
        });
        self.bends.retain(|bend| bend.1 != 0);
    }

    /// At how many capacities the sum rises: the measure of the union of all ramps.
    pub(super) fn rising(&self) -> u64 {
        let (mut started, mut since, mut total) = (0, 0, 0);
        for (ended, &end) in self.ends.iter().enumerate() {
            while let Some(&start) = self.starts.get(started).filter(|&&start| start <= end) {
                if started == ended {
                    since = start;
                }
                started += 1;
            }
            if started == ended + 1 {
                total += u64::from(end - since);
            }
        }
        total
    }

    /// The largest capacity at which the sum still rises, 0 if it never does.
    pub(super) fn last(&self) -> u32 {
        self.ends.last().copied().unwrap_or(0)
    }
}

/// Grows by an eighth: these lists are most of the memory of a long trace, and doubling wastes half of it.
fn push(list: &mut Vec<u32>, value: u32) {
    if list.len() == list.capacity() {
        list.reserve_exact(list.len() / 8 + 1024);
    }
    list.push(value);
}

/// Evaluates ramps at capacities in ascending order.
#[derive(Debug)]
pub(super) struct Cursor<'a> {
    ramps: &'a Ramps,
    block_tokens: u32,
    starts: Sum,
    ends: Sum,
    bends: Sum,
}

/// Number (or total weight) and weighted sum of the breaks passed so far.
#[derive(Debug, Default, Clone, Copy)]
struct Sum {
    passed: usize,
    weight: i128,
    moment: i128,
}

impl Sum {
    fn add(&mut self, at: u32, weight: i64) {
        self.passed += 1;
        self.weight += i128::from(weight);
        self.moment += i128::from(weight) * i128::from(at);
    }

    /// The sum of `weight * (capacity - at)` over the breaks passed.
    fn rise(&self, capacity: u64) -> i128 {
        self.weight * i128::from(capacity) - self.moment
    }
}

impl<'a> Cursor<'a> {
    pub(super) fn new(ramps: &'a Ramps, block_tokens: u32) -> Self {
        let (starts, ends, bends) = Default::default();
        Self { ramps, block_tokens, starts, ends, bends }
    }

    /// Hit blocks and hit tokens at a capacity not below the one asked before.
    pub(super) fn at(&mut self, capacity: u64) -> (u64, u64) {
        let below = |at: u32| u64::from(at) < capacity;
        while let Some(&at) = self.ramps.starts.get(self.starts.passed).filter(|&&at| below(at)) {
            self.starts.add(at, 1);
        }
        while let Some(&at) = self.ramps.ends.get(self.ends.passed).filter(|&&at| below(at)) {
            self.ends.add(at, 1);
        }
        while let Some(&(at, more)) = self.ramps.bends.get(self.bends.passed).filter(|bend| below(bend.0)) {
            self.bends.add(at, more);
        }
        let blocks = self.starts.rise(capacity) - self.ends.rise(capacity);
        let tokens = blocks * i128::from(self.block_tokens) + self.bends.rise(capacity);
        (blocks as u64, tokens as u64)
    }

    /// The first start not passed yet.
    pub(super) fn next_start(&self) -> Option<u32> {
        self.ramps.starts.get(self.starts.passed).copied()
    }
}
