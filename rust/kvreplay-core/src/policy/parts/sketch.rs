//! The frequency sketch of `TinyLFU`: a count-min sketch of 4-bit counters with halving.
//!
//! Einziger, Friedman, Manes, "`TinyLFU`: A Highly Efficient Cache Admission Policy", ACM `ToS` 2017. Rows and
//! hash are those of the project's golden values; a block is hashed by its number in order of first
//! appearance, never by its id, so that renaming ids changes nothing.

const ROWS: u64 = 4;

/// Approximate counts of uses, recent ones weighing more.
#[derive(Debug, Clone)]
pub struct Sketch {
    /// Four rows; a word holds 16 counters.
    words: Vec<u64>,
    mask: u64,
    /// Counted uses since the last halving.
    size: u64,
    /// Halve when `size` gets here.
    period: u64,
}

fn mix(mut x: u64) -> u64 {
    x ^= x >> 30;
    x = x.wrapping_mul(0xBF58_476D_1CE4_E5B9);
    x ^= x >> 27;
    x = x.wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ x >> 31
}

impl Sketch {
    /// A sketch for a cache of `capacity` blocks: rows of the next power of two, at least 8 counters,
    /// halved every `10 * capacity` counted uses. Callers bound `capacity` by the number of distinct
    /// blocks: a larger tier evicts nothing, and its sketch would only take memory.
    #[must_use]
    pub fn new(capacity: u32) -> Self {
        let width = u64::from(capacity.max(8)).next_power_of_two();
        Self {
            words: vec![0; (ROWS * width).div_ceil(16) as usize],
            mask: width - 1,
            size: 0,
            period: 10 * u64::from(capacity),
        }
    }

    #[inline]
    fn cell(&self, block: u32, row: u64) -> (usize, u32) {
        let hash = mix(u64::from(block).wrapping_add((row + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        let at = row * (self.mask + 1) + (hash & self.mask);
        ((at >> 4) as usize, (at as u32 & 15) * 4)
    }

    /// Counts a use.
    #[inline]
    pub fn record(&mut self, block: u32) {
        let mut rose = false;
        for row in 0..ROWS {
            let (word, shift) = self.cell(block, row);
            if self.words[word] >> shift & 15 < 15 {
                self.words[word] += 1 << shift;
                rose = true;
            }
        }
        if rose {
            self.size += 1;
            if self.size >= self.period {
                self.halve();
            }
        }
    }

    #[cold]
    fn halve(&mut self) {
        let mut odd = 0;
        for word in &mut self.words {
            odd += u64::from((*word & 0x1111_1111_1111_1111).count_ones());
            *word = *word >> 1 & 0x7777_7777_7777_7777;
        }
        self.size = (self.size - odd / 4) / 2;
    }

    /// The count of a block, from 0 to 15.
    #[inline]
    #[must_use]
    pub fn count(&self, block: u32) -> u32 {
        let count = |row| {
            let (word, shift) = self.cell(block, row);
            (self.words[word] >> shift & 15) as u32
        };
        (0..ROWS).map(count).min().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::Sketch;

    #[test]
    fn counts_up_to_fifteen() {
        let mut sketch = Sketch::new(1000);
        for uses in 1..=20 {
            sketch.record(7);
            assert_eq!(sketch.count(7), uses.min(15));
        }
        assert_eq!(sketch.count(8), 0);
    }

    #[test]
    fn halves_after_ten_uses_per_block() {
        let mut sketch = Sketch::new(1);
        for _ in 0..9 {
            sketch.record(3);
        }
        assert_eq!(sketch.count(3), 9);
        sketch.record(3); // the tenth: 10 is even, all counters fall to 5, the size to 5
        assert_eq!((sketch.count(3), sketch.size), (5, 5));
        for _ in 0..5 {
            sketch.record(3); // at size 10 again
        }
        assert_eq!((sketch.count(3), sketch.size), (5, 5));
    }

    #[test]
    fn odd_counters_are_taken_off_the_size() {
        let mut sketch = Sketch::new(1);
        for _ in 0..9 {
            sketch.record(3);
        }
        sketch.record(4);
        assert_eq!((sketch.count(3), sketch.count(4)), (4, 0));
        assert_eq!(sketch.size, (10 - 2) / 2); // eight odd counters
    }
}
