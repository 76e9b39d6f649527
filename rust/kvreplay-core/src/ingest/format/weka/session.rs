//! The requests of a session and of its sub-agents.

use super::prefix::{Prefixes, Whose};
use crate::error::Result;
use crate::ingest::json::row::RowReader;
use crate::ingest::json::{Bad, Kind, Number, Scanner};
use crate::ingest::options::{SharedPrefix, TimeUnit};
use crate::ingest::row::{self, Problem, Row, TimeValue};
use crate::ingest::rows::RowSink;
use crate::ingest::times::to_micros;

/// Sub-agents inside each other, at most. Real ones have none inside.
const MAX_DEPTH: u32 = 8;

/// What is kept from request to request.
#[derive(Default)]
pub(super) struct Walk {
    reader: RowReader,
    row: Row,
    prefixes: Prefixes,
    /// Line of the place up to which line ends were counted, and that place.
    line: u64,
    counted: usize,
}

impl Walk {
    /// Begins a session, whose first byte is in `line`.
    pub(super) fn begin(&mut self, line: u64) {
        (self.line, self.counted) = (line, 0);
    }

    /// The line of a place in the session's bytes. Places come in order.
    pub(super) fn line_of(&mut self, bytes: &[u8], at: usize) -> u64 {
        if at > self.counted {
            self.line += memchr::memchr_iter(b'\n', &bytes[self.counted..at]).count() as u64;
            self.counted = at;
        }
        self.line
    }
}

/// A session or a sub-agent: what it says of itself, and where its requests are.
#[derive(Default)]
pub(super) struct Agent<'a> {
    bytes: &'a [u8],
    end: usize,
    requests_at: Option<usize>,
    session: String,
    number: u64,
    id: Option<String>,
    kind: String,
    block_tokens: Option<u32>,
    local: bool,
    prefix_tokens: u64,
    begins_us: i64,
    /// When a sub-agent was done, and how long it took.
    done_us: Option<i64>,
    duration_us: Option<i64>,
    depth: u32,
}

impl<'a> Agent<'a> {
    /// The session whose object begins `bytes[..end]`, as far as it is whole.
    pub(super) fn session(bytes: &'a [u8], end: usize, sink: &mut RowSink) -> Self {
        let mut agent = Self { bytes, end, local: true, ..Self::default() };
        agent.header(0, sink.options.time_unit);
        let id = agent.id.take().unwrap_or_else(|| sink.file_stem());
        (agent.number, agent.session) = sink.fresh_session(&id);
        agent
    }

    /// Takes what the object at `at` says of itself. A cut or broken object keeps what stands before the fault;
    /// `false` says that it is one.
    fn header(&mut self, at: usize, unit: Option<TimeUnit>) -> bool {
        let mut scanner = Scanner { bytes: self.bytes, at, end: self.end };
        let unit = unit.unwrap_or(TimeUnit::Seconds);
        let taken = scanner.pairs(|key, scanner| {
            let kind = scanner.kind()?;
            match (key, kind) {
                ("requests", Kind::Array) => {
                    self.requests_at = Some(scanner.at);
                    scanner.skip()?;
                }
                ("id" | "agent_id", Kind::Text | Kind::Number) => self.id = scalar(scanner)?,
                ("subagent_type", Kind::Text) => self.kind = scanner.text()?.into_owned(),
                ("hash_id_scope", Kind::Text) => self.local = scanner.text()? != "global",
                ("block_size", Kind::Number) => {
                    self.block_tokens = row::tokens(scanner.number()?).ok().filter(|&tokens| tokens > 0);
                }
                ("tool_tokens" | "system_tokens", Kind::Number) => {
                    self.prefix_tokens += u64::from(row::tokens(scanner.number()?).unwrap_or(0));
                }
                ("t", Kind::Number) => self.done_us = micros(scanner.number()?, unit),
                ("duration_ms", Kind::Number) => {
                    self.duration_us = micros(scanner.number()?, TimeUnit::Millis);
                }
                _ => scanner.skip()?,
            }
            Ok(true)
        });
        taken.is_ok()
    }

    /// Feeds the requests to the sink. The caller says what is wrong with a broken object.
    pub(super) fn read(self, walk: &mut Walk, sink: &mut RowSink) -> Result<()> {
        let Some(at) = self.requests_at else {
            let line = walk.line_of(self.bytes, 0);
            return sink.reject(line, "missing_field", "requests");
        };
        let mut scanner = Scanner { bytes: self.bytes, at, end: self.end };
        let mut result = Ok(());
        let _ = scanner.elements(|scanner| {
            if result.is_ok() {
                result = self.element(scanner, walk, sink)?;
            } else {
                scanner.skip()?;
            }
            Ok(())
        });
        result
    }

