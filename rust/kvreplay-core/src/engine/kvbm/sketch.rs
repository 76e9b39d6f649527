//! The frequency sketch of `kvbm-logical` (`tinylfu.rs` @c748f40): 16 four-bit counters a word, the word and the
//! counter from the same hash, all four counters raised, all halved after ten touches per entry of capacity.
//!
//! The engine hashes 128-bit sequence hashes with four keyed xxh3 hashes, which a trace does not have: here the
//! block's number is mixed four times. Collisions differ, so single counts may.

const ROWS: u64 = 4;

/// Approximate touches per block, recent ones weighing more.
#[derive(Debug, Clone)]
pub(super) struct Sketch {
    words: Vec<u64>,
    size: u64,
    period: u64,
}

fn mix(mut x: u64) -> u64 {
    x ^= x >> 31;
    x = x.wrapping_mul(0x7FB5_D329_728E_A185);
    x ^= x >> 27;
    x = x.wrapping_mul(0x81DA_DEF4_BC2D_D44D);
    x ^ x >> 33
}

impl Sketch {
    /// A sketch for `capacity` blocks.
    pub(super) fn new(capacity: u32) -> Self {
        let words = vec![0; (capacity as usize / 4).max(1)];
        Self { words, size: 0, period: 10 * u64::from(capacity) }
    }

    fn cell(&self, key: u64, row: u64) -> (usize, u32) {
        let hash = mix(key.wrapping_add((row + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15)));
        ((hash % self.words.len() as u64) as usize, (hash as u32 & 15) * 4)
    }

    /// Counts a touch.
    pub(super) fn touch(&mut self, key: u64) {
        let mut rose = false;
        for row in 0..ROWS {
            let (word, shift) = self.cell(key, row);
            if self.words[word] >> shift & 15 < 15 {
                self.words[word] += 1 << shift;
                rose = true;
            }
        }
        self.size += u64::from(rose);
        if rose && self.size >= self.period {
            self.halve();
        }
    }

    #[cold]
    fn halve(&mut self) {
        let mut odd = 0;
        for word in &mut self.words {
            odd += u64::from((*word & 0x1111_1111_1111_1111).count_ones());
            *word = *word >> 1 & 0x7777_7777_7777_7777;
        }
        self.size = (self.size / 2).saturating_sub(odd / 4);
    }

    /// The count of a block, 0 to 15.
    pub(super) fn count(&self, key: u64) -> u32 {
        let count = |row| {
            let (word, shift) = self.cell(key, row);
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
        for touches in 1..=20 {
            sketch.touch(7);
            assert_eq!(sketch.count(7), touches.min(15));
        }
        assert_eq!(sketch.count(8), 0);
    }

    #[test]
    fn halves_after_ten_touches_per_entry() {
        // One word: rows that hit the same counter raise it more than once, as in the engine.
        let mut sketch = Sketch::new(1);
        for _ in 0..9 {
            sketch.touch(3);
        }
        assert_eq!(sketch.size, 9);
        let odd = sketch.words[0] & 0x1111_1111_1111_1111;
        let before = sketch.words[0];
        sketch.touch(3);
        assert_ne!(sketch.words[0], before);
        assert!(sketch.size <= 5 && odd.count_ones() <= 16);
        assert!(sketch.count(3) <= 7);
    }
}
