//! A trace that can be given away: the same blocks, lengths and order, without names.

use super::{Bits, Column, Finding, Forest, Id, IdRuns, IdTable, Joined, NO_CODE, Origin, OutputIds};
use super::{Quality, Requests, Texts, Trace};
use crate::error::Result;

/// Columns that stay, and the letter that begins their new values. Names say who and what, so they are coded in
/// order of first appearance; a column that is not listed here may hold anything and goes.
const CODED: &[(&str, &str)] = &[
    ("session", "s"),
    ("tenant", "t"),
    ("model", "m"),
    ("revision", "v"),
    ("kv_dtype", "d"),
    ("lora", "l"),
    ("salt", "c"),
    ("trace_id", "f"),
    ("play_id", "p"),
];
/// Columns of numbers, which stay as they are.
const NUMBERS: &[&str] = &["turn", "observed_cached_tokens", "observed_ttft"];

impl Trace {
    /// The same trace without names: ids are numbered from 0 in order of first appearance, values of the known
    /// columns become `s1`, `t1`, ..., request ids and all other columns go, and so do the values that the
    /// quality report quotes. With `shift_times` the first arrival is moved to 0.
    ///
    /// Blocks stay exactly as different as they are, so every replay gives the same hits. Ids of different
    /// namespaces become different numbers; the result has one namespace. Where requests list output ids, a
    /// block has one number in prompts and outputs. Lengths and the distances between arrivals stay, and can
    /// still identify a trace to somebody who has the original.
    ///
    /// # Errors
    /// As [`Trace::joined`], for a trace with output ids.
    pub fn anonymize(&self, shift_times: bool) -> Result<Self> {
        let forest = Forest { namespace: Vec::new(), ..self.forest.clone() };
        let (ids, outputs) = match self.joined()? {
            None => (counted(forest.blocks()), None),
            Some(joined) => joined_numbers(self, &joined)?,
        };
        let old = &self.requests;
        let first_us = old.arrival_us.as_deref().and_then(<[i64]>::first).copied().filter(|_| shift_times);
        let shift = |&time_us: &i64| time_us.saturating_sub(first_us.unwrap_or(0));
        let requests = Requests {
            node: old.node.clone(),
            arrival_us: old.arrival_us.as_ref().map(|times| times.iter().map(shift).collect()),
            input_tokens: old.input_tokens.clone(),
            output_tokens: old.output_tokens.clone(),
            block_tokens: old.block_tokens.clone(),
            columns: columns(&old.columns),
            outputs,
        };
        let origin = Origin {
            format: self.origin.format.clone(),
            rejected_rows: self.origin.rejected_rows,
            namespaces: 1,
            namespace_columns: Vec::new(),
            chained: true,
        };
        let mut quality = Quality::default();
        for finding in self.quality.findings() {
            quality.restore(Finding { first_value: None, detail: None, ..finding.clone() });
        }
        Ok(Self::new(forest, ids, requests, self.block_tokens, self.tail, origin, quality))
    }
}

/// Ids that count the blocks from 0.
fn counted(blocks: u32) -> IdTable {
    let runs = if blocks == 0 { IdRuns::default() } else { IdRuns { block: vec![0], id: vec![0] } };
    IdTable::from_runs(runs, blocks, Bits::default(), Texts::default())
}

/// Ids that count the blocks of prompts and outputs together, in the order in which requests list them.
fn joined_numbers(trace: &Trace, joined: &Joined) -> Result<(IdTable, Option<OutputIds>)> {
    let forest = &joined.trace.forest;
    // A block on no path keeps a number that nothing else has.
    let spare = u64::from(forest.blocks());
    let mut numbers: Vec<u64> = (spare..spare + u64::from(trace.forest.blocks())).collect();
    let mut known_blocks = vec![0; trace.forest.chains()];
    let mut outputs = OutputIds::default();
    let mut path = Vec::new();
    for (request, (&node, &full)) in trace.requests.node.iter().zip(&joined.full).enumerate() {
        if !node.is_empty() && node.len > known_blocks[node.chain as usize] {
            known_blocks[node.chain as usize] = node.len;
            forest.path(joined.trace.requests.node[request], &mut path);
            let first = trace.forest.first(node.chain) as usize;
            let tail = &path[path.len() - node.len as usize..];
            numbers[first..first + tail.len()].iter_mut().zip(tail).for_each(|(n, &b)| *n = u64::from(b));
        }
        forest.path(full, &mut path);
        let count = trace.requests.outputs.as_ref().map_or(0, |outputs| outputs.count(request));
        let listed = path[path.len() - count as usize..].iter();
        outputs.push(0, listed.map(|&block| Id::Number(u64::from(block))))?;
    }
    let ids = IdTable::new(numbers, Bits::default(), Texts::default());
    Ok((ids, Some(outputs)))
}

fn columns(old: &[Column]) -> Vec<Column> {
    let find = |name: &str| old.iter().find(|column| column.name == name);
    // Where requests have ids, parents name requests, and go with those ids.
    let sessions = find("session").filter(|_| find("request_id").is_none());
    let mut out = Vec::new();
    for column in old {
        if let Some((_, letter)) = CODED.iter().find(|(name, _)| *name == column.name) {
            out.push(coded(column, letter));
        } else if NUMBERS.contains(&column.name.as_str()) {
            out.extend(numbers(column));
        } else if let (Some(sessions), "parent") = (sessions, column.name.as_str()) {
            let known = coded_like(column, sessions);
            out.extend((!known.texts.is_empty()).then_some(known));
        }
    }
    out
}

/// The column with `letter` and a number for every value.
fn coded(column: &Column, letter: &str) -> Column {
    let mut out = Column::new(&column.name, 0);
    let codes = first_seen(column);
    for &code in &column.codes {
        let name = (code != NO_CODE).then(|| format!("{letter}{}", codes[code as usize]));
        out.push(name.as_deref());
    }
    out
}

/// Numbers from 1 per code of a column, in order of first appearance.
fn first_seen(column: &Column) -> Vec<u32> {
    let mut numbers = vec![0; column.texts.len()];
    let mut seen = 0;
    for &code in &column.codes {
        if code != NO_CODE && numbers[code as usize] == 0 {
            seen += 1;
            numbers[code as usize] = seen;
        }
    }
    numbers
}

/// A column whose values name sessions, under the sessions' new names; other values go.
fn coded_like(column: &Column, sessions: &Column) -> Column {
    let codes = first_seen(sessions);
    let mut names = std::collections::HashMap::new();
    for code in 0..sessions.texts.len() as u32 {
        names.insert(sessions.texts.get(code), format!("s{}", codes[code as usize]));
    }
    let mut out = Column::new(&column.name, 0);
    for row in 0..column.codes.len() {
        out.push(column.get(row).and_then(|text| names.get(text)).map(String::as_str));
    }
    out
}

/// A column of numbers; a value that is no number is a name after all and goes.
fn numbers(column: &Column) -> Option<Column> {
    let mut out = Column::new(&column.name, 0);
    for row in 0..column.codes.len() {
        out.push(column.get(row).filter(|text| text.parse::<f64>().is_ok_and(f64::is_finite)));
    }
    (!out.texts.is_empty()).then_some(out)
}
