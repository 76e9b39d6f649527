//! Block sizes, the tail convention, and paths that do not fit their input length.

use super::fit::{self, Fit, Found};
use super::hints::Hints;
use super::notes::{Notes, Place};
use super::options::ReadOptions;
use super::rows::Rows;
use crate::error::{Error, Result};
use crate::trace::{Forest, NO_LENGTH, Tail};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Fewer rows than this say nothing against the block size that the caller gives.
const MIN_AGAINST: u64 = 8;

/// What the lengths of a trace say.
#[derive(Debug)]
pub(crate) struct Lengths {
    /// The size of most requests.
    pub(crate) block_tokens: u32,
    pub(crate) tail: Tail,
    /// Whether any path was cut.
    pub(crate) cut: bool,
}

/// Finds block size and tail, fills in missing input lengths and cuts paths that are too long.
///
/// # Errors
/// `length_mismatch` when no size, or not the given one, fits the rows; `mixed_block_tokens` when rows state
/// another size than the given one; the first repair under `strict`.
pub(crate) fn settle(
    rows: &mut Rows,
    forest: &Forest,
    options: &ReadOptions,
    hints: &Hints,
    notes: &mut Notes,
) -> Result<Lengths> {
    let size = Size::of(rows, forest, options, hints, notes)?;
    size.fill_missing(rows, forest, notes);
    let tail = options.tail.or(hints.tail).unwrap_or_else(|| size.tail(rows, forest));
    let cut = size.check_paths(rows, forest, tail, notes);
    let block_tokens = size.settle_columns(rows, notes);
    Ok(Lengths { block_tokens, tail, cut })
}

/// The size of rows that state none.
struct Size {
    unstated: u32,
}

impl Size {
    fn of(
        rows: &Rows,
        forest: &Forest,
        options: &ReadOptions,
        hints: &Hints,
        notes: &mut Notes,
    ) -> Result<Self> {
        let mut evidence = Fit::default();
        let mut any_unstated = false;
        for row in 0..rows.node.len() {
            let stated = rows.block_tokens.get(row).copied().unwrap_or(0);
            if let Some(given) = options.block_tokens
                && stated != 0
                && stated != given
            {
                let value = format!("{stated} is stated, {given} was given");
                let error =
                    notes.error("mixed_block_tokens", Some(rows.places.get(row as u32)), Some(&value));
                return Err(error);
            }
            any_unstated |= stated == 0;
            if let Some((input, ids)) = countable(rows, forest, row) {
                evidence.add(input, ids);
            }
        }
        if !any_unstated {
            return Ok(Self { unstated: 0 });
        }
        if let Some(given) = options.block_tokens {
            refuse_contradiction(rows, forest, &evidence, given, options.tail)?;
            return Ok(Self { unstated: given });
        }
        let found = match hints.size(&evidence) {
            Some(found) => found,
            None => infer(rows, forest, &evidence, options.tail)?,
        };
        let first = (0..rows.node.len()).find(|&row| rows.block_tokens.get(row).copied().unwrap_or(0) == 0);
        let place = first.map(|row| rows.places.get(row as u32));
        notes.mention("block_tokens_inferred", 1, place, Some(&found.block_tokens.to_string()));
        notes.detail("block_tokens_inferred", found.detail);
        Ok(Self { unstated: found.block_tokens })
    }

    fn of_row(&self, rows: &Rows, row: usize) -> u32 {
        match rows.block_tokens.get(row) {
            Some(&stated) if stated != 0 => stated,
            _ => self.unstated,
        }
    }

    /// A row without an input length has that of its blocks.
    fn fill_missing(&self, rows: &mut Rows, forest: &Forest, notes: &mut Notes) {
        let mut seen = Seen::default();
        for row in 0..rows.node.len() {
            if rows.input_tokens[row] == NO_LENGTH {
                seen.add(rows.places.get(row as u32), || "input_tokens".to_owned());
                let tokens = u64::from(forest.path_len(rows.node[row])) * u64::from(self.of_row(rows, row));
                rows.input_tokens[row] = u32::try_from(tokens).unwrap_or(NO_LENGTH - 1).min(NO_LENGTH - 1);
            }
        }
        seen.defer("length_inferred", notes);
    }

