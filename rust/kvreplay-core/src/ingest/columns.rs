//! Rows handed over column by column (Arrow, data frames): the same sink and the same rules.

use super::assemble;
use super::id_list::IdList;
use super::json::number::{self, Number};
use super::json::{ids, row::time_text};
use super::options::{ReadOptions, TimeUnit};
use super::row::{self, Problem, Row, TimeValue};
use super::rows::{Field, RowSink, Slot};
use crate::error::{Error, Result};
use crate::progress::Progress;
use crate::trace::Trace;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Rows between two looks at the progress.
const PROGRESS_ROWS: usize = 4096;

/// Which entries hold a value, as an Arrow validity bitmap: bit `offset + i`, lowest first; no bitmap = all.
#[derive(Debug, Clone, Copy, Default)]
pub struct Validity<'a>(pub Option<(&'a [u8], usize)>);

impl Validity<'_> {
    /// Whether entry `i` holds a value. Entries behind the bitmap do not.
    #[must_use]
    pub fn get(self, i: usize) -> bool {
        match self.0 {
            None => true,
            Some((bits, offset)) => {
                bits.get((offset + i) / 8).is_some_and(|byte| byte >> ((offset + i) % 8) & 1 == 1)
            }
        }
    }
}

/// Values of a column, or of the lists of a column.
#[derive(Debug, Clone, Copy)]
pub enum Values<'a> {
    /// Unsigned integers.
    U64(&'a [u64]),
    /// Unsigned integers of 32 bits.
    U32(&'a [u32]),
    /// Signed integers.
    I64(&'a [i64]),
    /// Floating-point numbers.
    F64(&'a [f64]),
    /// Truth values.
    Bool(&'a [bool]),
    /// Texts.
    Text(&'a [&'a str]),
    /// Instants since 1970 in a unit.
    Instant(&'a [i64], TimeUnit),
}

impl Values<'_> {
    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::U64(v) => v.len(),
            Self::U32(v) => v.len(),
            Self::I64(v) | Self::Instant(v, _) => v.len(),
            Self::F64(v) => v.len(),
            Self::Bool(v) => v.len(),
            Self::Text(v) => v.len(),
        }
    }

    /// Whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// One column of a batch.
#[derive(Debug, Clone, Copy)]
pub enum BatchColumn<'a> {
    /// One value per row.
    Scalars {
        /// The values.
        values: Values<'a>,
        /// Which rows have one.
        validity: Validity<'a>,
    },
    /// One list per row: row `r` holds the values `offsets[r]..offsets[r + 1]`.
    Lists {
        /// Rows + 1 places in `values`.
        offsets: &'a [usize],
        /// Which rows have a list.
        validity: Validity<'a>,
        /// The elements of all lists.
        values: Values<'a>,
        /// Which elements are there.
        values_validity: Validity<'a>,
    },
}

/// Some rows, by columns under the names of the file.
#[derive(Debug, Clone, Default)]
pub struct Batch<'a> {
    /// Number of rows.
    pub rows: usize,
    /// Name and content of each column.
    pub columns: Vec<(&'a str, BatchColumn<'a>)>,
}

/// Reads batches of columns as a trace. Rows are numbered from 1 over all batches.
#[derive(Debug)]
pub struct ColumnReader {
    sink: RowSink,
    fields: BTreeMap<String, Field>,
    row: Row,
    rows: u64,
}

impl ColumnReader {
    /// A reader; `file` names the source in messages and may be empty.
    ///
    /// # Errors
    /// `Config` for options that contradict themselves.
    pub fn new(file: &str, options: &ReadOptions) -> Result<Self> {
        let mut sink = RowSink::new(options)?;
        sink.begin_file(file);
        Ok(Self { sink, fields: BTreeMap::new(), row: Row::default(), rows: 0 })
    }

