//! Object mode: every block an access of its own (`semantics.md` section 4). One tier.

use super::ledger::{Cause, Ledger};
use super::{EventKind, Events, Hierarchy, Request};
use crate::admission::Offer;
use crate::policy::{Move, Stored};
use crate::trace::Run;

impl Hierarchy<'_> {
    /// Accesses the blocks of a request one by one, root first. `served` tells the leading run afterwards.
    pub fn access(&mut self, request: &Request, events: &mut Events) {
        self.enter(request, events);
        let mut hits = std::mem::take(&mut self.scratch.hits);
        let mut moves = std::mem::take(&mut self.scratch.moves);
        hits.clear();
        moves.clear();
        self.scratch.rejected.clear();
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
        for (position, &block) in path.list.iter().enumerate() {
            let hit = tier.room.holds(block);
            hits.push(hit);
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
        if events.on || !tier.ledger.counts_only() {
            self.replay_accesses(request, hits, moves, events);
        } else {
            // A hit block that leaves later in the same request was read; a block stored again was not.
            read_hits(&mut tier.ledger, &self.paths[0].runs, hits);
            self.record(0, moves, request, events);
        }
        let counters = &mut self.tiers[0].ledger.counters;
        counters.no_room = counters.offered - counters.admitted - counters.rejected_filter;
    }

    /// Books and events access by access.
    fn replay_accesses(&mut self, request: &Request, hits: &[bool], moves: &[Move], events: &mut Events) {
        let units = self.paths[0].runs.iter().flat_map(|run| run.start..run.start + run.len);
        let units: Vec<(u32, bool)> = units.zip(hits.iter().copied()).collect();
        let mut moves = moves.iter();
        let mut next = moves.next();
        let rejected = std::mem::take(&mut self.scratch.rejected);
        let mut refused = rejected.iter().peekable();
        for (unit, hit) in units {
            if hit {
                self.tiers[0].ledger.read_run(Run { start: unit, len: 1 });
                self.log(events, request, 0, EventKind::Hit, unit);
            } else if let Some(done) = next.filter(|done| done.block == unit) {
                self.record(0, std::slice::from_ref(done), request, events);
                next = moves.next();
            } else if refused.next_if_eq(&&unit).is_some() {
                self.log(events, request, 0, EventKind::Reject, unit);
            }
        }
        self.scratch.rejected = rejected;
    }
}

/// Marks hit blocks as read, a stretch at a time.
fn read_hits(ledger: &mut Ledger, runs: &[Run], mut hits: &[bool]) {
    for run in runs {
        let (here, rest) = hits.split_at(run.len as usize);
        hits = rest;
        let mut at = 0;
        for stretch in here.chunk_by(|a, b| a == b) {
            let len = stretch.len() as u32;
            if stretch[0] {
                ledger.read_run(Run { start: run.start + at, len });
            }
            at += len;
        }
    }
}
