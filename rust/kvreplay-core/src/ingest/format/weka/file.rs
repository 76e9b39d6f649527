//! A file as a sequence of session objects.

use super::session::{Agent, Walk};
use crate::error::Result;
use crate::ingest::format::skip_bom;
use crate::ingest::input::Input;
use crate::ingest::json::{Bad, Scanner};
use crate::ingest::rows::RowSink;
use crate::trace::Tail;

pub(super) fn read(input: &mut Input<'_>, sink: &mut RowSink) -> Result<()> {
    sink.hints.tail = Some(Tail::Floor);
    skip_bom(input, sink);
    let mut walk = Walk::default();
    let mut place = Lines { line: 1, crlf: 0 };
    while let Some(byte) = next_byte(input, &mut place)? {
        let (length, end) = if byte == b'{' { extent(input)? } else { (line_end(input)?, End::Whole) };
        let bytes = input.padded();
        if byte == b'{' {
            walk.begin(place.line);
            Agent::session(bytes, length, sink).read(&mut walk, sink)?;
        }
        match end {
            End::Whole if byte == b'{' => {}
            End::Whole => sink.reject(place.line, "not_an_object", &beginning(&bytes[..length]))?,
            End::Bad(bad) => {
                let line = walk.line_of(&bytes[..length], length);
                let code = match bad {
                    Bad::Eof => "truncated_last_line",
                    Bad::Utf8 => "invalid_utf8",
                    Bad::Syntax => "json_syntax",
                };
                let from = length.saturating_sub(60);
                sink.reject(line, code, &beginning(&bytes[from..length]))?;
                // Nothing says where the next session of a broken file begins.
                length_to_end(input, &mut place)?;
                break;
            }
        }
        place.take(input, length);
    }
    let first = Some(sink.place(1));
    sink.notes.mention("crlf", place.crlf, first, None);
    Ok(())
}

/// Where in the file the window begins.
struct Lines {
    line: u64,
    crlf: u64,
}

impl Lines {
    fn take(&mut self, input: &mut Input<'_>, count: usize) {
        let bytes = &input.window()[..count];
        for at in memchr::memchr_iter(b'\n', bytes) {
            self.line += 1;
            self.crlf += u64::from(at > 0 && bytes[at - 1] == b'\r');
        }
        input.consume(count);
    }
}

/// The next byte that is not white; `None` at the end.
fn next_byte(input: &mut Input<'_>, place: &mut Lines) -> Result<Option<u8>> {
    loop {
        let white = input.window().iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).count();
        place.take(input, white);
        if let Some(&byte) = input.window().first() {
            return Ok(Some(byte));
        }
        if !input.more()? {
            return Ok(None);
        }
    }
}

/// How an object ends.
enum End {
    Whole,
    Bad(Bad),
}

/// The length of the object at the window's begin, which is read as a whole: what a session says of itself may
/// stand behind its requests.
fn extent(input: &mut Input<'_>) -> Result<(usize, End)> {
    loop {
        let length = input.window().len();
        let mut scanner = Scanner::new(input.padded(), length);
        match scanner.skip() {
            Ok(()) => return Ok((scanner.at, End::Whole)),
            Err(Bad::Eof) => {}
            Err(bad) => return Ok((scanner.at.min(length), End::Bad(bad))),
        }
        // Twice as much before the next look, so that looking costs no more than reading.
        while input.window().len() < 2 * length {
            if !input.more()? {
                if input.window().len() == length {
                    return Ok((length, End::Bad(Bad::Eof)));
                }
                break;
            }
        }
    }
}

/// The length of the rest of the line.
fn line_end(input: &mut Input<'_>) -> Result<usize> {
    loop {
        if let Some(end) = memchr::memchr(b'\n', input.window()) {
            return Ok(end);
        }
        if !input.more()? {
            return Ok(input.window().len());
        }
    }
}

/// Drops the rest of the file.
fn length_to_end(input: &mut Input<'_>, place: &mut Lines) -> Result<()> {
    loop {
        let length = input.window().len();
        place.take(input, length);
        if !input.more()? {
            return Ok(());
        }
    }
}

fn beginning(bytes: &[u8]) -> String {
    String::from_utf8_lossy(&bytes[..bytes.len().min(100)]).into_owned()
}
