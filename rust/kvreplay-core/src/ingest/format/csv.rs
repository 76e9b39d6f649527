//! CSV with a header row: the fields of `mooncake` as columns, the ids as a list in one cell.
//!
//! RFC 4180: quoted cells may hold the delimiter, line ends and doubled quotes. The delimiter is the comma,
//! semicolon or tab that the header has most of.

use super::{Format, FormatInfo, skip_bom};
use crate::error::{Error, Result};
use crate::ingest::fields;
use crate::ingest::input::Input;
use crate::ingest::json::{ids, number, row::time_text};
use crate::ingest::length_only;
use crate::ingest::lines::LineNotes;
use crate::ingest::options::{ReadOptions, TimeUnit};
use crate::ingest::row::{self, Problem, Row};
use crate::ingest::rows::{Field, RowSink, Slot};

pub(crate) const FORMAT: Format = Format {
    info: FormatInfo {
        name: "csv",
        doc: "CSV with a header row and the ids as a quoted list, \"[1, 2]\" or \"1 2\", in one cell",
        example: "timestamp,input_length,output_length,hash_ids",
        source: "RFC 4180",
    },
    detect,
    read,
    is_binary: false,
};

/// Cells of a header, at most.
const MAX_COLUMNS: usize = 4096;

fn detect(head: &[u8], options: &ReadOptions) -> bool {
    let line = head.split(|&b| b == b'\n').next().unwrap_or_default();
    let Ok(line) = std::str::from_utf8(line) else { return false };
    let mut record = Record::default();
    record.split(line.trim_end_matches('\r').as_bytes(), delimiter(line.as_bytes()));
    let names = (0..record.len()).filter_map(|at| std::str::from_utf8(record.cell(at)).ok());
    fields::looks_like_header(names.map(str::trim), &options.columns)
}

fn delimiter(header: &[u8]) -> u8 {
    let count = |byte: u8| memchr::memchr_iter(byte, header).count();
    let mut best = b',';
    for byte in [b';', b'\t'] {
        if count(byte) > count(best) {
            best = byte;
        }
    }
    best
}

fn read(input: &mut Input<'_>, sink: &mut RowSink) -> Result<()> {
    skip_bom(input, sink);
    let mut table =
        Table { fields: Vec::new(), delimiter: b',', row: Row::default(), record: Record::default() };
    let mut notes = LineNotes::default();
    let mut line = 1;
    let mut searched = Search::default();
    loop {
        let window = input.window();
        let (length, ended) = match searched.record_end(window) {
            Some(end) => (end, true),
            None if input.more()? => continue,
            None if input.window().is_empty() => break,
            None => (input.window().len(), false),
        };
        let text = &input.window()[..length];
        if let Some(first) = memchr::memchr(b'\n', text)
            && table.has_stray_quote(text.trim_ascii_end())
        {
            let value = String::from_utf8_lossy(&text[..first.min(100)]).into_owned();
            sink.reject(line, "bad_type", &format!("a quote without its end: {}", value.trim_end()))?;
            input.consume(first + 1);
            line += 1;
            searched = Search::default();
            continue;
        }
        let lines = memchr::memchr_iter(b'\n', text).count() as u64 + u64::from(ended);
        let crlf = ended && text.last() == Some(&b'\r');
        if crlf {
            notes.crlf(line);
        }
        let cut = !ended && searched.quoted;
        let text = &text[..length - usize::from(crlf)];
        if text.trim_ascii().is_empty() {
            notes.blank(line);
        } else {
            table.record(text, line, !ended, cut, sink)?;
        }
        input.consume(length + usize::from(ended));
        line += lines;
        searched = Search::default();
    }
    notes.finish(sink);
    Ok(())
}

/// How far the search for the end of a record has come.
#[derive(Default)]
struct Search {
    at: usize,
    quoted: bool,
}

impl Search {
    /// The place of the line end that closes the record.
    fn record_end(&mut self, bytes: &[u8]) -> Option<usize> {
        while self.at < bytes.len() {
            let rest = &bytes[self.at..];
            let found =
                if self.quoted { memchr::memchr(b'"', rest) } else { memchr::memchr2(b'"', b'\n', rest) };
            let Some(found) = found else {
                self.at = bytes.len();
                return None;
            };
            let at = self.at + found;
            if bytes[at] == b'\n' {
                return Some(at);
            }
            // A doubled quote leaves the cell and enters it again.
            self.quoted = !self.quoted;
            self.at = at + 1;
        }
        None
    }
}

/// The cells of one record, unquoted.
#[derive(Default)]
struct Record {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Record {
    fn split(&mut self, text: &[u8], delimiter: u8) {
        self.bytes.clear();
        self.ends.clear();
        let mut quoted = false;
        let mut at = 0;
        while at < text.len() {
            let byte = text[at];
            at += 1;
            match byte {
                b'"' if quoted && text.get(at) == Some(&b'"') => {
                    self.bytes.push(b'"');
                    at += 1;
                }
                b'"' => quoted = !quoted,
                _ if byte == delimiter && !quoted => self.ends.push(self.bytes.len()),
                _ => self.bytes.push(byte),
            }
        }
        self.ends.push(self.bytes.len());
    }

    fn len(&self) -> usize {
        self.ends.len()
    }

