//! The trace: run-encoded, immutable, shared by `Arc`.

mod anonymize;
mod builder;
mod check;
mod columns;
mod content_hash;
mod forest;
mod id_store;
mod ids;
mod joined;
mod native;
mod outputs;
mod quality;
pub mod synthetic;
mod ties;

pub use builder::{ForestBuilder, Kinds};
pub use check::{Rekeyed, find_rekeyed};
pub use columns::{Column, NO_CODE};
pub use forest::{Forest, NO_CHAIN, Node, Run};
pub use id_store::IdRun;
pub use ids::{Bits, Id, IdRuns, IdTable, Texts};
pub use joined::Joined;
pub use native::{NativeHeader, NativeReader, NativeRows, NativeWriter};
pub use outputs::OutputIds;
pub use quality::{CODES, CodeInfo, Finding, Quality, Severity};

use crate::error::Result;
use std::sync::OnceLock;

/// No value in a length column.
pub const NO_LENGTH: u32 = u32::MAX;

/// What the last id of a path stands for (`semantics.md` section 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tail {
    /// The last, partial block is listed.
    Ceil,
    /// Only full blocks are listed; the remainder has no id.
    Floor,
}

impl Tail {
    /// `ceil` or `floor`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Ceil => "ceil",
            Self::Floor => "floor",
        }
    }
}

/// The requests in replay order, one entry per request in every column.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requests {
    /// The path.
    pub node: Vec<Node>,
    /// Arrival in microseconds as the file gives it; `None` for a trace without times.
    pub arrival_us: Option<Vec<i64>>,
    /// Input length in tokens.
    pub input_tokens: Vec<u32>,
    /// Output length in tokens, [`NO_LENGTH`] where the file has none.
    pub output_tokens: Vec<u32>,
    /// Tokens per block of each request; empty when all have the trace's.
    pub block_tokens: Vec<u32>,
    /// Session, tenant, model and whatever else the rows carry.
    pub columns: Vec<Column>,
    /// Ids of the blocks that fill while decoding; `None` when no request lists any. They are no part of the paths.
    pub outputs: Option<OutputIds>,
}

/// Where a trace comes from and what reading it found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Origin {
    /// Name of the format it was read from (`mooncake`, `native`, `generated`, ...).
    pub format: String,
    /// Rows that were not usable.
    pub rejected_rows: u64,
    /// Number of namespaces in use.
    pub namespaces: u32,
    /// Names of the columns that made the namespaces.
    pub namespace_columns: Vec<String>,
    /// Whether every id had one parent.
    pub chained: bool,
}

/// A prefix trace: which blocks each request asked for, root first, in replay order.
#[derive(Debug)]
pub struct Trace {
    /// Blocks as chains.
    pub forest: Forest,
    /// Ids of the blocks as given.
    pub ids: IdTable,
    /// The requests.
    pub requests: Requests,
    /// Tokens per full block (the most frequent one where requests differ, see `Requests::block_tokens`).
    pub block_tokens: u32,
    /// Whether partial last blocks are listed.
    pub tail: Tail,
    /// Where it comes from.
    pub origin: Origin,
    /// What reading it found.
    pub quality: Quality,
    content_sha256: OnceLock<String>,
}

/// Sums over a trace.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Totals {
    /// Listed blocks of all requests.
    pub block_refs: u64,
    /// Input tokens of all requests.
    pub input_tokens: u64,
    /// Output tokens of all requests that state them.
    pub output_tokens: u64,
    /// Full blocks of all requests: `min(listed, floor(input / block_tokens))`.
    pub full_blocks: u64,
    /// Listed blocks of the longest request.
    pub longest_path: u32,
}

impl Trace {
    /// Puts a trace together from its parts.
    #[must_use]
    pub fn new(
        forest: Forest,
        ids: IdTable,
        requests: Requests,
        block_tokens: u32,
        tail: Tail,
        origin: Origin,
        quality: Quality,
    ) -> Self {
        debug_assert!(block_tokens > 0);
        debug_assert_eq!(requests.node.len(), requests.input_tokens.len());
        debug_assert_eq!(requests.node.len(), requests.output_tokens.len());
        debug_assert!(requests.outputs.as_ref().is_none_or(|o| o.requests() == requests.node.len()));
        Self { forest, ids, requests, block_tokens, tail, origin, quality, content_sha256: OnceLock::new() }
    }

    /// Number of requests.
    #[must_use]
    pub fn len(&self) -> usize {
        self.requests.node.len()
    }

