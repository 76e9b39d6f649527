//! One row on its way from a format to the sink: plain fields, reused from row to row.

use super::id_list::IdList;
use super::json::Number;
use super::options::TimeUnit;
use super::times::to_micros;
use crate::trace::{Id, IdRun};

/// The largest length of a request in tokens (`u32::MAX` means "no value").
const MAX_TOKENS: u64 = u32::MAX as u64 - 1;
/// Blocks that runs of one row may expand to: a context of 67 million tokens in blocks of 16.
const MAX_RUN_BLOCKS: u64 = 1 << 22;

/// Why a row cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Problem {
    pub(crate) code: &'static str,
    /// The field it concerns.
    pub(crate) field: &'static str,
    /// What stands there.
    pub(crate) value: String,
}

impl Problem {
    pub(crate) fn new(code: &'static str, field: &'static str, value: &[u8]) -> Self {
        let value = String::from_utf8_lossy(&value[..value.len().min(100)]);
        Self {
            code,
            field,
            value: if value.is_empty() { field.to_owned() } else { format!("{field}: {value}") },
        }
    }

    /// The same problem with another field than `hash_ids`, as which lists of ids are read.
    pub(crate) fn of(self, field: &'static str) -> Self {
        Self { field, value: self.value.replacen("hash_ids", field, 1), ..self }
    }

    /// A field that is not there.
    pub(crate) fn missing(field: &'static str) -> Self {
        Self { code: "missing_field", field, value: field.to_owned() }
    }
}

/// A time as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeValue {
    /// A number: whole part (rounded down), billionths, and the unit the field's name states.
    Number { whole: i64, nanos: u32, unit: Option<TimeUnit> },
    /// An instant in microseconds since 1970 (ISO 8601 texts, timestamps of Arrow).
    Instant(i64),
}

impl TimeValue {
    /// Microseconds, with `unit` for a number that states none.
    pub(crate) fn micros(self, unit: TimeUnit) -> Option<i64> {
        match self {
            Self::Instant(us) => Some(us),
            Self::Number { whole, nanos, unit: stated } => to_micros(whole, nanos, stated.unwrap_or(unit)),
        }
    }
}

/// One row.
#[derive(Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent facts about one row")]
pub(crate) struct Row {
    pub(crate) time: Option<TimeValue>,
    pub(crate) input_tokens: Option<u32>,
    pub(crate) output_tokens: Option<u32>,
    pub(crate) block_tokens: Option<u32>,
    /// Tokens of all listed blocks, where rows state those of every block.
    pub(crate) listed_tokens: Option<u32>,
    /// Whether the row lists a path (an empty one counts).
    pub(crate) has_path: bool,
    pub(crate) ids: IdList,
    /// Ids of the blocks that fill while decoding.
    pub(crate) output_ids: IdList,
    /// Runs of consecutive ids, for rows that list those.
    pub(crate) run_start: IdList,
    pub(crate) run_length: IdList,
    /// Tokens of the prompt, for rows that list those instead of blocks.
    pub(crate) has_tokens: bool,
    pub(crate) token_ids: IdList,
    /// Microseconds after the turn before it.
    pub(crate) delay_us: Option<i64>,
    /// Requests of its play that it waits for, and microseconds from then on.
    pub(crate) waits: Vec<(String, i64)>,
    pub(crate) local_scope: bool,
    /// Whether the time counts from the start of the session.
    pub(crate) own_clock: bool,
    /// Whether the prompt holds images or other media.
    pub(crate) has_media: bool,
    /// Whether a key says that the row may be no request.
    pub(crate) is_marked: bool,
    /// The first repeated key of the row, if one is.
    pub(crate) duplicate_key: Option<String>,
    pub(crate) problems: Vec<Problem>,
    group_texts: String,
    /// Column, rank of the name it came under, end of its text.
    groups: Vec<(u16, u8, usize, usize)>,
}

impl Row {
    pub(crate) fn clear(&mut self) {
        self.time = None;
        self.input_tokens = None;
        self.output_tokens = None;
        self.block_tokens = None;
        self.listed_tokens = None;
        self.has_path = false;
        self.ids.clear();
        self.output_ids.clear();
        self.run_start.clear();
        self.run_length.clear();
        self.has_tokens = false;
        self.token_ids.clear();
        self.delay_us = None;
        self.waits.clear();
        self.local_scope = false;
        self.own_clock = false;
        self.has_media = false;
        self.is_marked = false;
        self.duplicate_key = None;
        self.problems.clear();
        self.group_texts.clear();
        self.groups.clear();
    }

    /// Sets a group column. A better rank (smaller) or an equal one replaces what is there.
    pub(crate) fn set_group(&mut self, column: u16, rank: u8, value: Option<&str>) {
        let begin = self.group_texts.len();
        let value = value.filter(|text| !text.is_empty());
        self.group_texts.push_str(value.unwrap_or(""));
        let entry = (column, rank, begin, self.group_texts.len());
        match self.groups.iter_mut().find(|g| g.0 == column) {
            Some(known) if known.1 >= rank || known.2 == known.3 => *known = entry,
            Some(_) => {}
            None => self.groups.push(entry),
        }
    }

