//! One JSON object as a row.

use super::{Bad, Kind, Scanner, ids, number};
use crate::ingest::id_list::IdList;
use crate::ingest::iso;
use crate::ingest::row::{self, Problem, Row, TimeValue};
use crate::ingest::rows::{Field, RowSink, Slot};
use crate::trace::{Id, NO_LENGTH};
use std::collections::BTreeMap;

/// Keys that are told apart; rows with more different keys than this hold data in their keys.
const MAX_KEYS: usize = 512;

#[derive(Debug)]
struct Key {
    /// The name as written between its quotes, and the closing quote.
    raw: Vec<u8>,
    name: String,
    field: Field,
    /// The last row that had it.
    row: u64,
}

/// Reads objects as rows. Remembers the keys of the row before, since rows of a file are alike.
#[derive(Debug, Default)]
pub(crate) struct RowReader {
    keys: Vec<Key>,
    by_name: BTreeMap<String, u16>,
    /// The key at each position of the row before.
    order: Vec<u16>,
    rows: u64,
    /// Rank of the name that filled each slot of the current row.
    ranks: [u8; Slot::COUNT],
}

impl RowReader {
    /// Takes the object at the scanner's place into `row`, which must be clear.
    pub(crate) fn object(
        &mut self,
        scanner: &mut Scanner<'_>,
        row: &mut Row,
        sink: &mut RowSink,
    ) -> Result<(), Bad> {
        self.rows += 1;
        self.ranks = [u8::MAX; Slot::COUNT];
        scanner.expect(b'{')?;
        if scanner.take(b'}') {
            return Ok(());
        }
        let mut position = 0;
        loop {
            if scanner.kind()? != Kind::Text {
                return Err(Bad::Syntax);
            }
            match self.key(scanner, position, sink)? {
                None => {
                    scanner.expect(b':')?;
                    scanner.skip()?;
                }
                Some(key) => {
                    scanner.expect(b':')?;
                    self.again(key, row);
                    self.value(key, scanner, row, sink)?;
                }
            }
            position += 1;
            if !scanner.take(b',') {
                return scanner.expect(b'}');
            }
        }
    }

    /// Takes a key; `None` for one beyond the number of keys that are told apart.
    fn key(
        &mut self,
        scanner: &mut Scanner<'_>,
        position: usize,
        sink: &mut RowSink,
    ) -> Result<Option<u16>, Bad> {
        if let Some(&guess) = self.order.get(position) {
            let raw = &self.keys[guess as usize].raw;
            if scanner.bytes[scanner.at + 1..scanner.end].starts_with(raw) {
                scanner.at += 1 + raw.len();
                return Ok(Some(guess));
            }
        }
        let begin = scanner.at + 1;
        let name = scanner.text()?;
        let key = match self.by_name.get(name.as_ref()) {
            Some(&key) => key,
            None if self.keys.len() == MAX_KEYS => return Ok(None),
            None => {
                let key = self.keys.len() as u16;
                let field = sink.field(&name);
                let raw = scanner.bytes[begin..scanner.at].to_vec();
                self.keys.push(Key { raw, name: name.clone().into_owned(), field, row: 0 });
                self.by_name.insert(name.into_owned(), key);
                key
            }
        };
        if position < self.order.len() {
            self.order[position] = key;
        } else if position == self.order.len() && position < MAX_KEYS {
            self.order.push(key);
        }
        Ok(Some(key))
    }

    /// Notes a key that the row had before: its last value holds.
    fn again(&mut self, key: u16, row: &mut Row) {
        let key = &mut self.keys[key as usize];
        if key.row == self.rows {
            row.duplicate_key.get_or_insert_with(|| key.name.clone());
        }
        key.row = self.rows;
    }

