//! From accepted rows to a trace: what only shows when all rows are there.

use super::delta;
use super::fields::COLUMN_ORDER;
use super::lengths;
use super::links;
use super::notes::{Notes, Place};
use super::options::{ReadOptions, SessionRows};
use super::order;
use super::rows::{RowSink, Rows};
use super::sessions::{self, Settled};
use super::starts::{self, NO_OWNER};
use crate::error::{Error, Result};
use crate::trace::{
    Column, Forest, Id, IdTable, NO_CODE, Node, Origin, Quality, Requests, Trace, find_rekeyed, reintern,
};
use std::collections::{BTreeSet, HashSet};

/// Finishes a trace of the given format.
///
/// # Errors
/// `no_rows` when nothing usable was read; the findings that make a trace unusable; under `strict` the
/// first row that would be rejected or repaired.
pub(super) fn finish(mut sink: RowSink, format: &str) -> Result<Trace> {
    if !sink.notes.is_stopped() && (sink.rejected_rows > 0 || !sink.rows.node.is_empty()) {
        sink.check_names()?;
    }
    sink.finish_notes();
    let RowSink {
        options,
        hints,
        mut rows,
        builder,
        mut notes,
        namespaces,
        namespace_columns,
        rejected_rows,
        unhashed_rows,
        ..
    } = sink;
    if rows.node.is_empty() {
        notes.stopped()?;
        return Err(no_rows(&notes, rejected_rows, unhashed_rows));
    }
    let mut origin = origin(format, rejected_rows, &rows, &namespaces, &namespace_columns);
    pad_columns(&mut rows);
    links::connect(&mut rows, &mut notes);
    let (mut forest, mut ids) = builder.finish();
    let repeated = hints.repeats && drop_repeats(&mut rows, &mut notes);
    let dropped = drop_untimed(&mut rows, &mut origin, &mut notes) || repeated;
    let settled = lengths::settle(&mut rows, &forest, &options, &hints, &mut notes);
    let lengths = match settled {
        // Without its last rows a trace may not show its block size; the row that ended it is the answer.
        Err(error) => return Err(notes.stopped().err().unwrap_or_else(|| notes.at(error, None))),
        Ok(lengths) => lengths,
    };
    if dropped || lengths.cut {
        (forest, ids, rows.node) = reintern(&forest, &ids, rows.node.iter().copied())?;
        if dropped {
            origin.namespaces = namespaces_in(&forest);
        }
    }
    let delta = options.session_rows == SessionRows::Delta;
    if delta {
        refuse_outputs(&rows, &notes)?;
        (forest, ids) = delta::concatenate(&mut rows, &forest, &ids, &lengths, &mut notes)?;
    }
    origin.chained = check_chains(&rows, &forest, &ids, delta, &mut notes);
    let mut arrival_us = arrivals(&rows, &options, &mut notes)?;
    let one_clock = hints.dates || !rows.owners.is_empty();
    let order =
        arrival_us.as_mut().and_then(|times| order::settle(times, one_clock, &rows.places, &mut notes));
    let Rows { node, input_tokens, output_tokens, block_tokens, places, columns, outputs, .. } = rows;
    let mut requests = Requests {
        node,
        arrival_us,
        input_tokens,
        output_tokens,
        block_tokens,
        columns: settle_columns(columns),
        outputs: (!outputs.is_empty()).then_some(outputs),
    };
    if let Some(order) = &order {
        reorder(&mut requests, order);
        (forest, ids, requests.node) = reintern(&forest, &ids, requests.node.iter().copied())?;
    }
    let settled = Settled { requests: &requests, forest: &forest, order: order.as_deref(), places: &places };
    settled.duplicates(&mut notes);
    settled.skew(&mut notes);
    if !delta {
        settled.turns(&mut notes);
    }
    let mut trace =
        Trace::new(forest, ids, requests, lengths.block_tokens, lengths.tail, origin, Quality::default());
    let row = |request: usize| order.as_ref().map_or(request as u32, |order| order[request]);
    check_outputs(&trace, &mut notes, |request| places.get(row(request)))?;
    notes.stopped()?;
    trace.quality = notes.finish();
    Ok(trace)
}

