//! Lists of block ids: the hot path of reading a trace.

use super::{Bad, Kind, Scanner, digits};
use crate::ingest::id_list::IdList;
use crate::ingest::row::Problem;
use crate::trace::IdRun;

/// Takes a list of ids into `out`; `Err(Ok(problem))` names an element that is no id.
///
/// The list is always scanned to its end, so that a broken line is told from a bad value.
pub(crate) fn list(scanner: &mut Scanner<'_>, out: &mut IdList) -> Result<Option<Problem>, Bad> {
    scanner.expect(b'[')?;
    if scanner.take(b']') {
        return Ok(None);
    }
    let mut problem = None;
    loop {
        if run(scanner, out) {
            return Ok(problem);
        }
        if let Some(found) = element(scanner, out)? {
            problem.get_or_insert(found);
        }
        if scanner.take(b',') {
            continue;
        }
        scanner.expect(b']')?;
        return Ok(problem);
    }
}

/// Takes unsigned integers separated by a comma and at most one blank; `true` once the list is closed.
///
/// Stops before the first element it does not understand.
#[inline]
fn run(scanner: &mut Scanner<'_>, out: &mut IdList) -> bool {
    let bytes = scanner.bytes;
    let end = scanner.end;
    let Some(out) = out.runs_mut() else { return false };
    let mut at = scanner.at;
    at += usize::from(bytes.get(at) == Some(&b' '));
    while let Some((id, after)) = digits::unsigned(bytes, at) {
        // `after < end` also keeps digits behind the end of the text out.
        if after >= end {
            break;
        }
        match bytes[after] {
            b',' => {
                let blank = usize::from(bytes.get(after + 1) == Some(&b' '));
                let (more, behind) = digits::counting(bytes, end, at, (after - at, blank));
                append(out, id, 1 + more);
                at = behind;
                scanner.at = at;
            }
            b']' => {
                append(out, id, 1);
                scanner.at = after + 1;
                return true;
            }
            _ => break,
        }
    }
    false
}

/// Adds ids that count up from `id`.
fn append(runs: &mut Vec<IdRun>, id: u64, count: u32) {
    match runs.last_mut() {
        Some(run) if run.first.checked_add(u64::from(run.count)) == Some(id) => run.count += count,
        _ => runs.push(IdRun { first: id, count }),
    }
}

/// Takes one element of any kind.
fn element(scanner: &mut Scanner<'_>, out: &mut IdList) -> Result<Option<Problem>, Bad> {
    let kind = scanner.kind()?;
    let begin = scanner.at;
    let problem = match kind {
        Kind::Number => {
            let number = scanner.number()?;
            out.push_number(number).err()
        }
        Kind::Text => {
            out.push_text(&scanner.text()?);
            None
        }
        Kind::Object | Kind::Array | Kind::Bool | Kind::Null => {
            scanner.skip()?;
            Some("bad_type")
        }
    };
    Ok(problem.map(|code| Problem::new(code, "hash_ids", &scanner.bytes[begin..scanner.at])))
}

/// A list inside a text: `[1, 2]`, `1,2` or `1 2`. `Err` when it looks like a list and is none.
pub(crate) fn in_text(text: &str, out: &mut IdList) -> Result<(), Problem> {
    let text = text.trim();
    if !text.starts_with('[') {
        for id in text.split(|c: char| c == ',' || c == ';' || c.is_whitespace()).filter(|id| !id.is_empty())
        {
            match super::number::from_text(id).filter(|_| !id.starts_with(|c: char| c.is_ascii_alphabetic()))
            {
                Some(number @ super::Number::Decimal(_)) => {
                    out.push_number(number).map_err(|code| Problem::new(code, "hash_ids", id.as_bytes()))?;
                }
                _ => out.push_text(id),
            }
        }
        return Ok(());
    }
    let mut scanner = Scanner::new(text.as_bytes(), text.len());
    let found = list(&mut scanner, out).and_then(|problem| scanner.finish().map(|()| problem));
    match found {
        Ok(None) => Ok(()),
        Ok(Some(problem)) => Err(problem),
        Err(_) => Err(Problem::new("bad_type", "hash_ids", text.as_bytes())),
    }
}
