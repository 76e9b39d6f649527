//! The formats: one file each, one line each in the registry.

mod csv;
mod json_array;
mod mooncake;

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
}

/// All formats, in the order in which `auto` tries them.
pub(crate) const FORMATS: &[&Format] = &[&json_array::FORMAT, &csv::FORMAT, &mooncake::FORMAT];

/// The formats of text files that [`super::read`] knows.
#[must_use]
pub fn formats() -> Vec<FormatInfo> {
    FORMATS.iter().map(|format| format.info).collect()
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
