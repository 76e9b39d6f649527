//! The part of a prompt that sessions share although their ids are local: tools and system prompt.
//!
//! Local ids hide that all sessions of one agent begin alike (a median of some 13,000 tokens in the public corpus), so
//! the hits of a fleet come out too low. With `shared_prefix = tool+system` the first
//! `floor((tool_tokens + system_tokens) / block_size)` blocks of sessions are one set of blocks per model (the model is
//! part of the namespace) and kind of sub-agent. A request shares them as far as its own ids agree with the first
//! request of its agent: a prompt that begins otherwise shares nothing.
//!
//! Blocks are renamed for this: bit 63 marks the shared ones, numbered by kind and position; the others carry their
//! session's number above bit 31.

use crate::ingest::row::Row;
use crate::ingest::rows::RowSink;
use crate::trace::Id;
use std::collections::BTreeMap;

const SHARED: u64 = 1 << 63;
/// The block size of the public corpus, for files that state none.
const BLOCK_TOKENS: u32 = 64;

/// Whose request it is.
pub(super) struct Whose<'a> {
    pub(super) session: &'a str,
    /// Number of the session in the whole trace, from 1.
    pub(super) number: u64,
    /// `None` for the main agent.
    pub(super) agent: Option<&'a str>,
    /// 0 for the main agent, else the number of the kind of sub-agent, from 1.
    pub(super) kind: u64,
    pub(super) prefix_tokens: u64,
}

#[derive(Default)]
pub(super) struct Prefixes {
    session: u64,
    /// The first blocks of each agent of the session.
    agents: BTreeMap<Option<String>, Vec<u64>>,
}

impl Prefixes {
    /// Renames the blocks of a request.
    pub(super) fn rename(&mut self, whose: &Whose<'_>, row: &mut Row, sink: &mut RowSink) {
        if whose.number != self.session {
            self.session = whose.number;
            self.agents.clear();
        }
        row.expand_runs();
        row.run_start.clear();
        row.run_length.clear();
        let block_tokens = row.block_tokens.or(sink.options.block_tokens).unwrap_or(BLOCK_TOKENS);
        let most = (whose.prefix_tokens / u64::from(block_tokens)) as usize;
        let ids = &mut row.ids;
        let first = || ids.numbers().iter().take(most).copied().collect();
        let known = self.agents.entry(whose.agent.map(str::to_owned)).or_insert_with(first);
        let same = ids.iter().zip(known).take_while(|(id, known)| *id == Id::Number(**known));
        let shared = same.count();
        for (at, id) in ids.numbers().iter_mut().enumerate().take(shared) {
            *id = SHARED | whose.kind << 32 | at as u64;
        }
        let local = |id| u32::try_from(id).ok().map(|id| whose.number << 32 | u64::from(id));
        ids.rename_from(shared, local, whose.session);
        row.local_scope = false;
        sink.shared_prefixes += 1;
    }
}
