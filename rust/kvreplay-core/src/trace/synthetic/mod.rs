//! Generated traces: seven kinds of traffic, each a small model with a seed.
//!
//! The bytes of a trace depend on the kind, its parameters, the seed and nothing else: the random numbers,
//! the samplers and the few functions they need are written out in `random` and `math`, so that no
//! platform's math library has a say. A kind draws *prompts* (texts with lengths); `prompt` turns them
//! into chained block ids, so equal prefixes have equal ids and nothing else does.

mod agenda;
mod agent;
mod cyclic_scan;
mod math;
mod mixed;
mod multi_turn;
mod prompt;
mod rag_documents;
mod random;
mod registry;
mod settings;
mod shape;
mod shared_prefix;
mod source;
mod unique;

pub use registry::{Kind, Parameter, kinds};
pub use shape::Shape;

use super::{Column, ForestBuilder, Kinds, Node, Origin, Quality, Requests, Tail, Trace, find_rekeyed};
use crate::error::{Error, Result};
use crate::progress::Progress;
use source::Draft;

/// Most requests of a generated trace.
pub const MAX_REQUESTS: u64 = 10_000_000;
/// Most distinct blocks of a generated trace (about 2.2 GB of memory while it is made).
pub const MAX_DISTINCT_BLOCKS: usize = 1 << 26;
/// Most block references of a generated trace, over all requests.
pub const MAX_BLOCK_REFS: u64 = 1 << 30;
/// Most blocks of one generated request.
pub const MAX_REQUEST_BLOCKS: u64 = 1 << 22;
/// Largest block size, in tokens.
pub const MAX_BLOCK_TOKENS: u32 = 65_536;

/// What to generate.
#[derive(Debug, Clone, PartialEq)]
pub struct GenerateSpec {
    /// Name of a [`Kind`].
    pub kind: String,
    /// Number of requests, 1 to [`MAX_REQUESTS`].
    pub requests: u64,
    /// Two traces with the same seed are equal, with different seeds differ.
    pub seed: u64,
    /// Tokens per block, 1 to [`MAX_BLOCK_TOKENS`].
    pub block_tokens: u32,
    /// Values for some of the kind's parameters; the others keep their defaults.
    pub parameters: Vec<(String, f64)>,
}

/// Generates a trace.
///
/// Arrivals are microseconds from 0 in whole milliseconds (what request logs carry), the last, partial
/// block is listed (tail `ceil`), and the columns are those the kind has of `session`, `parent`,
/// `tenant` and `workload`.
///
/// # Errors
/// [`Error::Config`] for an unknown kind or parameter, for a value outside its range, and for a trace
/// that would pass the limits of this module.
pub fn generate(spec: &GenerateSpec) -> Result<Trace> {
    generate_with_progress(spec, &Progress::default())
}

/// [`generate`], counting requests in `progress` and stopping when it is cancelled.
///
/// # Errors
/// As [`generate`], and [`Error::Cancelled`].
pub fn generate_with_progress(spec: &GenerateSpec, progress: &Progress) -> Result<Trace> {
    generate_shaped(spec, None, progress)
}

/// [`generate_with_progress`] with the arrivals and lengths of a recording: one [`Shape`] per request, in order of
/// arrival. The kind then only says what requests share.
///
/// # Errors
/// As [`generate_with_progress`], and [`Error::Config`] when there are fewer shapes than requests.
pub fn generate_shaped(spec: &GenerateSpec, shapes: Option<&[Shape]>, progress: &Progress) -> Result<Trace> {
    if let Some(shapes) = shapes
        && (shapes.len() as u64) < spec.requests
    {
        let message =
            format!("{} requests are asked for, but only {} have lengths", spec.requests, shapes.len());
        return Err(Error::config(message, "ask for fewer requests, or leave their number out"));
    }
    let mut source = registry::start(spec)?;
    progress.start(spec.requests);
    let mut writer = Writer::new(spec);
    let mut draft = Draft::default();
    for request in 0..spec.requests {
        if request % 1024 == 0 {
            progress.advance_to(request)?;
        }
        draft.clear();
        source.next(&mut draft);
        draft.arrival_us = draft.arrival_us / 1000 * 1000;
        if let Some(shapes) = shapes {
            shape::give(&mut draft, shapes[request as usize], spec.seed, request);
        }
        writer.add(&draft)?;
    }
    progress.advance_to(spec.requests)?;
    Ok(writer.finish())
}