    /// Takes an element of `requests`: a request, or a sub-agent with requests of its own.
    fn element(
        &self,
        scanner: &mut Scanner<'a>,
        walk: &mut Walk,
        sink: &mut RowSink,
    ) -> std::result::Result<Result<()>, Bad> {
        let begin = scanner.at;
        let line = walk.line_of(self.bytes, begin);
        if scanner.kind()? != Kind::Object {
            scanner.skip()?;
            return Ok(sink.reject(line, "not_an_object", &self.text(begin, scanner.at)));
        }
        if has_requests(&mut scanner.clone()) {
            if self.depth == MAX_DEPTH {
                scanner.skip()?;
                return Ok(sink.reject(line, "bad_type", "sub-agents nested too deeply"));
            }
            let (agent, whole) = self.sub_agent(begin, sink.options.time_unit);
            // Without its duration a cut sub-agent cannot be placed.
            let result = if whole || agent.duration_us.is_some() { agent.read(walk, sink) } else { Ok(()) };
            scanner.skip()?;
            return Ok(result);
        }
        walk.row.clear();
        walk.reader.object(scanner, &mut walk.row, sink)?;
        self.settle(walk, sink);
        Ok(sink.accept(line, &mut walk.row))
    }

    fn text(&self, begin: usize, end: usize) -> String {
        String::from_utf8_lossy(&self.bytes[begin..end.min(begin + 100)]).into_owned()
    }

    /// The sub-agent whose object begins at `at`.
    fn sub_agent(&self, at: usize, unit: Option<TimeUnit>) -> (Self, bool) {
        let mut agent = Self {
            bytes: self.bytes,
            end: self.end,
            session: self.session.clone(),
            number: self.number,
            block_tokens: self.block_tokens,
            local: self.local,
            depth: self.depth + 1,
            id: Some(String::new()),
            ..Self::default()
        };
        let whole = agent.header(at, unit);
        let done_us = agent.done_us.unwrap_or(0);
        let starts_us = done_us.saturating_sub(agent.duration_us.unwrap_or(0)).max(0);
        agent.begins_us = self.begins_us.saturating_add(starts_us);
        (agent, whole)
    }

    /// Adds to a request what its session says for all of them.
    fn settle(&self, walk: &mut Walk, sink: &mut RowSink) {
        let row = &mut walk.row;
        let (session, agent, kind) =
            (sink.column("session"), sink.column("agent"), sink.column("subagent_type"));
        row.set_group(session, 0, Some(&self.session));
        if let Some(id) = &self.id {
            row.set_group(agent, 0, Some(if id.is_empty() { "unnamed" } else { id }));
        }
        row.set_group(kind, 0, Some(&self.kind));
        row.block_tokens = row.block_tokens.or(self.block_tokens);
        row.own_clock = true;
        if let Some(time) = row.time {
            let unit = sink.options.time_unit.unwrap_or(TimeUnit::Seconds);
            match time.micros(unit).and_then(|us| us.checked_add(self.begins_us)) {
                Some(us) => row.time = Some(TimeValue::Instant(us)),
                None => row.problems.push(Problem::new("bad_type", "time", b"beyond 64 bits")),
            }
        }
        row.local_scope = self.local;
        if self.local && sink.options.shared_prefix == SharedPrefix::ToolSystem {
            let kind = match self.id {
                None => 0,
                Some(_) => 1 + u64::from(sink.rows.columns[kind as usize].texts.number(&self.kind)),
            };
            let agent = Whose {
                session: &self.session,
                number: self.number,
                agent: self.id.as_deref(),
                kind,
                prefix_tokens: self.prefix_tokens,
            };
            walk.prefixes.rename(&agent, row, sink);
        }
    }
}

/// Whether an object is a sub-agent; looks no further than its path or its requests.
fn has_requests(scanner: &mut Scanner<'_>) -> bool {
    let mut found = false;
    let _ = scanner.pairs(|key, scanner| {
        found = key == "requests" && scanner.kind()? == Kind::Array;
        if found || key == "hash_ids" {
            return Ok(false);
        }
        scanner.skip()?;
        Ok(true)
    });
    found
}

fn scalar(scanner: &mut Scanner<'_>) -> std::result::Result<Option<String>, Bad> {
    if scanner.kind()? == Kind::Text {
        return Ok(Some(scanner.text()?.into_owned()));
    }
    let begin = scanner.at;
    scanner.skip()?;
    Ok(Some(String::from_utf8_lossy(&scanner.bytes[begin..scanner.at]).into_owned()))
}

fn micros(number: Number, unit: TimeUnit) -> Option<i64> {
    match row::time(number, Some(unit)).ok()? {
        TimeValue::Number { whole, nanos, .. } => to_micros(whole, nanos, unit),
        TimeValue::Instant(us) => Some(us),
    }
}
