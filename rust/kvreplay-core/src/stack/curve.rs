//! The hit curve of LRU: exact hits at every capacity, from one pass.

use super::bins::Bin;
use super::pass::pass;
use super::ramps::{Cursor, Ramps};
use super::{Recorder, ReuseRun};
use crate::error::Result;
use crate::progress::Progress;
use crate::table::{Table, Values};
use crate::trace::Trace;

/// Hits of a whole trace at one capacity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Capacity of the cache in blocks.
    pub capacity_blocks: u64,
    /// Hit blocks of all requests.
    pub hit_blocks: u64,
    /// Hit tokens of all requests: `min(hit blocks * block tokens, input tokens)` summed over requests.
    pub hit_tokens: u64,
    /// Hit tokens of the requests after the warm-up, if there is one.
    pub warm_hit_tokens: Option<u64>,
}

/// Exact LRU hits at every capacity (8 bytes per owner run, twice that for warm requests).
///
/// ```
/// use kvreplay_core::Progress;
/// use kvreplay_core::stack::Curve;
/// use kvreplay_core::trace::{ForestBuilder, Kinds, Origin, Quality, Requests, Tail, Trace};
///
/// let (mut builder, mut requests) = (ForestBuilder::new(), Requests::default());
/// for path in [&[1, 2, 3][..], &[1, 2, 4], &[9, 10, 11], &[1, 2, 3]] {
///     requests.node.push(builder.push(0, path, Kinds::Numbers)?);
///     requests.input_tokens.push(48);
///     requests.output_tokens.push(1);
/// }
/// let (forest, ids) = builder.finish();
/// let trace = Trace::new(forest, ids, requests, 16, Tail::Ceil, Origin::default(), Quality::default());
///
/// let curve = Curve::of(&trace, None, &Progress::default())?;
/// let hits: Vec<u64> = curve.at(&[1, 2, 4, 5, 7]).iter().map(|point| point.hit_blocks).collect();
/// assert_eq!(hits, [1, 2, 3, 4, 5]);
/// assert_eq!((curve.breakpoints(), curve.last_capacity_blocks()), (5, 7));
/// # Ok::<(), kvreplay_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Curve {
    block_tokens: u32,
    all: Ramps,
    warm: Option<Ramps>,
}

struct Build<'a> {
    trace: &'a Trace,
    first_warm: usize,
    all: Ramps,
    warm: Option<Ramps>,
}

impl Recorder for Build<'_> {
    fn run(&mut self, run: ReuseRun) {
        self.all.add(self.trace, run);
        if let Some(warm) = &mut self.warm
            && run.request as usize >= self.first_warm
        {
            warm.add(self.trace, run);
        }
    }

    fn request(&mut self, _: u32, _: u32) {}
}

impl Curve {
    /// The curve of a trace. With `warmup_requests`, every point also counts the hit tokens of the requests
    /// from that position on (the earlier ones still fill the cache).
    ///
    /// # Errors
    /// As [`pass`].
    pub fn of(trace: &Trace, warmup_requests: Option<usize>, progress: &Progress) -> Result<Self> {
        let mut build = Build {
            trace,
            first_warm: warmup_requests.unwrap_or(0),
            all: Ramps::default(),
            warm: warmup_requests.map(|_| Ramps::default()),
        };
        pass(trace, &mut build, progress)?;
        let Build { mut all, mut warm, .. } = build;
        let mut scratch = Vec::new();
        all.sort(&mut scratch);
        if let Some(warm) = &mut warm {
            warm.sort(&mut scratch);
        }
        Ok(Self { block_tokens: trace.block_tokens, all, warm })
    }

    /// The points at the given capacities (blocks), in the order given.
    #[must_use]
    pub fn at(&self, capacities: &[u64]) -> Vec<Point> {
        let mut order: Vec<usize> = (0..capacities.len()).collect();
        order.sort_by_key(|&i| capacities[i]);
        let mut all = Cursor::new(&self.all, self.block_tokens);
        let mut warm = self.warm.as_ref().map(|warm| Cursor::new(warm, self.block_tokens));
        let blank = Point { capacity_blocks: 0, hit_blocks: 0, hit_tokens: 0, warm_hit_tokens: None };
        let mut points = vec![blank; capacities.len()];
        for i in order {
            points[i] = point(&mut all, warm.as_mut(), capacities[i]);
        }
        points
    }

