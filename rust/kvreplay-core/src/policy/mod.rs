//! Eviction policies: one file each behind one registry.
//!
//! A policy decides who leaves; it knows nothing of requests, tiers or counters. The tier asks it through
//! [`Policy`], a contract over dense block numbers.

mod arc;
mod fifo;
mod gdsf;
mod lfu;
mod lru;
mod lruk;
mod opt;
pub mod parts;
mod random;
mod recompute_cost;
mod registry;
mod runs;
mod s3fifo;
mod sieve;
mod slru;
pub mod spec;
mod tail_lru;
mod ttl;
mod twoq;
mod wtinylfu;

pub use opt::parse_opt;
pub use parts::{Closure, Room, Topology};
pub use registry::{Build, BuildFn, POLICIES, PolicyInfo, build};
pub use runs::Order;

use crate::trace::Run;

/// What became of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stored {
    /// The tier is full and every resident block is guarded: nothing changed.
    NoRoom,
    /// The block is in; `victim` left for it.
    Done {
        /// The evicted block, when the tier was full.
        victim: Option<u32>,
    },
}

/// Insertions one after the other and who left for each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Move {
    /// The first block that came.
    pub block: u32,
    /// The block that left for it, if any.
    pub victim: Option<u32>,
    /// How many came, consecutive numbers, and as many victims: in object mode the first came first, in a
    /// pass the last.
    pub len: u32,
}

impl Move {
    /// One block came.
    #[must_use]
    pub fn one(block: u32, victim: Option<u32>) -> Self {
        Self { block, victim, len: 1 }
    }

    /// The insertions one by one.
    pub fn each(self, order: Order) -> impl Iterator<Item = (u32, Option<u32>)> {
        let first = Run { start: 0, len: self.len };
        order.each(first).map(move |i| (self.block + i, self.victim.map(|victim| victim + i)))
    }
}

/// Accesses one after the other, of consecutive blocks that all hit or all missed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stretch {
    /// The blocks.
    pub run: Run,
    /// Whether they hit.
    pub hit: bool,
}