    fn value(
        &mut self,
        key: u16,
        scanner: &mut Scanner<'_>,
        row: &mut Row,
        sink: &mut RowSink,
    ) -> Result<(), Bad> {
        let field = self.keys[key as usize].field;
        match field {
            Field::Unused => scanner.skip(),
            Field::Kind => {
                row.is_marked = true;
                scanner.skip()
            }
            Field::Media => {
                row.has_media |= is_something(scanner)?;
                Ok(())
            }
            Field::Raw { column, rank } => {
                let begin = scanner.at;
                let value = match scanner.kind()? {
                    Kind::Object | Kind::Array if !is_something(scanner)? => None,
                    Kind::Object | Kind::Array => {
                        let raw = scanner.bytes[begin..scanner.at].trim_ascii();
                        Some(std::borrow::Cow::Owned(String::from_utf8_lossy(raw).into_owned()))
                    }
                    _ => scalar(scanner)?,
                };
                row.set_group(column, rank, value.as_deref());
                Ok(())
            }
            Field::Scope => {
                row.local_scope = scalar(scanner)?.is_some_and(|text| text == "local");
                Ok(())
            }
            Field::Group { column, rank } => {
                let value = scalar(scanner)?;
                row.set_group(column, rank, value.as_deref());
                Ok(())
            }
            Field::Foreign => {
                let value = scalar(scanner)?;
                if value.as_deref().is_some_and(|text| !text.is_empty()) {
                    let key = &mut self.keys[key as usize];
                    key.field = sink.foreign_column(&key.name);
                    if let Field::Group { column, rank } = key.field {
                        row.set_group(column, rank, value.as_deref());
                    }
                }
                Ok(())
            }
            Field::Slot { slot: Slot::BlockTokens, .. } if scanner.kind()? == Kind::Array => {
                let begin = scanner.at;
                if !weights(scanner, row)? {
                    let text = &scanner.bytes[begin..scanner.at];
                    row.problems.push(Problem::new("bad_type", Slot::BlockTokens.name(), text));
                }
                Ok(())
            }
            Field::Slot { slot, rank, unit } => {
                if !row.begin_slot(&mut self.ranks, slot, rank) {
                    return scanner.skip();
                }
                let begin = scanner.at;
                if let Err(code) = slot_value(slot, unit, scanner, row)? {
                    let text = scanner.bytes[begin..scanner.at].trim_ascii();
                    row.problems.push(Problem::new(code, slot.name(), text));
                }
                Ok(())
            }
        }
    }
}

/// Takes the value of a slot; the inner result says why it is of no use.
fn slot_value(
    slot: Slot,
    unit: Option<crate::ingest::TimeUnit>,
    scanner: &mut Scanner<'_>,
    row: &mut Row,
) -> Result<Result<(), &'static str>, Bad> {
    match slot {
        Slot::Time => time(unit, scanner, row),
        Slot::InputTokens | Slot::OutputTokens | Slot::BlockTokens => {
            let value = match scanner.kind()? {
                Kind::Null => {
                    scanner.null()?;
                    row.set_tokens(slot, None);
                    return Ok(Ok(()));
                }
                Kind::Number => row::tokens(scanner.number()?),
                Kind::Text => number::from_text(&scanner.text()?).map_or(Err("bad_type"), row::tokens),
                _ => scanner.skip().map(|()| Err("bad_type"))?,
            };
            Ok(value.map(|tokens| row.set_tokens(slot, Some(tokens))))
        }
        Slot::HashIds | Slot::RunStart | Slot::RunLength | Slot::TokenIds | Slot::OutputIds => {
            path(slot, scanner, row)
        }
        Slot::Delay => delay(unit, scanner, row),
    }
}

/// Takes the tokens of every single block (kvcache-simulator's `block_tokens`, beside its `block_size`): together
/// they are the input. `false` when they are no tokens.
fn weights(scanner: &mut Scanner<'_>, row: &mut Row) -> Result<bool, Bad> {
    let mut list = IdList::default();
    let problem = ids::list(scanner, &mut list)?;
    let number = |id| if let Id::Number(tokens) = id { u32::try_from(tokens).ok() } else { None };
    let sum = list.iter().map(number).try_fold(0_u32, |sum, tokens| sum.checked_add(tokens?));
    row.listed_tokens = sum.filter(|&sum| sum != NO_LENGTH);
    Ok(problem.is_none() && row.listed_tokens.is_some())
}

