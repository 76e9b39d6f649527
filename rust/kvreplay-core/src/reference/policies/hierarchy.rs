//! Twin of the hierarchy: the order of operations of the golden README, block by block over plain sets.

use super::filters::SlowFilter;
use super::{Ask, Slow};
use crate::hierarchy::{EventKind, Fill, Touch};
use std::collections::{BTreeMap, BTreeSet};

pub(super) struct SlowTier {
    pub(super) capacity: usize,
    pub(super) policy: Box<dyn Slow>,
    pub(super) filter: Box<dyn SlowFilter>,
    pub(super) fill: Fill,
    pub(super) touch: Touch,
    pub(super) closed: bool,
    pub(super) chunk: usize,
    pub(super) resident: BTreeSet<u32>,
    /// Stored and not served since.
    pub(super) unread: BTreeSet<u32>,
    pub(super) dead: u64,
    pub(super) no_room: u64,
    pub(super) stranded: u64,
}

/// An event: tier, kind, unit.
pub(super) type Event = (usize, EventKind, u32);

#[derive(Default)]
pub(super) struct SlowHierarchy {
    pub(super) tiers: Vec<SlowTier>,
    pub(super) events: Vec<Event>,
    /// Parent and depth of units, per chunk size.
    parents: BTreeMap<(usize, u32), Option<u32>>,
    depths: BTreeMap<(usize, u32), u32>,
    /// The block a unit ends with, per chunk size: its name in every tier.
    pub(super) ends: BTreeMap<(usize, u32), u32>,
    /// Units of the request that may not leave, per tier.
    guard: Vec<BTreeSet<u32>>,
}

/// One request: units of its path per chunk size (1 = blocks), hits limited to `limit` blocks.
pub(super) struct SlowRequest {
    pub(super) units: BTreeMap<usize, Vec<u32>>,
    pub(super) limit: usize,
    pub(super) now_us: i64,
}

impl SlowHierarchy {
    fn learn(&mut self, request: &SlowRequest) {
        for (&chunk, units) in &request.units {
            for (i, &unit) in units.iter().enumerate() {
                self.parents.insert((chunk, unit), i.checked_sub(1).map(|above| units[above]));
                self.depths.insert((chunk, unit), i as u32 + 1);
            }
        }
    }

