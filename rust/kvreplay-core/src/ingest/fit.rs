//! Which block sizes fit the lengths of a trace.
//!
//! A row of `n` ids and `input` tokens allows the sizes `b` with `n = ceil(input / b)` (partial tail listed)
//! or `n = floor(input / b)` (not listed): two intervals of sizes. Rows together allow their intersections.

use crate::trace::Tail;

/// Sizes looked at when no size fits every row, the commonest first.
const USUAL: [u32; 18] = [16, 512, 64, 32, 128, 256, 1024, 2048, 4096, 8192, 8, 4, 2, 1, 48, 96, 192, 384];

/// Sizes `lo..=hi`; none when `lo > hi`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) lo: u32,
    pub(crate) hi: u32,
}

impl Sizes {
    const ALL: Self = Self { lo: 1, hi: u32::MAX };

    fn is_empty(self) -> bool {
        self.lo > self.hi
    }

    pub(crate) fn contains(self, size: u32) -> bool {
        (self.lo..=self.hi).contains(&size)
    }

    fn narrow(&mut self, lo: u32, hi: u32) {
        self.lo = self.lo.max(lo);
        self.hi = self.hi.min(hi);
    }

    /// The smallest power of two, else the smallest multiple of 16.
    fn round(self) -> (Option<u32>, Option<u32>) {
        let power = self.lo.checked_next_power_of_two().filter(|&size| self.contains(size));
        let sixteen = self.lo.checked_next_multiple_of(16).filter(|&size| self.contains(size));
        (power, sixteen)
    }

    fn text(self) -> String {
        match self {
            _ if self.is_empty() => "none".to_owned(),
            Self { lo, hi } if lo == hi => lo.to_string(),
            Self { lo, hi: u32::MAX } => format!("{lo} and more"),
            Self { lo, hi } => format!("{lo} to {hi}"),
        }
    }
}

/// The sizes that fit all rows seen so far, for both conventions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fit {
    pub(crate) ceil: Sizes,
    pub(crate) floor: Sizes,
    pub(crate) rows: u64,
}

impl Default for Fit {
    fn default() -> Self {
        Self { ceil: Sizes::ALL, floor: Sizes::ALL, rows: 0 }
    }
}

/// A block size found, and what to say about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) block_tokens: u32,
    pub(crate) detail: String,
}

impl Fit {
    /// Adds a row of `ids` ids (at least 1).
    pub(crate) fn add(&mut self, input: u32, ids: u32) {
        self.rows += 1;
        // ceil: b * (n - 1) < input <= b * n. floor: b * n <= input < b * (n + 1).
        let most = if ids == 1 { u32::MAX } else { input.saturating_sub(1) / (ids - 1) };
        self.ceil.narrow(input.div_ceil(ids).max(1), if input == 0 { 0 } else { most });
        self.floor.narrow(input / ids.saturating_add(1) + 1, input / ids);
    }

    /// Whether some size fits every row.
    pub(crate) fn any(&self) -> bool {
        !self.ceil.is_empty() || !self.floor.is_empty()
    }

    pub(crate) fn text(&self) -> String {
        format!("tail=ceil: {}, tail=floor: {}", self.ceil.text(), self.floor.text())
    }

    /// The likeliest size that fits every row, for the conventions that `tail` leaves open.
    pub(crate) fn choose(&self, tail: Option<Tail>) -> Option<Found> {
        let ceil = if tail == Some(Tail::Floor) { (None, None) } else { self.ceil.round() };
        let floor = if tail == Some(Tail::Ceil) { (None, None) } else { self.floor.round() };
        let plain =
            |sizes: Sizes, unless: Tail| (!sizes.is_empty() && tail != Some(unless)).then_some(sizes.lo);
        let block_tokens = ceil
            .0
            .or(floor.0)
            .or(ceil.1)
            .or(floor.1)
            .or(plain(self.ceil, Tail::Floor))
            .or(plain(self.floor, Tail::Ceil))?;
        Some(Found {
            block_tokens,
            detail: format!("{block_tokens} tokens; sizes that fit every row: {}", self.text()),
        })
    }
}

/// The usual size that fits most rows, when it fits more than half of them.
pub(crate) fn vote(rows: &(impl Iterator<Item = (u32, u32)> + Clone), tail: Option<Tail>) -> Option<Found> {
    let total = rows.clone().count() as u64;
    let mut best = (0, 0, Tail::Ceil);
    for size in USUAL {
        for convention in [Tail::Ceil, Tail::Floor] {
            if tail.is_some_and(|tail| tail != convention) {
                continue;
            }
            let fits = |&(input, ids): &(u32, u32)| ids == listed(input, size, convention);
            let count = rows.clone().filter(fits).count() as u64;
            if count > best.0 {
                best = (count, size, convention);
            }
        }
    }
    let (count, block_tokens, convention) = best;
    (count * 2 > total).then(|| Found {
        block_tokens,
        detail: format!(
            "{block_tokens} tokens (tail={}) fits {count} of {total} rows; no size fits every row",
            convention.name()
        ),
    })
}

/// How many ids a request of `input` tokens lists.
pub(crate) fn listed(input: u32, block_tokens: u32, tail: Tail) -> u32 {
    match tail {
        Tail::Ceil => input.div_ceil(block_tokens),
        Tail::Floor => input / block_tokens,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fit(rows: &[(u32, u32)]) -> Fit {
        let mut fit = Fit::default();
        for &(input, ids) in rows {
            fit.add(input, ids);
        }
        fit
    }

    #[test]
    fn the_sizes_of_a_hand_worked_trace() {
        let fit = fit(&[(100, 2), (200, 4), (129, 3), (64, 1)]);
        assert_eq!(fit.ceil, Sizes { lo: 64, hi: 64 });
        assert_eq!(fit.floor, Sizes { lo: 41, hi: 43 });
        let found = fit.choose(None).unwrap();
        assert_eq!(found.block_tokens, 64);
        assert_eq!(found.detail, "64 tokens; sizes that fit every row: tail=ceil: 64, tail=floor: 41 to 43");
        assert_eq!(fit.choose(Some(Tail::Floor)).unwrap().block_tokens, 41);
    }

    #[test]
    fn a_vote_needs_more_than_half() {
        let rows = [(32, 2), (33, 3), (48, 3), (500, 1)];
        assert_eq!(fit(&rows).choose(None), None);
        let found = vote(&rows.iter().copied(), None).unwrap();
        assert_eq!(found.block_tokens, 16);
        assert_eq!(found.detail, "16 tokens (tail=ceil) fits 3 of 4 rows; no size fits every row");
        assert_eq!(vote(&[(16, 1), (500, 77)].iter().copied(), None), None);
    }

    #[test]
    fn extreme_rows_do_not_overflow() {
        for input in [0, 1, u32::MAX - 1] {
            for ids in [1, 2, u32::MAX] {
                let mut fit = Fit::default();
                fit.add(input, ids);
                let _ = (fit.choose(None), fit.text());
            }
        }
    }

    proptest! {
        #[test]
        fn intervals_hold_exactly_the_sizes_that_fit(
            rows in prop::collection::vec((0..200_u32, 1..20_u32), 1..6),
            size in 1..250_u32,
        ) {
            let fit = fit(&rows);
            for (tail, sizes) in [(Tail::Ceil, fit.ceil), (Tail::Floor, fit.floor)] {
                let all = rows.iter().all(|&(input, ids)| listed(input, size, tail) == ids);
                prop_assert_eq!(sizes.contains(size), all, "{:?} {:?} {}", rows, tail, size);
            }
        }
    }
}