fn no_rows(notes: &Notes, rejected_rows: u64, unhashed_rows: u64) -> Error {
    if let Some((place, _)) =
        notes.first_error().filter(|_| unhashed_rows == rejected_rows && rejected_rows > 0)
    {
        return notes.at(super::length_only::no_blocks(), Some(place));
    }
    let hint = "see the fields of the formats with kvreplay list formats";
    match notes.first_error() {
        None if notes.has("foreign_rows") => {
            let message = "no usable row: all rows are of another kind";
            notes.at(Error::trace("no_rows", message, hint), None)
        }
        None => notes.at(Error::trace("no_rows", "there is no row in it", hint), None),
        Some((place, what)) => {
            let message = format!("no usable row: {rejected_rows} rejected, the first for: {what}");
            notes.at(Error::trace("no_rows", message, hint), Some(place))
        }
    }
}

fn origin(
    format: &str,
    rejected_rows: u64,
    rows: &Rows,
    namespaces: &super::namespace::Namespaces,
    namespace_columns: &[u16],
) -> Origin {
    let varying = namespaces.varying_columns();
    let mut names: Vec<String> =
        varying.iter().map(|&at| rows.columns[namespace_columns[at] as usize].name.clone()).collect();
    let (block_tokens, scope) = namespaces.varying_others();
    names.extend(block_tokens.then(|| "block_tokens".to_owned()));
    names.extend(scope.then(|| "scope".to_owned()));
    Origin {
        format: format.to_owned(),
        rejected_rows,
        namespaces: namespaces.len(),
        namespace_columns: names,
        chained: true,
    }
}

fn namespaces_in(forest: &Forest) -> u32 {
    let used: BTreeSet<u32> = (0..forest.chains() as u32).map(|chain| forest.namespace(chain)).collect();
    used.len().max(1) as u32
}

/// Columns have codes only up to their last value: fill them up.
fn pad_columns(rows: &mut Rows) {
    for column in &mut rows.columns {
        column.codes.resize(rows.node.len(), NO_CODE);
    }
    if !rows.block_tokens.is_empty() {
        rows.block_tokens.resize(rows.node.len(), 0);
    }
    if !rows.owners.is_empty() {
        rows.owners.resize(rows.node.len(), NO_OWNER);
    }
    if !rows.outputs.is_empty() {
        rows.outputs.pad(rows.node.len());
    }
}

/// In a trace with times, rows without one cannot be placed.
fn drop_untimed(rows: &mut Rows, origin: &mut Origin, notes: &mut Notes) -> bool {
    if !rows.times.any() {
        return false;
    }
    let (missing, keep): (Vec<u32>, Vec<u32>) =
        (0..rows.node.len() as u32).partition(|&row| rows.times.missing(row));
    let Some(&first) = missing.first() else { return false };
    notes.defer("time_missing", missing.len() as u64, Some(rows.places.get(first)), Some("time"));
    origin.rejected_rows += missing.len() as u64;
    keep_rows(rows, &keep);
    true
}

