//! The formats: one file each, one line each in the registry.

mod bailian;
mod csv;
mod dialect;
mod dynamo_agentic;
mod dynamo_request_trace;
mod elsewhere;
mod head;
mod json_array;
mod lmcache_lookup_log;
mod mooncake;
mod oracle_general;
mod token_ids;
mod weka;

use super::input::Input;
use super::options::ReadOptions;
use super::rows::RowSink;
use crate::error::{Error, Result};

/// A format as users see it in lists.
#[derive(Debug, Clone, Copy)]
pub struct FormatInfo {
    /// The name for `format=` and `--format`.
    pub name: &'static str,
    /// One line on what it is.
    pub doc: &'static str,
    /// An example row.
    pub example: &'static str,
    /// Whose format it is.
    pub source: &'static str,
}

/// A format: what users see, how it is told by its first bytes, and how rows are read.
pub(crate) struct Format {
    pub(crate) info: FormatInfo,
    /// Whether these first bytes (of the decompressed file) are of this format.
    pub(crate) detect: fn(head: &[u8], options: &ReadOptions) -> bool,
    /// Feeds all rows of a source to the sink.
    pub(crate) read: fn(input: &mut Input<'_>, sink: &mut RowSink) -> Result<()>,
    /// Whether files are no text.
    pub(crate) is_binary: bool,
}

/// All formats, in the order in which `auto` tries them.
pub(crate) const FORMATS: &[&Format] = &[
    &json_array::FORMAT,
    &csv::FORMAT,
    &weka::FORMAT,
    &dynamo_request_trace::FORMAT,
    &dynamo_agentic::FORMAT,
    &lmcache_lookup_log::FORMAT,
    &bailian::FORMAT,
    &token_ids::FORMAT,
    &oracle_general::FORMAT,
    &elsewhere::ARROW,
    &elsewhere::NATIVE,
    &mooncake::FORMAT,
];

/// All formats: those that [`super::read`] knows, and `arrow` and `native`, which need a Parquet or Arrow reader.
#[must_use]
pub fn formats() -> Vec<FormatInfo> {
    let mut infos: Vec<FormatInfo> = FORMATS.iter().map(|format| format.info).collect();
    // The one that most traces are in comes first.
    infos.rotate_right(1);
    infos
}

/// The format of a name.
///
/// # Errors
/// `Config` when there is none.
pub(crate) fn by_name(name: &str) -> Result<&'static Format> {
    FORMATS.iter().find(|format| format.info.name == name).copied().ok_or_else(|| {
        let names: Vec<&str> = FORMATS.iter().map(|format| format.info.name).collect();
        Error::config(
            format!("format: {name:?} is not known"),
            format!("auto or one of {}", names.join(", ")),
        )
    })
}

/// The format of a file by its first bytes. What looks like nothing in particular is read line by line, so
/// that every line can be named for what is wrong with it.
pub(crate) fn detect(head: &[u8], options: &ReadOptions) -> &'static Format {
    FORMATS.iter().find(|format| (format.detect)(head, options)).copied().unwrap_or(&mooncake::FORMAT)
}

/// Skips a byte order mark. Files begin with at most one.
pub(crate) fn skip_bom(input: &mut Input<'_>, sink: &mut RowSink) {
    if input.window().starts_with(b"\xef\xbb\xbf") {
        input.consume(3);
        let place = Some(sink.place(1));
        sink.notes.mention("bom", 1, place, None);
    }
}
