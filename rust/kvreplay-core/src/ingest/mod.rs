//! Reading traces: bytes in, [`Trace`] out, and everything that was found on the way said.
//!
//! Sources are unpacked and cut into rows in bounded buffers; each format turns its rows into the fields of
//! one row type; the sink interns paths and columns; `assemble` settles what only shows at the end (block
//! size, unit of time, order) and names what was repaired.

mod assemble;
mod columns;
mod delta;
mod fields;
mod fit;
mod format;
mod hints;
mod id_list;
mod input;
mod iso;
mod json;
mod length_only;
mod lengths;
mod lines;
mod links;
mod namespace;
mod notes;
mod options;
mod order;
mod prefetch;
mod row;
mod rows;
mod sessions;
mod source;
mod starts;
mod times;
mod token_hash;
mod write;

#[cfg(test)]
mod tests;

pub use columns::{Batch, BatchColumn, ColumnReader, Validity, Values};
pub use fields::keeps_column;
pub use format::{FormatInfo, formats};
pub use length_only::{LengthRow, read_lengths};
pub use options::{Namespace, ReadOptions, Scope, SessionRows, SharedPrefix, TimeUnit};
pub use rows::MAX_FOREIGN_COLUMNS;
pub use source::Source;
pub use starts::{SessionStarts, StartRule};
pub use write::{Packing, WriterInfo, names_namespaces, write, write_mooncake, writers};

use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::trace::Trace;
use format::Format;
use input::Input;
use prefetch::Ended;
use rows::RowSink;

/// Reads sources, one after the other, as one trace.
///
/// The progress counts bytes before decompression.
///
/// # Errors
/// `Config` for options that contradict themselves; `Trace` when a source cannot be read (`io`), is no trace
/// (`lfs_pointer`, `not_text`, `row_too_long`), holds no usable row (`no_rows`) or mixes units of time, and
/// under `strict` for the first row that would be rejected or repaired; `Cancelled`.
pub fn read(sources: Vec<Source>, options: &ReadOptions, progress: &Progress) -> Result<Trace> {
    finish(RowSink::new(options)?, sources, progress)
}

/// Feeds the sources to a sink and puts the trace together.
fn finish(mut sink: RowSink, sources: Vec<Source>, progress: &Progress) -> Result<Trace> {
    let named = sink.options.format.clone();
    let given = if named == "auto" { None } else { Some(format::by_name(&named)?) };
    progress.start(sources.iter().map(|source| source.bytes().unwrap_or(0)).sum());
    let mut done_bytes = 0;
    let mut name = given.map(|format| format.info.name);
    for source in sources {
        sink.begin_file(source.name());
        let file = source.name().to_owned();
        let read = read_one(source, given, &mut sink, progress, done_bytes);
        match read {
            Ok((format, bytes)) => {
                name.get_or_insert(format.info.name);
                done_bytes += bytes;
            }
            // Under strict the sink keeps the row that stopped it: an earlier one may turn out to be bad too.
            Err(Error::Trace(_)) if sink.notes.is_stopped() => break,
            Err(error) => return Err(error.at(&file, None)),
        }
    }
    assemble::finish(sink, name.unwrap_or("mooncake"))
}

/// Reads one source; returns its format and its size in bytes.
fn read_one(
    source: Source,
    given: Option<&'static Format>,
    sink: &mut RowSink,
    progress: &Progress,
    done_bytes: u64,
) -> Result<(&'static Format, u64)> {
    let mut input = Input::new(source.open()?, progress, done_bytes);
    input.more()?;
    if given.is_none_or(|format| !format.is_binary) {
        refuse_other_files(input.window())?;
    }
    let format = given.unwrap_or_else(|| {
        let head = input.window();
        format::detect(head.strip_prefix(b"\xef\xbb\xbf").unwrap_or(head), &sink.options)
    });
    (format.read)(&mut input, sink)?;
    let Ended { members, cut } = input.ended();
    if *members > 1 {
        let place = Some(sink.place(1));
        sink.notes.mention("many_members", 1, place, Some(&format!("{members} members")));
    }
    if let Some(why) = cut {
        sink.notes.note("cut_archive", 1, None, Some(why))?;
    }
    Ok((format, input.bytes_read()))
}

/// Names files that people give by mistake.
fn refuse_other_files(head: &[u8]) -> Result<()> {
    if head.starts_with(b"version https://git-lfs.github.com/spec/") {
        let message = "this is a Git LFS pointer, not the data";
        let hint = "run git lfs pull in the repository, or download the file itself";
        return Err(Error::trace("lfs_pointer", message, hint));
    }
    if head.starts_with(b"PAR1") {
        let hint = "Parquet is read by the Python package (kvreplay.read_trace and the command line)";
        return Err(Error::trace("not_text", "this is a Parquet file", hint));
    }
    let head = &head[..head.len().min(4096)];
    if memchr::memchr(0, head).is_some() {
        let hint = "give a trace as text: JSON lines, a JSON array or CSV, perhaps packed with gzip or zstd";
        return Err(Error::trace("not_text", "the file holds binary data", hint));
    }
    Ok(())
}
