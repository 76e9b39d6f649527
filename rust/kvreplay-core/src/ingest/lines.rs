//! Lines of a source, numbered, with what is said about line ends.

use super::input::Input;
use super::rows::RowSink;
use crate::error::Result;

/// What is said about the lines of a file, at its end.
#[derive(Debug, Default)]
pub(crate) struct LineNotes {
    crlf: Count,
    blank: Count,
}

#[derive(Debug, Default)]
struct Count {
    count: u64,
    first: u64,
}

impl Count {
    fn add(&mut self, line: u64) {
        if self.count == 0 {
            self.first = line;
        }
        self.count += 1;
    }

    fn mention(&self, code: &str, sink: &mut RowSink) {
        let place = Some(sink.place(self.first));
        sink.notes.mention(code, self.count, place, None);
    }
}

impl LineNotes {
    pub(crate) fn crlf(&mut self, line: u64) {
        self.crlf.add(line);
    }

    pub(crate) fn blank(&mut self, line: u64) {
        self.blank.add(line);
    }

    pub(crate) fn finish(&self, sink: &mut RowSink) {
        self.crlf.mention("crlf", sink);
        self.blank.mention("blank_lines", sink);
    }
}

/// One line: its text begins at 0 of `bytes` and ends at `end`; bytes may follow.
pub(crate) struct Line<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) end: usize,
    pub(crate) number: u64,
    /// Whether a line end follows.
    pub(crate) ended: bool,
}

impl Line<'_> {
    /// The beginning of the line, for messages.
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes[..self.end.min(100)]).into_owned()
    }
}

/// Calls `each` for every line that is not blank.
///
/// # Errors
/// Those of the source and of `each`.
pub(crate) fn for_each(
    input: &mut Input<'_>,
    sink: &mut RowSink,
    mut each: impl FnMut(&Line<'_>, &mut RowSink) -> Result<()>,
) -> Result<()> {
    let mut notes = LineNotes::default();
    let mut number = 0;
    // A long line is searched for its end once, however often the window grows.
    let mut searched = 0;
    loop {
        let (bytes, length) = (input.padded(), input.window().len());
        let mut at = 0;
        while let Some(found) = memchr::memchr(b'\n', &bytes[at + searched..length]) {
            let end = at + searched + found;
            number += 1;
            searched = 0;
            if end > at && bytes[end - 1] == b'\r' {
                notes.crlf(number);
            }
            let line = Line { bytes: &bytes[at..], end: end - at, number, ended: true };
            if is_blank(&line) {
                notes.blank(number);
            } else {
                each(&line, sink)?;
            }
            at = end + 1;
        }
        searched = length - at;
        input.consume(at);
        if !input.more()? {
            break;
        }
    }
    let end = input.window().len();
    if end > 0 {
        number += 1;
        let line = Line { bytes: input.padded(), end, number, ended: false };
        if is_blank(&line) { notes.blank(number) } else { each(&line, sink)? }
    }
    notes.finish(sink);
    Ok(())
}

fn is_blank(line: &Line<'_>) -> bool {
    // Nearly always decided by the first byte.
    line.bytes[..line.end].iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}
