//! The pass: owner runs of every request, root first.
//!
//! Each path of [`Paths`] holds a list of intervals, shallowest first, each with the request that owns its
//! blocks. A request takes the first `n` blocks of a few paths: it pops the intervals it covers, shortens
//! the one it cuts and pushes its own. The first interval of a path lies in the path's own entry, the
//! others in a pool with a free list; an interval starts where the one above it ends.

use super::counts::Counts;
use super::paths::{NO_PATH, Paths};
use super::{Recorder, ReuseRun};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::trace::{Forest, Node, Trace};

/// No request and no interval.
const NONE: u32 = u32::MAX;

/// Requests between two looks at the wish to cancel.
const STRIDE: usize = 4096;

/// Blocks with one owner, up to depth `end` of the path.
#[derive(Debug, Clone, Copy)]
struct Interval {
    owner: u32,
    end: u32,
    next: u32,
}

const EMPTY: Interval = Interval { owner: NONE, end: 0, next: NONE };

/// The owners of all blocks.
#[derive(Debug)]
struct Owners {
    /// First interval per path; owner [`NONE`] if no block of it was seen.
    top: Vec<Interval>,
    pool: Vec<Interval>,
    free: u32,
}

impl Owners {
    fn new(paths: usize) -> Self {
        Self { top: vec![EMPTY; paths], pool: Vec::new(), free: NONE }
    }

    fn store(&mut self, interval: Interval) -> u32 {
        if self.free == NONE {
            self.pool.push(interval);
            return self.pool.len() as u32 - 1;
        }
        let at = self.free;
        self.free = self.pool[at as usize].next;
        self.pool[at as usize] = interval;
        at
    }

    fn release(&mut self, at: u32) -> Interval {
        let interval = self.pool[at as usize];
        self.pool[at as usize].next = self.free;
        self.free = at;
        interval
    }

    /// Gives the blocks of a path from depth `from` (its start) to `end` to `request`, telling `taken` the
    /// owner and number of blocks of each interval. Returns the depth up to which they had owners.
    fn take(&mut self, path: u32, from: u32, end: u32, request: u32, mut taken: impl FnMut(u32, u32)) -> u32 {
        let mut interval = self.top[path as usize];
        let mut at = from;
        let mut rest = NONE;
        while interval.owner != NONE {
            if interval.end > end {
                taken(interval.owner, end - at);
                at = end;
                rest = self.store(interval);
                break;
            }
            taken(interval.owner, interval.end - at);
            at = interval.end;
            rest = interval.next;
            if at == end || rest == NONE {
                break;
            }
            interval = self.release(rest);
        }
        self.top[path as usize] = Interval { owner: request, end, next: rest };
        at
    }
}

/// Neighbouring intervals of one owner, joined before they are emitted.
struct Joiner<'a, R: ?Sized> {
    counts: &'a mut Counts,
    recorder: &'a mut R,
    run: ReuseRun,
}

impl<R: Recorder + ?Sized> Joiner<'_, R> {
    fn push(&mut self, owner: u32, blocks: u32) {
        if owner == self.run.owner {
            self.run.len += blocks;
            return;
        }
        let start = self.run.start + self.run.len;
        self.flush();
        self.run = ReuseRun { start, len: blocks, owner, ..self.run };
    }

    fn flush(&mut self) {
        if self.run.len == 0 {
            return;
        }
        // The blocks already passed were above this run and have been taken from their owners.
        self.run.above = self.counts.take(self.run.owner, self.run.len) + self.run.start;
        self.recorder.run(self.run);
    }
}

/// Replays the trace once against an endless LRU stack and tells `recorder` every owner run.
///
/// Time O(runs + requests) times a logarithm, whatever the number of blocks; memory about 30 bytes per
/// request beside the trace and the recorder.
///
/// # Errors
/// [`Error::Cancelled`]; `too_many_requests` for a trace of 2^32 - 1 requests or more.
pub fn pass<R: Recorder + ?Sized>(trace: &Trace, recorder: &mut R, progress: &Progress) -> Result<()> {
    progress.start(trace.len() as u64);
    walk(trace, recorder, progress)
}

/// [`pass`] without announcing the amount of work.
pub(super) fn walk<R: Recorder + ?Sized>(trace: &Trace, recorder: &mut R, progress: &Progress) -> Result<()> {
    if trace.len() >= NONE as usize {
        return Err(Error::trace(
            "too_many_requests",
            format!("the trace has {} requests, more than {}", trace.len(), NONE - 1),
            "split the trace by time and analyse the parts",
        ));
    }
    let (forest, nodes) = (&trace.forest, &trace.requests.node);
    let paths = Paths::new(forest, nodes);
    let mut owners = Owners::new(forest.chains());
    let mut counts = Counts::new(nodes.len());
    let mut pieces = Vec::new();
    for (request, &node) in nodes.iter().enumerate() {
        if request % STRIDE == 0 {
            progress.advance_to(request as u64)?;
        }
        pieces_of(forest, &paths, node, &mut pieces);
        let request = request as u32;
        let blocks = forest.path_len(node);
        let fresh = ReuseRun { request, start: 0, len: 0, above: 0, owner: NONE };
        let mut joiner = Joiner { counts: &mut counts, recorder, run: fresh };
        let mut known = 0;
        // A block is never seen without its ancestors, so after the first gap all lists are empty.
        for &(path, end) in pieces.iter().rev() {
            let at = owners.take(path, forest.depth(path), end, request, |owner, n| joiner.push(owner, n));
            if known == forest.depth(path) {
                known = at;
            }
        }
        joiner.flush();
        recorder.request(request, known);
        counts.add(request, blocks);
    }
    progress.advance_to(nodes.len() as u64)
}

/// The pieces `(path, depth of its end)` of a node's path, deepest first.
fn pieces_of(forest: &Forest, paths: &Paths, node: Node, out: &mut Vec<(u32, u32)>) {
    out.clear();
    if node.is_empty() {
        return;
    }
    let (mut path, mut end) = (paths.of(forest, node), forest.path_len(node));
    while path != NO_PATH {
        out.push((path, end));
        end = forest.depth(path);
        path = paths.above(path);
    }
}
