//! The blocks of `TensorRT-LLM`'s managers and their free queues.
//!
//! A block object stays the same when its content moves between the levels: only its slot changes
//! (`swapMemoryPoolBlockOffset`). Free blocks lie in one FIFO per level and priority; blocks that were never
//! used are the front of the default priority's queue, so a count stands for them.

use crate::engine::parts::Links;
use crate::engine::{Cause, Recorder};
use crate::policy::parts::NONE;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The priority of blocks that nobody gave one (`kDefaultRetentionPriority`).
pub(super) const DEFAULT_PRIORITY: u8 = 35;
/// The highest priority.
pub(super) const MAX_PRIORITY: u8 = 100;
const QUEUES: u32 = MAX_PRIORITY as u32 + 1;

/// Priority and duration given to a block when it is claimed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Retention {
    /// A new priority; the block keeps its own without.
    pub(super) priority: Option<u8>,
    /// How long it holds after the release; 0 for ever.
    pub(super) duration_us: i64,
}

/// One block object.
#[derive(Debug, Clone)]
pub(super) struct Block {
    /// What it is in the tree as: a full block of this name; [`NONE`] for others.
    pub(super) name: u32,
    /// The name that its first `lead_tokens` tokens are known by, of a block that is not known in full.
    pub(super) lead: u32,
    pub(super) lead_tokens: u32,
    /// Tokens it was filled with; 0 when nothing was stored.
    pub(super) tokens: u32,
    /// 0 on the GPU, 1 on the host, 2 on disk.
    pub(super) level: u8,
    pub(super) priority: u8,
    pub(super) duration_us: i64,
    pub(super) queued: bool,
    /// Whether a prompt can find it.
    pub(super) in_tree: bool,
    /// Whether the recorder counts it.
    pub(super) counted: bool,
    pub(super) parent: u32,
    pub(super) first_child: u32,
    pub(super) next_sibling: u32,
    pub(super) previous_sibling: u32,
    /// Next block with the same lead, newest first.
    pub(super) next_lead: u32,
    pub(super) previous_lead: u32,
    /// Which release its expiry belongs to.
    stamp: u64,
}

impl Block {
    fn fresh(level: u8) -> Self {
        Self {
            name: NONE,
            lead: NONE,
            lead_tokens: 0,
            tokens: 0,
            level,
            priority: DEFAULT_PRIORITY,
            duration_us: 0,
            queued: false,
            in_tree: false,
            counted: false,
            parent: NONE,
            first_child: NONE,
            next_sibling: NONE,
            previous_sibling: NONE,
            next_lead: NONE,
            previous_lead: NONE,
            stamp: 0,
        }
    }

    /// The unit the recorder knows it by; [`NONE`] for one that has no name.
    pub(super) fn unit(&self) -> u32 {
        let whole_lead = self.name == NONE && self.lead_tokens == self.tokens;
        if whole_lead { self.lead } else { self.name }
    }

    /// Tells the recorder that a level has the block now.
    pub(super) fn record_insert(&self, level: usize, cause: Cause, out: &mut Recorder) {
        match self.unit() {
            _ if !self.counted => {}
            NONE => out.insert_unnamed(level, cause),
            unit => out.insert(level, unit, cause),
        }
    }

    /// Tells the recorder that a level lost the block.
    pub(super) fn record_evict(&self, level: usize, out: &mut Recorder) {
        match self.unit() {
            _ if !self.counted => {}
            NONE => out.evict_unnamed(level),
            unit => out.evict(level, unit),
        }
    }
}

#[derive(Debug)]
struct Level {
    /// Blocks never used.
    fresh: u32,
    free: u32,
    /// Priorities with queued blocks.
    filled: u128,
}

/// All blocks of all levels.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) blocks: Vec<Block>,
    levels: Vec<Level>,
    /// A queue per level and priority, then a node per block.
    queues: Links,
    /// Expiry, release and block; entries whose block was released again or claimed are stale.
    expiring: BinaryHeap<Reverse<(i64, u64, u32)>>,
    releases: u64,
}

impl Slots {
    /// Levels with so many blocks never used, the GPU's first.
    pub(super) fn new(fresh: &[u32]) -> Self {
        Self {
            blocks: Vec::new(),
            levels: fresh.iter().map(|&fresh| Level { fresh, free: fresh, filled: 0 }).collect(),
            queues: Links::new(fresh.len() as u32 * QUEUES, 0),
            expiring: BinaryHeap::new(),
            releases: 0,
        }
    }

    /// A block that is in no queue.
    pub(super) fn make(&mut self, level: usize) -> u32 {
        self.blocks.push(Block::fresh(level as u8));
        self.queues.add();
        self.blocks.len() as u32 - 1
    }

    /// Free blocks of a level, reusable ones among them.
    pub(super) fn free(&self, level: usize) -> u32 {
        self.levels[level].free
    }

