//! Traces as Mooncake JSON lines.

use super::text::{ids, list, text};
use super::{Packing, Rows, WriterInfo, names_namespaces};
use crate::error::Result;
use crate::ingest::fields::keeps_column;
use crate::ingest::fit::Fit;
use crate::progress::Progress;
use crate::trace::{NO_LENGTH, Trace};
use std::io::{self, Write};

pub(super) const INFO: WriterInfo = WriterInfo {
    name: "mooncake",
    doc: "JSON lines: timestamp, input_length, output_length, hash_ids, and the group columns",
    loses: "what reading found (quality); columns named like a field of another meaning",
    source: "Mooncake FAST'25 release",
};

/// Writes a trace as JSON lines that [`crate::ingest::read`] reads back as an equal one: one object a line in
/// replay order, ids as given, columns under our names.
///
/// Times are `timestamp` in milliseconds as Mooncake has them; a trace with finer times has `timestamp_us`
/// instead. Local namespaces become `hash_id_scope` and `trace_id`. Rows state their `block_size` where sizes
/// differ, or where a reader could not infer it from the lengths.
///
/// # Errors
/// `io` when the writer fails.
pub fn write_mooncake(trace: &Trace, out: &mut dyn Write) -> Result<()> {
    super::write(trace, INFO.name, Packing::Plain, out, &Progress::default())
}

#[expect(clippy::unnecessary_wraps, reason = "every writer starts alike, and some refuse a trace")]
pub(super) fn start(trace: &Trace) -> Result<Box<dyn Rows + '_>> {
    Ok(Box::new(Lines::new(trace)))
}

struct Lines<'a> {
    trace: &'a Trace,
    path: Vec<u32>,
    /// Microseconds per unit of the times, 0 without times.
    time_step_us: i64,
    /// Whether namespaces must be written out.
    local: bool,
    states_block_size: bool,
}

impl<'a> Lines<'a> {
    fn new(trace: &'a Trace) -> Self {
        let times = trace.requests.arrival_us.as_deref();
        let whole = times.is_some_and(|times| times.iter().all(|time| time % 1_000 == 0));
        Self {
            trace,
            path: Vec::new(),
            time_step_us: if times.is_none() { 0 } else { [1, 1_000][usize::from(whole)] },
            local: names_namespaces(trace),
            states_block_size: !trace.requests.block_tokens.is_empty() || !shows_block_size(trace),
        }
    }
}

/// Whether a reader finds the block size from lengths and numbers of ids.
fn shows_block_size(trace: &Trace) -> bool {
    let mut fit = Fit::default();
    for request in 0..trace.len() {
        let listed = trace.path_len(request);
        if listed > 0 {
            fit.add(trace.requests.input_tokens[request], listed);
        }
    }
    fit.rows > 0 && fit.choose(None).is_some_and(|found| found.block_tokens == trace.block_tokens)
}

impl Rows for Lines<'_> {
    fn add(&mut self, request: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let requests = &self.trace.requests;
        out.push(b'{');
        if let Some(times) = &requests.arrival_us {
            let name = if self.time_step_us == 1 { "timestamp_us" } else { "timestamp" };
            write!(out, "\"{name}\": {}, ", times[request] / self.time_step_us)?;
        }
        write!(out, "\"input_length\": {}, ", requests.input_tokens[request])?;
        if requests.output_tokens[request] != NO_LENGTH {
            write!(out, "\"output_length\": {}, ", requests.output_tokens[request])?;
        }
        if self.states_block_size {
            write!(out, "\"block_size\": {}, ", self.trace.block_tokens_of(request))?;
        }
        let node = requests.node[request];
        if self.local {
            let namespace = if node.is_empty() { 0 } else { self.trace.forest.namespace(node.chain) };
            write!(out, "\"hash_id_scope\": \"local\", \"trace_id\": \"namespace {namespace}\", ")?;
        }
        for column in &requests.columns {
            if let Some(value) = column.get(request)
                && !(self.local && column.name == "trace_id")
                && keeps_column(&column.name)
            {
                text(out, &column.name);
                out.extend_from_slice(b": ");
                text(out, value);
                out.extend_from_slice(b", ");
            }
        }
        out.extend_from_slice(b"\"hash_ids\": ");
        ids(&self.trace.forest, &self.trace.ids, node, &mut self.path, out)?;
        if let Some(outputs) = requests.outputs.as_ref().filter(|outputs| outputs.count(request) > 0) {
            out.extend_from_slice(b", \"output_hash_ids\": ");
            list(outputs.of(request), out)?;
        }
        out.extend_from_slice(b"}\n");
        Ok(())
    }
}
