//! The native form of a trace: one row per request, from which the forest is rebuilt without hashing.
//!
//! A row says how its path is made: the first `base_blocks` blocks of a chain known before (`base_back`
//! chains ago, 0 = none) and everything above them, then `new_blocks` blocks nobody had seen, whose ids
//! follow as runs of consecutive numbers. Rows are self-contained batches, so files stream in and out.

use super::{Bits, Texts, find_rekeyed};
use super::{Column, Forest, IdRuns, IdTable, Node, Origin, OutputIds, Quality, Requests, Tail, Trace};
use crate::error::{Error, Result};

/// A batch of rows, column by column. Optional columns are empty when the trace has no such values.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NativeRows {
    /// Arrival in microseconds; empty for a trace without times.
    pub arrival_us: Vec<i64>,
    /// Input length in tokens.
    pub input_tokens: Vec<u32>,
    /// Output length in tokens, `NO_LENGTH` where there is none.
    pub output_tokens: Vec<u32>,
    /// The known part of the path hangs off the chain this many chains ago; 0 = there is no known part.
    pub base_back: Vec<u32>,
    /// How many blocks of that chain belong to the path.
    pub base_blocks: Vec<u32>,
    /// Number of blocks seen here first.
    pub new_blocks: Vec<u32>,
    /// Number of id runs of the new blocks.
    pub id_runs: Vec<u32>,
    /// First id of each run.
    pub id_start: Vec<u64>,
    /// Number of blocks of each run.
    pub id_blocks: Vec<u32>,
    /// Whether the run's ids are texts (`id_start` then counts texts); empty when there are none.
    pub id_is_text: Vec<bool>,
    /// Number of texts of the row that no row before had; empty when there are none.
    pub text_count: Vec<u32>,
    /// Those texts.
    pub texts: Vec<String>,
    /// Tokens per block; empty when all requests have the trace's.
    pub block_tokens: Vec<u32>,
    /// Namespace of the row; empty when there is only one.
    pub namespace: Vec<u32>,
    /// Group columns.
    pub columns: Vec<Column>,
    /// Output ids of the rows; `None` when the trace has none.
    pub outputs: Option<OutputIds>,
}

/// Cuts a trace into native rows.
#[derive(Debug)]
pub struct NativeWriter<'a> {
    trace: &'a Trace,
    id_runs: IdRuns,
    at_request: usize,
    at_chain: u32,
    at_run: usize,
    texts_written: u32,
}

impl<'a> NativeWriter<'a> {
    /// Starts at the first request.
    #[must_use]
    pub fn new(trace: &'a Trace) -> Self {
        Self { trace, id_runs: trace.ids.runs(), at_request: 0, at_chain: 0, at_run: 0, texts_written: 0 }
    }

    /// The next at most `limit` rows, or `None` at the end.
    pub fn next_rows(&mut self, limit: usize) -> Option<NativeRows> {
        let begin = self.at_request;
        let end = self.trace.len().min(begin + limit);
        if begin == end {
            return None;
        }
        let mut rows = NativeRows::default();
        for request in begin..end {
            self.path(request, &mut rows);
        }
        let requests = &self.trace.requests;
        if let Some(arrival_us) = &requests.arrival_us {
            rows.arrival_us.extend_from_slice(&arrival_us[begin..end]);
        }
        rows.input_tokens.extend_from_slice(&requests.input_tokens[begin..end]);
        rows.output_tokens.extend_from_slice(&requests.output_tokens[begin..end]);
        if !requests.block_tokens.is_empty() {
            rows.block_tokens.extend_from_slice(&requests.block_tokens[begin..end]);
        }
        let keep: Vec<u32> = (begin as u32..end as u32).collect();
        rows.columns = requests.columns.iter().map(|column| column.pick(&keep)).collect();
        rows.outputs = requests.outputs.as_ref().map(|outputs| {
            let mut part = outputs.pick(&keep).unwrap_or_default();
            part.pad(end - begin);
            part
        });
        self.at_request = end;
        Some(rows)
    }