    /// The convention that more rows follow, of the rows that tell them apart.
    fn tail(&self, rows: &Rows, forest: &Forest) -> Tail {
        let (mut ceil, mut floor) = (0_u64, 0_u64);
        for row in 0..rows.node.len() {
            let ids = forest.path_len(rows.node[row]);
            let (input, size) = (rows.input_tokens[row], self.of_row(rows, row));
            if ids > 0 && input % size != 0 {
                ceil += u64::from(ids == fit::listed(input, size, Tail::Ceil));
                floor += u64::from(ids == fit::listed(input, size, Tail::Floor));
            }
        }
        if floor > ceil { Tail::Floor } else { Tail::Ceil }
    }

    /// Counts paths that do not fit their lengths and cuts those that are too long.
    fn check_paths(&self, rows: &mut Rows, forest: &Forest, tail: Tail, notes: &mut Notes) -> bool {
        let (mut long, mut short, mut empty) = (Seen::default(), Seen::default(), Seen::default());
        let mut outputs = Seen::default();
        for row in 0..rows.node.len() {
            let ids = forest.path_len(rows.node[row]);
            let (input, size) = (rows.input_tokens[row], self.of_row(rows, row));
            let place = || rows.places.get(row as u32);
            let value = || format!("{ids} ids, {input} tokens of {size} a block");
            let most = input.div_ceil(size);
            if ids > most {
                long.add(place(), value);
                rows.node[row] = forest.truncate(rows.node[row], most);
            } else if let Some((listed, most)) = self.too_many_outputs(rows, row) {
                outputs.add(place(), || format!("{listed} output ids, {most} blocks decoded"));
            } else if ids > 0 && ids != fit::listed(input, size, tail) {
                short.add(place(), value);
            }
            if ids == 0 {
                empty.add(place(), || format!("{input} tokens"));
            }
        }
        empty.defer("empty_path", notes);
        let mut detail = format!(
            "{} with more ids than the input holds (cut), {} with another number than tail={} says (kept)",
            long.count,
            short.count,
            tail.name()
        );
        if outputs.count > 0 {
            let _ = write!(detail, ", {} with more output ids than the lengths hold (cut)", outputs.count);
        }
        let cut = long.count > 0;
        self.cut_outputs(rows);
        short.mention("length_mismatch", notes);
        long.defer("length_mismatch", notes);
        outputs.defer("length_mismatch", notes);
        notes.detail("length_mismatch", detail);
        cut
    }

    /// Number of output ids of a row and how many its lengths allow, where those are fewer.
    ///
    /// The blocks that decoding touches begin with the one behind the prompt's full blocks. A row without an
    /// output length allows any number.
    fn too_many_outputs(&self, rows: &Rows, row: usize) -> Option<(u32, u32)> {
        let listed = if row < rows.outputs.requests() { rows.outputs.count(row) } else { 0 };
        let (input, output) = (u64::from(rows.input_tokens[row]), rows.output_tokens[row]);
        if listed == 0 || output == NO_LENGTH {
            return None;
        }
        let size = u64::from(self.of_row(rows, row));
        let most = (input + u64::from(output)).div_ceil(size) - input / size;
        (u64::from(listed) > most).then_some((listed, most as u32))
    }

    fn cut_outputs(&self, rows: &mut Rows) {
        if (0..rows.outputs.requests()).any(|row| self.too_many_outputs(rows, row).is_some()) {
            let most = |row| self.too_many_outputs(rows, row).map_or(u32::MAX, |(_, most)| most);
            rows.outputs = rows.outputs.cut(most);
        }
    }