    /// Whether there are no requests.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.requests.node.is_empty()
    }

    /// Number of listed blocks of a request.
    #[must_use]
    pub fn path_len(&self, request: usize) -> u32 {
        self.forest.path_len(self.requests.node[request])
    }

    /// Tokens per full block of a request.
    #[must_use]
    pub fn block_tokens_of(&self, request: usize) -> u32 {
        self.requests.block_tokens.get(request).copied().unwrap_or(self.block_tokens)
    }

    /// Tokens covered by the first `blocks` blocks of a request: `min(blocks * block_tokens, input)`.
    #[must_use]
    pub fn tokens(&self, request: usize, blocks: u32) -> u64 {
        let covered = u64::from(blocks) * u64::from(self.block_tokens_of(request));
        covered.min(u64::from(self.requests.input_tokens[request]))
    }

    /// Listed blocks of a request that are full: `min(listed, floor(input / block_tokens))`.
    #[must_use]
    pub fn full_blocks(&self, request: usize) -> u32 {
        self.path_len(request).min(self.requests.input_tokens[request] / self.block_tokens_of(request))
    }

    /// Sums over all requests.
    #[must_use]
    pub fn totals(&self) -> Totals {
        let mut totals = Totals::default();
        for request in 0..self.len() {
            let listed = self.path_len(request);
            totals.block_refs += u64::from(listed);
            totals.longest_path = totals.longest_path.max(listed);
            totals.full_blocks += u64::from(self.full_blocks(request));
            totals.input_tokens += u64::from(self.requests.input_tokens[request]);
            let output = self.requests.output_tokens[request];
            totals.output_tokens += if output == NO_LENGTH { 0 } else { u64::from(output) };
        }
        totals
    }

    /// SHA-256 of the content in hexadecimal: equal for equal requests whatever the container was.
    #[must_use]
    pub fn sha256(&self) -> &str {
        self.content_sha256.get_or_init(|| content_hash::sha256(self))
    }

    /// A trace of some of the requests, `keep` being their positions in ascending order.
    ///
    /// Blocks are numbered anew by first appearance among the kept requests.
    ///
    /// # Errors
    /// None in practice: the result has at most as many blocks as this trace.
    pub fn select(&self, keep: &[u32]) -> Result<Self> {
        let (forest, ids, node) = self.rebuild(keep)?;
        let pick = |column: &[u32]| keep.iter().map(|&r| column[r as usize]).collect::<Vec<_>>();
        let requests = Requests {
            node,
            arrival_us: self
                .requests
                .arrival_us
                .as_ref()
                .map(|a| keep.iter().map(|&r| a[r as usize]).collect()),
            input_tokens: pick(&self.requests.input_tokens),
            output_tokens: pick(&self.requests.output_tokens),
            block_tokens: if self.requests.block_tokens.is_empty() {
                Vec::new()
            } else {
                pick(&self.requests.block_tokens)
            },
            columns: self.requests.columns.iter().map(|c| c.pick(keep)).collect(),
            outputs: self.requests.outputs.as_ref().and_then(|outputs| outputs.pick(keep)),
        };
        let mut origin = self.origin.clone();
        origin.chained = find_rekeyed(&forest, &ids).ids == 0;
        Ok(Self::new(forest, ids, requests, self.block_tokens, self.tail, origin, self.quality.clone()))
    }

    /// Forest, ids and nodes of the requests `order` taken in that order.
    fn rebuild(&self, order: &[u32]) -> Result<(Forest, IdTable, Vec<Node>)> {
        reintern(&self.forest, &self.ids, order.iter().map(|&r| self.requests.node[r as usize]))
    }
}

/// Interns paths of one forest again, in the order given: blocks are numbered anew by first appearance.
///
/// # Errors
/// As [`ForestBuilder::push`].
pub fn reintern(
    forest: &Forest,
    ids: &IdTable,
    nodes: impl Iterator<Item = Node>,
) -> Result<(Forest, IdTable, Vec<Node>)> {
    let mut builder = ForestBuilder::new();
    let mut out = Vec::with_capacity(nodes.size_hint().0);
    let (mut path, mut numbers, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
    for node in nodes {
        forest.path(node, &mut path);
        let namespace = if node.is_empty() { 0 } else { forest.namespace(node.chain) };
        numbers.clear();
        let node = if ids.has_texts() {
            kinds.clear();
            for &block in &path {
                kinds.push(ids.is_text(block));
                numbers.push(match ids.get(block) {
                    Id::Number(number) => number,
                    Id::Text(text) => builder.text_number(text),
                });
            }
            builder.push(namespace, &numbers, Kinds::Mixed(&kinds))?
        } else {
            numbers.extend(path.iter().map(|&block| ids.number(block)));
            builder.push(namespace, &numbers, Kinds::Numbers)?
        };
        out.push(node);
    }
    let (forest, ids) = builder.finish();
    Ok((forest, ids, out))
}

#[cfg(test)]
mod tests;
