//! Dynamo request traces (`dynamo.request.trace.v1`): what a live deployment served, with the hits it saw.
//!
//! One event a line, bare or as `{"event": {...}}`, written when a request *ends*: the file is in completion order,
//! the arrival is `request_received_ms`. Only `request_end` events are requests. `replay` holds the block hashes,
//! `cached_tokens` and `ttft_ms` what was observed: they become the columns `observed_cached_tokens` and
//! `observed_ttft` (milliseconds), against which a replay can be checked.

use super::head::{Head, version};
use super::mooncake::reject;
use super::{Format, FormatInfo, skip_bom};
use crate::error::Result;
use crate::ingest::input::Input;
use crate::ingest::json::row::RowReader;
use crate::ingest::json::{Bad, Kind, Scanner};
use crate::ingest::lines::{self, Line};
use crate::ingest::row::Row;
use crate::ingest::rows::RowSink;
use crate::trace::Tail;

pub(crate) const FORMAT: Format = Format {
    info: FormatInfo {
        name: "dynamo_request_trace",
        doc: "JSON lines of events, bare or wrapped; request_end rows with request.replay are requests",
        example: r#"{"schema": "dynamo.request.trace.v1", "event_type": "request_end", "request": {"request_id": "r1", "output_tokens": 2, "cached_tokens": 0, "request_received_ms": 1764400000000, "replay": {"trace_block_size": 16, "input_length": 20, "input_sequence_hashes": [7, 9]}}}"#,
        source: "ai-dynamo request tracing",
    },
    detect,
    read,
    is_binary: false,
};

const SCHEMA: &str = "dynamo.request.trace";
const EVENTS: [&str; 6] =
    ["request_end", "request_start", "request_payload", "tool_start", "tool_end", "tool_error"];

fn detect(head: &[u8], _: &crate::ingest::ReadOptions) -> bool {
    let head = Head::of(head);
    let is = |above: &str| {
        let text = |key: &str| head.text(&format!("{above}{key}"));
        text("schema").is_some_and(|schema| version(schema, SCHEMA).is_some())
            || text("event_type").is_some_and(|event| EVENTS.contains(&event))
    };
    !head.has("hash_ids") && (is("") || is("event."))
}

fn read(input: &mut Input<'_>, sink: &mut RowSink) -> Result<()> {
    sink.hints.tail = Some(Tail::Ceil);
    sink.hints.dates = true;
    skip_bom(input, sink);
    let mut readers = Readers::default();
    let mut row = Row::default();
    lines::for_each(input, sink, |line, sink| one(line, &mut readers, &mut row, sink))
}

/// A reader of rows for each object that holds fields: it remembers the keys of the line before.
#[derive(Default)]
struct Readers {
    context: RowReader,
    request: RowReader,
    worker: RowReader,
    replay: RowReader,
}

/// What a line is, as far as its event says.
#[derive(Default)]
struct Event<'a> {
    schema: Option<String>,
    kind: Option<String>,
    context: Option<Scanner<'a>>,
    request: Option<Scanner<'a>>,
}

fn one(line: &Line<'_>, readers: &mut Readers, row: &mut Row, sink: &mut RowSink) -> Result<()> {
    let mut scanner = Scanner::new(line.bytes, line.end);
    let mut event = Event::default();
    let taken = event.take(&mut scanner);
    match taken {
        Err(bad) => return reject(line, bad, sink),
        Ok(false) => return sink.reject(line.number, "not_an_object", &line.text()),
        Ok(true) => {}
    }
    if event.schema.as_deref().and_then(|schema| version(schema, SCHEMA)).is_some_and(|version| version > 1) {
        let place = Some(sink.place(line.number));
        sink.notes.mention("future_schema", 1, place, event.schema.as_deref());
    }
    if event.kind.as_deref() != Some("request_end") {
        sink.skip_foreign(line.number, event.kind.as_deref().unwrap_or("no event_type"));
        return Ok(());
    }
    row.clear();
    match event.fill(readers, row, sink) {
        Ok(()) => sink.accept(line.number, row),
        // The line was scanned as a whole before, so its parts are whole too.
        Err(bad) => reject(line, bad, sink),
    }
}

impl<'a> Event<'a> {
    /// Takes a line; `false` when it is no object.
    fn take(&mut self, scanner: &mut Scanner<'a>) -> std::result::Result<bool, Bad> {
        let is_object = scanner.kind()? == Kind::Object;
        if is_object {
            self.object(scanner, true)?;
        } else {
            scanner.skip()?;
        }
        scanner.finish()?;
        Ok(is_object)
    }

    fn object(&mut self, scanner: &mut Scanner<'a>, outer: bool) -> std::result::Result<(), Bad> {
        scanner.pairs(|key, scanner| {
            match (key, scanner.kind()?) {
                ("event", Kind::Object) if outer => self.object(scanner, false)?,
                ("schema", Kind::Text) => self.schema = Some(scanner.text()?.into_owned()),
                ("event_type", Kind::Text) => self.kind = Some(scanner.text()?.into_owned()),
                ("agent_context", Kind::Object) => {
                    self.context = Some(scanner.clone());
                    scanner.skip()?;
                }
                ("request", Kind::Object) => {
                    self.request = Some(scanner.clone());
                    scanner.skip()?;
                }
                _ => scanner.skip()?,
            }
            Ok(true)
        })?;
        Ok(())
    }

    /// Takes the fields of a request: the context's, the request's, then those of its worker and its replay.
    fn fill(self, readers: &mut Readers, row: &mut Row, sink: &mut RowSink) -> std::result::Result<(), Bad> {
        if let Some(mut context) = self.context {
            readers.context.object(&mut context, row, sink)?;
        }
        let Some(mut request) = self.request else { return Ok(()) };
        let (mut worker, mut replay) = (None, None);
        request.clone().pairs(|key, scanner| {
            match (key, scanner.kind()?) {
                ("worker", Kind::Object) => worker = Some(scanner.clone()),
                ("replay", Kind::Object) => replay = Some(scanner.clone()),
                _ => {}
            }
            scanner.skip()?;
            Ok(true)
        })?;
        readers.request.object(&mut request, row, sink)?;
        if let Some(mut worker) = worker {
            readers.worker.object(&mut worker, row, sink)?;
        }
        if let Some(mut replay) = replay {
            readers.replay.object(&mut replay, row, sink)?;
        }
        Ok(())
    }
}