    fn path(&mut self, request: usize, rows: &mut NativeRows) {
        let forest = &self.trace.forest;
        let node = self.trace.requests.node[request];
        let is_new = !node.is_empty() && node.chain == self.at_chain;
        let base = if is_new { forest.parent(node.chain) } else { node };
        rows.base_back.push(if base.is_empty() { 0 } else { self.at_chain - base.chain });
        rows.base_blocks.push(base.len);
        if !forest.namespace.is_empty() {
            rows.namespace.push(if node.is_empty() { 0 } else { forest.namespace(node.chain) });
        }
        let (runs_before, texts_before) = (rows.id_start.len(), rows.texts.len());
        if is_new {
            rows.new_blocks.push(node.len);
            self.ids(forest.first(node.chain), node.len, rows);
            self.at_chain += 1;
        } else {
            rows.new_blocks.push(0);
        }
        rows.id_runs.push((rows.id_start.len() - runs_before) as u32);
        if self.trace.ids.has_texts() {
            rows.text_count.push((rows.texts.len() - texts_before) as u32);
        }
    }

    /// The id runs of the blocks `first .. first + count`.
    fn ids(&mut self, first: u32, count: u32, rows: &mut NativeRows) {
        let ids = &self.trace.ids;
        let end = first + count;
        let mut block = first;
        while block < end {
            while self.id_runs.block.get(self.at_run + 1).is_some_and(|&next| next <= block) {
                self.at_run += 1;
            }
            let run_end = self.id_runs.block.get(self.at_run + 1).map_or(end, |&next| next.min(end));
            let is_text = ids.is_text(block);
            let stop = if ids.has_texts() {
                (block..run_end).find(|&b| ids.is_text(b) != is_text).unwrap_or(run_end)
            } else {
                run_end
            };
            let start = ids.number(block);
            rows.id_start.push(start);
            rows.id_blocks.push(stop - block);
            if ids.has_texts() {
                rows.id_is_text.push(is_text);
                let last_text = start as u32 + (stop - block);
                while is_text && self.texts_written < last_text {
                    rows.texts.push(ids.texts().get(self.texts_written).to_owned());
                    self.texts_written += 1;
                }
            }
            block = stop;
        }
    }
}

/// What the rows do not say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NativeHeader {
    /// Tokens per full block.
    pub block_tokens: u32,
    /// Whether partial last blocks are listed.
    pub tail: Tail,
    /// Where the trace came from before it was written.
    pub origin: Origin,
    /// What reading the original found.
    pub quality: Quality,
}

/// Puts a trace together from native rows.
#[derive(Debug, Default)]
pub struct NativeReader {
    forest: Forest,
    runs: IdRuns,
    text: Bits,
    texts: Texts,
    requests: Requests,
    rows: u64,
}

impl NativeReader {
    /// Adds a batch.
    ///
    /// # Errors
    /// `bad_type` with the row when the rows do not describe a forest (a damaged file).
    pub fn push(&mut self, batch: &NativeRows) -> Result<()> {
        let rows = batch.input_tokens.len();
        let (mut run, mut text) = (0, 0);
        for row in 0..rows {
            self.rows += 1;
            let fits = self.path(batch, row, &mut run, &mut text);
            fits.ok_or_else(|| damaged(self.rows))?;
        }
        let requests = &mut self.requests;
        requests.input_tokens.extend_from_slice(&batch.input_tokens);
        requests.output_tokens.extend_from_slice(&batch.output_tokens);
        requests.block_tokens.extend_from_slice(&batch.block_tokens);
        if !batch.arrival_us.is_empty() {
            requests.arrival_us.get_or_insert_default().extend_from_slice(&batch.arrival_us);
        }
        if let Some(more) = &batch.outputs {
            if more.requests() != rows {
                return Err(damaged(self.rows));
            }
            let outputs = requests.outputs.get_or_insert_default();
            outputs.pad(self.rows as usize - rows);
            for row in 0..rows {
                outputs.push(more.namespace(row), more.of(row))?;
            }
        }
        if requests.columns.is_empty() && self.rows == rows as u64 {
            requests.columns = batch.columns.iter().map(|c| Column::new(&c.name, 0)).collect();
        }
        if requests.columns.len() != batch.columns.len() {
            return Err(damaged(self.rows));
        }
        for (column, more) in requests.columns.iter_mut().zip(&batch.columns) {
            for row in 0..rows {
                column.push(more.get(row));
            }
        }
        Ok(())
    }

