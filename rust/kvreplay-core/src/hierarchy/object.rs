//! Object mode: every block an access of its own (`semantics.md` section 4). One tier.

use super::ledger::Cause;
use super::{EventKind, Events, Hierarchy, Request};
use crate::admission::Offer;
use crate::policy::parts::BitSet;
use crate::policy::{Move, Order, Stored, Stretch};
use crate::trace::Run;

impl Hierarchy<'_> {
    /// Accesses the blocks of a request one by one, root first. `served` tells the leading run afterwards.
    pub fn access(&mut self, request: &Request, events: &mut Events) {
        self.enter(request, events);
        let mut stretches = std::mem::take(&mut self.scratch.stretches);
        let mut moves = std::mem::take(&mut self.scratch.moves);
        stretches.clear();
        moves.clear();
        self.scratch.rejected.clear();
        let path = &self.paths[0];
        let tier = &mut self.tiers[0];
        self.stranded = stranded(tier.room.residents(), &path.runs);
        tier.ledger.counters.stranded += u64::from(self.stranded);
        if tier.filter.is_always() {
            tier.policy.accesses(&mut tier.room, &path.runs, &mut stretches, &mut moves);
        } else {
            self.filtered_accesses(request, &mut stretches, &mut moves);
        }
        self.account_accesses(request, &stretches, &moves, events);
        self.scratch.stretches = stretches;
        self.scratch.moves = moves;
    }

    /// With a filter each miss is an offer; there is no parent rule, as there are no prefixes here.
    fn filtered_accesses(&mut self, request: &Request, stretches: &mut Vec<Stretch>, moves: &mut Vec<Move>) {
        let tier = &mut self.tiers[0];
        let path = &self.paths[0];
        for (position, &block) in path.list.iter().enumerate() {
            let hit = tier.room.holds(block);
            stretches.push(Stretch { run: Run { start: block, len: 1 }, hit });
            if hit {
                tier.policy.hit(block, &tier.room);
                continue;
            }
            let wants_rival = tier.filter.wants_rival() && tier.room.is_full();
            let rival = if wants_rival { tier.policy.candidate(&tier.room) } else { None };
            let offer = Offer {
                block,
                depth_units: position as u32 + 1,
                path_units: path.units,
                rival,
                now_us: request.now_us,
            };
            if !tier.filter.admits(&offer) {
                tier.ledger.counters.rejected_filter += 1;
                self.scratch.rejected.push(block);
            } else if let Stored::Done { victim } = tier.put(block) {
                moves.push(Move::one(block, victim));
            }
        }
    }

    fn account_accesses(
        &mut self,
        request: &Request,
        stretches: &[Stretch],
        moves: &[Move],
        events: &mut Events,
    ) {
        let hits = Hits::of(request, stretches);
        let limited = hits.usable.min(request.limit_blocks);
        let tier = &mut self.tiers[0];
        tier.served = (0, limited);
        self.object_hits = (hits.blocks, hits.tokens);
        let counters = &mut tier.ledger.counters;
        counters.asked += u64::from(request.listed_blocks);
        counters.asked_tokens += request.input_tokens;
        counters.hit_requests += u64::from(hits.blocks > 0);
        counters.served += u64::from(hits.blocks);
        counters.served_tokens += hits.tokens;
        counters.usable += u64::from(limited);
        counters.usable_tokens += request.tokens(limited);
        counters.offered += u64::from(request.blocks - hits.blocks);
        tier.ledger.count(Cause::Compute, moves.iter().map(|moved| u64::from(moved.len)).sum());
        if events.on || !tier.ledger.counts_only() {
            self.replay_accesses(request, stretches, moves, events);
        } else {
            // A hit block that leaves later in the same request was read; a block stored again was not.
            for stretch in stretches.iter().filter(|stretch| stretch.hit) {
                tier.ledger.read_run(stretch.run);
            }
            self.record(0, moves, request, events);
        }
        let counters = &mut self.tiers[0].ledger.counters;
        counters.no_room = counters.offered - counters.admitted - counters.rejected_filter;
    }

    /// Books and events access by access.
    fn replay_accesses(
        &mut self,
        request: &Request,
        stretches: &[Stretch],
        moves: &[Move],
        events: &mut Events,
    ) {
        let mut moves = moves.iter().flat_map(|moved| moved.each(Order::Forward)).peekable();
        let rejected = std::mem::take(&mut self.scratch.rejected);
        let mut refused = rejected.iter().peekable();
        for &Stretch { run, hit } in stretches {
            for unit in run.start..run.start + run.len {
                if hit {
                    self.tiers[0].ledger.read_run(Run { start: unit, len: 1 });
                    self.log(events, request, 0, EventKind::Hit, unit);
                } else if let Some((block, victim)) = moves.next_if(|&(block, _)| block == unit) {
                    self.record(0, &[Move::one(block, victim)], request, events);
                } else if refused.next_if_eq(&&unit).is_some() {
                    self.log(events, request, 0, EventKind::Reject, unit);
                }
            }
        }
        self.scratch.rejected = rejected;
    }
}

/// What a request's accesses hit.
#[derive(Debug, Clone, Copy, Default)]
struct Hits {
    blocks: u32,
    tokens: u64,
    /// Blocks before the first miss.
    usable: u32,
}

impl Hits {
    fn of(request: &Request, stretches: &[Stretch]) -> Self {
        let (mut hits, mut at) = (Self::default(), 0);
        for stretch in stretches {
            let next = at + stretch.run.len;
            if stretch.hit {
                if hits.usable == at {
                    hits.usable = next;
                }
                hits.blocks += stretch.run.len;
                hits.tokens += request.tokens(next) - request.tokens(at);
            }
            at = next;
        }
        hits
    }
}

/// Resident blocks of a path behind its leading run of resident ones.
fn stranded(residents: &BitSet, runs: &[Run]) -> u32 {
    let (mut leading, mut stranded) = (true, 0);
    for &Run { start, len } in runs {
        let skip = if leading { residents.leading_range(start, len) } else { 0 };
        leading &= skip == len;
        if !leading {
            stranded += residents.count_range(start + skip, len - skip);
        }
    }
    stranded
}
