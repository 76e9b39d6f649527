//! Eviction orders of the multi-process server: LRU and its variant of ARC.
//!
//! Source: `LMCache` 0.5.6, `v1/distributed/eviction_policy/{lru,arc}.py`. The server evicts in batches when it is
//! nearly full, so ARC here knows no incoming key; its capacity is the largest number of chunks it ever held
//! ("top").

use crate::engine::parts::{List, Member, Members};

/// Where a chunk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Home {
    None,
    T1,
    T2,
    B1,
    B2,
}

/// Chunks of a tier in order of eviction.
#[derive(Debug)]
pub(super) struct Order {
    members: Members,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Lru(List),
    Arc(Box<Arc>),
}

impl Order {
    pub(super) fn lru(blocks: u32) -> Self {
        Self { members: Members::new(blocks), kind: Kind::Lru(List::default()) }
    }

    pub(super) fn arc(blocks: u32) -> Self {
        let arc = Arc { home: vec![Home::None; blocks as usize], ..Arc::default() };
        Self { members: Members::new(blocks), kind: Kind::Arc(Box::new(arc)) }
    }

    /// An absent chunk comes. ARC puts it into T1, and learns from the ghost list it is in, if any; with
    /// `frequent_if_ghost` a ghost comes back into T2.
    #[inline]
    pub(super) fn create(&mut self, chunk: u32, frequent_if_ghost: bool) {
        match &mut self.kind {
            Kind::Lru(list) => list.push(&mut self.members, chunk),
            Kind::Arc(arc) => arc.create(&mut self.members, chunk, frequent_if_ghost),
        }
    }

    /// `count` chunks come that nobody will find.
    pub(super) fn create_unnamed(&mut self, count: u64) {
        match &mut self.kind {
            Kind::Lru(list) => list.push_unnamed(&mut self.members, count),
            Kind::Arc(arc) => arc.create_unnamed(&mut self.members, count),
        }
    }

    /// A resident chunk is used.
    #[inline]
    pub(super) fn touch(&mut self, chunk: u32) {
        match &mut self.kind {
            Kind::Lru(list) => list.renew(&mut self.members, chunk),
            Kind::Arc(arc) => arc.touch(&mut self.members, chunk),
        }
    }

    /// A chunk is deleted: nothing is learnt from it.
    pub(super) fn delete(&mut self, chunk: u32) {
        match &mut self.kind {
            Kind::Lru(list) => list.remove(&mut self.members, chunk),
            Kind::Arc(arc) => arc.delete(&mut self.members, chunk),
        }
    }

    /// Deletes the `count` unnamed chunks that came last.
    pub(super) fn delete_newest_unnamed(&mut self, count: u64) {
        let list = match &mut self.kind {
            Kind::Lru(list) => list,
            Kind::Arc(arc) => &mut arc.t1,
        };
        list.take_newest_unnamed(&mut self.members, count);
        if let Kind::Arc(arc) = &mut self.kind {
            arc.trim(&mut self.members);
        }
    }

    /// Adds `count` unnamed chunks where touched ones go.
    pub(super) fn add_touched_unnamed(&mut self, count: u64) {
        let list = match &mut self.kind {
            Kind::Lru(list) => list,
            Kind::Arc(arc) => &mut arc.t2,
        };
        list.push_unnamed(&mut self.members, count);
    }

    /// Evicts `count` chunks (at most what there is) in one batch, in order.
    pub(super) fn evict(&mut self, count: u64, mut evicted: impl FnMut(Member)) {
        let mut left = count;
        while left > 0 {
            let member = match &mut self.kind {
                Kind::Lru(list) => list.pop_oldest(&mut self.members, left),
                Kind::Arc(arc) => arc.retire(&mut self.members, left),
            };
            let Some(member) = member else { break };
            left -= member.count();
            evicted(member);
        }
        if let Kind::Arc(arc) = &mut self.kind {
            arc.trim(&mut self.members);
        }
    }

    /// Chunks, unnamed ones included.
    pub(super) fn len(&self) -> u64 {
        match &self.kind {
            Kind::Lru(list) => list.len(),
            Kind::Arc(arc) => arc.resident(),
        }
    }

    /// Named chunks, the last to be evicted first (ARC: T2, then T1).
    pub(super) fn content(&self) -> Vec<u32> {
        match &self.kind {
            Kind::Lru(list) => list.iter(&self.members).collect(),
            Kind::Arc(arc) => arc.t2.iter(&self.members).chain(arc.t1.iter(&self.members)).collect(),
        }
    }

    /// Checks the bounds of the ghost lists.
    pub(super) fn validate(&self) -> Result<(), String> {
        match &self.kind {
            Kind::Lru(_) => Ok(()),
            Kind::Arc(arc) => arc.validate(&self.members),
        }
    }
}

#[derive(Debug, Default)]
struct Arc {
    home: Vec<Home>,
    t1: List,
    t2: List,
    b1: List,
    b2: List,
    /// Target size of T1 in chunks.
    target: f64,
    /// Largest number of resident chunks ever.
    top: u64,
}

