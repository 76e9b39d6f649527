//! Counts of blocks in a bounded table that forgets the block seen longest ago.

use crate::policy::parts::Queue;

/// Counts per block for at most `entries` blocks.
#[derive(Debug)]
pub(super) struct Tracker {
    counts: Vec<u32>,
    slots: Vec<u32>,
    order: Queue,
    entries: u32,
}

impl Tracker {
    pub(super) fn new(blocks: usize, entries: u32) -> Self {
        Self { counts: vec![0; blocks], slots: vec![0; blocks], order: Queue::new(), entries }
    }

    /// Counts one more of `block` and returns its count.
    pub(super) fn count(&mut self, block: u32) -> u32 {
        let count = &mut self.counts[block as usize];
        if *count > 0 {
            self.order.remove(&self.slots, block);
        }
        *count = count.saturating_add(1);
        let count = *count;
        self.order.push(&mut self.slots, block, false);
        if self.order.len() > self.entries
            && let Some(oldest) = self.order.oldest_any()
        {
            self.order.remove(&self.slots, oldest);
            self.counts[oldest as usize] = 0;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::Tracker;

    #[test]
    fn counts_and_forgets_the_oldest() {
        let mut tracker = Tracker::new(9, 2);
        let counts: Vec<u32> = [1, 2, 1, 3, 1, 2].map(|block| tracker.count(block)).to_vec();
        // Block 3 pushes out 2, the one seen longest ago.
        assert_eq!(counts, [1, 1, 2, 1, 3, 1]);
    }
}
