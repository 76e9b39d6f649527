//! vLLM's GPU pool as one list of copies: the free queue, front first (0.23.0 and later).

use crate::engine::EngineRequest;

/// What a slot holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slot {
    /// Never used, or a block that did not get full.
    Unhashed,
    /// A full block, named or not, and when it got full.
    Full(Option<u32>, u64),
}

/// The pool; no slot is in use between requests.
#[derive(Debug)]
pub(crate) struct PlainGpu {
    queue: Vec<Slot>,
    held: Vec<Slot>,
    usable: usize,
    clock: u64,
}

impl PlainGpu {
    pub(crate) fn new(total_blocks: usize) -> Self {
        let usable = total_blocks.saturating_sub(1);
        Self { queue: vec![Slot::Unhashed; usable], held: Vec::new(), usable, clock: 0 }
    }

    pub(crate) fn fits(&self, request: &EngineRequest<'_>) -> bool {
        request.prompt_tokens.div_ceil(u64::from(request.block_tokens)) <= self.usable as u64
    }

    /// Blocks that get KV, at most what the pool can hold.
    pub(crate) fn tokens(&self, request: &EngineRequest<'_>) -> u64 {
        request.total_tokens().min(self.usable as u64 * u64::from(request.block_tokens))
    }

    pub(crate) fn look_up(&self, request: &EngineRequest<'_>) -> usize {
        let has = |name: &&u32| self.oldest(**name).is_some();
        request.blocks_before_last_token().iter().take_while(has).count()
    }

    /// Where the oldest copy of a block queues.
    fn oldest(&self, name: u32) -> Option<usize> {
        let copy = |(at, slot): (usize, &Slot)| match slot {
            Slot::Full(Some(held), since) if *held == name => Some((*since, at)),
            _ => None,
        };
        self.queue.iter().enumerate().filter_map(copy).min().map(|(_, at)| at)
    }

    /// Takes the hits out of the queue, then goes on to `tokens` tokens.
    pub(crate) fn admit(&mut self, request: &EngineRequest<'_>, hits: usize, tokens: u64) {
        for &name in &request.listed[..hits] {
            let at = self.oldest(name).unwrap();
            self.held.push(self.queue.remove(at));
        }
        self.grow(request, tokens);
    }

    pub(crate) fn grow(&mut self, request: &EngineRequest<'_>, tokens: u64) {
        let size = u64::from(request.block_tokens);
        while (self.held.len() as u64) < tokens.div_ceil(size) {
            self.queue.remove(0);
            self.held.push(Slot::Unhashed);
        }
        for at in 0..(tokens / size) as usize {
            if self.held[at] == Slot::Unhashed {
                self.clock += 1;
                self.held[at] = Slot::Full(request.name_of(at as u64), self.clock);
            }
        }
    }

    pub(crate) fn free(&mut self) {
        while let Some(slot) = self.held.pop() {
            let at = if slot == Slot::Unhashed { 0 } else { self.queue.len() };
            self.queue.insert(at, slot);
        }
    }
}
