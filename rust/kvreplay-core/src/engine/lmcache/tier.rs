//! One backend of the in-process engine: a bounded set of chunks and its eviction order.

use super::order::{Order, Policy, Walk};
use crate::engine::parts::Member;
use crate::engine::{Cause, Recorder};
use crate::policy::parts::BitSet;

/// What a backend is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Memory or disk: it evicts, and a look-up refreshes what it finds.
    Local,
    /// A remote server that evicts on its own, and does not take a look-up for a use.
    Remote,
    /// A remote server that is full some day: `LMCache` deletes nothing from it.
    Append,
}

/// The chunks of a backend.
#[derive(Debug)]
pub(super) struct Tier {
    /// Position among the tiers of the replay.
    at: usize,
    capacity_chunks: u64,
    kind: Kind,
    resident: BitSet,
    chunks: u64,
    /// Slots taken by the store or load under way and not filled yet.
    taken: u64,
    order: Order,
    /// Chunks that the load under way needs: no victims.
    pinned: BitSet,
}

impl Tier {
    pub(super) fn new(at: usize, capacity_chunks: u64, policy: Policy, kind: Kind, blocks: u32) -> Self {
        Self {
            at,
            capacity_chunks,
            kind,
            resident: BitSet::new(blocks),
            chunks: 0,
            taken: 0,
            order: Order::new(policy, blocks),
            pinned: BitSet::new(blocks),
        }
    }

    pub(super) fn at(&self) -> usize {
        self.at
    }

    #[inline]
    pub(super) fn has(&self, chunk: u32) -> bool {
        self.resident.get(chunk)
    }

    /// Length of the leading run of resident chunks.
    pub(super) fn leading(&self, chunks: &[u32]) -> usize {
        chunks.iter().position(|&chunk| !self.has(chunk)).unwrap_or(chunks.len())
    }

    /// How many of the chunks are resident.
    pub(super) fn count(&self, chunks: &[u32]) -> u32 {
        chunks.iter().filter(|&&chunk| self.has(chunk)).count() as u32
    }

    /// A look-up finds resident chunks: local backends refresh them, tail to head.
    pub(super) fn find(&mut self, chunks: &[u32]) {
        if self.kind == Kind::Local {
            for &chunk in chunks.iter().rev() {
                self.touch(chunk);
            }
        }
    }

    /// A resident chunk is used.
    #[inline]
    pub(super) fn touch(&mut self, chunk: u32) {
        self.order.touch(chunk);
    }

    pub(super) fn pin(&mut self, chunks: &[u32]) {
        for &chunk in chunks {
            self.pinned.set(chunk);
        }
    }

    pub(super) fn unpin(&mut self, chunks: &[u32]) {
        for &chunk in chunks {
            self.pinned.clear(chunk);
        }
    }

    /// Takes up to `wanted` slots, evicting one victim at a time where none is free; returns how many it got.
    pub(super) fn take(&mut self, wanted: u64, out: &mut Recorder) -> u64 {
        let mut walk = Walk::default();
        let before = self.taken;
        loop {
            let free = self.capacity_chunks.saturating_sub(self.chunks + self.taken);
            self.taken += free.min(before + wanted - self.taken);
            let missing = before + wanted - self.taken;
            if missing == 0 || self.kind == Kind::Append {
                return self.taken - before;
            }
            let pinned = &self.pinned;
            let Some(member) = self.order.evict(&mut walk, missing, |chunk| pinned.get(chunk)) else {
                return self.taken - before;
            };
            self.forget(member, out);
        }
    }

    /// Fills a taken slot; `false` for a chunk that is resident, whose slot is given back.
    #[inline]
    pub(super) fn fill(&mut self, chunk: u32, cause: Cause, out: &mut Recorder) -> bool {
        self.taken -= 1;
        if self.has(chunk) {
            out.already_held(self.at, 1);
            return false;
        }
        self.resident.set(chunk);
        self.chunks += 1;
        self.order.add(chunk);
        out.insert(self.at, chunk, cause);
        true
    }

    /// Fills `count` taken slots with chunks that nobody will find.
    pub(super) fn fill_unnamed(&mut self, count: u64, out: &mut Recorder) {
        self.taken -= count;
        self.chunks += count;
        self.order.add_unnamed(count);
        out.insert_unnamed_run(self.at, count, Cause::Compute);
    }

    /// Puts one chunk as disk and remote backends do: one that is there is used again, else room is made for it.
    pub(super) fn put(&mut self, chunk: u32, out: &mut Recorder) {
        if self.has(chunk) {
            self.touch(chunk);
            out.already_held(self.at, 1);
        } else if self.take(1, out) == 1 {
            self.fill(chunk, Cause::Compute, out);
        } else {
            out.no_room(self.at, 1);
        }
    }

    /// Puts `count` chunks without a name, one after the other; returns how many found room.
    pub(super) fn put_unnamed(&mut self, count: u64, out: &mut Recorder) -> u64 {
        let mut left = count;
        while left > 0 {
            let free = self.capacity_chunks.saturating_sub(self.chunks + self.taken);
            if free == 0 && self.kind != Kind::Append && self.order.unnamed_chase_themselves() {
                // From here on each takes the place of one before it.
                out.replace_unnamed_run(self.at, left, Cause::Compute);
                return count;
            }
            let got = self.take(free.clamp(1, left), out);
            if got == 0 {
                out.no_room(self.at, left);
                break;
            }
            self.fill_unnamed(got, out);
            left -= got;
        }
        count - left
    }

    fn forget(&mut self, member: Member, out: &mut Recorder) {
        self.chunks -= member.count();
        match member {
            Member::Named(chunk) => {
                self.resident.clear(chunk);
                out.evict(self.at, chunk);
            }
            Member::Unnamed(count) => out.evict_unnamed_run(self.at, count),
        }
    }

    /// Named chunks, the last to be evicted first.
    pub(super) fn content(&self) -> Vec<u32> {
        self.order.content()
    }

    /// Checks the tier between requests.
    pub(super) fn validate(&self) -> Result<(), String> {
        let mut content = self.content();
        content.sort_unstable();
        let (held, listed) = (self.chunks, self.order.len());
        if held > self.capacity_chunks || held != listed || self.taken != 0 {
            let taken = self.taken;
            return Err(format!("tier {}: {held} chunks, {listed} in order, {taken} slots taken", self.at));
        }
        if self.resident.iter().ne(content.iter().copied()) {
            return Err(format!("tier {}: the order does not list what is resident", self.at));
        }
        if self.pinned.count() > 0 {
            return Err(format!("tier {}: chunks are pinned between requests", self.at));
        }
        Ok(())
    }
}
