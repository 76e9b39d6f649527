//! The passes that update the tiers after a look-up, tail to head.

use super::ledger::Cause;
use super::space::part;
use super::tier::Verdict;
use super::{EventKind, Events, Fill, Hierarchy, Request, Touch};
use crate::admission::Offer;
use crate::policy::{Move, Order, Stored};

impl Hierarchy<'_> {
    /// Tier 1 takes the head of the path whatever served it.
    pub(super) fn first_pass(&mut self, request: &Request, events: &mut Events) {
        if self.tiers.len() == 1 && !self.tiers[0].filter.is_always() {
            return self.lower_pass(0, request, events);
        }
        let hands_down = self.tiers.get(1).is_some_and(|tier| tier.fill.takes_evictions());
        if hands_down {
            self.first_pass_by_block(request, events);
        } else {
            self.first_pass_by_run(request, events);
        }
    }

    /// The quick way: one call of the policy, and the books from what it reports.
    fn first_pass_by_run(&mut self, request: &Request, events: &mut Events) {
        let tier = &mut self.tiers[0];
        let chunk = tier.chunk_blocks;
        let (served, hit) = (tier.served.1.div_ceil(chunk).min(tier.m), (self.hit / chunk).min(tier.m));
        let absent = |from: u32, to: u32| -> u64 {
            let resident = |run: crate::trace::Run| tier.room.residents().count_range(run.start, run.len);
            part(&tier.runs, from, to).map(|run| u64::from(run.len - resident(run))).sum()
        };
        let (promoted, computed) = (absent(served, hit.max(served)), absent(hit.max(served), tier.m));
        let mut moves = std::mem::take(&mut self.scratch.moves);
        moves.clear();
        tier.policy.pass(&mut tier.room, &tier.runs, &mut moves);
        debug_assert_eq!(
            moves.iter().map(|moved| u64::from(moved.len)).sum::<u64>(),
            promoted + computed,
            "tier 1 always has room for the head of a path"
        );
        tier.ledger.counters.offered += promoted + computed;
        tier.ledger.count(Cause::Promotion, promoted);
        tier.ledger.count(Cause::Compute, computed);
        self.record(0, &moves, request, events);
        self.scratch.moves = moves;
    }

    /// Books and events of moves made by a policy itself in a pass.
    pub(super) fn record(&mut self, k: usize, moves: &[Move], request: &Request, events: &mut Events) {
        let tier = &mut self.tiers[k];
        tier.ledger.counters.peak = tier.ledger.counters.peak.max(u64::from(tier.room.len()));
        if !events.on && tier.ledger.counts_only() {
            tier.ledger.record(moves);
            return;
        }
        for (block, victim) in moves.iter().flat_map(|moved| moved.each(Order::Back)) {
            self.tiers[k].ledger.store(block, request.index);
            if let Some(victim) = victim {
                self.tiers[k].ledger.counters.evicted += 1;
                self.depart(k, victim, request);
                self.log(events, request, k, EventKind::Evict, victim);
            }
            self.log(events, request, k, EventKind::Insert, block);
        }
    }

    /// Block by block, each eviction handed down at once.
    fn first_pass_by_block(&mut self, request: &Request, events: &mut Events) {
        for position in (0..self.tiers[0].m).rev() {
            let tier = &mut self.tiers[0];
            let unit = self.paths[tier.space].list[position as usize];
            if tier.room.holds(unit) {
                tier.policy.hit(unit, &tier.room);
            } else {
                tier.ledger.counters.offered += 1;
                self.store(0, unit, self.cause(0, position), request, events);
            }
        }
    }

    /// Why a unit at `position` of the path comes into tier `k`.
    fn cause(&self, k: usize, position: u32) -> Cause {
        if (position + 1) * self.tiers[k].chunk_blocks <= self.hit {
            Cause::Promotion
        } else {
            Cause::Compute
        }
    }

    /// The pass of a lower tier (or of a single tier with a filter): verdicts, parent rule, then one sweep
    /// of inserts and touches.
    pub(super) fn lower_pass(&mut self, k: usize, request: &Request, events: &mut Events) {
        let mut verdicts = std::mem::take(&mut self.scratch.verdicts);
        verdicts.clear();
        verdicts.resize(self.tiers[k].m as usize, Verdict::NotOffered);
        self.judge(k, request, &mut verdicts);
        for position in (0..self.tiers[k].m).rev() {
            let tier = &mut self.tiers[k];
            let unit = self.paths[tier.space].list[position as usize];
            match verdicts[position as usize] {
                Verdict::Admitted => {
                    self.store(k, unit, self.cause(k, position), request, events);
                }
                Verdict::Rejected => self.log(events, request, k, EventKind::Reject, unit),
                Verdict::NotOffered => {
                    let touched =
                        tier.serves(position) || (tier.fill != Fill::Victim && tier.touch == Touch::Path);
                    if touched && tier.room.holds(unit) {
                        tier.policy.hit(unit, &tier.room);
                    }
                }
            }
        }
        self.scratch.verdicts = verdicts;
    }

    /// Which units of the path tier `k` is offered, and which of them it takes.
    fn judge(&mut self, k: usize, request: &Request, verdicts: &mut [Verdict]) {
        let Some((from, to)) = self.offers(k) else { return };
        let tier = &mut self.tiers[k];
        let path = &self.paths[tier.space];
        let rival = (tier.filter.wants_rival() && tier.room.is_full())
            .then(|| tier.policy.candidate(&tier.room))
            .flatten();
        for position in (from..to).rev() {
            let block = path.list[position as usize];
            if tier.room.holds(block) {
                continue;
            }
            tier.ledger.counters.offered += 1;
            let offer = Offer {
                block,
                depth_units: position + 1,
                path_units: path.units,
                rival,
                now_us: request.now_us,
            };
            verdicts[position as usize] = if tier.filter.admits(&offer) {
                Verdict::Admitted
            } else {
                tier.ledger.counters.rejected_filter += 1;
                Verdict::Rejected
            };
        }
        if tier.filter.is_always() {
            return;
        }
        for position in from..to {
            if verdicts[position as usize] == Verdict::Admitted && !self.has_parent(k, position, verdicts) {
                verdicts[position as usize] = Verdict::Rejected;
                self.tiers[k].ledger.counters.rejected_no_parent += 1;
            }
        }
    }

    /// Positions of the units offered to tier `k` where they are absent.
    fn offers(&self, k: usize) -> Option<(u32, u32)> {
        let tier = &self.tiers[k];
        let chunk = tier.chunk_blocks;
        let from = tier.served.1 / chunk;
        let to = match tier.fill {
            _ if k == 0 => tier.m,
            Fill::WriteThrough => tier.m,
            Fill::WriteBack if self.hit > tier.served.1 => self.hit.div_ceil(chunk).min(tier.m),
            Fill::WriteBack | Fill::Victim => return None,
        };
        (from < to).then_some((from, to))
    }

    /// Whether the unit above `position` is in tier `k`, in a tier above, or admitted in this pass.
    fn has_parent(&self, k: usize, position: u32, verdicts: &[Verdict]) -> bool {
        let Some(above) = position.checked_sub(1) else { return true };
        if verdicts[above as usize] == Verdict::Admitted {
            return true;
        }
        let depth_blocks = position * self.tiers[k].chunk_blocks;
        self.tiers[..=k].iter().any(|tier| {
            // Chunks of a tier above divide those of this one, so the parent ends one of them.
            let unit = self.paths[tier.space].list[(depth_blocks / tier.chunk_blocks) as usize - 1];
            tier.room.holds(unit)
        })
    }

    /// Stores an absent unit that was admitted, and hands on what it displaces.
    fn store(&mut self, k: usize, unit: u32, cause: Cause, request: &Request, events: &mut Events) {
        let tier = &mut self.tiers[k];
        let Stored::Done { victim } = tier.put(unit) else {
            tier.ledger.counters.no_room += 1;
            return;
        };
        tier.ledger.count(cause, 1);
        self.record(k, &[Move::one(unit, victim)], request, events);
        if let Some(victim) = victim {
            self.hand_down(k + 1, victim, request, events);
        }
    }

    /// A unit evicted from the tier above is offered to tier `k`, if there is one that takes it.
    fn hand_down(&mut self, k: usize, unit: u32, request: &Request, events: &mut Events) {
        let Some(tier) = self.tiers.get_mut(k) else { return };
        if !tier.fill.takes_evictions() {
            return;
        }
        if tier.room.holds(unit) {
            tier.ledger.counters.already_held += 1;
            return;
        }
        tier.ledger.counters.offered += 1;
        let wants_rival = tier.filter.wants_rival() && tier.room.is_full();
        let rival = if wants_rival { tier.policy.candidate(&tier.room) } else { None };
        let depth_units = tier.room.topology().depth(unit);
        let admitted = tier.filter.admits(&Offer {
            block: unit,
            depth_units,
            path_units: depth_units,
            rival,
            now_us: request.now_us,
        });
        let counters = &mut tier.ledger.counters;
        if !admitted {
            counters.rejected_filter += 1;
        } else if !tier.filter.is_always() && !self.parent_is_held(k, unit) {
            self.tiers[k].ledger.counters.rejected_no_parent += 1;
        } else {
            return self.store(k, unit, Cause::Demotion, request, events);
        }
        self.log(events, request, k, EventKind::Reject, unit);
    }

    /// The parent rule for a unit that need not be on the request's path.
    fn parent_is_held(&self, k: usize, unit: u32) -> bool {
        let Some(parent) = self.tiers[k].room.topology().parent(unit) else { return true };
        let space = &self.spaces[self.tiers[k].space];
        self.tiers[..=k].iter().any(|tier| {
            if tier.space == self.tiers[k].space {
                return tier.room.holds(parent);
            }
            let unit = self.spaces[tier.space].unit_ending_at(space.block_of(parent));
            unit.is_some_and(|unit| tier.room.holds(unit))
        })
    }
}
