//! Building blocks shared by the policies: bit sets, ordered queues, heaps, sketches and the room of a tier.

mod arrivals;
mod bit_set;
mod bit_tree;
mod ghost;
mod greedy_dual;
mod heap;
mod queue;
mod room;
mod run_queue;
mod sketch;
mod topology;

pub use arrivals::Arrivals;
pub use bit_set::BitSet;
pub use bit_tree::BitTree;
pub use ghost::Ghost;
pub use greedy_dual::GreedyDual;
pub use heap::Heap;
pub use queue::Queue;
pub use room::{Closure, Room};
pub use run_queue::RunQueue;
pub use sketch::Sketch;
pub use topology::Topology;

/// No block: the mark of an empty slot.
pub(crate) const NONE: u32 = u32::MAX;