/// Keeps the earliest row of every request, where a request that is listed again is the same one.
fn drop_repeats(rows: &mut Rows, notes: &mut Notes) -> bool {
    let Some(ids) = rows.columns.iter().find(|column| column.name == "request_id") else { return false };
    let mut earliest = vec![None::<u32>; ids.texts.len()];
    let mut again = 0;
    let mut first = None;
    for row in 0..rows.node.len() as u32 {
        let code = ids.codes[row as usize];
        if code == NO_CODE {
            continue;
        }
        let known = &mut earliest[code as usize];
        let later = match *known {
            Some(before) if rows.times.earlier(row, before) => known.replace(row),
            Some(_) => Some(row),
            None => {
                *known = Some(row);
                None
            }
        };
        if let Some(row) = later {
            again += 1;
            first = Some(first.map_or(row, |first: u32| first.min(row)));
        }
    }
    let Some(first) = first else { return false };
    let place = Some(rows.places.get(first));
    notes.mention("foreign_rows", again, place, ids.get(first as usize));
    notes.also("foreign_rows", &format!("requests that were listed before: {again}"));
    let is_kept = |&row: &u32| {
        let code = ids.codes[row as usize];
        code == NO_CODE || earliest[code as usize] == Some(row)
    };
    let keep: Vec<u32> = (0..rows.node.len() as u32).filter(is_kept).collect();
    keep_rows(rows, &keep);
    true
}

/// Keeps the rows `keep` (ascending) alone.
fn keep_rows(rows: &mut Rows, keep: &[u32]) {
    let pick = |values: &[u32]| keep.iter().map(|&row| values[row as usize]).collect::<Vec<_>>();
    rows.node = keep.iter().map(|&row| rows.node[row as usize]).collect();
    rows.input_tokens = pick(&rows.input_tokens);
    rows.output_tokens = pick(&rows.output_tokens);
    if !rows.block_tokens.is_empty() {
        rows.block_tokens = pick(&rows.block_tokens);
    }
    if !rows.owners.is_empty() {
        rows.owners = pick(&rows.owners);
    }
    rows.columns = rows.columns.iter().map(|column| column.pick(keep)).collect();
    if !rows.outputs.is_empty() {
        rows.outputs = rows.outputs.pick(keep).unwrap_or_default();
    }
    rows.places = rows.places.pick(keep);
    rows.times.keep(keep);
}

/// Notes ids below two parents and ids that repeat on a path; `true` when there are none.
fn check_chains(rows: &Rows, forest: &Forest, ids: &IdTable, delta: bool, notes: &mut Notes) -> bool {
    let rekeyed = find_rekeyed(forest, ids);
    let (Some(chain), Some(block)) = (rekeyed.first_chain, rekeyed.first_block) else { return true };
    // Rows are in file order and number their chains: the first on that chain is the one that hung it.
    let row = rows.node.iter().position(|node| node.chain == chain);
    let place = row.map(|row| rows.places.get(row as u32));
    let value = match ids.get(block) {
        Id::Number(number) => number.to_string(),
        Id::Text(text) => text.to_owned(),
    };
    if delta {
        // Ids of deltas name what a turn adds: below another history they are other blocks, as they should be.
        notes.mention("id_with_two_parents", rekeyed.ids, place, Some(&value));
    } else {
        notes.defer("id_with_two_parents", rekeyed.ids, place, Some(&value));
    }
    let repeats = repeats(forest, ids);
    let has = |&row: &usize| {
        let node = rows.node[row];
        !node.is_empty() && forest.path_len(node) >= repeats[node.chain as usize]
    };
    let mut found = (0..rows.node.len()).filter(has);
    if let Some(first) = found.next() {
        let place = rows.places.get(first as u32);
        notes.mention("duplicate_id_in_request", 1 + found.count() as u64, Some(place), None);
    }
    false
}

/// Notes ids that stand below two parents only where output ids are joined to their prompts.
fn check_outputs(trace: &Trace, notes: &mut Notes, place: impl Fn(usize) -> Place) -> Result<()> {
    let Some(joined) = trace.joined()? else { return Ok(()) };
    let found = find_rekeyed(&joined.trace.forest, &joined.trace.ids);
    let more = found.ids.saturating_sub(find_rekeyed(&trace.forest, &trace.ids).ids);
    let (Some(chain), Some(block), 1..) = (found.first_chain, found.first_block, more) else { return Ok(()) };
    let hangs = |&request: &usize| {
        joined.full[request].chain == chain || joined.trace.requests.node[request].chain == chain
    };
    let request = (0..trace.len()).find(hangs);
    let value = match joined.trace.ids.get(block) {
        Id::Number(number) => number.to_string(),
        Id::Text(text) => text.to_owned(),
    };
    notes.defer("id_with_two_parents", more, request.map(place), Some(&value));
    notes.also("id_with_two_parents", &format!("{more} only once output_hash_ids follow their prompts"));
    Ok(())
}

