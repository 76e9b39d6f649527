//! One request in the blocks of an engine.

/// One request as an engine sees it; blocks are dense numbers of the [`super::Grain`].
#[derive(Debug, Clone, Copy)]
pub struct EngineRequest<'a> {
    /// Position in replay order.
    pub index: u32,
    /// Blocks of the prompt that have a name, root first. Engines match and keep full blocks, the first
    /// [`Self::full_blocks`] of these; a trace may name a partial last block too, or name less than the
    /// prompt's full blocks (the rest are then full blocks that nobody ever finds again).
    pub listed: &'a [u32],
    /// Tokens of the prompt.
    pub prompt_tokens: u64,
    /// Named blocks that get full while decoding: the first one is block number
    /// `floor(prompt_tokens / block_tokens)` of the sequence.
    pub decoded: &'a [u32],
    /// Generated tokens that get KV: all but the last sampled one.
    pub decoded_tokens: u64,
    /// Tokens per block.
    pub block_tokens: u32,
    /// Arrival, in a trace with times.
    pub now_us: Option<i64>,
}

impl<'a> EngineRequest<'a> {
    /// Full blocks of the prompt, named or not.
    #[must_use]
    pub fn prompt_full_blocks(&self) -> u64 {
        self.prompt_tokens / u64::from(self.block_tokens)
    }

    /// The named full blocks of the prompt.
    #[must_use]
    pub fn full_blocks(&self) -> &'a [u32] {
        let full = self.prompt_full_blocks().min(self.listed.len() as u64);
        &self.listed[..full as usize]
    }

    /// Named full blocks that a hit may cover when the last prompt token is always computed:
    /// at most `floor((prompt_tokens - 1) / block_tokens)`.
    #[must_use]
    pub fn blocks_before_last_token(&self) -> &'a [u32] {
        let limit = self.prompt_tokens.saturating_sub(1) / u64::from(self.block_tokens);
        &self.listed[..limit.min(self.listed.len() as u64) as usize]
    }

    /// Tokens that have KV when the request ends.
    #[must_use]
    pub fn total_tokens(&self) -> u64 {
        self.prompt_tokens + self.decoded_tokens
    }

    /// Full blocks of prompt and decoded tokens together, named or not.
    #[must_use]
    pub fn total_full_blocks(&self) -> u64 {
        self.total_tokens() / u64::from(self.block_tokens)
    }

    /// The name of block number `at` of the whole sequence once it is full, `None` for a block without one.
    #[must_use]
    pub fn name_of(&self, at: u64) -> Option<u32> {
        let prompt = self.prompt_full_blocks();
        if at < prompt {
            self.listed.get(at as usize).copied()
        } else {
            self.decoded.get((at - prompt) as usize).copied()
        }
    }

    /// Tokens of the first `blocks` blocks, at most the prompt's.
    #[must_use]
    pub fn tokens(&self, blocks: u64) -> u64 {
        (blocks * u64::from(self.block_tokens)).min(self.prompt_tokens)
    }
}