    /// Takes a batch. The progress counts rows.
    ///
    /// # Errors
    /// `missing_field` when a column that `options.columns` names is not there; `Cancelled`; under `strict`
    /// nothing yet: the first bad row shows in [`Self::finish`].
    pub fn push(&mut self, batch: &Batch<'_>, progress: &Progress) -> Result<()> {
        for (_, theirs) in &self.sink.options.columns {
            if !batch.columns.iter().any(|(name, _)| name == theirs) {
                let names: Vec<&str> = batch.columns.iter().map(|&(name, _)| name).collect();
                let error = Error::trace(
                    "missing_field",
                    format!("there is no column {theirs}"),
                    format!("the columns are {}", names.join(", ")),
                );
                return Err(self.sink.notes.at(error, None));
            }
        }
        let mut fields: Vec<Field> = batch.columns.iter().map(|(name, _)| self.field(name)).collect();
        for at in 0..batch.rows {
            if at % PROGRESS_ROWS == 0 {
                progress.advance_to(self.rows)?;
            }
            if self.sink.notes.is_stopped() {
                return Ok(());
            }
            self.rows += 1;
            self.row.clear();
            self.fill(batch, &mut fields, at);
            // Under strict the sink keeps what stopped it; finish() reports the first row.
            match self.sink.accept(self.rows, &mut self.row) {
                Err(Error::Trace(_)) if self.sink.notes.is_stopped() => {}
                other => other?,
            }
        }
        Ok(())
    }

    /// The trace of all batches.
    ///
    /// # Errors
    /// As [`super::read`], with rows of the table as lines.
    pub fn finish(self, format: &str) -> Result<Trace> {
        assemble::finish(self.sink, format)
    }

    fn field(&mut self, name: &str) -> Field {
        if let Some(&known) = self.fields.get(name) {
            return known;
        }
        let field = self.sink.field(name);
        self.fields.insert(name.to_owned(), field);
        field
    }

    fn fill(&mut self, batch: &Batch<'_>, fields: &mut [Field], at: usize) {
        let mut ranks = [u8::MAX; Slot::COUNT];
        for (position, &(name, column)) in batch.columns.iter().enumerate() {
            match (fields[position], column) {
                (Field::Slot { slot, rank, unit }, column)
                    if holds(column, at) && self.row.begin_slot(&mut ranks, slot, rank) =>
                {
                    if let Err(problem) = slot_value(slot, unit, column, at, &mut self.row) {
                        self.row.problems.push(problem);
                    }
                }
                (Field::Group { column: group, rank }, BatchColumn::Scalars { values, validity })
                    if validity.get(at) =>
                {
                    self.row.set_group(group, rank, Some(&text(values, at)));
                }
                (Field::Foreign, BatchColumn::Scalars { values, validity }) if validity.get(at) => {
                    let field = self.sink.foreign_column(name);
                    fields[position] = field;
                    self.fields.insert(name.to_owned(), field);
                    if let Field::Group { column: group, rank } = field {
                        self.row.set_group(group, rank, Some(&text(values, at)));
                    }
                }
                (Field::Raw { column: group, rank }, column) if holds(column, at) => {
                    let value = written(column, at);
                    self.row.set_group(group, rank, value.as_deref());
                }
                (Field::Media, column) if holds(column, at) => {
                    let value = written(column, at);
                    let none = |text: &str| matches!(text, "" | "0" | "false" | "[]" | "{}");
                    self.row.has_media |= value.is_some_and(|text| !none(&text));
                }
                (Field::Scope, BatchColumn::Scalars { values: Values::Text(values), validity }) => {
                    self.row.local_scope = validity.get(at) && values[at] == "local";
                }
                _ => {}
            }
        }
    }
}

fn holds(column: BatchColumn<'_>, at: usize) -> bool {
    match column {
        BatchColumn::Scalars { validity, .. } | BatchColumn::Lists { validity, .. } => validity.get(at),
    }
}