    /// Keeps sizes per row only where they differ; returns the commonest.
    fn settle_columns(&self, rows: &mut Rows, notes: &mut Notes) -> u32 {
        if rows.block_tokens.is_empty() {
            return self.unstated;
        }
        let sizes: Vec<u32> = (0..rows.node.len()).map(|row| self.of_row(rows, row)).collect();
        let mut counts = BTreeMap::new();
        for &size in &sizes {
            *counts.entry(size).or_insert(0_u64) += 1;
        }
        let commonest = counts.iter().max_by_key(|&(&size, &count)| (count, std::cmp::Reverse(size)));
        let block_tokens = commonest.map_or(self.unstated, |(&size, _)| size);
        rows.block_tokens = Vec::new();
        if counts.len() > 1 {
            let mut seen = Seen::default();
            for (row, &size) in sizes.iter().enumerate().filter(|&(_, &size)| size != sizes[0]) {
                seen.add(rows.places.get(row as u32), || size.to_string());
            }
            seen.mention("mixed_block_tokens", notes);
            let list: Vec<String> =
                counts.iter().map(|(size, count)| format!("{size} ({count} rows)")).collect();
            notes.detail("mixed_block_tokens", list.join(", "));
            rows.block_tokens = sizes;
        }
        block_tokens
    }
}

/// Input length and number of ids of a row that states no block size, where both say something.
fn countable(rows: &Rows, forest: &Forest, row: usize) -> Option<(u32, u32)> {
    let ids = forest.path_len(rows.node[row]);
    let input = rows.input_tokens[row];
    let stated = rows.block_tokens.get(row).copied().unwrap_or(0);
    (ids > 0 && input != NO_LENGTH && stated == 0).then_some((input, ids))
}

fn infer(rows: &Rows, forest: &Forest, evidence: &Fit, tail: Option<Tail>) -> Result<Found> {
    if evidence.rows == 0 {
        if rows.node.iter().all(|node| node.is_empty()) {
            let detail = "16 tokens assumed: no row lists a block".to_owned();
            return Ok(Found { block_tokens: 16, detail });
        }
        return Err(Error::trace(
            "length_mismatch",
            "the block size is not stated and no row has both ids and an input length to infer it from",
            "state it with block_tokens (--block-tokens N)",
        ));
    }
    let all = (0..rows.node.len()).filter_map(|row| countable(rows, forest, row));
    evidence.choose(tail).or_else(|| fit::vote(&all, tail)).ok_or_else(|| {
        Error::trace(
            "length_mismatch",
            "no block size fits the input lengths and numbers of ids of most rows",
            "state it with block_tokens (--block-tokens N), or check how the ids were written",
        )
    })
}

/// Refuses a given size that most rows contradict while another one fits them all.
fn refuse_contradiction(
    rows: &Rows,
    forest: &Forest,
    evidence: &Fit,
    given: u32,
    tail: Option<Tail>,
) -> Result<()> {
    if evidence.ceil.contains(given) || evidence.floor.contains(given) || !evidence.any() {
        return Ok(());
    }
    let mut against = 0_u64;
    for (input, ids) in (0..rows.node.len()).filter_map(|row| countable(rows, forest, row)) {
        let ceil = tail != Some(Tail::Floor) && ids == fit::listed(input, given, Tail::Ceil);
        let floor = tail != Some(Tail::Ceil) && ids == fit::listed(input, given, Tail::Floor);
        against += u64::from(!ceil && !floor);
    }
    if against < MIN_AGAINST || against * 2 <= evidence.rows {
        return Ok(());
    }
    let fits = evidence.choose(None).map_or(0, |found| found.block_tokens);
    Err(Error::trace(
        "length_mismatch",
        format!("blocks of {given} tokens contradict {against} of {} rows", evidence.rows),
        format!("{fits} tokens fit every row ({}); leave block_tokens out or give that", evidence.text()),
    ))
}

/// A code while it is counted.
#[derive(Default)]
struct Seen {
    count: u64,
    first: Option<(Place, String)>,
}

impl Seen {
    fn add(&mut self, place: Place, value: impl FnOnce() -> String) {
        self.count += 1;
        if self.first.is_none() {
            self.first = Some((place, value()));
        }
    }

    fn mention(self, code: &str, notes: &mut Notes) {
        if let Some((place, value)) = self.first {
            notes.mention(code, self.count, Some(place), Some(&value));
        }
    }

    fn defer(self, code: &str, notes: &mut Notes) {
        if let Some((place, value)) = self.first {
            notes.defer(code, self.count, Some(place), Some(&value));
        }
    }
}
