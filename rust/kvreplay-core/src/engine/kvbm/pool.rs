//! A pool of one tier: blocks never used, blocks in use, and inactive blocks that can be found and evicted.

use super::order::Order;
use super::request::{Item, parent_of};
use crate::engine::{Cause, EngineRequest, Recorder};
use crate::policy::parts::NONE;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Absent,
    Inactive,
    Active,
}

/// The pool. Nodes below `names` are the blocks of these names; the others have no name and are made anew.
#[derive(Debug)]
pub(super) struct Pool {
    tier: usize,
    capacity: u32,
    names: u32,
    states: Vec<State>,
    parents: Vec<u32>,
    /// What hashes the blocks without a name.
    keys: Vec<u64>,
    order: Order,
    resident: u32,
    active: u32,
    /// Blocks taken out of the pool and not registered yet.
    reserved: u32,
    /// Nodes without a name that are free.
    spare: Vec<u32>,
    /// Node and place of the request's last block without a name, while it is here: the parent of the next.
    last_nameless: Option<(u32, u64)>,
}

impl Pool {
    /// An empty pool of tier `tier` over so many names.
    pub(super) fn new(tier: usize, capacity: u32, names: u32, order: Order) -> Self {
        Self {
            tier,
            capacity,
            names,
            states: vec![State::Absent; names as usize],
            parents: vec![NONE; names as usize],
            keys: Vec::new(),
            order,
            resident: 0,
            active: 0,
            reserved: 0,
            spare: Vec::new(),
            last_nameless: None,
        }
    }

    /// The position of its tier.
    pub(super) fn tier(&self) -> usize {
        self.tier
    }

    /// Starts a request.
    pub(super) fn begin(&mut self) {
        self.last_nameless = None;
    }

    /// Whether a block can be found.
    pub(super) fn has(&self, name: u32) -> bool {
        self.states[name as usize] != State::Absent
    }

    /// What hashes a block, see [`Item::key`].
    pub(super) fn key(&self, node: u32) -> u64 {
        node.checked_sub(self.names).map_or(u64::from(node), |nameless| self.keys[nameless as usize])
    }

    /// Whether so many blocks can be taken for new content.
    pub(super) fn has_room(&self, blocks: u32) -> bool {
        blocks <= self.capacity - self.active - self.reserved
    }

    /// Takes an inactive block into use.
    pub(super) fn take(&mut self, node: u32) {
        debug_assert_eq!(self.states[node as usize], State::Inactive);
        self.order.remove(node);
        self.states[node as usize] = State::Active;
        self.active += 1;
    }

    /// Gives a block back, as the newest of a list or below its parent.
    pub(super) fn put(&mut self, node: u32, list: u32) {
        debug_assert_eq!(self.states[node as usize], State::Active);
        self.states[node as usize] = State::Inactive;
        self.active -= 1;
        self.order.insert(node, self.parents[node as usize], list);
    }

    /// Takes and gives back: the block counts as used just now.
    pub(super) fn renew(&mut self, name: u32) {
        self.take(name);
        self.put(name, 0);
    }

    /// Takes `blocks` blocks for new content, all or none: first those never used or empty again, then
    /// victims.
    pub(super) fn allocate(&mut self, blocks: u32, out: &mut Recorder) -> bool {
        if !self.has_room(blocks) {
            return false;
        }
        let empty = self.capacity - self.resident - self.reserved;
        for _ in empty..blocks {
            let node = self.order.evict().expect("what is neither empty nor in use is inactive");
            self.leave(node, out);
        }
        self.reserved += blocks;
        true
    }

    fn leave(&mut self, node: u32, out: &mut Recorder) {
        self.states[node as usize] = State::Absent;
        self.resident -= 1;
        if node < self.names {
            out.evict(self.tier, node);
            return;
        }
        out.evict_unnamed(self.tier);
        self.spare.push(node);
        if self.last_nameless.is_some_and(|(last, _)| last == node) {
            self.last_nameless = None;
        }
    }

    /// Registers a filled block. If there is one of its name already, the new one is given back empty and the
    /// old one is used; the answer says whether it was new.
    pub(super) fn register(
        &mut self,
        item: &Item,
        request: &EngineRequest<'_>,
        cause: Cause,
        out: &mut Recorder,
    ) -> (u32, bool) {
        self.reserved -= 1;
        let before = self.last_nameless.filter(|&(_, at)| at + 1 == item.at).map(|(node, _)| node);
        let parent = parent_of(request, item.at).or(before);
        let node = match item.name {
            Some(name) if self.has(name) => {
                self.take(name);
                out.already_held(self.tier, 1);
                return (name, false);
            }
            Some(name) => name,
            None => self.nameless(item.key),
        };
        self.states[node as usize] = State::Active;
        self.parents[node as usize] = parent.unwrap_or(NONE);
        self.active += 1;
        self.resident += 1;
        if let Some(name) = item.name {
            out.insert(self.tier, name, cause);
        } else {
            self.last_nameless = Some((node, item.at));
            out.insert_unnamed(self.tier, cause);
        }
        (node, true)
    }

    fn nameless(&mut self, key: u64) -> u32 {
        let node = self.spare.pop().unwrap_or_else(|| {
            self.states.push(State::Absent);
            self.parents.push(NONE);
            self.keys.push(0);
            self.order.add();
            self.states.len() as u32 - 1
        });
        self.keys[(node - self.names) as usize] = key;
        node
    }

    /// Named blocks, the last to leave first.
    pub(super) fn content(&self) -> Vec<u32> {
        self.order.last_first().into_iter().filter(|&node| node < self.names).collect()
    }

    /// Checks the pool between requests.
    pub(super) fn validate(&self) -> Result<(), String> {
        let inactive = self.states.iter().filter(|state| **state == State::Inactive).count();
        let listed = self.order.last_first().len();
        if self.active != 0 || self.reserved != 0 {
            return Err(format!("tier {}: {} blocks in use between requests", self.tier, self.active));
        }
        if inactive != self.resident as usize || listed != inactive {
            return Err(format!("tier {}: {inactive} inactive blocks, {listed} listed", self.tier));
        }
        if self.resident > self.capacity {
            return Err(format!("tier {}: {} blocks of {}", self.tier, self.resident, self.capacity));
        }
        self.order.validate()
    }
}
