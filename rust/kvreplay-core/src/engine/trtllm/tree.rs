//! The reuse tree of `TensorRT-LLM`'s managers: which free or used blocks a prompt can find.
//!
//! A full block has one place in the tree. The block that a prompt ends in is found by its leading tokens: a
//! trace names these, but not where two blocks of different names begin to differ.

use super::slots::{Block, Slots};
use crate::engine::{Cause, Recorder};
use crate::policy::parts::NONE;

/// What is stored in a block at the end of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct Key {
    /// Name of the whole block, if it is full and has one.
    pub(super) name: u32,
    /// Name and number of the leading tokens of a block that is not known in full.
    pub(super) lead: u32,
    pub(super) lead_tokens: u32,
    /// Tokens in all.
    pub(super) tokens: u32,
    /// Whether these fill the block.
    pub(super) full: bool,
}

/// A block found for the tokens of a prompt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// All tokens of a full block.
    Full(u32),
    /// A block whose first tokens are those looked for, and how many.
    Partial(u32, u32),
}

/// What a name leads to; all in one place, since they are looked at together.
#[derive(Debug, Clone, Copy)]
struct Name {
    /// The full block.
    full: u32,
    /// The newest block whose leading tokens have the name.
    lead: u32,
    /// The block that the recorder counts.
    counted: u32,
}

/// Blocks by name.
#[derive(Debug)]
pub(super) struct Tree {
    names: Vec<Name>,
    /// What the last detachment took out, parents first.
    detached: Vec<u32>,
}

impl Tree {
    pub(super) fn new(names: u32) -> Self {
        let none = Name { full: NONE, lead: NONE, counted: NONE };
        Self { names: vec![none; names as usize], detached: Vec::new() }
    }

    /// The best match for the first `tokens` tokens of a block named `name`, below the path matched so far.
    /// `only_unused` leaves out blocks that cannot be written into (`copy_on_partial_reuse` off).
    pub(super) fn find(
        &self,
        slots: &Slots,
        name: u32,
        tokens: u32,
        block_tokens: u32,
        partial: Partial,
    ) -> Option<Found> {
        let full = self.names[name as usize].full;
        if full != NONE && tokens == block_tokens {
            return Some(Found::Full(full));
        }
        let exact = self.exact_part(slots, name, tokens);
        if exact != NONE {
            return Some(Found::Partial(exact, tokens));
        }
        if partial == Partial::Off {
            return None;
        }
        let usable = |block: u32| {
            let block = &slots.blocks[block as usize];
            partial == Partial::Copy || (block.queued && block.first_child == NONE)
        };
        if full != NONE && usable(full) {
            return Some(Found::Partial(full, tokens));
        }
        let mut best = None;
        for block in self.leads_of(slots, name).filter(|&block| usable(block)) {
            let matched = slots.blocks[block as usize].lead_tokens.min(tokens);
            if matched > 0 && best.is_none_or(|(_, most)| matched > most) {
                best = Some((block, matched));
                if matched == tokens {
                    break;
                }
            }
        }
        best.map(|(block, matched)| Found::Partial(block, matched))
    }

    /// The block with the very same key, as the end of a request looks for it.
    pub(super) fn exact(&self, slots: &Slots, key: &Key) -> u32 {
        match key {
            Key { name: NONE, lead: NONE, .. } => NONE,
            Key { name: NONE, lead, lead_tokens, tokens, .. } if lead_tokens == tokens => {
                self.exact_part(slots, *lead, *tokens)
            }
            Key { name: NONE, .. } => NONE,
            Key { name, .. } => self.names[*name as usize].full,
        }
    }

    fn exact_part(&self, slots: &Slots, name: u32, tokens: u32) -> u32 {
        let same = |&block: &u32| {
            let block = &slots.blocks[block as usize];
            block.tokens == tokens && block.lead_tokens == tokens
        };
        self.leads_of(slots, name).find(same).unwrap_or(NONE)
    }

