//! Object mode: every block an access of its own (`semantics.md` section 4). One tier.

use super::ledger::Cause;
use super::{EventKind, Events, Hierarchy, Request};
use crate::admission::Offer;
use crate::policy::{Move, Stored};

impl Hierarchy<'_> {
    /// Accesses the blocks of a request one by one, root first. `served` tells the leading run afterwards.
    pub fn access(&mut self, request: &Request, events: &mut Events) {
        self.enter(request, events);
        let mut hits = std::mem::take(&mut self.scratch.hits);
        let mut moves = std::mem::take(&mut self.scratch.moves);
        hits.clear();
        moves.clear();
        let path = &self.paths[0];
        let tier = &mut self.tiers[0];
        let leading = super::look_up::leading(tier.room.residents(), &path.runs, 0);
        let held: u32 = path.runs.iter().map(|r| tier.room.residents().count_range(r.start, r.len)).sum();
        self.stranded = held - leading;
        tier.ledger.counters.stranded += u64::from(held - leading);
        if tier.filter.is_always() {
            tier.policy.accesses(&mut tier.room, &path.runs, &mut hits, &mut moves);
        } else {
            self.filtered_accesses(request, &mut hits, &mut moves);
        }
        self.account_accesses(request, &hits, &moves, events);
        self.scratch.hits = hits;
        self.scratch.moves = moves;
    }

    /// With a filter each miss is an offer; there is no parent rule, as there are no prefixes here.
    fn filtered_accesses(&mut self, request: &Request, hits: &mut Vec<bool>, moves: &mut Vec<Move>) {
        let tier = &mut self.tiers[0];
        let path = &self.paths[0];
        for &block in &path.list {
            let hit = tier.room.holds(block);
            hits.push(hit);
            if hit {
                tier.policy.hit(block, &tier.room);
                continue;
            }
            let wants_rival = tier.filter.wants_rival() && tier.room.is_full();
            let rival = if wants_rival { tier.policy.candidate(&tier.room) } else { None };
            let offer = Offer { block, path_units: path.units, rival, now_us: request.now_us };
            if !tier.filter.admits(&offer) {
                tier.ledger.counters.rejected_filter += 1;
            } else if let Stored::Done { victim } = tier.put(block) {
                moves.push(Move { block, victim });
            }
        }
    }

    fn account_accesses(&mut self, request: &Request, hits: &[bool], moves: &[Move], events: &mut Events) {
        let usable = hits.iter().take_while(|&&hit| hit).count() as u32;
        let limited = usable.min(request.limit_blocks);
        let count = hits.iter().filter(|&&hit| hit).count() as u64;
        let tier = &mut self.tiers[0];
        tier.served = (0, limited);
        let tokens: u64 = if u64::from(usable) == count {
            request.tokens(usable)
        } else {
            let of_block = |i: usize| request.tokens(i as u32 + 1) - request.tokens(i as u32);
            hits.iter().enumerate().filter(|(_, hit)| **hit).map(|(i, _)| of_block(i)).sum()
        };
        self.object_hits = (count as u32, tokens);
        let counters = &mut tier.ledger.counters;
        counters.asked += u64::from(request.listed_blocks);
        counters.asked_tokens += request.input_tokens;
        counters.hit_requests += u64::from(count > 0);
        counters.served += count;
        counters.served_tokens += tokens;
        counters.usable += u64::from(limited);
        counters.usable_tokens += request.tokens(limited);
        let misses = hits.len() as u64 - count;
        counters.offered += misses;
        tier.ledger.count(Cause::Compute, moves.len() as u64);
        // A hit block that leaves later in the same request was read; a block stored again was not.
        let path = &self.paths[0];
        let units = path.runs.iter().flat_map(|run| run.start..run.start + run.len);
        let mut moves_left = moves;
        let units: Vec<(u32, bool)> = units.zip(hits.iter().copied()).collect();
        for (unit, hit) in units {
            if hit {
                self.tiers[0].ledger.read(unit);
                self.log(events, request, 0, EventKind::Hit, unit);
            } else if let Some((first, rest)) = moves_left.split_first()
                && first.block == unit
            {
                self.record(0, std::slice::from_ref(first), request, events);
                moves_left = rest;
            } else {
                self.log(events, request, 0, EventKind::Reject, unit);
            }
        }
        let counters = &mut self.tiers[0].ledger.counters;
        counters.no_room = counters.offered - counters.admitted - counters.rejected_filter;
    }
}
