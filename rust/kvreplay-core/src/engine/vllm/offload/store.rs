//! What a request offers to the CPU, and what one store call does.

use super::super::path::WRITTEN;
use super::super::policy::ChunkPolicy;
use super::super::releases::Counted;
use super::{Offload, Refused};
use crate::engine::{Cause, Recorder};

impl<P: ChunkPolicy> Offload<P> {
    /// A step of the engine ends: `tokens` tokens have KV now.
    pub(in crate::engine::vllm) fn step(&mut self, tokens: u64, out: &mut Recorder) {
        let end = (tokens.min(self.limit_tokens) / self.chunk_tokens) as usize;
        let end = end.min(self.path.keys.len());
        if end <= self.next {
            return;
        }
        if let Some(refused) = self.refused {
            self.offer_again(refused, end);
        } else if self.store(end, out) {
            self.next = end;
        } else {
            self.refused = Some(Refused { end, settled: self.is_settled(self.next, end) });
        }
    }

    /// Offers the chunks up to `end` that were not stored yet, in one call. Returns whether it went through.
    fn store(&mut self, end: usize, out: &mut Recorder) -> bool {
        self.offer += 1;
        self.count_offer(self.next, end);
        // What to store is settled before the eviction, which up to 0.14.1 may take chunks of this very offer.
        let present = self.observe(self.next, end);
        self.places.reverse();
        self.rejected.reverse();
        if !self.make_room(out) {
            return false;
        }
        out.already_held(self.set.tier, present);
        self.report_rejected(out);
        if !self.places.is_empty() {
            self.write(end, out);
        }
        true
    }

    /// Offers what was refused again, perhaps with more behind it. What a refusal depends on does not get better while
    /// the request runs, so only what the offer itself changes is left to do.
    fn offer_again(&mut self, refused: Refused, end: usize) {
        let begin = if refused.settled { refused.end } else { self.next };
        if begin < end {
            self.count_offer(begin, end);
            self.observe(begin, end);
            self.refused = Some(Refused { end, settled: self.is_settled(begin, end) });
        }
    }

    /// Sees which chunks of an offer are there, which will be stored and which the threshold refuses, tail first.
    /// Returns the number of those that are there.
    fn observe(&mut self, begin: usize, end: usize) -> u64 {
        let (scoped, mut present) = (self.set.flags.recency.is_scoped(), 0);
        self.places.clear();
        self.rejected.clear();
        for at in (begin..end).rev() {
            if self.policy.holds(self.path.keys[at]) {
                present += 1;
                self.reuse(at);
            } else if self.is_wanted(at) {
                self.places.push(at as u32);
                if scoped {
                    self.policy.miss(&mut self.path, at);
                }
            } else {
                self.rejected.push(at as u32);
            }
        }
        present
    }

    fn make_room(&mut self, out: &mut Recorder) -> bool {
        let free = self.set.capacity - self.policy.len();
        let count = (self.places.len() as u32).saturating_sub(free);
        count == 0 || self.evict(count, false, out)
    }

    /// Marks the offer and counts it.
    fn count_offer(&mut self, begin: usize, end: usize) {
        let offer = self.offer;
        let keys = &self.path.keys[begin..end];
        for &key in keys {
            self.marks[key as usize] = offer;
        }
        let Some(threshold) = &mut self.set.threshold else { return };
        match self.set.flags.counted {
            Counted::LookUps | Counted::LookUpsToMiss => {}
            Counted::EachOffer => {
                for &key in keys {
                    threshold.tracker.count_one(key, &mut self.gone);
                }
            }
            Counted::Offers => {
                let marks = &self.marks;
                let is_offered = |key: u32| marks[key as usize] == offer;
                threshold.tracker.count_offer(keys, is_offered, &mut self.gone);
            }
        }
    }

    /// Whether another offer of the range changes nothing; what lies before `begin` is known to.
    fn is_settled(&self, begin: usize, end: usize) -> bool {
        let Some(threshold) = &self.set.threshold else { return true };
        let count = |&key: &u32| threshold.tracker.get(key);
        let all = &self.path.keys[self.next..end];
        match self.set.flags.counted {
            Counted::LookUps | Counted::LookUpsToMiss => true,
            // A range longer than the table goes round in it: every chunk is new each time.
            Counted::EachOffer if all.len() as u64 > u64::from(threshold.tracker.entries()) => {
                all.iter().all(|key| count(key) <= 1)
            }
            Counted::EachOffer => all.iter().all(|&key| threshold.is_met(key)),
            // What finds no place in a table full of this very range never will.
            Counted::Offers => {
                self.path.keys[begin..end].iter().all(|key| count(key) == 0 || threshold.is_met(*key))
            }
        }
    }

    fn report_rejected(&self, out: &mut Recorder) {
        for &at in &self.rejected {
            let key = self.path.keys[at as usize];
            if self.private.is_private(key) {
                out.reject_unnamed(self.set.tier);
            } else {
                out.reject(self.set.tier, key);
            }
        }
    }

    /// Stores the chunks at `places` and hands them on to the secondary tiers.
    fn write(&mut self, end: usize, out: &mut Recorder) {
        self.policy.insert(&mut self.path, &self.places);
        for &at in &self.places {
            self.path.set(at as usize, WRITTEN);
            let key = self.path.keys[at as usize];
            if self.private.is_private(key) {
                out.insert_unnamed(self.set.tier, Cause::Compute);
            } else {
                out.insert(self.set.tier, key, Cause::Compute);
            }
        }
        if !self.set.flags.recency.is_scoped() {
            self.touch_written(end);
        }
        for &at in &self.places {
            let key = self.path.keys[at as usize];
            self.set.secondaries.write((!self.private.is_private(key)).then_some(key), out);
        }
    }

    /// Up to 0.30.0: a call that stores touches the whole path, and then the transfers end, head first.
    fn touch_written(&mut self, end: usize) {
        let mut written = self.places.iter().rev().peekable();
        for (at, &key) in self.path.keys[..end].iter().enumerate().rev() {
            let is_new = written.next_if(|&&place| place as usize == at).is_some();
            self.policy.touch(key, is_new);
        }
        for &at in &self.places {
            self.policy.transferred(self.path.keys[at as usize]);
        }
    }
}
