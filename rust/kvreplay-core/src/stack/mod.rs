//! The stack engine: exact LRU results for every capacity in one pass over owner runs.
//!
//! A request of a prefix trace is a root path, and a request puts its whole path on top of the LRU
//! stack, root most recent. The *owner* of a block is the last request that held it. Two facts make
//! per-block work needless (proofs in the project's notes on algorithms, section 1.2):
//!
//! 1. The blocks a request still owns are a suffix of its path: a later request that holds a block holds
//!    all its ancestors, so what was taken over is closed under ancestors.
//! 2. Along a path the owners get older, never newer, for the same reason. So a path falls into *owner
//!    runs* followed by blocks never seen, and each run is the head of what its owner still owns.
//!
//! [`pass`] emits these runs, one or two per request on real traces. In a run of owner `t` that starts at
//! position `j`, the `i`-th block (`i` from 0) has stack distance `above + 1 + i`, where `above` is the
//! number of distinct blocks above the run in the stack just before the request. A block is a hit at
//! capacity `C` exactly when its distance is at most `C` (Mattson et al., IBM Systems Journal 1970).
//! Distances never fall along a path and never lie below the block's depth, so the hits of a request are
//! a prefix of its path, and a request longer than `C` needs no rule of its own.
//!
//! Everything else is a [`Recorder`] of these runs: the hit curve, reuse tables, per-request hits at
//! given capacities, Belady's bound.

mod bins;
mod ceiling;
mod counts;
mod curve;
mod exact;
mod growth;
mod max_set;
mod opt;
mod pass;
mod paths;
mod radix;
mod ramps;
mod ratios;
mod runs;
mod slices;

pub use bins::{Bin, bins_table, reuse_time};
pub use ceiling::{Seen, ceiling};
pub use curve::{Curve, Point, Steps, points_table};
pub use exact::{Fill, SliceTier, exact_slices};
pub use growth::window_growth;
pub use opt::{Opt, opt};
pub use pass::pass;
pub use ratios::{Ratio, ratios, ratios_table};
pub use runs::reuse_runs;
pub use slices::{Slices, slices};

/// Blocks of a request that were last held by one earlier request: positions
/// `start .. start + len` of the path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReuseRun {
    /// The request that holds the blocks again.
    pub request: u32,
    /// Position on the path of the first block, from 0.
    pub start: u32,
    /// Number of blocks, at least 1.
    pub len: u32,
    /// Distinct blocks above the first block in the LRU stack just before the request: block `i` of the
    /// run (from 0) has stack distance `above + 1 + i`. At least `start`.
    pub above: u32,
    /// The request that held the blocks last. On its own path they have the same positions.
    pub owner: u32,
}

/// What a pass is read for. Recorders are composed as tuples and monomorphised.
pub trait Recorder {
    /// One owner run. The runs of a request come root first; their owners get older.
    fn run(&mut self, run: ReuseRun);

    /// The end of a request, after its runs: its path starts with `known_blocks` blocks seen before.
    fn request(&mut self, request: u32, known_blocks: u32);
}

impl Recorder for () {
    fn run(&mut self, _: ReuseRun) {}
    fn request(&mut self, _: u32, _: u32) {}
}

impl<R: Recorder + ?Sized> Recorder for &mut R {
    fn run(&mut self, run: ReuseRun) {
        (**self).run(run);
    }
    fn request(&mut self, request: u32, known_blocks: u32) {
        (**self).request(request, known_blocks);
    }
}

/// Any number of recorders of one kind.
impl<R: Recorder> Recorder for [R] {
    fn run(&mut self, run: ReuseRun) {
        for recorder in self {
            recorder.run(run);
        }
    }
    fn request(&mut self, request: u32, known_blocks: u32) {
        for recorder in self {
            recorder.request(request, known_blocks);
        }
    }
}

impl<A: Recorder, B: Recorder> Recorder for (A, B) {
    fn run(&mut self, run: ReuseRun) {
        self.0.run(run);
        self.1.run(run);
    }
    fn request(&mut self, request: u32, known_blocks: u32) {
        self.0.request(request, known_blocks);
        self.1.request(request, known_blocks);
    }
}

impl<A: Recorder, B: Recorder, C: Recorder> Recorder for (A, B, C) {
    fn run(&mut self, run: ReuseRun) {
        self.0.run(run);
        self.1.run(run);
        self.2.run(run);
    }
    fn request(&mut self, request: u32, known_blocks: u32) {
        self.0.request(request, known_blocks);
        self.1.request(request, known_blocks);
        self.2.request(request, known_blocks);
    }
}

#[cfg(test)]
mod tests;