    /// The group columns that have a value.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (u16, &str)> {
        let texts = self.group_texts.as_str();
        self.groups
            .iter()
            .filter(|g| g.2 < g.3)
            .map(move |&(column, _, begin, end)| (column, &texts[begin..end]))
    }

    /// The tokens listed. Numbers that are no token were named as problems when they were read.
    pub(crate) fn tokens(&self) -> Vec<u32> {
        let token = |id| if let Id::Number(token) = id { token as u32 } else { 0 };
        self.token_ids.iter().map(token).collect()
    }

    /// Names token ids that are none, and lists of them that are too long.
    pub(crate) fn check_tokens(&mut self) {
        let list = &mut self.token_ids;
        let limit = u64::from(u32::MAX);
        let large = list.numbers().iter().find(|&&token| token > limit).map(u64::to_string);
        if !list.all_numbers() {
            self.problems.push(Problem::new("bad_type", "token_ids", b"a text"));
        } else if let Some(token) = large {
            self.problems.push(Problem::new("id_out_of_range", "token_ids", token.as_bytes()));
        }
    }

    /// Turns runs into ids.
    pub(crate) fn expand_runs(&mut self) {
        let are_numbers = self.run_length.all_numbers() && self.run_start.all_numbers();
        let (starts, lengths) = (self.run_start.numbers(), self.run_length.numbers());
        if starts.is_empty() && lengths.is_empty() {
            return;
        }
        let bad = |value: String| Problem::new("bad_type", "run_length", value.as_bytes());
        if starts.len() != lengths.len() || !are_numbers {
            let value = format!("{} starts, {} lengths", starts.len(), lengths.len());
            return self.problems.push(bad(value));
        }
        let total = lengths.iter().try_fold(0_u64, |sum, &n| sum.checked_add(n)).unwrap_or(u64::MAX);
        if total > MAX_RUN_BLOCKS {
            return self.problems.push(bad(format!("runs of {total} blocks in a row")));
        }
        for (&start, &length) in starts.iter().zip(lengths.iter()) {
            match length.checked_sub(1) {
                None => {}
                Some(more) if start.checked_add(more).is_some() => {
                    self.ids.push_run(IdRun { first: start, count: length as u32 });
                }
                Some(_) => return self.problems.push(bad(format!("{length} ids from {start}"))),
            }
        }
    }
}

/// A length in tokens, or the code that says why it is none.
pub(crate) fn tokens(number: Number) -> Result<u32, &'static str> {
    match number {
        Number::Unsigned(n) if n <= MAX_TOKENS => Ok(n as u32),
        Number::Negative(0) => Ok(0),
        Number::Negative(_) => Err("negative_value"),
        Number::NotFinite => Err("not_finite"),
        Number::Decimal(d) => match d.whole {
            Some(0) if !d.fraction => Ok(0),
            _ if d.negative => Err("negative_value"),
            Some(n) if !d.fraction && n <= MAX_TOKENS => Ok(n as u32),
            _ => Err("bad_type"),
        },
        Number::Unsigned(_) | Number::Large => Err("bad_type"),
    }
}

/// A number as a delay in microseconds, or the code that says why it is none. Without a unit: milliseconds.
pub(crate) fn delay_us(number: Number, unit: Option<TimeUnit>) -> Result<i64, &'static str> {
    let unit = unit.unwrap_or(TimeUnit::Millis);
    let TimeValue::Number { whole, nanos, .. } = time(number, Some(unit))? else { return Err("bad_type") };
    if whole < 0 {
        return Err("negative_value");
    }
    to_micros(whole, nanos, unit).ok_or("bad_type")
}

/// A number as a time, or the code that says why it is none.
pub(crate) fn time(number: Number, unit: Option<TimeUnit>) -> Result<TimeValue, &'static str> {
    let signed = |magnitude: u64| i64::try_from(magnitude).map_err(|_| "bad_type");
    let (whole, nanos) = match number {
        Number::Unsigned(n) => (signed(n)?, 0),
        Number::Negative(n) => (-signed(n)?, 0),
        Number::NotFinite => return Err("not_finite"),
        Number::Large => return Err("bad_type"),
        Number::Decimal(d) => {
            let whole = signed(d.whole.ok_or("bad_type")?)?;
            match (d.negative, d.nanos) {
                (false, nanos) => (whole, nanos),
                (true, 0) => (-whole, 0),
                // Round down: -1.25 is -2 and 0.75.
                (true, nanos) => (-whole - 1, 1_000_000_000 - nanos),
            }
        }
    };
    Ok(TimeValue::Number { whole, nanos, unit })
}
