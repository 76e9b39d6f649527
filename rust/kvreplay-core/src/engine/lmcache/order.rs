//! Eviction orders of the in-process engine: `cache_policy` LRU, LFU, FIFO or MRU, for memory and disk.
//!
//! Source: `LMCache` 0.5.6, `v1/storage_backend/cache_policy/*.py`. LFU keeps a bucket per number of uses, each in
//! order of arrival; a chunk that was evicted starts again in bucket 1. The other policies are one bucket.

use crate::engine::parts::{End, List, Member, Members};

/// The policies, as `cache_policy` names them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Policy {
    Lru,
    Lfu,
    Fifo,
    Mru,
}

impl Policy {
    /// The policy of a checked name.
    pub(super) fn named(name: &str) -> Self {
        match name {
            "lfu" => Self::Lfu,
            "fifo" => Self::Fifo,
            "mru" => Self::Mru,
            _ => Self::Lru,
        }
    }
}

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Bucket {
    list: List,
    uses: u64,
    /// Neighbours with fewer and more uses.
    below: u32,
    above: u32,
}

/// Resident chunks in order of eviction.
#[derive(Debug)]
pub(super) struct Order {
    policy: Policy,
    members: Members,
    buckets: Vec<Bucket>,
    free: Vec<u32>,
    /// The bucket with the fewest uses; the only one unless the policy is LFU.
    lowest: u32,
    /// Bucket per chunk, LFU only.
    home: Vec<u32>,
}

/// Where a walk for victims stands. Nothing may be added or touched between two steps of one walk.
#[derive(Debug, Clone, Copy, Default)]
pub(super) enum Walk {
    #[default]
    Start,
    /// The next entry to look at, with its bucket.
    At(u32, u32),
    End,
}

impl Order {
    pub(super) fn new(policy: Policy, blocks: u32) -> Self {
        let lfu = policy == Policy::Lfu;
        let only = Bucket { list: List::default(), uses: 0, below: NONE, above: NONE };
        Self {
            policy,
            members: Members::new(blocks),
            buckets: if lfu { Vec::new() } else { vec![only] },
            free: Vec::new(),
            lowest: if lfu { NONE } else { 0 },
            home: vec![NONE; if lfu { blocks as usize } else { 0 }],
        }
    }

    /// A resident chunk is used.
    #[inline]
    pub(super) fn touch(&mut self, chunk: u32) {
        match self.policy {
            Policy::Lru | Policy::Mru => self.buckets[0].list.renew(&mut self.members, chunk),
            Policy::Fifo => {}
            Policy::Lfu => self.promote(chunk),
        }
    }

    /// A chunk comes.
    #[inline]
    pub(super) fn add(&mut self, chunk: u32) {
        let bucket = self.entrance();
        self.buckets[bucket as usize].list.push(&mut self.members, chunk);
        if let Some(home) = self.home.get_mut(chunk as usize) {
            *home = bucket;
        }
    }

    /// `count` chunks come that nobody will find.
    pub(super) fn add_unnamed(&mut self, count: u64) {
        if count > 0 {
            let bucket = self.entrance();
            self.buckets[bucket as usize].list.push_unnamed(&mut self.members, count);
        }
    }

    /// Takes the next victim that is not `spared` out; of unnamed ones at most `most`.
    #[inline]
    pub(super) fn evict(
        &mut self,
        walk: &mut Walk,
        most: u64,
        spared: impl Fn(u32) -> bool,
    ) -> Option<Member> {
        loop {
            let (bucket, entry) = self.stand(walk)?;
            if List::named(&self.members, entry).is_some_and(&spared) {
                *walk = self.after(bucket, entry);
                continue;
            }
            // What is left of an unnamed run comes next.
            let rest = List::blocks(&self.members, entry) > most;
            *walk = if rest { Walk::At(bucket, entry) } else { self.after(bucket, entry) };
            let list = &mut self.buckets[bucket as usize].list;
            let member = list.take(&mut self.members, entry, most);
            if list.is_empty() && self.policy == Policy::Lfu {
                self.drop_bucket(bucket);
            }
            return Some(member);
        }
    }

