//! Traces as Qwen-Bailian chat turns (alibaba-edu/qwen-bailian-usagetraces-anon, USENIX ATC 2025).

use super::text::{ids, text};
use super::{Rows, WriterInfo, need_plain_ids};
use crate::error::{Error, Result};
use crate::trace::{Column, NO_LENGTH, Trace};
use std::collections::HashMap;
use std::io::{self, Write};

pub(super) const INFO: WriterInfo = WriterInfo {
    name: "bailian",
    doc: "JSON lines of chat turns: seconds, chat_id, parent_chat_id, turn, type, blocks of 16 tokens",
    loses: "columns other than request_id, parent, turn and type (sessions become chains of parents); output ids; quality",
    source: "alibaba-edu/qwen-bailian-usagetraces-anon, ATC'25",
};

const BLOCK_TOKENS: u32 = 16;

pub(super) fn start(trace: &Trace) -> Result<Box<dyn Rows + '_>> {
    if let Some(other) = (0..trace.len()).map(|r| trace.block_tokens_of(r)).find(|&b| b != BLOCK_TOKENS) {
        let message = format!("bailian has blocks of {BLOCK_TOKENS} tokens, this trace of {other}");
        return Err(Error::config(message, "write mooncake, which can state its block size"));
    }
    if trace.requests.arrival_us.is_none() {
        return Err(Error::config("bailian needs times, and this trace has none", "write mooncake"));
    }
    need_plain_ids(trace, INFO.name)?;
    Ok(Box::new(Turns { trace, path: Vec::new(), chats: Chats::of(trace) }))
}

struct Turns<'a> {
    trace: &'a Trace,
    path: Vec<u32>,
    chats: Chats,
}

impl Rows for Turns<'_> {
    fn add(&mut self, request: usize, out: &mut Vec<u8>) -> io::Result<()> {
        let (requests, chats) = (&self.trace.requests, &self.chats);
        let (chat, parent) = (chats.id[request], chats.parent[request]);
        write!(out, "{{\"chat_id\": {chat}, \"parent_chat_id\": {parent}, \"timestamp\": ")?;
        seconds(requests.arrival_us.as_ref().map_or(0, |times| times[request]), out)?;
        write!(out, ", \"input_length\": {}", requests.input_tokens[request])?;
        if requests.output_tokens[request] != NO_LENGTH {
            write!(out, ", \"output_length\": {}", requests.output_tokens[request])?;
        }
        out.extend_from_slice(b", \"type\": ");
        text(out, column(self.trace, "type").and_then(|kinds| kinds.get(request)).unwrap_or("text"));
        write!(out, ", \"turn\": {}, \"hash_ids\": ", chats.turn[request])?;
        ids(&self.trace.forest, &self.trace.ids, requests.node[request], &mut self.path, out)?;
        out.extend_from_slice(b"}\n");
        Ok(())
    }
}

/// Microseconds as decimal seconds, exactly.
fn seconds(time_us: i64, out: &mut Vec<u8>) -> io::Result<()> {
    let (size, sign) = (time_us.unsigned_abs(), if time_us < 0 { "-" } else { "" });
    let fraction = format!("{:06}", size % 1_000_000);
    let digits = fraction.trim_end_matches('0');
    write!(out, "{sign}{}.{}", size / 1_000_000, if digits.is_empty() { "0" } else { digits })
}

fn column<'a>(trace: &'a Trace, name: &str) -> Option<&'a Column> {
    trace.requests.columns.iter().find(|column| column.name == name)
}

/// Which turn follows which, in numbers.
struct Chats {
    id: Vec<i64>,
    /// -1 where there is none.
    parent: Vec<i64>,
    turn: Vec<u64>,
}

impl Chats {
    fn of(trace: &Trace) -> Self {
        let names = column(trace, "request_id");
        let given = names.and_then(all_numbers);
        let keeps_names = given.is_some();
        let id = given.unwrap_or_else(|| (0..trace.len() as i64).collect());
        let before = names
            .zip(column(trace, "parent"))
            .map_or_else(|| by_session(trace), |(names, parents)| by_name(names, parents));
        let outside = |request: usize| {
            let parent = column(trace, "parent").and_then(|parents| parents.get(request));
            parent.filter(|_| keeps_names).and_then(number).unwrap_or(-1)
        };
        let parent = (0..trace.len()).map(|r| before[r].map_or_else(|| outside(r), |p| id[p])).collect();
        let mut turn: Vec<u64> = Vec::with_capacity(trace.len());
        let stated = column(trace, "turn");
        for (request, before) in before.iter().enumerate() {
            let counted = before.and_then(|p| turn.get(p)).map_or(1, |turn| turn.saturating_add(1));
            let stated = stated.and_then(|turns| turns.get(request)).and_then(|text| text.parse().ok());
            turn.push(stated.unwrap_or(counted));
        }
        Self { id, parent, turn }
    }
}

/// A text that is a number from 0 in its usual form.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number: &i64| *number >= 0 && number.to_string() == text)
}

/// The values of a column when they are different numbers in all rows.
fn all_numbers(column: &Column) -> Option<Vec<i64>> {
    let different = column.texts.len() == column.codes.len();
    let numbers = (0..column.codes.len()).map(|row| column.get(row).and_then(number));
    if different { numbers.collect() } else { None }
}

/// The request that each one's parent names.
fn by_name(names: &Column, parents: &Column) -> Vec<Option<usize>> {
    let mut first = HashMap::new();
    for request in 0..names.codes.len() {
        if let Some(name) = names.get(request) {
            first.entry(name).or_insert(request);
        }
    }
    (0..names.codes.len()).map(|r| parents.get(r).and_then(|name| first.get(name).copied())).collect()
}

/// The request before each one in its session.
fn by_session(trace: &Trace) -> Vec<Option<usize>> {
    let Some(sessions) = column(trace, "session") else { return vec![None; trace.len()] };
    let mut last = vec![None; sessions.texts.len()];
    let before = |request: usize| last.get_mut(sessions.codes[request] as usize)?.replace(request);
    (0..trace.len()).map(before).collect()
}
