//! Histograms by powers of two.

use super::pass::pass;
use super::{Recorder, ReuseRun};
use crate::error::Result;
use crate::progress::Progress;
use crate::table::{Table, Values};
use crate::trace::Trace;

/// Block accesses with a value of `lower <= value < upper`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bin {
    /// Smallest value of the bin: 0 or a power of two.
    pub lower: u64,
    /// Smallest value above the bin.
    pub upper: u64,
    /// Block accesses.
    pub accesses: u64,
    /// Tokens of these blocks (a partial last block counts what it holds).
    pub tokens: u64,
}

/// Bins as columns `lower`, `upper`, `accesses`, `tokens`.
#[must_use]
pub fn bins_table(bins: &[Bin]) -> Table {
    let column = |of: fn(&Bin) -> u64| {
        Values::Int(bins.iter().map(|bin| i64::try_from(of(bin)).unwrap_or(i64::MAX)).collect())
    };
    Table::new()
        .with("lower", column(|bin| bin.lower))
        .with("upper", column(|bin| bin.upper))
        .with("accesses", column(|bin| bin.accesses))
        .with("tokens", column(|bin| bin.tokens))
}

/// Bin 0 holds 0, bin `k` the values from `2^(k-1)` below `2^k`.
struct Ages<'a> {
    trace: &'a Trace,
    arrival_us: &'a [i64],
    sums: [(u64, u64); 65],
}

impl Recorder for Ages<'_> {
    fn run(&mut self, run: ReuseRun) {
        let request = run.request as usize;
        let age = age_us(self.arrival_us, run).max(0) as u64;
        let (accesses, tokens) = &mut self.sums[(u64::BITS - age.leading_zeros()) as usize];
        *accesses += u64::from(run.len);
        *tokens += self.trace.tokens(request, run.start + run.len) - self.trace.tokens(request, run.start);
    }

    fn request(&mut self, _: u32, _: u32) {}
}

/// Time since the run was last held, in microseconds.
pub(super) fn age_us(arrival_us: &[i64], run: ReuseRun) -> i64 {
    arrival_us[run.request as usize].saturating_sub(arrival_us[run.owner as usize])
}

/// Histogram of the reuse time in microseconds (now minus the block's previous access), from the lowest to the
/// highest bin in use. First occurrences are in no bin; a trace without times has no bins.
///
/// # Errors
/// As [`pass`].
pub fn reuse_time(trace: &Trace, progress: &Progress) -> Result<Vec<Bin>> {
    let Some(arrival_us) = &trace.requests.arrival_us else {
        return Ok(Vec::new());
    };
    let mut ages = Ages { trace, arrival_us, sums: [(0, 0); 65] };
    pass(trace, &mut ages, progress)?;
    let used = |(accesses, _): &(u64, u64)| *accesses > 0;
    let Some(first) = ages.sums.iter().position(used) else {
        return Ok(Vec::new());
    };
    let last = ages.sums.iter().rposition(used).unwrap_or(first);
    let bin = |k: usize| Bin {
        lower: if k == 0 { 0 } else { 1 << (k - 1) },
        upper: if k == 64 { u64::MAX } else { 1 << k },
        accesses: ages.sums[k].0,
        tokens: ages.sums[k].1,
    };
    Ok((first..=last).map(bin).collect())
}
