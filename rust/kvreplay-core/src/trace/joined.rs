//! Prompts and the blocks that fill behind them, in one forest.

use super::{
    Forest, ForestBuilder, Id, IdTable, Kinds, Node, Origin, OutputIds, Requests, Trace, find_rekeyed,
};
use crate::error::Result;

/// A trace whose forest also holds the blocks of `output_hash_ids`.
#[derive(Debug)]
pub struct Joined {
    /// The same requests; their nodes are the prompts as listed. Unlike in a trace that was read, the forest and
    /// its ids also hold blocks that no prompt lists, and its requests keep no output ids of their own.
    pub trace: Trace,
    /// Per request the path with its outputs: the prompt's full blocks, then the output blocks.
    pub full: Vec<Node>,
}

impl Trace {
    /// The trace with its output blocks in the forest; `None` when no request lists any.
    ///
    /// The path with outputs is `hash_ids[..min(listed, floor(input_tokens / block_tokens))]`, then
    /// `output_hash_ids` (`interface.md` section 5): a partial last block of the prompt is left out, because the
    /// first output block is what becomes of it. Blocks are numbered by first appearance, in the order prompt,
    /// outputs, next request; outputs lie in the namespace of their prompt.
    ///
    /// # Errors
    /// As [`ForestBuilder::push`].
    pub fn joined(&self) -> Result<Option<Joined>> {
        let Some(outputs) = &self.requests.outputs else { return Ok(None) };
        let mut join =
            Join { trace: self, builder: ForestBuilder::new(), path: Vec::new(), ids: Ids::default() };
        let (mut node, mut full) = (Vec::with_capacity(self.len()), Vec::with_capacity(self.len()));
        for request in 0..self.len() {
            let prompt = join.prompt(request)?;
            let above = join.builder.truncate(prompt, self.full_blocks(request));
            node.push(prompt);
            full.push(join.below(above, request, outputs)?);
        }
        let (forest, ids) = join.builder.finish();
        Ok(Some(Joined { trace: self.with_forest(forest, ids, node), full }))
    }

    /// The trace over another forest, without output ids.
    fn with_forest(&self, forest: Forest, ids: IdTable, node: Vec<Node>) -> Self {
        let requests = Requests { node, outputs: None, ..self.requests.clone() };
        let origin = Origin { chained: find_rekeyed(&forest, &ids).ids == 0, ..self.origin.clone() };
        Self::new(forest, ids, requests, self.block_tokens, self.tail, origin, self.quality.clone())
    }
}

/// Ids as the builder takes them.
#[derive(Default)]
struct Ids {
    numbers: Vec<u64>,
    is_text: Vec<bool>,
}

impl Ids {
    fn kinds(&self) -> Kinds<'_> {
        // A forest without texts keeps its ids as runs.
        if self.is_text.contains(&true) { Kinds::Mixed(&self.is_text) } else { Kinds::Numbers }
    }

    fn fill<'a>(&mut self, ids: impl Iterator<Item = Id<'a>>, builder: &mut ForestBuilder) {
        self.numbers.clear();
        self.is_text.clear();
        for id in ids {
            self.is_text.push(matches!(id, Id::Text(_)));
            self.numbers.push(match id {
                Id::Number(number) => number,
                Id::Text(text) => builder.text_number(text),
            });
        }
    }
}

struct Join<'a> {
    trace: &'a Trace,
    builder: ForestBuilder,
    path: Vec<u32>,
    ids: Ids,
}

impl Join<'_> {
    fn prompt(&mut self, request: usize) -> Result<Node> {
        let trace = self.trace;
        let node = trace.requests.node[request];
        trace.forest.path(node, &mut self.path);
        self.ids.fill(self.path.iter().map(|&block| trace.ids.get(block)), &mut self.builder);
        let namespace = if node.is_empty() { 0 } else { trace.forest.namespace(node.chain) };
        self.builder.push(namespace, &self.ids.numbers, self.ids.kinds())
    }

    fn below(&mut self, above: Node, request: usize, outputs: &OutputIds) -> Result<Node> {
        self.ids.fill(outputs.of(request), &mut self.builder);
        let namespace = outputs.namespace(request);
        self.builder.push_below(above, namespace, &self.ids.numbers, self.ids.kinds())
    }
}
