//! The pass: owner runs of every request, root first.
//!
//! Each path of [`Paths`] holds a list of intervals, shallowest first, each with the request that owns its
//! blocks. A request takes the first `n` blocks of a few paths: it pops the intervals it covers, shortens
//! the one it cuts and pushes its own. An interval starts where the one above it ends. Most paths have one
//! interval, which lies in the path's own entry; longer lists lie in a pool with a free list.

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

/// Marks a path with several intervals; depths stay below it.
const LIST: u32 = 1 << 31;

/// Blocks with one owner, up to depth `end` of the path.
#[derive(Debug, Clone, Copy)]
struct Interval {
    owner: u32,
    end: u32,
    next: u32,
}

/// The intervals of a path: most have one, kept here; else `owner` is the place of the first in the pool.
#[derive(Debug, Clone, Copy)]
struct Top {
    owner: u32,
    end: u32,
}

/// The owners of all blocks.
#[derive(Debug)]
struct Owners {
    /// Per path; owner [`NONE`] if no block of it was seen.
    top: Vec<Top>,
    pool: Vec<Interval>,
    free: u32,
}

impl Owners {
    fn new(paths: usize) -> Self {
        Self { top: vec![Top { owner: NONE, end: 0 }; paths], pool: Vec::new(), free: NONE }
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
        let Top { owner, end: last } = self.top[path as usize];
        let mut interval = match last & LIST {
            0 => Interval { owner, end: last, next: NONE },
            _ => self.release(owner),
        };
        let (mut at, mut rest) = (from, NONE);
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
        self.top[path as usize] = match rest {
            NONE => Top { owner: request, end },
            next => Top { owner: self.store(Interval { owner: request, end, next }), end: LIST },
        };
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
/// Time O(runs + requests) times a logarithm, whatever the number of blocks; memory about 20 bytes per
/// request beside the trace and the recorder.
///
/// # Errors
/// [`Error::Cancelled`]; `too_many_requests` for a trace of 2^32 - 1 requests or more, `too_many_blocks` for a
/// path of 2^31 blocks or more.
pub fn pass<R: Recorder + ?Sized>(trace: &Trace, recorder: &mut R, progress: &Progress) -> Result<()> {
    progress.start(trace.len() as u64);
    walk(trace, recorder, progress)
}

/// [`pass`] without announcing the amount of work.
pub(super) fn walk<R: Recorder + ?Sized>(trace: &Trace, recorder: &mut R, progress: &Progress) -> Result<()> {
    let (forest, nodes) = (&trace.forest, &trace.requests.node);
    check_size(forest, nodes.len())?;
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
        counts.push(blocks);
    }
    progress.advance_to(nodes.len() as u64)
}

/// Refuses what the 32-bit state of the pass cannot hold.
fn check_size(forest: &Forest, requests: usize) -> Result<()> {
    let deepest = (0..forest.chains() as u32)
        .map(|c| u64::from(forest.depth(c)) + u64::from(forest.chain_len(c)))
        .max();
    let deepest = deepest.unwrap_or(0);
    if requests >= NONE as usize {
        let message = format!("the trace has {requests} requests, more than {}", NONE - 1);
        return Err(Error::trace(
            "too_many_requests",
            message,
            "split the trace by time and analyse the parts",
        ));
    }
    if deepest >= u64::from(LIST) {
        let message = format!("a request lists {deepest} blocks, more than {}", LIST - 1);
        return Err(Error::trace("too_many_blocks", message, "use a larger block size"));
    }
    Ok(())
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