impl Arc {
    fn create(&mut self, members: &mut Members, chunk: u32, frequent_if_ghost: bool) {
        let home = self.home[chunk as usize];
        // The ghost lists count the key itself while the target moves.
        let ratio = |other: &List, hit: &List| (other.len() as f64 / hit.len() as f64).max(1.0);
        match home {
            Home::B1 => {
                self.target = (self.target + ratio(&self.b2, &self.b1)).min(self.top as f64);
                self.b1.remove(members, chunk);
            }
            Home::B2 => {
                self.target = (self.target - ratio(&self.b1, &self.b2)).max(0.0);
                self.b2.remove(members, chunk);
            }
            Home::None => {}
            Home::T1 | Home::T2 => return self.touch(members, chunk),
        }
        if frequent_if_ghost && home != Home::None {
            self.t2.push(members, chunk);
            self.home[chunk as usize] = Home::T2;
        } else {
            self.t1.push(members, chunk);
            self.home[chunk as usize] = Home::T1;
        }
        self.top = self.top.max(self.resident());
        self.trim(members);
    }

    fn create_unnamed(&mut self, members: &mut Members, count: u64) {
        // The lists are cut after each chunk. While top stands, the room for ghosts shrinks with every chunk,
        // then it grows again: the turning point decides.
        let until_top = count.min(self.top - self.resident());
        for part in [until_top, count - until_top] {
            self.t1.push_unnamed(members, part);
            self.top = self.top.max(self.resident());
            self.trim(members);
        }
    }

    fn touch(&mut self, members: &mut Members, chunk: u32) {
        if self.home[chunk as usize] == Home::T1 {
            self.t1.remove(members, chunk);
            self.t2.push(members, chunk);
            self.home[chunk as usize] = Home::T2;
        } else {
            self.t2.renew(members, chunk);
        }
    }

    fn delete(&mut self, members: &mut Members, chunk: u32) {
        let list = if self.home[chunk as usize] == Home::T1 { &mut self.t1 } else { &mut self.t2 };
        list.remove(members, chunk);
        self.home[chunk as usize] = Home::None;
        self.trim(members);
    }

    /// Moves the next victim to its ghost list; of unnamed ones at most `most`.
    fn retire(&mut self, members: &mut Members, most: u64) -> Option<Member> {
        let target = self.target as u64;
        let all_recent = self.t2.is_empty();
        let recent = all_recent || (self.t1.len() >= target && !self.t1.is_empty());
        let (list, ghosts, home) = if recent {
            (&mut self.t1, &mut self.b1, Home::B1)
        } else {
            (&mut self.t2, &mut self.b2, Home::B2)
        };
        // Unnamed chunks leave T1 only as far as the choice would fall on T1 for each.
        let most = if recent && !all_recent { most.min(list.len() - target + 1) } else { most };
        let member = list.pop_oldest(members, most)?;
        match member {
            Member::Named(chunk) => {
                ghosts.push(members, chunk);
                self.home[chunk as usize] = home;
            }
            Member::Unnamed(count) => ghosts.push_unnamed(members, count),
        }
        Some(member)
    }

    /// Cuts B1 until T1 and B1 hold at most `top`, then B2 (B1 if that is empty) until all hold twice that.
    fn trim(&mut self, members: &mut Members) {
        loop {
            let over = (self.t1.len() + self.b1.len()).saturating_sub(self.top);
            if over == 0 || self.b1.is_empty() {
                break;
            }
            self.forget(members, Home::B1, over);
        }
        loop {
            let over = (self.resident() + self.b1.len() + self.b2.len()).saturating_sub(2 * self.top);
            let ghosts = if self.b2.is_empty() { Home::B1 } else { Home::B2 };
            if over == 0 || (self.b1.is_empty() && self.b2.is_empty()) {
                break;
            }
            self.forget(members, ghosts, over);
        }
    }

    fn forget(&mut self, members: &mut Members, ghosts: Home, most: u64) {
        let list = if ghosts == Home::B1 { &mut self.b1 } else { &mut self.b2 };
        if let Some(Member::Named(chunk)) = list.pop_oldest(members, most) {
            self.home[chunk as usize] = Home::None;
        }
    }

    fn resident(&self) -> u64 {
        self.t1.len() + self.t2.len()
    }

    fn validate(&self, members: &Members) -> Result<(), String> {
        let (t1, b1, b2) = (self.t1.len(), self.b1.len(), self.b2.len());
        if self.resident() > self.top || t1 + b1 > self.top || self.resident() + b1 + b2 > 2 * self.top {
            return Err(format!("ARC: {} resident, ghosts {b1} and {b2}, top {}", self.resident(), self.top));
        }
        let lists = [(Home::T1, &self.t1), (Home::T2, &self.t2), (Home::B1, &self.b1), (Home::B2, &self.b2)];
        for (home, list) in lists {
            if list.iter(members).any(|chunk| self.home[chunk as usize] != home) {
                return Err(format!("ARC: a chunk of {home:?} is thought elsewhere"));
            }
        }
        Ok(())
    }
}
