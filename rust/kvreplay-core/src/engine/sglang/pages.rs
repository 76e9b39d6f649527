//! A request in pages.

use crate::engine::EngineRequest;

/// Options about what is looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LookUp {
    /// The last token of a prompt is never looked up.
    pub(super) last_token: bool,
    /// A partial last block that the trace lists counts as a page.
    pub(super) listed_paths: bool,
}

/// The pages of a prompt.
#[derive(Debug, Clone, Copy)]
pub(super) struct Pages<'a> {
    /// The named pages, root first.
    pub(super) path: &'a [u32],
    /// Pages behind them that the trace does not name.
    pub(super) unnamed: u32,
    /// Pages looked up, named or not.
    limit: u64,
}

impl<'a> Pages<'a> {
    pub(super) fn new(request: &EngineRequest<'a>, look_up: LookUp) -> Self {
        let path = if look_up.listed_paths { request.listed } else { request.full_blocks() };
        let unnamed = request.prompt_full_blocks().saturating_sub(path.len() as u64) as u32;
        let all = path.len() as u64 + u64::from(unnamed);
        let before_last = request.prompt_tokens.saturating_sub(1) / u64::from(request.block_tokens);
        Self { path, unnamed, limit: if look_up.last_token { all.min(before_last) } else { all } }
    }

    /// Number of pages.
    pub(super) fn len(&self) -> u64 {
        self.path.len() as u64 + u64::from(self.unnamed)
    }

    /// The named pages that are looked up.
    pub(super) fn looked_up(&self) -> &'a [u32] {
        &self.path[..self.limit.min(self.path.len() as u64) as usize]
    }

    /// Number of pages looked up, named or not.
    pub(super) fn limit(&self) -> u64 {
        self.limit
    }
}
