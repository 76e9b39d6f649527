//! Admission filters: one file each behind one registry.
//!
//! A filter stands before a tier, sees every block offered to it, in offer order, and says yes or no.
//! The unit of counting is the offer. The rule that a stored block must have its parent at hand is the
//! tier's, not the filter's (`semantics.md` section 6).

mod always;
mod cost;
mod doubling;
mod min_count;
mod min_prefix_depth;
mod registry;
mod second_touch;
mod sketch;
mod tracker;

pub use registry::{BuildFn, FILTERS, FilterInfo, build};

/// A block offered to a tier.
#[derive(Debug, Clone, Copy)]
pub struct Offer {
    /// The block (chunk).
    pub block: u32,
    /// Its place on its path, from 1.
    pub depth_units: u32,
    /// Blocks (chunks) on the path it is offered with; a block handed down on eviction: its own depth.
    pub path_units: u32,
    /// The block that the tier's policy would look at first to make room, if the tier is full.
    pub rival: Option<u32>,
    /// Time of the request, in a trace with times.
    pub now_us: Option<i64>,
}

/// An admission filter of one tier.
///
/// It is asked once per offer and never told what came of it: a verdict may be overruled by the parent
/// rule or for want of room.
pub trait Filter: Send {
    /// Counts an offer and says whether the block may be stored.
    fn admits(&mut self, offer: &Offer) -> bool;

    /// Whether every offer passes: the parent rule does not apply then.
    fn is_always(&self) -> bool {
        false
    }

    /// Whether [`Offer::rival`] is looked at (finding it costs a search per pass).
    fn wants_rival(&self) -> bool {
        false
    }
}