    fn path(&mut self, batch: &NativeRows, row: usize, run: &mut usize, text: &mut usize) -> Option<()> {
        let (chains, blocks_before) = (self.forest.chains() as u32, self.forest.blocks());
        let back = *batch.base_back.get(row)?;
        let base = if back == 0 {
            Node::EMPTY
        } else {
            Node { chain: chains.checked_sub(back)?, len: *batch.base_blocks.get(row)? }
        };
        if !base.is_empty() && !(1..=self.forest.chain_len(base.chain)).contains(&base.len) {
            return None;
        }
        let new_blocks = *batch.new_blocks.get(row)?;
        // Every listed block covers a token: what claims more is damage, and must not size an allocation.
        let listed_blocks = u64::from(self.forest.path_len(base)) + u64::from(new_blocks);
        (listed_blocks <= u64::from(*batch.input_tokens.get(row)?)).then_some(())?;
        for _ in 0..batch.text_count.get(row).copied().unwrap_or(0) {
            self.texts.number(batch.texts.get(*text)?);
            *text += 1;
        }
        let mut listed = 0_u64;
        for _ in 0..*batch.id_runs.get(row)? {
            let (id, blocks) = (*batch.id_start.get(*run)?, *batch.id_blocks.get(*run)?);
            let is_text = batch.id_is_text.get(*run).copied().unwrap_or(false);
            *run += 1;
            let block = u32::try_from(u64::from(blocks_before) + listed).ok()?;
            listed += u64::from(blocks);
            id.checked_add(u64::from(blocks).checked_sub(1)?)?;
            if is_text {
                (id + u64::from(blocks) <= self.texts.len() as u64).then_some(())?;
                (block..block.checked_add(blocks)?).for_each(|b| self.text.set(b));
            }
            self.add_run(block, id);
        }
        (listed == u64::from(new_blocks)).then_some(())?;
        if new_blocks == 0 {
            self.requests.node.push(base);
            return Some(());
        }
        let forest = &mut self.forest;
        let end = blocks_before.checked_add(new_blocks)?;
        let depth = forest.path_len(base);
        depth.checked_add(new_blocks)?;
        forest.depth.push(depth);
        forest.parent.push(base);
        forest.start.push(end);
        if let Some(&namespace) = batch.namespace.get(row) {
            forest.namespace.push(namespace);
        }
        self.requests.node.push(Node { chain: chains, len: new_blocks });
        Some(())
    }

    fn add_run(&mut self, block: u32, id: u64) {
        let last = self.runs.block.last().zip(self.runs.id.last());
        if last.is_none_or(|(&first, &start)| start.checked_add(u64::from(block - first)) != Some(id)) {
            self.runs.block.push(block);
            self.runs.id.push(id);
        }
    }

    /// The trace.
    ///
    /// # Errors
    /// `bad_type` when columns have different lengths or the namespaces do not fit the forest.
    pub fn finish(self, header: NativeHeader) -> Result<Trace> {
        let Self { forest, runs, text, texts, mut requests, rows } = self;
        requests.outputs = requests.outputs.filter(|outputs| !outputs.is_empty());
        if let Some(outputs) = &mut requests.outputs {
            outputs.pad(requests.node.len());
        }
        let whole = |len: usize| len == 0 || len as u64 == rows;
        let fits = whole(requests.block_tokens.len())
            && requests.arrival_us.as_ref().is_none_or(|a| a.len() as u64 == rows)
            && requests.output_tokens.len() as u64 == rows
            && (forest.namespace.is_empty() || forest.namespace.len() == forest.chains())
            && header.block_tokens > 0
            && requests.block_tokens.iter().all(|&b| b > 0);
        if !fits {
            return Err(damaged(rows));
        }
        let ids = IdTable::from_runs(runs, forest.blocks(), text, texts);
        let mut origin = header.origin;
        origin.chained = find_rekeyed(&forest, &ids).ids == 0;
        Ok(Trace::new(forest, ids, requests, header.block_tokens, header.tail, origin, header.quality))
    }
}

fn damaged(row: u64) -> Error {
    Error::trace(
        "bad_type",
        "the native file is damaged: this row does not continue the ones before it",
        "write the file again with kvreplay convert",
    )
    .at("", Some(row))
}
