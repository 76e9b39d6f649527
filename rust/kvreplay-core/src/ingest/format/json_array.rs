//! One JSON array of the objects that `mooncake` has one a line, in any layout.

use super::dialect::{self, Dialect};
use super::{Format, FormatInfo, skip_bom};
use crate::error::{Error, Result};
use crate::ingest::input::Input;
use crate::ingest::json::row::RowReader;
use crate::ingest::json::{Bad, Kind, Scanner};
use crate::ingest::row::Row;
use crate::ingest::rows::RowSink;

pub(crate) const FORMAT: Format = Format {
    info: FormatInfo {
        name: "json_array",
        doc: "one JSON array of the objects of mooncake, pretty-printed or not",
        example: r#"[{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}]"#,
        source: "kvreplay",
    },
    detect: |head, _| head.trim_ascii_start().first() == Some(&b'['),
    read,
    is_binary: false,
};

fn read(input: &mut Input<'_>, sink: &mut RowSink) -> Result<()> {
    skip_bom(input, sink);
    let mut array = Array {
        input,
        line: 1,
        crlf: 0,
        reader: RowReader::default(),
        row: Row::default(),
        dialect: None,
        first_key: Vec::new(),
    };
    if array.next_byte()? != Some(b'[') {
        let line = Some(array.line);
        let error =
            Error::trace("json_syntax", "this is not a JSON array", "read it with the format mooncake");
        return Err(error.at("", line));
    }
    array.take(1);
    array.dialect = dialect::of(array.input.window());
    if let Some(dialect) = array.dialect {
        (dialect.begin)(sink);
    }
    array.elements(sink)?;
    let (crlf, line) = (array.crlf, array.line);
    if let Some(byte) = array.next_byte()? {
        sink.reject(line, "json_syntax", &format!("{:?} behind the array", char::from(byte)))?;
    }
    let place = Some(sink.place(1));
    sink.notes.mention("crlf", crlf, place, None);
    Ok(())
}

/// What an element of the array turned out to be.
enum Element {
    /// Usable or not: this many bytes.
    Whole(usize, std::result::Result<bool, Bad>),
    /// It is broken, and where the next one begins cannot be told.
    Lost(Bad),
    /// The file ends inside it.
    Cut,
}

struct Array<'a, 'p> {
    input: &'a mut Input<'p>,
    line: u64,
    crlf: u64,
    reader: RowReader,
    row: Row,
    dialect: Option<&'static Dialect>,
    /// The key that rows begin with, in its quotes; empty before there was a row.
    first_key: Vec<u8>,
}

impl Array<'_, '_> {
    /// Drops bytes, counting their lines.
    fn take(&mut self, count: usize) {
        let bytes = &self.input.window()[..count];
        self.line += memchr::memchr_iter(b'\n', bytes).count() as u64;
        self.input.consume(count);
    }

    /// The next byte that is not white; `None` at the end.
    fn next_byte(&mut self) -> Result<Option<u8>> {
        loop {
            let window = self.input.window();
            let white = window.iter().take_while(|b| matches!(b, b' ' | b'\t' | b'\n' | b'\r')).count();
            self.crlf += window[..white].windows(2).filter(|pair| *pair == b"\r\n").count() as u64;
            self.take(white);
            if let Some(&byte) = self.input.window().first() {
                return Ok(Some(byte));
            }
            if !self.input.more()? {
                return Ok(None);
            }
        }
    }

    /// All elements up to the closing bracket.
    fn elements(&mut self, sink: &mut RowSink) -> Result<()> {
        let mut comma = true; // before the first element none is needed
        let mut first = true;
        loop {
            match self.next_byte()? {
                Some(b']') => {
                    self.take(1);
                    if comma && !first {
                        let place = Some(sink.place(self.line));
                        sink.notes.note("json_syntax", 1, place, Some("a comma before ]"))?;
                    }
                    return Ok(());
                }
                Some(b',') if !comma => {
                    self.take(1);
                    comma = true;
                }
                Some(b',') => {
                    self.take(1);
                    let place = Some(sink.place(self.line));
                    sink.notes.note("json_syntax", 1, place, Some("a comma without a value"))?;
                }
                Some(_) => {
                    if !comma {
                        let place = Some(sink.place(self.line));
                        sink.notes.note("json_syntax", 1, place, Some("no comma between values"))?;
                    }
                    if !self.element(sink)? {
                        return Ok(());
                    }
                    (comma, first) = (false, false);
                }
                None => {
                    let place = Some(sink.place(self.line));
                    return sink.notes.note("truncated_last_line", 1, place, Some("the array is not closed"));
                }
            }
        }
    }