    fn leads_of<'a>(&self, slots: &'a Slots, name: u32) -> impl Iterator<Item = u32> + 'a {
        let some = |block: u32| (block != NONE).then_some(block);
        let first = some(self.names[name as usize].lead);
        std::iter::successors(first, move |&block| some(slots.blocks[block as usize].next_lead))
    }

    /// Hangs a block below its parent ([`NONE`] = the root), on the GPU.
    pub(super) fn insert(
        &mut self,
        slots: &mut Slots,
        block: u32,
        parent: u32,
        key: &Key,
        out: &mut Recorder,
    ) {
        let sibling = if parent == NONE { NONE } else { slots.blocks[parent as usize].first_child };
        if sibling != NONE {
            slots.blocks[sibling as usize].previous_sibling = block;
        }
        if parent != NONE {
            slots.blocks[parent as usize].first_child = block;
        }
        let newest = if key.lead == NONE { NONE } else { self.names[key.lead as usize].lead };
        if newest != NONE {
            slots.blocks[newest as usize].previous_lead = block;
        }
        let at = &mut slots.blocks[block as usize];
        (at.name, at.lead, at.lead_tokens, at.tokens) = (key.name, key.lead, key.lead_tokens, key.tokens);
        (at.parent, at.next_sibling, at.previous_sibling) = (parent, sibling, NONE);
        (at.next_lead, at.previous_lead) = (newest, NONE);
        at.in_tree = true;
        if key.lead != NONE {
            self.names[key.lead as usize].lead = block;
        }
        if key.name != NONE {
            self.names[key.name as usize].full = block;
        }
        self.count(at, block, key.full);
        at.record_insert(0, Cause::Compute, out);
    }

    /// A name is counted once; of blocks without one the full ones are.
    fn count(&mut self, at: &mut Block, block: u32, full: bool) {
        let unit = at.unit();
        at.counted = if unit == NONE { full } else { self.names[unit as usize].counted == NONE };
        if at.counted && unit != NONE {
            self.names[unit as usize].counted = block;
        }
    }

    /// Takes a block and all that hangs below it out of the tree, deepest first.
    pub(super) fn detach(&mut self, slots: &mut Slots, block: u32, out: &mut Recorder) {
        let mut order = std::mem::take(&mut self.detached);
        order.clear();
        if slots.blocks[block as usize].in_tree {
            order.push(block);
        }
        let mut at = 0;
        while at < order.len() {
            let mut child = slots.blocks[order[at] as usize].first_child;
            while child != NONE {
                order.push(child);
                child = slots.blocks[child as usize].next_sibling;
            }
            at += 1;
        }
        for &block in order.iter().rev() {
            let at = &slots.blocks[block as usize];
            at.record_evict(at.level as usize, out);
            self.remove(slots, block);
        }
        self.detached = order;
    }

    /// What the last [`Self::detach`] took out of the tree.
    pub(super) fn detached(&self) -> &[u32] {
        &self.detached
    }

    /// The full block of a name, [`NONE`] without one.
    pub(super) fn full(&self, name: u32) -> u32 {
        self.names[name as usize].full
    }

    /// Takes a block without children out of the tree.
    pub(super) fn remove(&mut self, slots: &mut Slots, block: u32) {
        let at = slots.blocks[block as usize].clone();
        if at.previous_sibling != NONE {
            slots.blocks[at.previous_sibling as usize].next_sibling = at.next_sibling;
        } else if at.parent != NONE {
            slots.blocks[at.parent as usize].first_child = at.next_sibling;
        }
        if at.next_sibling != NONE {
            slots.blocks[at.next_sibling as usize].previous_sibling = at.previous_sibling;
        }
        if at.lead != NONE {
            match at.previous_lead {
                NONE => self.names[at.lead as usize].lead = at.next_lead,
                previous => slots.blocks[previous as usize].next_lead = at.next_lead,
            }
            if at.next_lead != NONE {
                slots.blocks[at.next_lead as usize].previous_lead = at.previous_lead;
            }
        }
        if at.name != NONE {
            self.names[at.name as usize].full = NONE;
        }
        if at.counted && at.unit() != NONE {
            self.names[at.unit() as usize].counted = NONE;
        }
        let at = &mut slots.blocks[block as usize];
        (at.in_tree, at.counted, at.parent) = (false, false, NONE);
        (at.name, at.lead, at.lead_tokens) = (NONE, NONE, 0);
        (at.next_sibling, at.previous_sibling) = (NONE, NONE);
        (at.next_lead, at.previous_lead) = (NONE, NONE);
    }

    /// Checks that names and blocks know each other and that no block hangs below one that is gone.
    pub(super) fn validate(&self, slots: &Slots) -> Result<(), String> {
        for (name, known) in self.names.iter().enumerate().filter(|(_, known)| known.full != NONE) {
            let at = &slots.blocks[known.full as usize];
            if !at.in_tree || at.name as usize != name {
                return Err(format!("name {name} leads to block {}, which is something else", known.full));
            }
        }
        for (id, at) in slots.blocks.iter().enumerate().filter(|(_, at)| at.in_tree) {
            if at.parent != NONE && !slots.blocks[at.parent as usize].in_tree {
                return Err(format!("block {id} hangs below a block that left the tree"));
            }
        }
        Ok(())
    }
}

/// What is done where no block has all the tokens looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Partial {
    /// Nothing (`enable_partial_reuse` off).
    Off,
    /// The best leading part is copied, or written into when nobody needs it (the engine's default).
    Copy,
    /// Only blocks that nobody needs are looked at (`copy_on_partial_reuse` off).
    Own,
}