/// Collects drafts into a trace.
struct Writer {
    builder: ForestBuilder,
    requests: Requests,
    arrival_us: Vec<i64>,
    columns: [Column; 4],
    block_tokens: u32,
    root: u64,
    block_refs: u64,
    ids: Vec<u64>,
}

impl Writer {
    fn new(spec: &GenerateSpec) -> Self {
        Self {
            builder: ForestBuilder::new(),
            requests: Requests::default(),
            arrival_us: Vec::new(),
            // The order in which readers list the columns of a file: written and read again, a trace is equal.
            columns: ["session", "parent", "tenant", "workload"].map(|name| Column::new(name, 0)),
            block_tokens: spec.block_tokens,
            root: random::mix(spec.seed, u64::from(spec.block_tokens)),
            block_refs: 0,
            ids: Vec::new(),
        }
    }

    fn add(&mut self, draft: &Draft) -> Result<()> {
        let tokens: u64 = draft.segments.iter().map(|s| u64::from(s.tokens)).sum();
        let blocks = tokens.div_ceil(u64::from(self.block_tokens));
        self.block_refs += blocks;
        self.check_limits(blocks)?;
        prompt::block_ids(self.root, &draft.segments, self.block_tokens, &mut self.ids);
        let node: Node = self.builder.push(0, &self.ids, Kinds::Numbers)?;
        self.requests.node.push(node);
        self.arrival_us.push(draft.arrival_us);
        self.requests.input_tokens.push(tokens as u32);
        self.requests.output_tokens.push(draft.output_tokens);
        let [session, parent, tenant, workload] = &mut self.columns;
        session.push(draft.session.as_deref());
        parent.push(draft.parent.as_deref());
        tenant.push(draft.tenant.as_deref());
        workload.push(draft.workload);
        Ok(())
    }

    /// Stops before memory or time run away; `MAX_REQUEST_BLOCKS` also keeps lengths within 32 bits.
    fn check_limits(&self, blocks: u64) -> Result<()> {
        let over = |what: &str, limit: u64| {
            Error::config(
                format!("the generated trace would have more than {limit} {what}"),
                "ask for fewer requests, shorter lengths or larger blocks",
            )
        };
        if blocks > MAX_REQUEST_BLOCKS || blocks * u64::from(self.block_tokens) >= u64::from(u32::MAX) {
            let limit = MAX_REQUEST_BLOCKS.min(u64::from(u32::MAX / self.block_tokens));
            return Err(over("blocks in one request", limit));
        }
        if self.block_refs > MAX_BLOCK_REFS {
            return Err(over("block references", MAX_BLOCK_REFS));
        }
        if self.builder.blocks() + blocks as usize > MAX_DISTINCT_BLOCKS {
            return Err(over("distinct blocks", MAX_DISTINCT_BLOCKS as u64));
        }
        Ok(())
    }

    fn finish(self) -> Trace {
        let Self { builder, mut requests, arrival_us, columns, block_tokens, .. } = self;
        let (forest, ids) = builder.finish();
        requests.arrival_us = Some(arrival_us);
        requests.columns = columns.into_iter().filter(|c| !c.texts.is_empty()).collect();
        // Two of up to 2^26 ids of 64 bits may be equal by chance (1 in 10,000 at the limit): then it is said.
        let rekeyed = find_rekeyed(&forest, &ids);
        let mut quality = Quality::default();
        quality.note_many("id_with_two_parents", rekeyed.ids, None, None);
        let origin = Origin {
            format: "generated".to_owned(),
            namespaces: 1,
            chained: rekeyed.ids == 0,
            ..Origin::default()
        };
        Trace::new(forest, ids, requests, block_tokens, Tail::Ceil, origin, quality)
    }
}

#[cfg(test)]
mod tests;
