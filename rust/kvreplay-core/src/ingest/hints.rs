//! What a format knows about its files beyond what their rows say. Options of the caller come first.

use super::fit::{Fit, Found};
use crate::trace::Tail;

/// What a format tells the assembly of a trace.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Hints {
    /// Whether the format lists partial last blocks.
    pub(crate) tail: Option<Tail>,
    /// The block size of the format, taken when the lengths allow it, and what to say about its blocks.
    pub(crate) block_tokens: Option<(u32, &'static str)>,
    /// Times are dates of one clock: one that falls back is late, not a new start.
    pub(crate) dates: bool,
    /// A request that is listed again is the same one: only its earliest row counts.
    pub(crate) repeats: bool,
}

impl Hints {
    /// The format's block size, if the rows allow it.
    pub(crate) fn size(&self, evidence: &Fit) -> Option<Found> {
        let (block_tokens, why) = self.block_tokens?;
        let fits = evidence.rows == 0
            || evidence.ceil.contains(block_tokens)
            || evidence.floor.contains(block_tokens);
        fits.then(|| Found { block_tokens, detail: format!("{block_tokens} tokens: {why}") })
    }
}
