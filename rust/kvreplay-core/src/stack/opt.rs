//! OPT: the most hit blocks any cache of a capacity can have. Request-granular Belady with bypass
//! (Belady, IBM Systems Journal 1966), over owner runs instead of blocks.
//!
//! After each request, of the resident blocks and the request's own, OPT keeps the `C` whose next use is
//! nearest; a next use is the index of the next request that holds the block, ties keep the shallower
//! block, and a block never used again is dropped.
//!
//! **State.** `kept[u]`, the number of resident blocks whose next use is request `u`, says everything:
//!
//! *All blocks whose next use is `u` lie on the path of `u`, and the resident ones among them are always the
//! shallowest ones.* Assume that of two such blocks the deeper, `y`, is resident and the shallower, `x`, is
//! not. Every request that holds `y` holds `x`, so `x` was last held by some request `o` no earlier than `y` was,
//! and since `o` both have next use `u`. `x` was a candidate at `o`, so it was dropped at `o` or later. `y` was not
//! held after `o` (or `x` would have been), and a block enters the cache only when it is held, so `y` was a
//! candidate at that moment too and was kept: the same next use, deeper, and kept. That contradicts the tie rule.
//!
//! *So the hit of request `u` is `kept[u]`*: just before `u`, every block of its path that was ever seen has
//! next use `u`, these are the first blocks of the path, and the resident ones are the shallowest of them:
//! a leading run.
//!
//! **Step.** Request `u` serves `kept[u]` blocks and hands all its blocks out by their next uses. These are the
//! owner runs read backwards: a run `(request w, owner u, len)` says that `len` blocks of `u` are next used by
//! `w`. While more than `C` are kept, blocks of the largest next use go. Cost O(runs) per capacity plus a
//! look-up of the largest next use per eviction of a whole group.

use super::curve::Point;
use super::max_set::MaxSet;
use super::pass::pass;
use super::{Recorder, ReuseRun};
use crate::error::Result;
use crate::progress::Progress;
use crate::trace::Trace;

/// Requests between two looks at the wish to cancel.
const STRIDE: usize = 4096;

/// Blocks of a request that request `user` holds next.
#[derive(Debug, Clone, Copy, Default)]
struct NextUse {
    user: u32,
    blocks: u32,
}

/// The next uses of all blocks of a trace, ready for any number of capacities
/// (8 bytes per owner run and per request).
#[derive(Debug)]
pub struct Opt<'a> {
    trace: &'a Trace,
    /// Where each request's entries start in `uses`: requests + 1 entries.
    first: Vec<usize>,
    uses: Vec<NextUse>,
}

#[derive(Default)]
struct Collect {
    owner: Vec<u32>,
    uses: Vec<NextUse>,
}

impl Recorder for Collect {
    fn run(&mut self, run: ReuseRun) {
        self.owner.push(run.owner);
        self.uses.push(NextUse { user: run.request, blocks: run.len });
    }

    fn request(&mut self, _: u32, _: u32) {}
}

impl<'a> Opt<'a> {
    /// Collects the next uses in one pass.
    ///
    /// # Errors
    /// As [`pass`].
    pub fn of(trace: &'a Trace, progress: &Progress) -> Result<Self> {
        let mut runs = Collect::default();
        pass(trace, &mut runs, progress)?;
        let mut first = vec![0_usize; trace.len() + 1];
        for &owner in &runs.owner {
            first[owner as usize + 1] += 1;
        }
        for request in 0..trace.len() {
            first[request + 1] += first[request];
        }
        // A counting sort by owner: `first` walks to the next owner's start and is shifted back after.
        let mut uses = vec![NextUse::default(); runs.uses.len()];
        for (&owner, &next) in runs.owner.iter().zip(&runs.uses) {
            uses[first[owner as usize]] = next;
            first[owner as usize] += 1;
        }
        first.rotate_right(1);
        first[0] = 0;
        Ok(Self { trace, first, uses })
    }

    /// Hit blocks per request at a capacity (blocks).
    ///
    /// # Errors
    /// [`crate::Error::Cancelled`].
    pub fn hits(&self, capacity_blocks: u64, progress: &Progress) -> Result<Vec<u32>> {
        let mut hits = Vec::with_capacity(self.trace.len());
        self.replay(capacity_blocks, progress, 0, |_, hit| hits.push(hit))?;
        Ok(hits)
    }

    /// Tells `served` the hit blocks of every request. `done` requests count as done before.
    fn replay(
        &self,
        capacity_blocks: u64,
        progress: &Progress,
        done: u64,
        mut served: impl FnMut(usize, u32),
    ) -> Result<()> {
        let requests = self.trace.len();
        let mut kept = vec![0_u32; requests];
        let mut users = MaxSet::new(requests);
        let mut total = 0_u64;
        for request in 0..requests {
            if request % STRIDE == 0 {
                progress.advance_to(done + request as u64)?;
            }
            let hit = std::mem::take(&mut kept[request]);
            if hit > 0 {
                users.remove(request as u32);
                total -= u64::from(hit);
            }
            served(request, hit);
            for next in &self.uses[self.first[request]..self.first[request + 1]] {
                if kept[next.user as usize] == 0 {
                    users.insert(next.user);
                }
                kept[next.user as usize] += next.blocks;
                total += u64::from(next.blocks);
            }
            while total > capacity_blocks {
                let Some(user) = users.max() else { break };
                let group = &mut kept[user as usize];
                let dropped = u64::from(*group).min(total - capacity_blocks);
                *group -= dropped as u32;
                total -= dropped;
                if *group == 0 {
                    users.remove(user);
                }
            }
        }
        Ok(())
    }
}

/// Hits of OPT at each capacity, in the order given; with `warmup_requests` also the hit tokens of the
/// requests from that position on. OPT is the maximum in blocks; a policy can have more hit tokens.
///
/// # Errors
/// As [`pass`].
pub fn opt(
    trace: &Trace,
    capacities: &[u64],
    warmup_requests: Option<usize>,
    progress: &Progress,
) -> Result<Vec<Point>> {
    let next_uses = Opt::of(trace, progress)?;
    progress.start(trace.len() as u64 * capacities.len() as u64);
    let mut points = Vec::with_capacity(capacities.len());
    for (i, &capacity_blocks) in capacities.iter().enumerate() {
        let warm_hit_tokens = warmup_requests.map(|_| 0);
        let mut point = Point { capacity_blocks, hit_blocks: 0, hit_tokens: 0, warm_hit_tokens };
        next_uses.replay(capacity_blocks, progress, (i * trace.len()) as u64, |request, hit| {
            let tokens = trace.tokens(request, hit);
            point.hit_blocks += u64::from(hit);
            point.hit_tokens += tokens;
            if let (Some(warm), Some(first)) = (&mut point.warm_hit_tokens, warmup_requests)
                && request >= first
            {
                *warm += tokens;
            }
        })?;
        points.push(point);
    }
    progress.advance_to(trace.len() as u64 * capacities.len() as u64)?;
    Ok(points)
}