/// Where rows are deltas, the history cuts blocks anew: no place is left for the ids of outputs.
fn refuse_outputs(rows: &Rows, notes: &Notes) -> Result<()> {
    let Some(first) = (0..rows.outputs.requests()).find(|&row| rows.outputs.count(row) > 0) else {
        return Ok(());
    };
    let message = "session_rows=delta and output_hash_ids do not go together";
    let hint = "with deltas the next turn's history holds the outputs; leave output_hash_ids out of the rows";
    Err(notes.at(Error::trace("delta_rows", message, hint), Some(rows.places.get(first as u32))))
}

/// Per chain the length of the shortest path into it on which an id repeats.
fn repeats(forest: &Forest, ids: &IdTable) -> Vec<u32> {
    let mut out: Vec<u32> = Vec::with_capacity(forest.chains());
    let (mut path, mut seen) = (Vec::new(), HashSet::new());
    for chain in 0..forest.chains() as u32 {
        let above = forest.parent(chain);
        let known = if above.is_empty() { u32::MAX } else { out[above.chain as usize] };
        if known <= forest.depth(chain) {
            out.push(known);
            continue;
        }
        forest.path(Node { chain, len: forest.chain_len(chain) }, &mut path);
        seen.clear();
        let again = path.iter().position(|&block| !seen.insert((ids.is_text(block), ids.number(block))));
        out.push(again.map_or(u32::MAX, |at| at as u32 + 1));
    }
    out
}

/// Arrivals in file order, sessions on clocks of their own begun as the caller says.
fn arrivals(rows: &Rows, options: &ReadOptions, notes: &mut Notes) -> Result<Option<Vec<i64>>> {
    if !rows.times.any() {
        return Ok(None);
    }
    let mut times_us = rows.times.micros(options.time_unit, &rows.places, notes)?;
    if let Some(said) = starts::place(&mut times_us, &rows.owners, &options.sessions)? {
        let local = notes.has("local_scope");
        if !local && !notes.has("time_unit_inferred") {
            notes.mention("time_unit_inferred", 1, Some(rows.places.get(0)), Some("delays"));
        }
        notes.also(if local { "local_scope" } else { "time_unit_inferred" }, &said);
    }
    Ok(Some(times_us))
}

/// Columns with a value, chats in our terms, in the order users see.
fn settle_columns(mut columns: Vec<Column>) -> Vec<Column> {
    columns.retain(|column| !column.texts.is_empty());
    sessions::name_chats(&mut columns);
    let rank =
        |column: &Column| COLUMN_ORDER.iter().position(|&name| name == column.name).unwrap_or(usize::MAX);
    columns.sort_by(|a, b| rank(a).cmp(&rank(b)).then_with(|| a.name.cmp(&b.name)));
    columns
}

fn reorder(requests: &mut Requests, order: &[u32]) {
    let pick = |values: &[u32]| order.iter().map(|&row| values[row as usize]).collect::<Vec<_>>();
    requests.node = order.iter().map(|&row| requests.node[row as usize]).collect();
    requests.input_tokens = pick(&requests.input_tokens);
    requests.output_tokens = pick(&requests.output_tokens);
    if !requests.block_tokens.is_empty() {
        requests.block_tokens = pick(&requests.block_tokens);
    }
    if let Some(times) = &mut requests.arrival_us {
        *times = order.iter().map(|&row| times[row as usize]).collect();
    }
    requests.columns = requests.columns.iter().map(|column| column.pick(order)).collect();
    requests.outputs = requests.outputs.as_ref().and_then(|outputs| outputs.pick(order));
}