    /// A point at every capacity at which hit blocks (and with them hit tokens) rise, in ascending order.
    /// Between two of them the curve is flat; below the first it is 0.
    #[must_use]
    pub fn steps(&self) -> Steps<'_> {
        Steps {
            all: Cursor::new(&self.all, self.block_tokens),
            warm: self.warm.as_ref().map(|warm| Cursor::new(warm, self.block_tokens)),
            capacity: 0,
            hit_blocks: 0,
        }
    }

    /// Number of points of [`Self::steps`], without making them.
    #[must_use]
    pub fn breakpoints(&self) -> u64 {
        self.all.rising()
    }

    /// The smallest capacity that reaches the ceiling, 0 when nothing is reused.
    #[must_use]
    pub fn last_capacity_blocks(&self) -> u64 {
        u64::from(self.all.last())
    }

    /// Histogram of the stack distances in blocks, by powers of two: the first bin is distance 1, the
    /// second 2 and 3, the last holds [`Self::last_capacity_blocks`]. First occurrences are in no bin.
    #[must_use]
    pub fn reuse_distance(&self) -> Vec<Bin> {
        let last = self.last_capacity_blocks();
        let lowers: Vec<u64> = (0..u64::BITS).map(|i| 1 << i).take_while(|&lower| lower <= last).collect();
        let below: Vec<u64> = lowers.iter().map(|lower| 2 * lower - 1).collect();
        let (mut accesses, mut tokens) = (0, 0);
        let bin = |(lower, point): (u64, Point)| {
            let bin = Bin {
                lower,
                upper: 2 * lower,
                accesses: point.hit_blocks - accesses,
                tokens: point.hit_tokens - tokens,
            };
            (accesses, tokens) = (point.hit_blocks, point.hit_tokens);
            bin
        };
        lowers.into_iter().zip(self.at(&below)).map(bin).collect()
    }
}

/// Iterator of [`Curve::steps`].
#[derive(Debug)]
pub struct Steps<'a> {
    all: Cursor<'a>,
    warm: Option<Cursor<'a>>,
    capacity: u64,
    hit_blocks: u64,
}

impl Iterator for Steps<'_> {
    type Item = Point;

    fn next(&mut self) -> Option<Point> {
        let mut found = point(&mut self.all, self.warm.as_mut(), self.capacity + 1);
        if found.hit_blocks == self.hit_blocks {
            // No ramp is open here: the next rise is just above the next start.
            let start = self.all.next_start()?;
            found = point(&mut self.all, self.warm.as_mut(), u64::from(start) + 1);
        }
        self.capacity = found.capacity_blocks;
        self.hit_blocks = found.hit_blocks;
        Some(found)
    }
}

fn point(all: &mut Cursor<'_>, warm: Option<&mut Cursor<'_>>, capacity_blocks: u64) -> Point {
    let (hit_blocks, hit_tokens) = all.at(capacity_blocks);
    Point {
        capacity_blocks,
        hit_blocks,
        hit_tokens,
        warm_hit_tokens: warm.map(|warm| warm.at(capacity_blocks).1),
    }
}

/// Points as columns `capacity_blocks`, `hit_blocks`, `hit_tokens` and, where the points have it,
/// `warm_hit_tokens`. `warm` says whether that column is there even without a point.
#[must_use]
pub fn points_table(points: impl IntoIterator<Item = Point>, warm: bool) -> Table {
    let (mut capacity, mut blocks, mut tokens, mut warm_tokens) = (vec![], vec![], vec![], vec![]);
    for point in points {
        // A capacity is whatever the caller asked for; the counts are sums over a trace in memory.
        capacity.push(i64::try_from(point.capacity_blocks).unwrap_or(i64::MAX));
        blocks.push(point.hit_blocks as i64);
        tokens.push(point.hit_tokens as i64);
        if warm {
            warm_tokens.push(point.warm_hit_tokens.map(|tokens| tokens as i64));
        }
    }
    let table = Table::new()
        .with("capacity_blocks", Values::Int(capacity))
        .with("hit_blocks", Values::Int(blocks))
        .with("hit_tokens", Values::Int(tokens));
    if warm { table.with("warm_hit_tokens", Values::MaybeInt(warm_tokens)) } else { table }
}
