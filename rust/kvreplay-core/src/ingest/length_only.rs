//! Traces that list arrivals and lengths but no blocks: Azure 2023 and 2024, `BurstGPT`, and any other rows.
//!
//! Nothing about reuse follows from lengths, so hit analysis refuses such files. Their arrivals and lengths can
//! shape a generated trace.

use super::options::ReadOptions;
use super::rows::RowSink;
use super::source::Source;
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::trace::NO_LENGTH;

/// Arrival and lengths of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LengthRow {
    /// Arrival in microseconds, as the file gives it; `None` in a file without times.
    pub arrival_us: Option<i64>,
    /// Input length in tokens.
    pub input_tokens: u32,
    /// Output length in tokens; `None` where the row has none. `BurstGPT` writes 0 for failed requests.
    pub output_tokens: Option<u32>,
}

/// Reads arrivals and lengths in order of arrival, whether rows list blocks or not.
///
/// Known are the fields of every text format, and those of Azure's and `BurstGPT`'s CSV files. Rows without an input
/// length are left out.
///
/// # Errors
/// As [`super::read`]; `no_rows` when no row has an input length.
pub fn read_lengths(
    sources: Vec<Source>,
    options: &ReadOptions,
    progress: &Progress,
) -> Result<Vec<LengthRow>> {
    let mut sink = RowSink::new(options)?;
    sink.lengths_only = true;
    let trace = super::finish(sink, sources, progress)?;
    let requests = &trace.requests;
    let row = |request: usize| LengthRow {
        arrival_us: requests.arrival_us.as_ref().map(|times| times[request]),
        input_tokens: requests.input_tokens[request],
        output_tokens: Some(requests.output_tokens[request]).filter(|&tokens| tokens != NO_LENGTH),
    };
    Ok((0..trace.len()).map(row).collect())
}

/// The error for a trace whose rows have lengths but no blocks.
pub(crate) fn no_blocks() -> Error {
    Error::trace(
        "missing_field",
        "the trace lists lengths but no blocks (hash_ids, run_start or token_ids), so no hit can be told",
        "kvreplay generate --lengths-from takes its arrivals and lengths; for hits, record block hashes",
    )
}

/// Refuses a table whose columns hold lengths but no blocks, before it is read to its end.
pub(crate) fn refuse_columns(names: &[&str], sink: &RowSink) -> Result<()> {
    use super::fields::{Ours, resolve};
    let has = |what: &[Ours]| {
        names
            .iter()
            .any(|name| resolve(name, &sink.options.columns).is_some_and(|found| what.contains(&found.0)))
    };
    let paths = [Ours::HashIds, Ours::RunStart, Ours::TokenIds];
    if !sink.lengths_only && has(&[Ours::InputTokens]) && !has(&paths) { Err(no_blocks()) } else { Ok(()) }
}

/// Whether the columns are those of `BurstGPT`, whose `Timestamp` counts seconds.
pub(crate) fn is_burst_gpt(names: &[&str]) -> bool {
    ["Timestamp", "Request tokens", "Response tokens"].iter().all(|name| names.contains(name))
}

/// A format that is only listed: the Python package reads it.
pub(crate) fn read_elsewhere(name: &str) -> Error {
    Error::config(
        format!("format: {name} is not a text format"),
        "kvreplay.read_trace and the command line read it from Parquet and Arrow",
    )
}