    /// Calls the policy of a tier with what it may ask.
    fn with<R>(&mut self, k: usize, call: impl FnOnce(&mut dyn Slow, &Ask<'_>) -> R) -> R {
        let Self { tiers, parents, depths, guard, .. } = self;
        let SlowTier { policy, resident, closed, chunk, .. } = &mut tiers[k];
        let has_child = |b: u32| resident.iter().any(|&c| parents[&(*chunk, c)] == Some(b));
        let guarded = |b: u32| guard[k].contains(&b);
        let may_leave = |b: u32| !guarded(b) && (!*closed || !has_child(b));
        let depth = |b: u32| depths[&(*chunk, b)];
        call(&mut **policy, &Ask { may_leave: &may_leave, depth: &depth, guarded: &guarded })
    }

    fn leave(&mut self, k: usize, unit: u32, kind: EventKind) {
        let tier = &mut self.tiers[k];
        tier.resident.remove(&unit);
        tier.dead += u64::from(tier.unread.remove(&unit));
        self.events.push((k, kind, unit));
    }

    fn begin(&mut self, request: &SlowRequest) {
        self.learn(request);
        self.guard = vec![BTreeSet::new(); self.tiers.len()];
        for k in 0..self.tiers.len() {
            let units = request.units[&self.tiers[k].chunk].len() as u32;
            self.tiers[k].policy.begin(units, request.now_us);
            while let Some(old) = self.with(k, |policy, ask| policy.expired(ask)) {
                self.tiers[k].policy.remove(old);
                self.leave(k, old, EventKind::Evict);
            }
        }
    }

    /// Serves a request; returns `(from, to)` in blocks per tier.
    pub(super) fn serve(&mut self, request: &SlowRequest) -> Vec<(usize, usize)> {
        self.begin(request);
        let served = self.look_up(request);
        let hit = served.last().unwrap().1;
        self.leave_victim_tiers(request);
        for k in 0..self.tiers.len() {
            let tier = &self.tiers[k];
            self.guard[k] = request.units[&tier.chunk].iter().take(tier.capacity).copied().collect();
        }
        for (k, &run) in served.iter().enumerate() {
            if k == 0 && (self.tiers.len() > 1 || self.tiers[0].filter.is_always()) {
                self.first_pass(request);
            } else {
                self.lower_pass(k, request, run, hit);
            }
        }
        served
    }

    fn look_up(&mut self, request: &SlowRequest) -> Vec<(usize, usize)> {
        let (mut at, mut open) = (0, Vec::new());
        for tier in &self.tiers {
            let units = &request.units[&tier.chunk];
            let start = at;
            for (i, unit) in units.iter().enumerate().skip(at / tier.chunk) {
                if !tier.resident.contains(unit) {
                    break;
                }
                at = at.max((i + 1) * tier.chunk);
            }
            open.push((start, at));
        }
        let mut served = Vec::new();
        for (k, (from, to)) in open.into_iter().enumerate() {
            let tier = &mut self.tiers[k];
            let units = &request.units[&tier.chunk];
            let behind = units.iter().skip(at / tier.chunk).filter(|u| tier.resident.contains(u)).count();
            tier.stranded += (behind * tier.chunk) as u64;
            let (from, to) = (from.min(request.limit), to.min(request.limit));
            for (i, &unit) in units.iter().enumerate() {
                if from < to && (i + 1) * tier.chunk > from && i * tier.chunk < to {
                    tier.unread.remove(&unit);
                    self.events.push((k, EventKind::Hit, unit));
                }
            }
            served.push((from, to));
        }
        served
    }

    fn leave_victim_tiers(&mut self, request: &SlowRequest) {
        let first = &self.tiers[0];
        let taken = request.units[&first.chunk].len().min(first.capacity) * first.chunk;
        for k in 1..self.tiers.len() {
            if self.tiers[k].fill != Fill::Victim {
                continue;
            }
            let chunk = self.tiers[k].chunk;
            for &unit in request.units[&chunk].iter().take(taken / chunk) {
                if self.tiers[k].resident.contains(&unit) {
                    self.tiers[k].policy.remove(unit);
                    self.leave(k, unit, EventKind::Move);
                }
            }
        }
    }

    fn first_pass(&mut self, request: &SlowRequest) {
        let units: Vec<u32> =
            request.units[&self.tiers[0].chunk].iter().take(self.tiers[0].capacity).copied().collect();
        for &unit in units.iter().rev() {
            if self.tiers[0].resident.contains(&unit) {
                self.with(0, |policy, ask| policy.hit(unit, ask));
            } else {
                self.put(0, unit);
            }
        }
    }

    /// Stores an admitted unit.
    fn put(&mut self, k: usize, unit: u32) {
        let full = self.tiers[k].resident.len() >= self.tiers[k].capacity;
        let residents: Vec<u32> = self.tiers[k].resident.iter().copied().collect();
        if full && !self.with(k, |_, ask| residents.iter().any(|&b| (ask.may_leave)(b))) {
            self.tiers[k].no_room += 1;
            return;
        }
        let victim = self.with(k, |policy, ask| policy.insert(unit, full, ask));
        if let Some(victim) = victim {
            self.leave(k, victim, EventKind::Evict);
        }
        self.tiers[k].resident.insert(unit);
        self.tiers[k].unread.insert(unit);
        self.events.push((k, EventKind::Insert, unit));
        if let Some(victim) = victim {
            self.hand_down(k + 1, victim);
        }
    }

    /// Whether a unit at `depth` of tier `k` may be stored for its parent's sake.
    fn has_parent(&self, k: usize, unit: u32, admitted: &BTreeSet<u32>) -> bool {
        let chunk = self.tiers[k].chunk;
        let Some(parent) = self.parents[&(chunk, unit)] else { return true };
        if admitted.contains(&parent) || self.tiers[k].resident.contains(&parent) {
            return true;
        }
        let end = self.ends[&(chunk, parent)];
        self.tiers[..k].iter().any(|tier| tier.resident.iter().any(|&u| self.ends[&(tier.chunk, u)] == end))
    }

    fn hand_down(&mut self, k: usize, unit: u32) {
        if k >= self.tiers.len() || self.tiers[k].fill == Fill::WriteThrough {
            return;
        }
        if self.tiers[k].resident.contains(&unit) {
            return;
        }
        let depth = self.depths[&(self.tiers[k].chunk, unit)];
        let admitted = self.tiers[k].filter.admits(unit, depth);
        if admitted && (self.tiers[k].filter.is_always() || self.has_parent(k, unit, &BTreeSet::new())) {
            self.put(k, unit);
        } else {
            self.events.push((k, EventKind::Reject, unit));
        }
    }

    fn lower_pass(&mut self, k: usize, request: &SlowRequest, (from, to): (usize, usize), hit: usize) {
        let tier = &self.tiers[k];
        let (chunk, fill, touch) = (tier.chunk, tier.fill, tier.touch);
        let all = &request.units[&chunk];
        let m = all.len().min(tier.capacity);
        let at_begin = tier.resident.clone();
        let offered = |i: usize| {
            let end = (i + 1) * chunk;
            let wanted = match fill {
                _ if k == 0 => true,
                Fill::WriteThrough => end > to,
                Fill::WriteBack => to < hit && end > to && i * chunk < hit,
                Fill::Victim => false,
            };
            wanted && !at_begin.contains(&all[i])
        };
        let mut admitted = BTreeSet::new();
        for i in (0..m).rev().filter(|&i| offered(i)) {
            if self.tiers[k].filter.admits(all[i], all.len() as u32) {
                admitted.insert(all[i]);
            }
        }
        if !self.tiers[k].filter.is_always() {
            for &unit in &all[..m] {
                if admitted.contains(&unit) && !self.has_parent(k, unit, &admitted) {
                    admitted.remove(&unit);
                }
            }
        }
        for i in (0..m).rev() {
            let unit = all[i];
            let served = from < to && (i + 1) * chunk > from && i * chunk < to;
            if admitted.contains(&unit) {
                self.put(k, unit);
            } else if offered(i) {
                self.events.push((k, EventKind::Reject, unit));
            } else if self.tiers[k].resident.contains(&unit)
                && (served || k == 0 || (fill != Fill::Victim && touch == Touch::Path))
            {
                self.with(k, |policy, ask| policy.hit(unit, ask));
            }
        }
    }

    /// Object mode: each unit an access of its own. Returns (hits, usable).
    pub(super) fn access(&mut self, request: &SlowRequest) -> (u32, u32) {
        self.begin(request);
        let units = request.units[&1].clone();
        let leading = units.iter().take_while(|u| self.tiers[0].resident.contains(u)).count();
        let held = units.iter().filter(|u| self.tiers[0].resident.contains(u)).count();
        self.tiers[0].stranded += (held - leading) as u64;
        let mut flags = Vec::new();
        for unit in units {
            let hit = self.tiers[0].resident.contains(&unit);
            flags.push(hit);
            if hit {
                self.tiers[0].unread.remove(&unit);
                self.events.push((0, EventKind::Hit, unit));
                self.with(0, |policy, ask| policy.hit(unit, ask));
            } else if self.tiers[0].filter.admits(unit, request.units[&1].len() as u32) {
                self.put(0, unit);
            } else {
                self.events.push((0, EventKind::Reject, unit));
            }
        }
        let usable = flags.iter().take_while(|&&hit| hit).count();
        (flags.iter().filter(|&&hit| hit).count() as u32, usable.min(request.limit) as u32)
    }
}
