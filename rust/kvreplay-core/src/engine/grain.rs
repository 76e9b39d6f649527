//! A trace in the blocks of an engine.
//!
//! A trace block of `t` tokens is refined to (id, k), `k < t / b`, for engine blocks of `b` tokens; engine blocks
//! larger than the trace's are groups of trace blocks named by the last one, as chunks are everywhere in this
//! crate. Both work on chains, so runs stay runs.

use super::profile::Outputs;
use super::request::EngineRequest;
use crate::error::{Error, Result};
use crate::hierarchy::Space;
use crate::trace::{Forest, IdRuns, IdTable, NO_LENGTH, Node, Requests, Trace};
use std::sync::Arc;

/// A trace in engine blocks, and how to name them in the ids of the trace.
#[derive(Debug)]
pub struct Grain {
    /// The trace whose ids name blocks; holds output blocks too if these are listed.
    source: Arc<Trace>,
    trace: Arc<Trace>,
    outputs: Outputs,
    /// Listed outputs: path of the prompt's full blocks and the output blocks, in engine blocks.
    joined: Option<Joined>,
    /// Engine block to refined block; empty where they are the same.
    last_refined: Vec<u32>,
    /// Refined blocks per trace block.
    refine: u32,
}

#[derive(Debug)]
struct Joined {
    full: Vec<Node>,
    /// Tokens of each request's listed output blocks.
    tokens: Vec<u64>,
}

/// Buffers for the paths of the request at hand.
#[derive(Debug, Default)]
pub struct Paths {
    listed: Vec<u32>,
    full: Vec<u32>,
}

impl Grain {
    /// The trace in blocks of `block_tokens` tokens.
    ///
    /// # Errors
    /// [`Error::Config`] when requests have blocks of different sizes, when neither block size is a multiple of the
    /// other, or when there would be more engine blocks than block numbers.
    pub fn new(source: &Arc<Trace>, block_tokens: u32, outputs: Outputs) -> Result<Self> {
        if source.requests.block_tokens.iter().any(|&tokens| tokens != source.block_tokens) {
            return Err(Error::config(
                "requests of this trace have blocks of different sizes",
                "an engine has one block size: select the requests of one size first",
            ));
        }
        if !source.block_tokens.is_multiple_of(block_tokens)
            && !block_tokens.is_multiple_of(source.block_tokens)
        {
            return Err(Error::config(
                format!(
                    "engine blocks of {block_tokens} tokens do not fit trace blocks of {}",
                    source.block_tokens
                ),
                "one must be a multiple of the other: set the profile option block_size, or chunk the trace anew",
            ));
        }
        let joined = if outputs == Outputs::Listed { source.joined()? } else { None };
        let (base, full) = match joined {
            Some(joined) => (Arc::new(joined.trace), Some(joined.full)),
            None => (Arc::clone(source), None),
        };
        let tokens = output_tokens(source);
        let (refine, coarsen) =
            ((base.block_tokens / block_tokens).max(1), (block_tokens / base.block_tokens).max(1));
        if refine == 1 && coarsen == 1 {
            let joined = full.map(|full| Joined { full, tokens });
            let trace = Arc::clone(&base);
            return Ok(Self { source: base, trace, outputs, joined, last_refined: Vec::new(), refine });
        }
        let fine = refined(&base.forest, refine)?;
        let space = Space::new(&fine, coarsen);
        let last_refined = if coarsen == 1 {
            Vec::new()
        } else {
            (0..space.forest().blocks()).map(|unit| space.block_of(unit)).collect()
        };
        let scale = |node: Node| space.node(Node { len: node.len * refine, ..node });
        // A partial last trace block names no more engine blocks than its tokens reach.
        let prompt = |(request, &node): (usize, &Node)| {
            let reach = base.requests.input_tokens[request].div_ceil(block_tokens);
            space.forest().truncate(scale(node), reach)
        };
        let node = base.requests.node.iter().enumerate().map(prompt).collect();
        let joined = full.map(|full| Joined { full: full.into_iter().map(scale).collect(), tokens });
        let trace = Arc::new(regrained(&base, space.forest().clone(), node, block_tokens));
        Ok(Self { source: base, trace, outputs, joined, last_refined, refine })
    }

