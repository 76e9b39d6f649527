//! The blocks of `TensorRT-LLM`'s managers and their free queues.
//!
//! A block object stays the same when its content moves between the levels: only its slot changes
//! (`swapMemoryPoolBlockOffset`). Free blocks lie in one FIFO per level and priority; blocks that were never
//! used are the front of the default priority's queue, so a count stands for them.

use crate::policy::parts::NONE;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The priority of blocks that nobody gave one (`kDefaultRetentionPriority`).
pub(super) const DEFAULT_PRIORITY: u8 = 35;
/// The highest priority.
pub(super) const MAX_PRIORITY: u8 = 100;
const QUEUES: usize = MAX_PRIORITY as usize + 1;

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
    next: u32,
    previous: u32,
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
            next: NONE,
            previous: NONE,
            stamp: 0,
        }
    }

    /// The unit the recorder knows it by.
    pub(super) fn unit(&self) -> u32 {
        if self.name == NONE { self.lead } else { self.name }
    }
}

#[derive(Debug)]
struct Level {
    /// Blocks never used.
    fresh: u32,
    free: u32,
    /// Front and back per priority.
    ends: Vec<(u32, u32)>,
    /// Priorities with queued blocks.
    filled: u128,
}

impl Level {
    fn new(capacity: u32) -> Self {
        Self { fresh: capacity, free: capacity, ends: vec![(NONE, NONE); QUEUES], filled: 0 }
    }
}

/// All blocks of all levels.
#[derive(Debug)]
pub(super) struct Slots {
    pub(super) blocks: Vec<Block>,
    levels: Vec<Level>,
    /// Expiry, release and block; entries whose block was released again or claimed are stale.
    expiring: BinaryHeap<Reverse<(i64, u64, u32)>>,
    releases: u64,
}

impl Slots {
    /// Levels with so many blocks never used, the GPU's first.
    pub(super) fn new(fresh: &[u32]) -> Self {
        let levels = fresh.iter().map(|&fresh| Level::new(fresh)).collect();
        Self { blocks: Vec::new(), levels, expiring: BinaryHeap::new(), releases: 0 }
    }

    /// A block that is in no queue.
    pub(super) fn make(&mut self, level: usize) -> u32 {
        self.blocks.push(Block::fresh(level as u8));
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
        let block = (queues.filled != 0).then(|| queues.ends[lowest as usize].0)?;
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
        let at = &mut self.blocks[block as usize];
        let (level, priority) = (at.level as usize, at.priority as usize);
        let queues = &mut self.levels[level];
        let (front, back) = queues.ends[priority];
        at.queued = true;
        (at.previous, at.next) = if to_front { (NONE, front) } else { (back, NONE) };
        let neighbour = if to_front { front } else { back };
        queues.ends[priority] = match (neighbour, to_front) {
            (NONE, _) => (block, block),
            (_, true) => (block, back),
            (_, false) => (front, block),
        };
        queues.filled |= 1 << priority;
        queues.free += 1;
        if neighbour != NONE {
            let neighbour = &mut self.blocks[neighbour as usize];
            *(if to_front { &mut neighbour.previous } else { &mut neighbour.next }) = block;
        }
    }

    /// Takes a block out of its queue.
    pub(super) fn unlink(&mut self, block: u32) {
        let at = &mut self.blocks[block as usize];
        let (level, priority) = (at.level as usize, at.priority as usize);
        let (previous, next) = (at.previous, at.next);
        at.queued = false;
        let ends = &mut self.levels[level].ends[priority];
        match previous {
            NONE => ends.0 = next,
            _ => self.blocks[previous as usize].next = next,
        }
        match next {
            NONE => ends.1 = previous,
            _ => self.blocks[next as usize].previous = previous,
        }
        self.levels[level].free -= 1;
        if self.levels[level].ends[priority].0 == NONE {
            self.levels[level].filled &= !(1 << priority);
        }
    }

    /// Queued blocks of a level, the last to be taken first. Blocks never used are left out.
    pub(super) fn from_last(&self, level: usize) -> impl Iterator<Item = u32> + '_ {
        let backs = self.levels[level].ends.iter().rev().map(|&(_, back)| back);
        backs.flat_map(move |back| {
            let some = |block: u32| (block != NONE).then_some(block);
            std::iter::successors(some(back), move |&block| some(self.blocks[block as usize].previous))
        })
    }

    /// Checks links and counts: so many blocks of each level are free or reusable.
    pub(super) fn validate(&self, free: &[u32]) -> Result<(), String> {
        for (level, &wanted) in free.iter().enumerate() {
            let queued = self.from_last(level).count() as u32;
            let found = queued + self.levels[level].fresh;
            if found != self.levels[level].free || found != wanted {
                let counted = self.levels[level].free;
                return Err(format!("level {level}: {found} free blocks, counted {counted}, wanted {wanted}"));
            }
            for block in self.from_last(level) {
                let at = &self.blocks[block as usize];
                if at.level as usize != level || !at.queued {
                    return Err(format!("block {block} lies in a queue it does not belong to"));
                }
            }
        }
        Ok(())
    }
}
