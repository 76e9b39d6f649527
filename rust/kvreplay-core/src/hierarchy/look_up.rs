//! Look-up of a request in all tiers, and what moves out of victim tiers because of it.

use super::space::part;
use super::{EventKind, Events, Fill, Hierarchy, Request};
use crate::policy::parts::BitSet;
use crate::trace::Run;

impl Hierarchy<'_> {
    /// The cascade: each tier goes on where the one above ended. Nothing but counters changes.
    pub(super) fn look_up(&mut self, request: &Request, events: &mut Events) {
        let mut at = 0;
        for tier in &mut self.tiers {
            let path = &self.paths[tier.space];
            let from = at / tier.chunk_blocks;
            let to = from + leading(tier.room.residents(), &path.runs, from);
            let end = to * tier.chunk_blocks;
            // The first chunk may overlap what the tier above served; a run that ends inside that is none.
            let reach = if to > from { end.max(at) } else { at };
            tier.served = (at.min(request.limit_blocks), reach.min(request.limit_blocks));
            at = reach;
        }
        self.open = at;
        self.hit = at.min(request.limit_blocks);
        self.stranded = 0;
        for k in 0..self.tiers.len() {
            self.account(k, request, events);
        }
    }

    fn account(&mut self, k: usize, request: &Request, events: &mut Events) {
        let tier = &mut self.tiers[k];
        let path = &self.paths[tier.space];
        let (from, to) = tier.served;
        let chunk = tier.chunk_blocks;
        let behind = part(&path.runs, self.open / chunk, path.units);
        let stranded: u32 = behind.map(|run| tier.room.residents().count_range(run.start, run.len)).sum();
        self.stranded += stranded * chunk;
        let counters = &mut tier.ledger.counters;
        counters.stranded += u64::from(stranded * chunk);
        counters.asked += u64::from(request.listed_blocks - from);
        counters.asked_tokens += request.input_tokens - request.tokens(from);
        if to == from {
            return;
        }
        counters.hit_requests += 1;
        counters.served += u64::from(to - from);
        counters.served_tokens += request.tokens(to) - request.tokens(from);
        for run in part(&path.runs, from / chunk, to.div_ceil(chunk)) {
            tier.ledger.read_run(run);
        }
        if events.on {
            let (from, to) = (from / chunk, to.div_ceil(chunk));
            let units: Vec<u32> =
                part(&path.runs, from, to).flat_map(|run| run.start..run.start + run.len).collect();
            for unit in units {
                self.log(events, request, k, EventKind::Hit, unit);
            }
        }
    }

    /// Victim tiers never share a block with tier 1: what tier 1 is about to hold leaves them.
    pub(super) fn leave_victim_tiers(&mut self, request: &Request, events: &mut Events) {
        for k in 1..self.tiers.len() {
            if self.tiers[k].fill != Fill::Victim || self.tiers[k].room.is_empty() {
                continue;
            }
            let taken = self.tiers[0].m * self.tiers[0].chunk_blocks / self.tiers[k].chunk_blocks;
            for position in 0..taken {
                let tier = &mut self.tiers[k];
                let unit = self.paths[tier.space].list[position as usize];
                if !tier.room.holds(unit) {
                    continue;
                }
                if tier.serves(position) {
                    tier.ledger.counters.moved_up += 1;
                } else {
                    tier.ledger.counters.superseded += 1;
                }
                tier.take(unit);
                self.depart(k, unit, request);
                self.log(events, request, k, EventKind::Move, unit);
            }
        }
    }
}

/// Length of the run of resident units that starts at position `from`.
pub(super) fn leading(residents: &BitSet, runs: &[Run], from: u32) -> u32 {
    let mut length = 0;
    for run in part(runs, from, u32::MAX) {
        let here = residents.leading_range(run.start, run.len);
        length += here;
        if here < run.len {
            break;
        }
    }
    length
}