    fn cell(&self, at: usize) -> &[u8] {
        let begin = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.bytes[begin..self.ends[at]]
    }
}

/// Whether every quote of a record opens or closes a cell, or is one of a pair inside.
fn quotes_whole_cells(record: &[u8], delimiter: u8) -> bool {
    let ends_cell = |at: usize| record.get(at).is_none_or(|&byte| byte == delimiter);
    let mut at = 0;
    let mut quoted = false;
    while let Some(found) = memchr::memchr(b'"', &record[at..]) {
        let quote = at + found;
        at = quote + 1;
        match quoted {
            false if quote == 0 || record[quote - 1] == delimiter => quoted = true,
            true if record.get(at) == Some(&b'"') => at += 1,
            true if ends_cell(at) => quoted = false,
            _ => return false,
        }
    }
    !quoted
}

struct Table {
    /// Name and meaning per column; empty until the header is read.
    fields: Vec<(String, Field)>,
    delimiter: u8,
    row: Row,
    record: Record,
}

impl Table {
    /// Whether a record of several lines is none: a quote that stands alone would take the rows behind it for its
    /// cell. A header is left to be refused as a whole.
    fn has_stray_quote(&mut self, record: &[u8]) -> bool {
        if self.fields.is_empty() {
            return false;
        }
        self.record.split(record, self.delimiter);
        self.record.len() != self.fields.len() || !quotes_whole_cells(record, self.delimiter)
    }

    fn record(&mut self, text: &[u8], line: u64, last: bool, cut: bool, sink: &mut RowSink) -> Result<()> {
        if self.fields.is_empty() {
            return self.header(text, line, sink);
        }
        let value = || String::from_utf8_lossy(&text[..text.len().min(100)]).into_owned();
        if cut {
            return sink.reject(line, "truncated_last_line", &value());
        }
        if std::str::from_utf8(text).is_err() {
            return sink.reject(line, "invalid_utf8", &value());
        }
        self.record.split(text, self.delimiter);
        if self.record.len() != self.fields.len() {
            let code = if last && self.record.len() < self.fields.len() {
                "truncated_last_line"
            } else {
                "bad_type"
            };
            let value = format!("{} cells, the header has {}", self.record.len(), self.fields.len());
            return sink.reject(line, code, &value);
        }
        self.row.clear();
        self.cells(sink);
        sink.accept(line, &mut self.row)
    }

    fn header(&mut self, text: &[u8], line: u64, sink: &mut RowSink) -> Result<()> {
        self.delimiter = delimiter(text);
        self.record.split(text, self.delimiter);
        if self.record.len() > MAX_COLUMNS {
            let message = format!("the header has more than {MAX_COLUMNS} columns");
            return Err(
                Error::trace("bad_type", message, "this does not look like a trace").at("", Some(line))
            );
        }
        for at in 0..self.record.len() {
            let Ok(name) = std::str::from_utf8(self.record.cell(at)) else {
                let error =
                    Error::trace("invalid_utf8", "the header is not UTF-8", "export the trace as UTF-8");
                return Err(error.at("", Some(line)));
            };
            let name = name.trim();
            if self.fields.iter().any(|(known, _)| known == name) {
                let message = format!("the header names {name:?} twice");
                return Err(Error::trace("duplicate_key", message, "give every column its own name")
                    .at("", Some(line)));
            }
            self.fields.push((name.to_owned(), sink.field(name)));
        }
        let names: Vec<&str> = self.fields.iter().map(|(name, _)| name.as_str()).collect();
        length_only::refuse_columns(&names, sink).map_err(|error| error.at("", Some(line)))?;
        if length_only::is_burst_gpt(&names) {
            for (name, field) in &mut self.fields {
                if let Field::Slot { unit, .. } = field
                    && name == "Timestamp"
                {
                    *unit = Some(TimeUnit::Seconds);
                }
            }
        }
        Ok(())
    }

    fn cells(&mut self, sink: &mut RowSink) {
        let mut ranks = [u8::MAX; Slot::COUNT];
        for at in 0..self.fields.len() {
            // The record was checked to be UTF-8.
            let text = std::str::from_utf8(self.record.cell(at)).unwrap_or_default();
            let (name, field) = &mut self.fields[at];
            if *field == Field::Foreign && !text.is_empty() {
                *field = sink.foreign_column(name);
            }
            match *field {
                Field::Slot { slot, rank, unit }
                    if !text.trim().is_empty() && self.row.begin_slot(&mut ranks, slot, rank) =>
                {
                    if let Err(problem) = cell(slot, unit, text.trim(), &mut self.row) {
                        self.row.problems.push(problem);
                    }
                }
                Field::Group { column, rank } | Field::Raw { column, rank } => {
                    self.row.set_group(column, rank, Some(text));
                }
                Field::Media => {
                    self.row.has_media |= !matches!(text.trim(), "" | "0" | "false" | "[]" | "{}");
                }
                Field::Scope => self.row.local_scope = text.trim() == "local",
                _ => {}
            }
        }
    }
}

/// Takes a cell that is not empty.
fn cell(
    slot: Slot,
    unit: Option<crate::ingest::TimeUnit>,
    text: &str,
    row: &mut Row,
) -> std::result::Result<(), Problem> {
    let problem = |code| Problem::new(code, slot.name(), text.as_bytes());
    match slot {
        Slot::Time => row.time = Some(time_text(text, unit).map_err(problem)?),
        Slot::InputTokens | Slot::OutputTokens | Slot::BlockTokens => {
            let tokens = number::from_text(text).map_or(Err("bad_type"), row::tokens).map_err(problem)?;
            row.set_tokens(slot, Some(tokens));
        }
        Slot::Delay => {
            let delay_us = number::from_text(text).map_or(Err("bad_type"), |n| row::delay_us(n, unit));
            row.delay_us = Some(delay_us.map_err(problem)?);
        }
        Slot::HashIds | Slot::RunStart | Slot::RunLength | Slot::TokenIds | Slot::OutputIds => {
            row.set_listed(slot, true);
            let list = row.list(slot);
            list.clear();
            ids::in_text(text, list).map_err(|problem| problem.of(slot.name()))?;
        }
    }
    Ok(())
}
