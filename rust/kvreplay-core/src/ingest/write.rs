//! Traces as Mooncake JSON lines.

use crate::error::{Error, Result};
use crate::trace::{Id, NO_LENGTH, Node, Trace};
use std::io::{self, Write};

/// Namespaces that these columns make come back from the columns themselves.
const OWN_COLUMNS: [&str; 6] = ["model", "revision", "kv_dtype", "lora", "salt", "block_tokens"];

/// Writes a trace as JSON lines that [`super::read`] reads back as an equal one: one object a line in replay
/// order, ids as given, columns under our names.
///
/// Times are `timestamp` in milliseconds as Mooncake has them; a trace with finer times has `timestamp_us`
/// instead. Local namespaces become `hash_id_scope` and `trace_id`.
///
/// # Errors
/// `io` when the writer fails.
pub fn write_mooncake(trace: &Trace, out: &mut dyn Write) -> Result<()> {
    let mut writer = Writer::new(trace);
    let mut line = Vec::new();
    for request in 0..trace.len() {
        line.clear();
        let written = writer.line(request, &mut line).and_then(|()| out.write_all(&line));
        written.map_err(|error| io_error(&error))?;
    }
    out.flush().map_err(|error| io_error(&error))
}

fn io_error(error: &io::Error) -> Error {
    Error::trace(
        "io",
        format!("the trace could not be written: {error}"),
        "check the space and the permissions",
    )
}

struct Writer<'a> {
    trace: &'a Trace,
    path: Vec<u32>,
    /// Microseconds per unit of the times, 0 without times.
    time_step_us: i64,
    /// Whether namespaces must be written out.
    local: bool,
}

impl<'a> Writer<'a> {
    fn new(trace: &'a Trace) -> Self {
        let times = trace.requests.arrival_us.as_deref();
        let whole = times.is_some_and(|times| times.iter().all(|time| time % 1_000 == 0));
        let made_by = &trace.origin.namespace_columns;
        Self {
            trace,
            path: Vec::new(),
            time_step_us: if times.is_none() { 0 } else { [1, 1_000][usize::from(whole)] },
            local: made_by.iter().any(|name| !OWN_COLUMNS.contains(&name.as_str())),
        }
    }

    fn line(&mut self, request: usize, out: &mut Vec<u8>) -> io::Result<()> {
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
        if let Some(size) = requests.block_tokens.get(request) {
            write!(out, "\"block_size\": {size}, ")?;
        }
        let node = requests.node[request];
        if self.local {
            let namespace = if node.is_empty() { 0 } else { self.trace.forest.namespace(node.chain) };
            write!(out, "\"hash_id_scope\": \"local\", \"trace_id\": \"namespace {namespace}\", ")?;
        }
        for column in &requests.columns {
            if let Some(value) = column.get(request)
                && !(self.local && column.name == "trace_id")
            {
                text(out, &column.name);
                out.extend_from_slice(b": ");
                text(out, value);
                out.extend_from_slice(b", ");
            }
        }
        self.ids(node, out)?;
        out.extend_from_slice(b"}\n");
        Ok(())
    }

    fn ids(&mut self, node: Node, out: &mut Vec<u8>) -> io::Result<()> {
        out.extend_from_slice(b"\"hash_ids\": [");
        self.trace.forest.path(node, &mut self.path);
        for (at, &block) in self.path.iter().enumerate() {
            if at > 0 {
                out.extend_from_slice(b", ");
            }
            match self.trace.ids.get(block) {
                Id::Number(number) => write!(out, "{number}")?,
                Id::Text(id) => text(out, id),
            }
        }
        out.push(b']');
        Ok(())
    }
}

/// A JSON string.
fn text(out: &mut Vec<u8>, value: &str) {
    out.push(b'"');
    for byte in value.bytes() {
        match byte {
            b'"' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
            0..=0x1f => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
