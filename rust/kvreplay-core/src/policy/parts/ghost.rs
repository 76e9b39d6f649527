//! A ghost list: names of blocks that are not resident, first in, first out.

use super::Queue;
use crate::policy::Order;
use crate::trace::Run;

/// A queue of names. Like [`Queue`] it keeps its slots in the array all lists of a policy share.
#[derive(Debug, Clone, Default)]
pub struct Ghost {
    queue: Queue,
}

impl Ghost {
    /// Number of names.
    #[must_use]
    pub fn len(&self) -> u32 {
        self.queue.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Adds a name at the newest end.
    pub fn push(&mut self, slots: &mut [u32], block: u32) {
        self.queue.push(slots, block, false);
    }

    /// Takes a name out.
    pub fn remove(&mut self, slots: &[u32], block: u32) {
        self.queue.remove(slots, block);
    }

    /// Takes the oldest name out.
    pub fn pop(&mut self, slots: &[u32]) -> Option<u32> {
        let oldest = self.queue.oldest_any()?;
        self.queue.remove(slots, oldest);
        Some(oldest)
    }

    /// Adds the names of a run.
    pub fn push_run(&mut self, slots: &mut [u32], run: Run, order: Order) {
        self.queue.push_run(slots, run, order, 0);
    }

    /// Takes the names of a run out.
    pub fn remove_run(&mut self, slots: &[u32], run: Run) {
        self.queue.remove_run(slots, run);
    }

    /// Takes the oldest names out, as far as they are a run of at most `most`.
    pub fn pop_run(&mut self, most: u32, order: Order) -> Option<Run> {
        self.queue.pop_run(most, order)
    }

    /// Names from the newest to the oldest.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.queue.iter()
    }
}