    /// Takes the front of the lowest priority that has free blocks.
    pub(super) fn pop(&mut self, level: usize) -> Option<u32> {
        let queues = &mut self.levels[level];
        let lowest = queues.filled.trailing_zeros();
        if queues.fresh > 0 && lowest >= u32::from(DEFAULT_PRIORITY) {
            queues.fresh -= 1;
            queues.free -= 1;
            return Some(self.make(level));
        }
        let queue = (queues.filled != 0).then(|| level as u32 * QUEUES + lowest)?;
        let block = self.queues.oldest(queue).map(|node| self.block(node))?;
        self.unlink(block);
        Some(block)
    }

    /// Takes a block for a request: out of its queue, with a new priority if one is given. The duration is
    /// always overwritten, also by none.
    pub(super) fn claim(&mut self, block: u32, retention: Retention) {
        if self.blocks[block as usize].queued {
            self.unlink(block);
        }
        let block = &mut self.blocks[block as usize];
        block.priority = retention.priority.unwrap_or(block.priority);
        block.duration_us = retention.duration_us;
    }

    /// Gives a block back: to the back of its priority's queue, or to the front.
    pub(super) fn release(&mut self, block: u32, to_front: bool, now_us: Option<i64>) {
        self.link(block, to_front);
        self.releases += 1;
        let at = &mut self.blocks[block as usize];
        at.stamp = self.releases;
        if let Some(now_us) = now_us
            && at.duration_us > 0
            && at.priority != DEFAULT_PRIORITY
        {
            self.expiring.push(Reverse((now_us.saturating_add(at.duration_us), at.stamp, block)));
            if self.expiring.len() > 2 * self.blocks.len() + 64 {
                let blocks = &self.blocks;
                self.expiring.retain(|&Reverse((_, stamp, block))| Self::waits(blocks, stamp, block));
            }
        }
    }

    fn waits(blocks: &[Block], stamp: u64, block: u32) -> bool {
        let block = &blocks[block as usize];
        block.queued && block.stamp == stamp
    }

    /// Blocks whose duration is over fall to the default priority, at the back of its queue.
    pub(super) fn refresh(&mut self, now_us: i64) {
        while let Some(&Reverse((expiry_us, stamp, block))) = self.expiring.peek()
            && expiry_us <= now_us
        {
            self.expiring.pop();
            if Self::waits(&self.blocks, stamp, block) {
                self.unlink(block);
                self.blocks[block as usize].priority = DEFAULT_PRIORITY;
                self.link(block, false);
            }
        }
    }

    /// Puts a block into the queue of its level and priority.
    pub(super) fn link(&mut self, block: u32, to_front: bool) {
        let (queue, node) = (self.queue(block), self.node(block));
        let at = if to_front { self.queues.next(queue) } else { queue };
        self.queues.insert_before(at, node);
        let block = &mut self.blocks[block as usize];
        block.queued = true;
        let level = &mut self.levels[block.level as usize];
        level.filled |= 1 << block.priority;
        level.free += 1;
    }

    /// Takes a block out of its queue.
    pub(super) fn unlink(&mut self, block: u32) {
        let (queue, node) = (self.queue(block), self.node(block));
        self.queues.remove(node);
        let block = &mut self.blocks[block as usize];
        block.queued = false;
        let level = &mut self.levels[block.level as usize];
        level.free -= 1;
        if self.queues.is_alone(queue) {
            level.filled &= !(1 << block.priority);
        }
    }

    fn queue(&self, block: u32) -> u32 {
        let block = &self.blocks[block as usize];
        u32::from(block.level) * QUEUES + u32::from(block.priority)
    }

    fn node(&self, block: u32) -> u32 {
        self.levels.len() as u32 * QUEUES + block
    }

    fn block(&self, node: u32) -> u32 {
        node - self.levels.len() as u32 * QUEUES
    }

    /// Queued blocks of a level, the last to be taken first. Blocks never used are left out.
    pub(super) fn last_first(&self, level: usize) -> impl Iterator<Item = u32> + '_ {
        let queues = level as u32 * QUEUES..(level as u32 + 1) * QUEUES;
        let mut blocks: Vec<u32> = queues.flat_map(|queue| self.queues.iter(queue)).collect();
        blocks.reverse();
        blocks.into_iter().map(|node| self.block(node))
    }

    /// Checks links and counts: so many blocks of each level are free or reusable.
    pub(super) fn validate(&self, free: &[u32]) -> Result<(), String> {
        for (level, &wanted) in free.iter().enumerate() {
            let queued = self.last_first(level).count() as u32;
            let found = queued + self.levels[level].fresh;
            if found != self.levels[level].free || found != wanted {
                let counted = self.levels[level].free;
                return Err(format!(
                    "level {level}: {found} free blocks, counted {counted}, wanted {wanted}"
                ));
            }
            for block in self.last_first(level) {
                let at = &self.blocks[block as usize];
                if at.level as usize != level || !at.queued {
                    return Err(format!("block {block} lies in a queue it does not belong to"));
                }
            }
        }
        Ok(())
    }
}
