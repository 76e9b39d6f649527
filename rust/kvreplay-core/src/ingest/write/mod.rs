//! Traces out: one file per format, one line each in the registry.
//!
//! A writer says what its format cannot hold: what only describes requests is left out and documented, what would
//! change hits is refused.

mod bailian;
mod mooncake;
mod oracle_general;
mod packing;
mod text;

pub use mooncake::write_mooncake;
pub use packing::Packing;

use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::trace::Trace;
use std::io::{self, Write};

/// A format that traces are written in, as users see it in lists.
#[derive(Debug, Clone, Copy)]
pub struct WriterInfo {
    /// The name for `--to`.
    pub name: &'static str,
    /// One line on what it is.
    pub doc: &'static str,
    /// What it does not keep.
    pub loses: &'static str,
    /// Whose format it is.
    pub source: &'static str,
}

/// Rows of a trace, one request at a time.
trait Rows {
    /// Appends the rows of a request, which come in replay order.
    fn add(&mut self, request: usize, out: &mut Vec<u8>) -> io::Result<()>;
}

/// Begins a file of a trace, or says why the format cannot hold it.
type Start = for<'a> fn(&'a Trace) -> Result<Box<dyn Rows + 'a>>;

struct Writer {
    info: WriterInfo,
    /// `None`: the Python package writes it, as it writes all Parquet.
    start: Option<Start>,
}

const NATIVE: WriterInfo = WriterInfo {
    name: "native",
    doc: "run-encoded Parquet: the smallest, and read back many times faster than text",
    loses: "nothing",
    source: "kvreplay",
};
const PARQUET: WriterInfo = WriterInfo {
    name: "parquet",
    doc: "Parquet with one row a request and hash_ids as list<uint64>, for other tools",
    loses: "what reading found (quality); columns named like a field of another meaning",
    source: "kvreplay",
};

const WRITERS: &[Writer] = &[
    Writer { info: NATIVE, start: None },
    Writer { info: mooncake::INFO, start: Some(mooncake::start) },
    Writer { info: bailian::INFO, start: Some(bailian::start) },
    Writer { info: oracle_general::INFO, start: Some(oracle_general::start) },
    Writer { info: PARQUET, start: None },
];

/// Formats that traces are written in: those that [`write()`] knows, and the two kinds of Parquet.
#[must_use]
pub fn writers() -> Vec<WriterInfo> {
    WRITERS.iter().map(|writer| writer.info).collect()
}

/// Writes a trace in a format of [`writers`], packed or not. Equal traces give equal bytes.
///
/// The progress counts requests.
///
/// # Errors
/// `Config` for an unknown format, one that needs a Parquet writer, and a trace that the format cannot hold;
/// `io` when `out` fails; `Cancelled`.
pub fn write(
    trace: &Trace,
    format: &str,
    packing: Packing,
    out: &mut dyn Write,
    progress: &Progress,
) -> Result<()> {
    let known = WRITERS.iter().find(|writer| writer.info.name == format);
    let Some(start) = known.and_then(|writer| writer.start) else {
        let names: Vec<&str> = WRITERS.iter().filter(|w| w.start.is_some()).map(|w| w.info.name).collect();
        let message = format!("cannot write {format:?} as a stream of rows");
        return Err(Error::config(message, format!("one of {}", names.join(", "))));
    };
    let mut rows = start(trace)?;
    progress.start(trace.len() as u64);
    packing::through(packing, out, |out| all_rows(rows.as_mut(), trace.len(), out, progress))
}

fn all_rows(rows: &mut dyn Rows, requests: usize, out: &mut dyn Write, progress: &Progress) -> Result<()> {
    let mut buffer = Vec::new();
    for request in 0..requests {
        if request % 1024 == 0 {
            progress.advance_to(request as u64)?;
        }
        buffer.clear();
        let written = rows.add(request, &mut buffer).and_then(|()| out.write_all(&buffer));
        written.map_err(|error| io_error(&error))?;
    }
    progress.advance_to(requests as u64)
}

fn io_error(error: &io::Error) -> Error {
    Error::trace(
        "io",
        format!("the trace could not be written: {error}"),
        "check the space and the permissions",
    )
}

/// Namespaces that these columns make come back from the columns themselves.
const OWN_COLUMNS: [&str; 6] = ["model", "revision", "kv_dtype", "lora", "salt", "block_tokens"];

/// Whether a file must name the namespace of every row, because its columns do not show it.
#[must_use]
pub fn names_namespaces(trace: &Trace) -> bool {
    trace.origin.namespace_columns.iter().any(|name| !OWN_COLUMNS.contains(&name.as_str()))
}

/// Refuses traces in which an id alone does not say which block is meant, for formats that have nothing else.
fn need_plain_ids(trace: &Trace, format: &str) -> Result<()> {
    let forest = &trace.forest;
    let first = forest.namespace(0);
    let why = if trace.ids.has_texts() {
        "some ids are texts"
    } else if forest.has_namespaces() && (0..forest.chains() as u32).any(|c| forest.namespace(c) != first) {
        "equal ids of different namespaces are different blocks"
    } else if !trace.origin.chained {
        "some ids have two parents, or come twice in a request, and are different blocks"
    } else {
        return Ok(());
    };
    let message = format!("{format} knows blocks by numbers alone, but in this trace {why}");
    Err(Error::config(message, "anonymize the trace (--anonymize): every block then has a number of its own"))
}
