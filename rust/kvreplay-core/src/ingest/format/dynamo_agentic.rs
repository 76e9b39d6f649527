//! Dynamo's agentic Mooncake traces: a header row, then requests of plays that wait for each other.
//!
//! Header: `{"schema": "dynamo.agentic_mooncake", "version": 2, "block_size": .., "hash_id_scope": "local"}`. Ids are
//! local to a play, and so is the clock. A request arrives at `not_before_ms` or, if that is later, `delay_ms` after
//! each request it depends on has been dispatched or completed. How long a request takes is for an engine to say; read
//! as an open loop, completion is taken as dispatch (`ingest::links`).

use super::head::Head;
use super::{Format, FormatInfo, mooncake};
use crate::error::Result;
use crate::ingest::input::Input;
use crate::ingest::json::number::{self, Number};
use crate::ingest::json::{Bad, Kind, Scanner};
use crate::ingest::lines::Line;
use crate::ingest::row::{self, Problem, Row};
use crate::ingest::rows::RowSink;

pub(crate) const FORMAT: Format = Format {
    info: FormatInfo {
        name: "dynamo_agentic",
        doc: "JSON lines with a header row: play_id, not_before_ms, dependencies; ids local to a play",
        example: r#"{"request_id": "b", "play_id": "p", "input_length": 20, "hash_ids": [1, 2], "not_before_ms": 0, "dependencies": [{"request_id": "a", "trigger": "completion", "delay_ms": 5}]}"#,
        source: "ai-dynamo replay, dynamo.agentic_mooncake version 2",
    },
    detect: |head, _| Head::of(head).text("schema") == Some(SCHEMA),
    read,
    is_binary: false,
};

const SCHEMA: &str = "dynamo.agentic_mooncake";
const VERSION: u64 = 2;

fn read(input: &mut Input<'_>, sink: &mut RowSink) -> Result<()> {
    mooncake::read_with(input, sink, |line, row, sink| {
        if row.has_path {
            row.own_clock = true;
            if let Ok(Some(problem)) = dependencies(line, row) {
                row.problems.push(problem);
            }
        } else if row.is_marked {
            check_version(line, sink);
        }
    })
}

/// Says when the header states a newer version.
fn check_version(line: &Line<'_>, sink: &mut RowSink) {
    let mut version = Number::Unsigned(0);
    let mut scanner = Scanner::new(line.bytes, line.end);
    // The row was scanned before: it is one whole object.
    let _ = scanner.pairs(|key, scanner| {
        match (key, scanner.kind()?) {
            ("version", Kind::Number) => version = scanner.number()?,
            _ => scanner.skip()?,
        }
        Ok(true)
    });
    if !matches!(version, Number::Unsigned(..=VERSION)) {
        let place = Some(sink.place(line.number));
        sink.notes.mention("future_schema", 1, place, Some(&line.text()));
    }
}

/// Takes the requests a row waits for; returns the first dependency that is none.
fn dependencies(line: &Line<'_>, row: &mut Row) -> std::result::Result<Option<Problem>, Bad> {
    let mut problem = None;
    let mut scanner = Scanner::new(line.bytes, line.end);
    scanner.pairs(|key, scanner| {
        match (key, scanner.kind()?) {
            ("dependencies", Kind::Array) => {
                row.waits.clear();
                scanner.elements(|scanner| {
                    if let Some(found) = dependency(scanner, row)? {
                        problem.get_or_insert(found);
                    }
                    Ok(())
                })?;
            }
            _ => scanner.skip()?,
        }
        Ok(true)
    })?;
    Ok(problem)
}

fn dependency(scanner: &mut Scanner<'_>, row: &mut Row) -> std::result::Result<Option<Problem>, Bad> {
    let begin = scanner.at;
    if scanner.kind()? != Kind::Object {
        scanner.skip()?;
        return Ok(Some(Problem::new("bad_type", "dependencies", &scanner.bytes[begin..scanner.at])));
    }
    let mut request_id = None;
    let mut delay_us = Ok(0);
    scanner.pairs(|key, scanner| {
        match (key, scanner.kind()?) {
            ("request_id", Kind::Text) => request_id = Some(scanner.text()?.into_owned()),
            ("request_id", Kind::Number) => {
                let begin = scanner.at;
                scanner.skip()?;
                request_id = Some(String::from_utf8_lossy(&scanner.bytes[begin..scanner.at]).into_owned());
            }
            ("delay_ms", Kind::Number) => delay_us = row::delay_us(scanner.number()?, None),
            ("delay_ms", Kind::Text) => {
                let text = scanner.text()?;
                delay_us = number::from_text(text.trim()).map_or(Err("bad_type"), |n| row::delay_us(n, None));
            }
            _ => scanner.skip()?,
        }
        Ok(true)
    })?;
    let raw = &scanner.bytes[begin..scanner.at];
    Ok(match (request_id, delay_us) {
        (Some(request_id), Ok(delay_us)) => {
            row.waits.push((request_id, delay_us));
            None
        }
        (None, _) => Some(Problem::new("missing_field", "dependencies", raw)),
        (_, Err(code)) => Some(Problem::new(code, "dependencies", raw)),
    })
}