/// A value of any shape as a text; `None` for an empty list.
fn written(column: BatchColumn<'_>, at: usize) -> Option<Cow<'_, str>> {
    match column {
        BatchColumn::Scalars { values, .. } => Some(text(values, at)),
        BatchColumn::Lists { offsets, values, .. } => {
            let all: Vec<Cow<'_, str>> = (offsets[at]..offsets[at + 1]).map(|i| text(values, i)).collect();
            (!all.is_empty()).then(|| Cow::Owned(all.join(",")))
        }
    }
}

/// A value as a text.
fn text(values: Values<'_>, at: usize) -> Cow<'_, str> {
    Cow::Owned(match values {
        Values::Text(v) => return Cow::Borrowed(v[at]),
        Values::U64(v) => v[at].to_string(),
        Values::U32(v) => v[at].to_string(),
        Values::I64(v) | Values::Instant(v, _) => v[at].to_string(),
        Values::F64(v) => v[at].to_string(),
        Values::Bool(v) => v[at].to_string(),
    })
}

/// A value as a number; `None` when it is none.
fn number_of(values: Values<'_>, at: usize) -> Option<Number> {
    match values {
        Values::U64(v) => Some(Number::Unsigned(v[at])),
        Values::U32(v) => Some(Number::Unsigned(u64::from(v[at]))),
        Values::I64(v) if v[at] < 0 => Some(Number::Negative(v[at].unsigned_abs())),
        Values::I64(v) => Some(Number::Unsigned(v[at] as u64)),
        // The shortest decimal that reads back as the same float: what a text file would hold.
        Values::F64(v) if v[at].is_finite() => number::from_text(&format!("{:?}", v[at])),
        Values::F64(_) => Some(Number::NotFinite),
        Values::Text(v) => number::from_text(v[at].trim()),
        Values::Bool(_) | Values::Instant(..) => None,
    }
}

fn slot_value(
    slot: Slot,
    unit: Option<TimeUnit>,
    column: BatchColumn<'_>,
    at: usize,
    row: &mut Row,
) -> std::result::Result<(), Problem> {
    match (slot, column) {
        (Slot::HashIds | Slot::RunStart | Slot::RunLength | Slot::TokenIds | Slot::OutputIds, column) => {
            row.set_listed(slot, true);
            let list = row.list(slot);
            path(slot, column, at, list)
        }
        (_, BatchColumn::Lists { .. }) => Err(Problem::new("bad_type", slot.name(), b"a list")),
        (Slot::Time, BatchColumn::Scalars { values, .. }) => {
            let time = match values {
                Values::Instant(v, unit) => micros(v[at], unit).map(TimeValue::Instant).ok_or("bad_type"),
                Values::Text(v) => time_text(v[at], unit),
                _ => number_of(values, at).map_or(Err("bad_type"), |number| row::time(number, unit)),
            };
            row.time =
                Some(time.map_err(|code| Problem::new(code, slot.name(), text(values, at).as_bytes()))?);
            Ok(())
        }
        (Slot::Delay, BatchColumn::Scalars { values, .. }) => {
            let delay_us = number_of(values, at).map_or(Err("bad_type"), |n| row::delay_us(n, unit));
            let named = |code| Problem::new(code, slot.name(), text(values, at).as_bytes());
            row.delay_us = Some(delay_us.map_err(named)?);
            Ok(())
        }
        (_, BatchColumn::Scalars { values, .. }) => {
            let tokens = number_of(values, at).map_or(Err("bad_type"), row::tokens);
            let tokens =
                tokens.map_err(|code| Problem::new(code, slot.name(), text(values, at).as_bytes()))?;
            row.set_tokens(slot, Some(tokens));
            Ok(())
        }
    }
}

fn micros(value: i64, unit: TimeUnit) -> Option<i64> {
    match unit {
        TimeUnit::Seconds => value.checked_mul(1_000_000),
        TimeUnit::Millis => value.checked_mul(1_000),
        TimeUnit::Micros | TimeUnit::Iso => Some(value),
        TimeUnit::Nanos => Some(value.div_euclid(1_000)),
    }
}

fn path(
    slot: Slot,
    column: BatchColumn<'_>,
    at: usize,
    list: &mut IdList,
) -> std::result::Result<(), Problem> {
    let (offsets, values, validity) = match column {
        BatchColumn::Lists { offsets, values, values_validity, .. } => (offsets, values, values_validity),
        BatchColumn::Scalars { values: Values::Text(texts), .. } => {
            return ids::in_text(texts[at], list).map_err(|problem| problem.of(slot.name()));
        }
        BatchColumn::Scalars { values, .. } => {
            return Err(Problem::new("bad_type", slot.name(), text(values, at).as_bytes()));
        }
    };
    let range = offsets[at]..offsets[at + 1];
    if let Some(null) = range.clone().find(|&i| !validity.get(i)) {
        let value = format!("null at position {}", null - range.start);
        return Err(Problem::new("bad_type", slot.name(), value.as_bytes()));
    }
    match values {
        Values::U64(v) => list.numbers().extend_from_slice(&v[range]),
        Values::U32(v) => list.numbers().extend(v[range].iter().map(|&id| u64::from(id))),
        Values::I64(v) => list.numbers().extend(v[range].iter().map(|&id| id as u64)),
        Values::Text(v) => v[range].iter().for_each(|id| list.push_text(id)),
        Values::F64(_) => {
            for i in range {
                let id = number_of(values, i).unwrap_or(Number::NotFinite);
                list.push_number(id)
                    .map_err(|code| Problem::new(code, slot.name(), text(values, i).as_bytes()))?;
            }
        }
        Values::Bool(_) | Values::Instant(..) => {
            return Err(Problem::new("bad_type", slot.name(), b"ids of a type that names no block"));
        }
    }
    Ok(())
}