fn time(
    unit: Option<crate::ingest::TimeUnit>,
    scanner: &mut Scanner<'_>,
    row: &mut Row,
) -> Result<Result<(), &'static str>, Bad> {
    row.time = None;
    let value = match scanner.kind()? {
        Kind::Null => return scanner.null().map(Ok),
        Kind::Number => row::time(scanner.number()?, unit),
        Kind::Text => time_text(&scanner.text()?, unit),
        _ => scanner.skip().map(|()| Err("bad_type"))?,
    };
    Ok(value.map(|time| row.time = Some(time)))
}

fn delay(
    unit: Option<crate::ingest::TimeUnit>,
    scanner: &mut Scanner<'_>,
    row: &mut Row,
) -> Result<Result<(), &'static str>, Bad> {
    row.delay_us = None;
    let value = match scanner.kind()? {
        Kind::Null => return scanner.null().map(Ok),
        Kind::Number => row::delay_us(scanner.number()?, unit),
        Kind::Text => {
            number::from_text(scanner.text()?.trim()).map_or(Err("bad_type"), |n| row::delay_us(n, unit))
        }
        _ => scanner.skip().map(|()| Err("bad_type"))?,
    };
    Ok(value.map(|delay_us| row.delay_us = Some(delay_us)))
}

/// Takes a value and says whether it holds anything: not null, false, 0, or empty.
fn is_something(scanner: &mut Scanner<'_>) -> Result<bool, Bad> {
    let kind = scanner.kind()?;
    let begin = scanner.at;
    scanner.skip()?;
    let raw = &scanner.bytes[begin..scanner.at];
    Ok(match kind {
        Kind::Null => false,
        Kind::Bool => raw == b"true",
        Kind::Number => raw.iter().any(|byte| matches!(byte, b'1'..=b'9')),
        Kind::Text => raw.len() > 2,
        Kind::Array | Kind::Object => raw[1..raw.len() - 1].iter().any(|byte| !byte.is_ascii_whitespace()),
    })
}

/// A time in a text: ISO 8601 or a number.
pub(crate) fn time_text(
    text: &str,
    unit: Option<crate::ingest::TimeUnit>,
) -> Result<TimeValue, &'static str> {
    let text = text.trim();
    match number::from_text(text) {
        Some(number) => row::time(number, unit),
        None => iso::parse(text).map(TimeValue::Instant).ok_or("bad_type"),
    }
}

fn path(slot: Slot, scanner: &mut Scanner<'_>, row: &mut Row) -> Result<Result<(), &'static str>, Bad> {
    let mut found = None;
    let kind = scanner.kind()?;
    row.set_listed(slot, true);
    let list = row.list(slot);
    list.clear();
    match kind {
        Kind::Array => found = ids::list(scanner, list)?,
        Kind::Text => {
            let text = scanner.text()?;
            if text.trim().is_empty() {
                row.set_listed(slot, false);
            } else {
                found = ids::in_text(&text, list).err();
            }
        }
        Kind::Null => {
            scanner.null()?;
            row.set_listed(slot, false);
        }
        _ => return scanner.skip().map(|()| Err("bad_type")),
    }
    if let Some(problem) = found {
        row.problems.push(problem.of(slot.name()));
    }
    Ok(Ok(()))
}

/// Takes a scalar as a text; `None` for null and for anything nested.
fn scalar<'a>(scanner: &mut Scanner<'a>) -> Result<Option<std::borrow::Cow<'a, str>>, Bad> {
    match scanner.kind()? {
        Kind::Text => scanner.text().map(Some),
        Kind::Null => scanner.null().map(|()| None),
        Kind::Object | Kind::Array => scanner.skip().map(|()| None),
        Kind::Number | Kind::Bool => {
            let begin = scanner.at;
            scanner.skip()?;
            Ok(std::str::from_utf8(&scanner.bytes[begin..scanner.at]).ok().map(std::borrow::Cow::Borrowed))
        }
    }
}