    /// Takes one element; `false` when the file ends inside it.
    fn element(&mut self, sink: &mut RowSink) -> Result<bool> {
        let line = self.line;
        let found = self.scan(sink)?;
        let window = self.input.window();
        let value = String::from_utf8_lossy(&window[..window.len().min(100)]).into_owned();
        let (length, scanned) = match found {
            Element::Whole(length, scanned) => (length, scanned),
            Element::Lost(bad) => {
                let (rest, code) = (window.len(), broken(bad));
                self.take(rest);
                sink.reject(line, code, &value)?;
                let lost = format!("line {line} hides where the next row begins: nothing behind it is read");
                sink.notes.also(code, &lost);
                return Ok(true);
            }
            Element::Cut => {
                let rest = window.len();
                self.take(rest);
                sink.reject(line, "truncated_last_line", &value)?;
                return Ok(false);
            }
        };
        if self.first_key.is_empty() {
            first_key(window).unwrap_or_default().clone_into(&mut self.first_key);
        }
        match scanned {
            Ok(true) => {
                if let Some(dialect) = self.dialect {
                    (dialect.settle)(&mut self.row);
                }
                sink.accept(line, &mut self.row)?;
            }
            Ok(false) => sink.reject(line, "not_an_object", &value)?,
            Err(bad) => sink.reject(line, broken(bad), &value)?,
        }
        self.take(length);
        Ok(true)
    }

    /// Scans the element at the window's start, reading on until it is there as a whole.
    fn scan(&mut self, sink: &mut RowSink) -> Result<Element> {
        loop {
            let (bytes, length) = (self.input.padded(), self.input.window().len());
            let mut scanner = Scanner::new(bytes, length);
            self.row.clear();
            let object = scanner.kind() == Ok(Kind::Object);
            let scanned =
                if object { self.reader.object(&mut scanner, &mut self.row, sink) } else { scanner.skip() };
            // A number may go on behind the window.
            let open = scanned == Err(Bad::Eof) || (scanned.is_ok() && scanner.at == length && !object);
            match scanned {
                Ok(()) if !open || self.input.at_end() => return Ok(Element::Whole(scanner.at, Ok(object))),
                Err(bad @ (Bad::Syntax | Bad::Utf8)) => {
                    if let Some(end) = self.end_of_broken(&bytes[..length]) {
                        return Ok(Element::Whole(end, Err(bad)));
                    }
                }
                _ => {}
            }
            if !self.grow()? {
                let window = self.input.window();
                return Ok(match (scanned, self.next_row(window)) {
                    (Err(bad @ (Bad::Syntax | Bad::Utf8)), None) => Element::Lost(bad),
                    (Err(bad @ (Bad::Syntax | Bad::Utf8)), Some(end)) => Element::Whole(end, Err(bad)),
                    // A list that is not closed takes the rows behind it for its own.
                    (_, Some(end)) => Element::Whole(end, Err(Bad::Syntax)),
                    (_, None) => Element::Cut,
                });
            }
        }
    }

    /// The place behind a broken element: where its braces close, or the comma before what looks like the next row
    /// if that comes first. Braces alone would hide the rows behind one that is not closed.
    fn end_of_broken(&self, bytes: &[u8]) -> Option<usize> {
        // Ever longer parts: either end is mostly near, and the whole window may hold many broken elements.
        let mut limit = 1 << 10;
        loop {
            let part = &bytes[..bytes.len().min(limit)];
            let end = behind(part);
            let found = self.next_row(&part[..end.unwrap_or(part.len())]).or(end);
            if found.is_some() || part.len() == bytes.len() {
                return found;
            }
            limit *= 2;
        }
    }

    /// The comma before the next object that begins with the key that rows begin with.
    fn next_row(&self, bytes: &[u8]) -> Option<usize> {
        let key = if self.first_key.is_empty() { first_key(bytes)? } else { &self.first_key };
        let mut braces = memchr::memchr_iter(b'{', bytes).skip_while(|&at| at == 0);
        braces.find_map(|brace| {
            let before = bytes[..brace].trim_ascii_end();
            let begins = bytes[brace + 1..].trim_ascii_start().starts_with(key);
            (begins && before.len() > 1 && before.ends_with(b",")).then(|| before.len() - 1)
        })
    }

    /// Reads until the window is twice as long, so that all attempts together cost a small multiple of one.
    fn grow(&mut self) -> Result<bool> {
        let before = self.input.window().len();
        while self.input.window().len() < before * 2 {
            if !self.input.more()? {
                break;
            }
        }
        Ok(self.input.window().len() > before)
    }
}

/// The code of a broken element.
fn broken(bad: Bad) -> &'static str {
    if bad == Bad::Utf8 { "invalid_utf8" } else { "json_syntax" }
}

/// The first key of an object, in its quotes.
fn first_key(object: &[u8]) -> Option<&[u8]> {
    let text = object.strip_prefix(b"{")?.trim_ascii_start();
    let end = 1 + memchr::memchr(b'"', text.strip_prefix(b"\"")?)?;
    Some(&text[..=end])
}

/// The place behind a broken element: behind the brace that closes its first one, else the next comma,
/// bracket or line end.
fn behind(bytes: &[u8]) -> Option<usize> {
    if bytes.first() != Some(&b'{') {
        return memchr::memchr3(b',', b']', b'\n', &bytes[1..]).map(|at| at + 1);
    }
    let mut depth = 0_u32;
    let mut at = 0;
    loop {
        let found = at + memchr::memchr3(b'{', b'}', b'"', bytes.get(at..)?)?;
        at = found + 1;
        match bytes[found] {
            b'{' => depth += 1,
            b'}' if depth == 1 => return Some(at),
            b'}' => depth -= 1,
            _ => loop {
                let quote = at + memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
                at = quote + 1;
                if bytes[quote] == b'"' {
                    break;
                }
                at += 1;
            },
        }
    }
}
