//! How far a long call is, and the wish to stop it: shared between the worker and whoever waits for it.

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Progress and cancellation of one long call.
#[derive(Debug, Default)]
pub struct Progress {
    done: AtomicU64,
    total: AtomicU64,
    cancelled: AtomicBool,
}

impl Progress {
    /// Sets how much there is to do (bytes while reading, requests while replaying); 0 = unknown.
    pub fn start(&self, total: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Says how much is done. Workers call it every few thousand requests.
    ///
    /// # Errors
    /// [`Error::Cancelled`] when the caller asked to stop.
    pub fn advance_to(&self, done: u64) -> Result<()> {
        self.done.store(done, Ordering::Relaxed);
        if self.cancelled.load(Ordering::Relaxed) { Err(Error::Cancelled) } else { Ok(()) }
    }

    /// `(done, total)` for a progress bar.
    #[must_use]
    pub fn get(&self) -> (u64, u64) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Asks the worker to stop at its next step.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }
}