/// An eviction policy of one tier.
///
/// The tier guarantees: `hit` and `remove` are called for resident blocks only, `insert` for absent ones;
/// the room passed in shows the state before the call (the tier updates it afterwards); a block whose
/// protection by children changes is told by `expose`. A policy guarantees: a victim is resident and
/// `room.may_leave` holds for it; `insert` evicts exactly when the room is full; on [`Stored::NoRoom`]
/// nothing has changed. Same calls, same results: policies draw no randomness but from their seed.
pub trait Policy: Send {
    /// A resident block is used.
    fn hit(&mut self, block: u32, room: &Room<'_>);

    /// An absent block comes in, for which another leaves when the room is full.
    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored;

    /// A resident block is taken away without eviction (moved to another tier, expired).
    fn remove(&mut self, block: u32, room: &Room<'_>);

    /// The last resident child of a block has left (`true`) or a first one came (`false`).
    /// Called with closure only, and perhaps again without a change.
    fn expose(&mut self, block: u32, exposed: bool);

    /// The block that an insertion now would examine first, if any may leave (for admission filters).
    fn candidate(&mut self, room: &Room<'_>) -> Option<u32>;

    /// The resident blocks, the one to be kept longest first where the policy has such an order.
    fn content(&self) -> Vec<u32>;

    /// A request of `path_units` blocks (chunks) arrives, at `now_us` in a trace with times.
    fn begin(&mut self, path_units: u32, now_us: Option<i64>) {
        let _ = (path_units, now_us);
    }

    /// A resident block whose time is over, asked before look-up until there is none.
    fn expired(&mut self, room: &Room<'_>) -> Option<u32> {
        let _ = room;
        None
    }

    /// Whether a block always leaves before its parent by the policy's own order, in a tier that sees every
    /// request as a [`Policy::pass`] and nothing else: then closure needs no bookkeeping there.
    fn closes_itself(&self) -> bool {
        false
    }

    /// Checks the policy's invariants against the room.
    ///
    /// # Errors
    /// The invariant that does not hold.
    fn validate(&self, room: &Room<'_>) -> Result<(), String>;

    /// One request-atomic pass: the blocks of `runs` from the last to the first (`semantics.md` section 3).
    /// A provided method so that its loop is compiled for each policy.
    fn pass(&mut self, room: &mut Room<'_>, runs: &[Run], moves: &mut Vec<Move>) {
        for &Run { start, mut len } in runs.iter().rev() {
            while len > 0 {
                // The path is guarded, and no insertion brings in another block: a stretch stays one until it is
                // used.
                let resident = room.residents().trailing_range(start, len);
                if resident > 0 {
                    len -= resident;
                    self.hit_run(Run { start: start + len, len: resident }, Order::Back, room);
                }
                let absent = room.residents().trailing_absent(start, len);
                if absent > 0 {
                    len -= absent;
                    self.insert_run(Run { start: start + len, len: absent }, Order::Back, room, moves);
                }
            }
        }
        room.end_pass();
    }

    /// One access per block, from the first to the last (`semantics.md` section 4); `stretches` tells which hit.
    fn accesses(
        &mut self,
        room: &mut Room<'_>,
        runs: &[Run],
        stretches: &mut Vec<Stretch>,
        moves: &mut Vec<Move>,
    ) {
        for run in runs {
            let (mut block, end) = (run.start, run.start + run.len);
            while block < end {
                // Hits evict nothing, and no insertion brings in another block: a stretch stays one until it
                // is used.
                let resident = Run { start: block, len: room.residents().leading_range(block, end - block) };
                if resident.len > 0 {
                    self.hit_run(resident, Order::Forward, room);
                    stretches.push(Stretch { run: resident, hit: true });
                    block += resident.len;
                }
                let absent = Run { start: block, len: room.residents().leading_absent(block, end - block) };
                if absent.len > 0 {
                    self.insert_run(absent, Order::Forward, room, moves);
                    stretches.push(Stretch { run: absent, hit: false });
                    block += absent.len;
                }
            }
        }
    }

    /// Absent blocks of a run come in one after the other. [`Order::Forward`] promises that any block may leave.
    #[inline]
    fn insert_run(&mut self, run: Run, order: Order, room: &mut Room<'_>, moves: &mut Vec<Move>) {
        insert_each(self, run, order, room, moves);
    }

    /// Resident blocks of a run are used one after the other.
    #[inline]
    fn hit_run(&mut self, run: Run, order: Order, room: &mut Room<'_>) {
        for block in order.each(run) {
            if order == Order::Back {
                room.come_to(block);
            }
            self.hit(block, room);
        }
    }
}

/// Absent blocks of a run come in one after the other, each on its own.
#[inline]
fn insert_each<P: Policy + ?Sized>(
    policy: &mut P,
    run: Run,
    order: Order,
    room: &mut Room<'_>,
    moves: &mut Vec<Move>,
) {
    for block in order.each(run) {
        if order == Order::Back {
            room.come_to(block);
        }
        if let Stored::Done { victim } = store(policy, room, block) {
            moves.push(Move::one(block, victim));
        } else {
            room.pass_by();
        }
    }
}

/// Inserts an absent block and brings the room and the protection of parents up to date.
#[inline(always)]
#[allow(clippy::inline_always, reason = "the body of the inner loop of every policy")]
pub fn store<P: Policy + ?Sized>(policy: &mut P, room: &mut Room<'_>, block: u32) -> Stored {
    let had_child = room.is_closed() && !room.exposed(block);
    let stored = policy.insert(block, room);
    if let Stored::Done { victim } = stored {
        let freed = victim.and_then(|victim| room.leave(victim));
        if let Some(parent) = room.enter(block) {
            policy.expose(parent, false);
        }
        // The block that came may be a child of the parent that was freed: look again.
        if let Some(parent) = freed
            && room.exposed(parent)
        {
            policy.expose(parent, true);
        }
        // Or the victim was the last child of the block that came, which was not there to be freed.
        if had_child && victim.is_some() && room.exposed(block) {
            policy.expose(block, true);
        }
    }
    stored
}

/// Takes a resident block away and brings the room and the protection of its parent up to date.
pub fn take<P: Policy + ?Sized>(policy: &mut P, room: &mut Room<'_>, block: u32) {
    policy.remove(block, room);
    if let Some(parent) = room.leave(block) {
        policy.expose(parent, true);
    }
}

/// Checks that `content` holds exactly the resident blocks, each once.
///
/// # Errors
/// The difference.
pub(crate) fn validate_content(content: &[u32], room: &Room<'_>) -> Result<(), String> {
    let mut sorted = content.to_vec();
    sorted.sort_unstable();
    if sorted == room.residents().iter().collect::<Vec<_>>() {
        Ok(())
    } else {
        Err(format!("the queues hold {sorted:?}, the room {:?}", room.residents().iter().collect::<Vec<_>>()))
    }
}

#[cfg(test)]
mod tests;