    /// Whether the next victim is an unnamed chunk of the run that an unnamed chunk coming now would join: then
    /// one leaves for each that comes, and the order stays as it is.
    pub(super) fn unnamed_chase_themselves(&self) -> bool {
        let Some((bucket, entry)) = self.peek() else { return false };
        let enters = self.policy != Policy::Lfu || self.buckets[bucket as usize].uses == 1;
        let newest = self.buckets[bucket as usize].list.first(End::Newest);
        enters && List::named(&self.members, entry).is_none() && newest == Some(entry)
    }

    /// Named chunks, the last to be evicted first.
    pub(super) fn content(&self) -> Vec<u32> {
        let buckets: Vec<&Bucket> = self.upward().collect();
        let newest_first = buckets.iter().rev().flat_map(|bucket| bucket.list.iter(&self.members));
        let mut content: Vec<u32> = newest_first.collect();
        if self.policy == Policy::Mru {
            content.reverse();
        }
        content
    }

    /// Chunks, unnamed ones included.
    pub(super) fn len(&self) -> u64 {
        self.upward().map(|bucket| bucket.list.len()).sum()
    }

    /// The buckets from the lowest up.
    fn upward(&self) -> impl Iterator<Item = &Bucket> {
        let at = |bucket: u32| self.buckets.get(bucket as usize);
        std::iter::successors(at(self.lowest), move |bucket| at(bucket.above))
    }

    fn end(&self) -> End {
        if self.policy == Policy::Mru { End::Newest } else { End::Oldest }
    }

    fn peek(&self) -> Option<(u32, u32)> {
        if self.lowest == NONE {
            return None;
        }
        self.buckets[self.lowest as usize].list.first(self.end()).map(|entry| (self.lowest, entry))
    }

    fn stand(&self, walk: &Walk) -> Option<(u32, u32)> {
        match *walk {
            Walk::Start => self.peek(),
            Walk::At(bucket, entry) => Some((bucket, entry)),
            Walk::End => None,
        }
    }

    fn after(&self, bucket: u32, entry: u32) -> Walk {
        if let Some(next) = List::after(&self.members, entry, self.end()) {
            return Walk::At(bucket, next);
        }
        match self.buckets[bucket as usize].above {
            NONE => Walk::End,
            above => match self.buckets[above as usize].list.first(self.end()) {
                Some(entry) => Walk::At(above, entry),
                None => Walk::End,
            },
        }
    }

    /// The bucket of what comes.
    fn entrance(&mut self) -> u32 {
        if self.policy != Policy::Lfu {
            return 0;
        }
        if self.lowest == NONE || self.buckets[self.lowest as usize].uses > 1 {
            let bucket = self.new_bucket(1, NONE, self.lowest);
            self.lowest = bucket;
        }
        self.lowest
    }

    fn promote(&mut self, chunk: u32) {
        let from = self.home[chunk as usize];
        let Bucket { uses, above, .. } = self.buckets[from as usize];
        let to = if above != NONE && self.buckets[above as usize].uses == uses + 1 {
            above
        } else {
            self.new_bucket(uses + 1, from, above)
        };
        self.buckets[from as usize].list.remove(&mut self.members, chunk);
        self.buckets[to as usize].list.push(&mut self.members, chunk);
        self.home[chunk as usize] = to;
        if self.buckets[from as usize].list.is_empty() {
            self.drop_bucket(from);
        }
    }

    fn new_bucket(&mut self, uses: u64, below: u32, above: u32) -> u32 {
        let bucket = Bucket { list: List::default(), uses, below, above };
        let at = if let Some(at) = self.free.pop() {
            self.buckets[at as usize] = bucket;
            at
        } else {
            self.buckets.push(bucket);
            self.buckets.len() as u32 - 1
        };
        if below != NONE {
            self.buckets[below as usize].above = at;
        }
        if above != NONE {
            self.buckets[above as usize].below = at;
        }
        at
    }

    fn drop_bucket(&mut self, bucket: u32) {
        let Bucket { below, above, .. } = self.buckets[bucket as usize];
        if below == NONE {
            self.lowest = above;
        } else {
            self.buckets[below as usize].above = above;
        }
        if above != NONE {
            self.buckets[above as usize].below = below;
        }
        self.free.push(bucket);
    }
}
