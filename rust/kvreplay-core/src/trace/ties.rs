//! Requests that share a time, spread out.

use super::{Requests, Trace};

impl Trace {
    /// The same trace with ties spread evenly up to the next distinct time: the i-th of `k` requests at one time
    /// arrives `i / k` of the gap later, rounded down to a microsecond. The last group is spread over the gap
    /// before it. Order and paths stay, so hits do not change; only timed results do.
    ///
    /// Public traces round arrivals (Mooncake's conversation trace has 1,180 times for 12,031 requests), and a
    /// queue then meets bursts that never happened. A trace without times, or with one time only, stays as it is.
    #[must_use]
    pub fn spread_ties(&self) -> Self {
        let mut requests: Requests = self.requests.clone();
        if let Some(times_us) = &mut requests.arrival_us {
            spread(times_us);
        }
        let (forest, ids, origin) = (self.forest.clone(), self.ids.clone(), self.origin.clone());
        let mut quality = self.quality.clone();
        quality.detail("time_ties", "spread evenly to the next distinct time (spread_ties)");
        Self::new(forest, ids, requests, self.block_tokens, self.tail, origin, quality)
    }
}

/// Spreads groups of equal times; `times_us` is sorted.
fn spread(times_us: &mut [i64]) {
    let (mut begin, mut gap_us) = (0, 0_i64);
    while begin < times_us.len() {
        let time_us = times_us[begin];
        let size = times_us[begin..].partition_point(|&other| other == time_us);
        let end = begin + size;
        if let Some(&next_us) = times_us.get(end) {
            gap_us = next_us.saturating_sub(time_us);
        }
        for (i, slot) in times_us[begin..end].iter_mut().enumerate() {
            let late_us = i128::from(gap_us) * i as i128 / size as i128;
            *slot = time_us.saturating_add(late_us as i64);
        }
        begin = end;
    }
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn ties_are_spread_to_the_next_time() {
        let cases: [(&[i64], &[i64]); 6] = [
            (&[], &[]),
            (&[5, 5, 5], &[5, 5, 5]),
            (&[0, 0, 0, 9, 20], &[0, 3, 6, 9, 20]),
            (&[0, 10, 10, 10, 10], &[0, 10, 12, 15, 17]),
            (&[-4, -4, -1, -1], &[-4, -3, -1, 0]),
            (&[i64::MIN, i64::MAX, i64::MAX], &[i64::MIN, i64::MAX, i64::MAX]),
        ];
        for (times, want) in cases {
            let mut got = times.to_vec();
            spread(&mut got);
            assert_eq!(got, want, "{times:?}");
            assert!(got.is_sorted());
        }
    }
}
