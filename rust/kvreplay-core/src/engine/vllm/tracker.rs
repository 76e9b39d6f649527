//! The counter behind `store_threshold`: how often chunks were offered (0.29.0 and later) or looked up (before), in a
//! bounded table that forgets the least recent entry.

use crate::engine::parts::Links;

const LIST: u32 = 0;

/// Counts of chunks.
#[derive(Debug)]
pub(super) struct Tracker {
    counts: Vec<u32>,
    order: Links,
    len: u32,
    entries: u32,
}

fn node(key: u32) -> u32 {
    key + 1
}

impl Tracker {
    /// A table of at most `entries` chunks.
    pub(super) fn new(entries: u32) -> Self {
        Self { counts: Vec::new(), order: Links::new(1, 0), len: 0, entries }
    }

    /// Makes room for keys below `end`.
    pub(super) fn extend(&mut self, end: usize) {
        while self.counts.len() < end {
            self.counts.push(0);
            self.order.add();
        }
    }

    /// Chunks the table holds at most.
    pub(super) fn entries(&self) -> u32 {
        self.entries
    }

    /// How often a chunk was counted, 0 for one that is not in the table.
    pub(super) fn get(&self, key: u32) -> u32 {
        self.counts[key as usize]
    }

    /// Counts every chunk of an offer: known ones first, then the others, which never push out a chunk of the
    /// offer. Appends what is forgotten to `gone`.
    pub(super) fn count_offer(
        &mut self,
        keys: &[u32],
        is_offered: impl Fn(u32) -> bool,
        gone: &mut Vec<u32>,
    ) {
        // What is new after this pass was unknown before it.
        for &key in keys {
            if self.get(key) > 0 {
                self.renew(key);
            }
        }
        for &key in keys {
            if self.get(key) == 0 {
                self.admit(key, &is_offered, gone);
            }
        }
    }

    /// Counts one chunk.
    pub(super) fn count_one(&mut self, key: u32, gone: &mut Vec<u32>) {
        if self.get(key) > 0 {
            self.renew(key);
        } else {
            self.admit(key, &|_| false, gone);
        }
    }

    fn renew(&mut self, key: u32) {
        let count = &mut self.counts[key as usize];
        *count = count.saturating_add(1);
        self.order.renew(LIST, node(key));
    }

    fn admit(&mut self, key: u32, is_offered: &impl Fn(u32) -> bool, gone: &mut Vec<u32>) {
        if self.len == self.entries {
            // Chunks of the offer were moved to the recent end: if the oldest is one, all are.
            let Some(oldest) = self.order.oldest(LIST).filter(|&node| !is_offered(node - 1)) else { return };
            self.order.remove(oldest);
            self.counts[(oldest - 1) as usize] = 0;
            gone.push(oldest - 1);
            self.len -= 1;
        }
        self.counts[key as usize] = 1;
        self.order.push(LIST, node(key));
        self.len += 1;
    }

    /// Checks itself.
    pub(super) fn validate(&self) -> Result<(), String> {
        let listed = self.order.iter(LIST).filter(|&node| self.get(node - 1) > 0).count();
        let counted = self.counts.iter().filter(|&&count| count > 0).count();
        if listed != counted || listed as u32 != self.len || self.len > self.entries {
            return Err(format!(
                "{listed} of {counted} counted chunks are in order, {} at most",
                self.entries
            ));
        }
        Ok(())
    }
}
