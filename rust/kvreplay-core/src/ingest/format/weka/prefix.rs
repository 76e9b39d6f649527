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
use std::collections::BTreeMap;

const SHARED: u64 = 1 << 63;

#[derive(Default)]
pub(super) struct Prefixes {
    kinds: BTreeMap<String, u64>,
    sessions: u64,
    session: String,
    /// The first blocks of each agent of the session.
    agents: BTreeMap<Option<String>, Vec<u64>>,
}

impl Prefixes {
    /// Renames the blocks of a request.
    pub(super) fn rename(
        &mut self,
        session: &str,
        agent: Option<&str>,
        kind: &str,
        prefix_tokens: u64,
        row: &mut Row,
        sink: &mut RowSink,
    ) {
        if session != self.session || self.sessions == 0 {
            session.clone_into(&mut self.session);
            self.sessions += 1;
            self.agents.clear();
        }
        row.expand_runs();
        row.run_start.clear();
        row.run_length.clear();
        let block_tokens = u64::from(row.block_tokens.or(sink.options.block_tokens).unwrap_or(64));
        let most = (prefix_tokens / block_tokens) as usize;
        let fresh = self.kinds.len() as u64;
        let kind = *self.kinds.entry(kind.to_owned()).or_insert(fresh);
        let ids = &mut row.ids;
        let known = self
            .agents
            .entry(agent.map(str::to_owned))
            .or_insert_with(|| ids.numbers.iter().take(most).copied().collect());
        let texts = ids.is_text.iter().position(|&is| is).unwrap_or(usize::MAX);
        let shared = ids.numbers.iter().zip(known).take(texts).take_while(|(id, known)| id == known).count();
        for (at, id) in ids.numbers.iter_mut().enumerate().take(shared) {
            *id = SHARED | kind << 32 | at as u64;
        }
        ids.rename_from(shared, |id| {
            let small = u32::try_from(id).ok()?;
            Some(self.sessions << 32 | u64::from(small))
        }, session);
        row.local_scope = false;
    }
}
