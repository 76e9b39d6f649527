//! Building blocks shared by the policies: bit sets, ordered queues, tournaments, sketches and the room of a tier.

mod arrivals;
mod bit_set;
mod bit_tree;
mod ghost;
mod greedy_dual;
mod queue;
mod room;
mod run_queue;
mod sketch;
mod stamps;
mod topology;
mod tournament;

pub use arrivals::Arrivals;
pub use bit_set::BitSet;
pub use bit_tree::BitTree;
pub use ghost::Ghost;
pub use greedy_dual::{GreedyDual, Large, Slot, Small, Whole};
pub use queue::Queue;
pub use room::{Closure, Room};
pub use run_queue::RunQueue;
pub use sketch::Sketch;
pub use stamps::Stamps;
pub use topology::Topology;
pub use tournament::{Ranked, Tournament};

/// No block: the mark of an empty slot.
pub(crate) const NONE: u32 = u32::MAX;
