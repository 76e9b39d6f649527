//! What one LRU tier wrote, evicted and wrote in vain, by arithmetic on owner runs.
//!
//! At capacity `C` request `t` of `n` blocks hits its first `h` and inserts positions `h .. m`, `m = min(n, C)`.
//! The blocks a later request takes over from `t` are the run with owner `t`: those at distance above `C` had left
//! unserved, the others are served now. What nobody takes over is the end of the path that `t` still owns
//! when the trace ends; its depth in the stack says what is resident.

use super::pass::pass;
use super::slices::hits_of;
use super::{Recorder, ReuseRun};
use crate::error::Result;
use crate::progress::Progress;
use crate::trace::Trace;

/// Counters of one LRU tier that admits always.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LruCounters {
    /// Blocks asked of the tier: all listed blocks.
    pub asked_blocks: u64,
    /// Blocks served.
    pub hit_blocks: u64,
    /// Tokens served.
    pub hit_tokens: u64,
    /// Blocks inserted: of each request the first `C`, less those hit.
    pub inserted_blocks: u64,
    /// Blocks evicted.
    pub evicted_blocks: u64,
    /// Blocks resident at the end: `min(C, distinct blocks)`.
    pub resident_blocks: u64,
    /// Inserted blocks evicted without ever being served.
    pub dead_on_arrival_blocks: u64,
    /// Inserted blocks still resident at the end that were never served.
    pub unread_at_end_blocks: u64,
}

struct Count<'a> {
    trace: &'a Trace,
    capacity: u64,
    /// Hit blocks per request so far.
    hits: Vec<u32>,
    /// Blocks of each request that later requests took over.
    passed_on: Vec<u32>,
    now: u32,
    counters: LruCounters,
}

impl Count<'_> {
    /// How many of the positions `from .. to` request `owner` inserted.
    fn inserted(&self, owner: usize, from: u32, to: u32) -> u32 {
        let limit = u64::from(to).min(self.capacity) as u32;
        limit.saturating_sub(from.max(self.hits[owner]))
    }
}

impl Recorder for Count<'_> {
    fn run(&mut self, run: ReuseRun) {
        let owner = run.owner as usize;
        let hit = hits_of(run, self.capacity);
        self.now += hit;
        self.passed_on[owner] += run.len;
        let gone = self.inserted(owner, run.start + hit, run.start + run.len);
        self.counters.dead_on_arrival_blocks += u64::from(gone);
    }

    fn request(&mut self, request: u32, known_blocks: u32) {
        let hit = std::mem::take(&mut self.now);
        let listed = self.trace.path_len(request as usize);
        self.hits.push(hit);
        let counters = &mut self.counters;
        counters.asked_blocks += u64::from(listed);
        counters.hit_blocks += u64::from(hit);
        counters.hit_tokens += self.trace.tokens(request as usize, hit);
        counters.inserted_blocks += u64::from(listed).min(self.capacity) - u64::from(hit);
        // Distinct blocks for now; the capacity bounds them at the end.
        counters.resident_blocks += u64::from(listed - known_blocks);
    }
}

/// Counters of one LRU tier of `capacity_blocks`, oversized requests included.
///
/// # Errors
/// As [`pass`].
pub fn lru_counters(trace: &Trace, capacity_blocks: u64, progress: &Progress) -> Result<LruCounters> {
    let mut count = Count {
        trace,
        capacity: capacity_blocks,
        hits: Vec::with_capacity(trace.len()),
        passed_on: vec![0; trace.len()],
        now: 0,
        counters: LruCounters::default(),
    };
    pass(trace, &mut count, progress)?;
    let mut above = 0_u64;
    let (mut unread, mut dead) = (0, 0);
    for request in (0..trace.len()).rev() {
        let (first, listed) = (count.passed_on[request], trace.path_len(request));
        let room = capacity_blocks.saturating_sub(above).min(u64::from(listed - first)) as u32;
        unread += u64::from(count.inserted(request, first, first + room));
        dead += u64::from(count.inserted(request, first + room, listed));
        above += u64::from(listed - first);
    }
    let mut counters = count.counters;
    counters.resident_blocks = counters.resident_blocks.min(capacity_blocks);
    counters.evicted_blocks = counters.inserted_blocks - counters.resident_blocks;
    counters.dead_on_arrival_blocks += dead;
    counters.unread_at_end_blocks = unread;
    Ok(counters)
}