    /// The trace in engine blocks. Its ids are the block numbers; [`Self::named`] gives the trace's own.
    #[must_use]
    pub fn trace(&self) -> &Arc<Trace> {
        &self.trace
    }

    /// The trace whose ids name the blocks that [`Self::named`] returns.
    #[must_use]
    pub fn source(&self) -> &Arc<Trace> {
        &self.source
    }

    /// The block of [`Self::source`] that an engine block is named by: the one it is a part of, or the last of
    /// those it is made of.
    #[must_use]
    pub fn named(&self, block: u32) -> u32 {
        self.last_refined.get(block as usize).copied().unwrap_or(block) / self.refine
    }

    /// A request in engine blocks; the paths are read into `paths`.
    #[must_use]
    pub fn request<'a>(&self, index: usize, paths: &'a mut Paths) -> EngineRequest<'a> {
        let trace = &self.trace;
        let prompt_tokens = trace.requests.input_tokens[index];
        trace.forest.path(trace.requests.node[index], &mut paths.listed);
        paths.full.clear();
        let mut decoded_tokens = 0;
        match (&self.joined, self.outputs) {
            (Some(joined), _) => {
                trace.forest.path(joined.full[index], &mut paths.full);
                decoded_tokens = joined.tokens[index];
            }
            (None, Outputs::Private) => {
                let output = trace.requests.output_tokens[index];
                // The last sampled token never gets KV.
                decoded_tokens = if output == NO_LENGTH { 0 } else { u64::from(output.saturating_sub(1)) };
            }
            (None, Outputs::Listed | Outputs::None) => {}
        }
        let prompt_blocks = (prompt_tokens / trace.block_tokens) as usize;
        EngineRequest {
            index: index as u32,
            listed: &paths.listed,
            prompt_tokens: u64::from(prompt_tokens),
            decoded: paths.full.get(prompt_blocks..).unwrap_or(&[]),
            decoded_tokens,
            block_tokens: trace.block_tokens,
            now_us: trace.requests.arrival_us.as_ref().map(|times| times[index]),
        }
    }
}

/// Tokens of the output blocks that each request lists; nothing without any.
fn output_tokens(trace: &Trace) -> Vec<u64> {
    let Some(outputs) = &trace.requests.outputs else { return Vec::new() };
    (0..trace.len()).map(|r| u64::from(outputs.count(r)) * u64::from(trace.block_tokens)).collect()
}

/// Every block cut into `refine` blocks.
fn refined(forest: &Forest, refine: u32) -> Result<Forest> {
    if refine == 1 {
        return Ok(forest.clone());
    }
    if u64::from(forest.blocks()) * u64::from(refine) >= u64::from(u32::MAX) {
        return Err(Error::config(
            format!("{} blocks of the trace are more engine blocks than can be numbered", forest.blocks()),
            "give a larger block_size, or replay a part of the trace",
        ));
    }
    // A path may be deeper than the number of blocks only if it repeats them, which a forest cannot.
    Ok(forest.stretched(refine))
}

fn regrained(base: &Trace, forest: Forest, node: Vec<Node>, block_tokens: u32) -> Trace {
    let blocks = forest.blocks();
    let runs = if blocks == 0 { IdRuns::default() } else { IdRuns { block: vec![0], id: vec![0] } };
    let ids = IdTable::from_runs(runs, blocks, crate::trace::Bits::default(), crate::trace::Texts::default());
    let requests = Requests { node, outputs: None, block_tokens: Vec::new(), ..base.requests.clone() };
    Trace::new(forest, ids, requests, block_tokens, base.tail, base.origin.clone(), base.quality.clone())
}

#[cfg(test)]
mod tests;
