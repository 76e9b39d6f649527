//! The books of a tier: counters, and for each resident unit whether it was read and since when it is there.

use super::Counters;
use crate::policy::parts::BitSet;
use crate::policy::{Move, Room};
use crate::trace::Run;

/// Why a unit was stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Compute,
    Promotion,
    Demotion,
}

#[derive(Debug)]
pub(super) struct Ledger {
    pub(super) counters: Counters,
    /// Stored and not served by this tier since.
    unread: BitSet,
    /// Request that stored the unit; only kept when residence is asked for.
    since: Option<Vec<u32>>,
}

impl Ledger {
    pub(super) fn new(units: u32, residence: bool) -> Self {
        Self {
            counters: Counters::default(),
            unread: BitSet::new(units),
            since: residence.then(|| vec![0; units as usize]),
        }
    }

    /// A unit was stored by `request`; its cause is counted by the caller.
    #[inline]
    pub(super) fn store(&mut self, unit: u32, request: u32) {
        self.unread.set(unit);
        if let Some(since) = &mut self.since {
            since[unit as usize] = request;
        }
    }

    /// Whether a unit's time of arrival is not kept.
    pub(super) fn counts_only(&self) -> bool {
        self.since.is_none()
    }

    /// [`Ledger::store`] and [`Ledger::depart`] for moves in order, where times are not kept.
    pub(super) fn record(&mut self, moves: &[Move]) {
        let (mut evicted, mut dead) = (0, 0);
        for &Move { block, victim, len } in moves {
            if len > 1 {
                self.unread.set_range(block, len);
            } else {
                self.unread.set(block);
            }
            if let Some(victim) = victim {
                evicted += u64::from(len);
                dead += if len > 1 {
                    u64::from(self.unread.count_range(victim, len))
                } else {
                    u64::from(self.unread.get(victim))
                };
            }
        }
        self.counters.evicted += evicted;
        self.counters.dead_on_arrival += dead;
    }

    pub(super) fn count(&mut self, cause: Cause, units: u64) {
        let counters = &mut self.counters;
        counters.admitted += units;
        match cause {
            Cause::Compute => counters.inserted_compute += units,
            Cause::Promotion => counters.inserted_promotion += units,
            Cause::Demotion => counters.inserted_demotion += units,
        }
    }

    /// A unit has left; returns the request that stored it, where that is kept.
    #[inline]
    pub(super) fn depart(&mut self, unit: u32, request: u32) -> Option<u32> {
        self.counters.dead_on_arrival += u64::from(self.unread.get(unit));
        let since = self.since.as_ref()?[unit as usize];
        self.counters.residence_requests += u64::from(request - since);
        Some(since)
    }

    /// A run of units was served.
    pub(super) fn read_run(&mut self, run: Run) {
        self.unread.clear_range(run.start, run.len);
    }

    /// The counters with what only the end can tell.
    pub(super) fn finish(&self, room: &Room<'_>) -> Counters {
        let unread = room.residents().iter().filter(|&unit| self.unread.get(unit)).count();
        Counters { unread_at_end: unread as u64, resident: u64::from(room.len()), ..self.counters }
    }
}
