//! What is found on the way, with the place where it is found first.

use crate::error::{Error, Result, TraceError};
use crate::trace::{CODES, CodeInfo, Quality, Severity};
use std::collections::BTreeMap;

/// A place in the input: number of the file and line (row of a table) from 1. Ordered as read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) file: u32,
    pub(crate) line: u64,
}

#[derive(Debug)]
struct Note {
    count: u64,
    place: Option<Place>,
    value: Option<String>,
    detail: Option<String>,
}

/// Findings of all files, and the files' names.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    pub(crate) files: Vec<String>,
    found: BTreeMap<usize, Note>,
    strict: bool,
    /// Under `strict`, the first row that would be rejected or repaired.
    stop: Option<(Option<Place>, TraceError)>,
}

/// A code by its name.
fn info(code: &str) -> (usize, &'static CodeInfo) {
    let at = CODES.iter().position(|c| c.code == code).unwrap_or_else(|| panic!("no quality code {code}"));
    (at, &CODES[at])
}

impl Notes {
    pub(crate) fn new(strict: bool) -> Self {
        Self { strict, ..Self::default() }
    }

    /// Notes `count` occurrences, the first of them at `place`.
    ///
    /// # Errors
    /// Under `strict`, when the code is one for which rows are rejected or repaired.
    pub(crate) fn note(
        &mut self,
        code: &str,
        count: u64,
        place: Option<Place>,
        value: Option<&str>,
    ) -> Result<()> {
        if count == 0 {
            return Ok(());
        }
        let (at, info) = info(code);
        if self.strict && (info.repair || info.severity == Severity::Error) {
            self.stop_at(code, place, value);
            return Err(self.error(code, place, value));
        }
        self.keep(at, count, place, value);
        Ok(())
    }

    /// As [`Self::note`], for what shows only when all rows are read: the caller goes on, since an earlier
    /// row may hold something as well, and asks [`Self::stopped`] at the end.
    pub(crate) fn defer(&mut self, code: &str, count: u64, place: Option<Place>, value: Option<&str>) {
        if self.note(code, count, place, value).is_err() {
            self.keep(info(code).0, count, place, value);
        }
    }

    fn stop_at(&mut self, code: &str, place: Option<Place>, value: Option<&str>) {
        // A finding without a line concerns the end of the input.
        let order = |place: Option<Place>| place.map_or((u32::MAX, u64::MAX), |p| (p.file, p.line));
        if self.stop.as_ref().is_none_or(|(known, _)| order(place) < order(*known))
            && let Error::Trace(error) = self.error(code, place, value)
        {
            self.stop = Some((place, *error));
        }
    }

    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.is_some()
    }

    /// Under `strict`, the error for the first row that would be rejected or repaired.
    pub(crate) fn stopped(&mut self) -> Result<()> {
        self.stop.take().map_or(Ok(()), |(_, error)| Err(Error::Trace(Box::new(error))))
    }

    /// Notes what is worth knowing and changed nothing, also under `strict`.
    pub(crate) fn mention(&mut self, code: &str, count: u64, place: Option<Place>, value: Option<&str>) {
        if count > 0 {
            self.keep(info(code).0, count, place, value);
        }
    }

    fn keep(&mut self, at: usize, count: u64, place: Option<Place>, value: Option<&str>) {
        let fresh = || Note { count: 0, place, value: value.map(str::to_owned), detail: None };
        let note = self.found.entry(at).or_insert_with(fresh);
        note.count += count;
        if let (Some(new), Some(old)) = (place, note.place)
            && new < old
        {
            (note.place, note.value) = (place, value.map(str::to_owned));
        }
    }

    /// More to say about a code that was noted.
    pub(crate) fn detail(&mut self, code: &str, detail: impl Into<String>) {
        if let Some(note) = self.found.get_mut(&info(code).0) {
            note.detail = Some(detail.into());
        }
    }

    /// Still more to say about a code that was noted.
    pub(crate) fn also(&mut self, code: &str, more: &str) {
        if let Some(note) = self.found.get_mut(&info(code).0) {
            note.detail = Some(match note.detail.take() {
                Some(detail) => format!("{detail}; {more}"),
                None => more.to_owned(),
            });
        }
    }

    pub(crate) fn has(&self, code: &str) -> bool {
        self.found.contains_key(&info(code).0)
    }

    /// The error that stands for one occurrence of a code.
    pub(crate) fn error(&self, code: &str, place: Option<Place>, value: Option<&str>) -> Error {
        let (_, info) = info(code);
        let message = match value {
            Some(value) => format!("{} ({value})", info.message),
            None => info.message.to_owned(),
        };
        self.at(Error::trace(info.code, message, info.hint), place)
    }

    /// An error with the file and line of a place.
    pub(crate) fn at(&self, error: Error, place: Option<Place>) -> Error {
        let file = match place {
            Some(place) => self.files.get(place.file as usize),
            None => self.files.first().filter(|_| self.files.len() == 1),
        };
        error.at(file.map_or("", String::as_str), place.map(|place| place.line))
    }

    /// The first rejected row, to explain why none is left.
    pub(crate) fn first_error(&self) -> Option<(Place, String)> {
        let errors = self.found.iter().filter(|(at, _)| CODES[**at].severity == Severity::Error);
        let first = errors.filter_map(|(at, note)| Some((note.place?, at, note))).min_by_key(|n| n.0)?;
        let value = first.2.value.as_deref().map_or_else(String::new, |value| format!(" ({value})"));
        Some((first.0, format!("{}{value}", CODES[*first.1].message)))
    }

    /// The findings of a finished trace.
    pub(crate) fn finish(self) -> Quality {
        let mut quality = Quality::default();
        for (at, note) in self.found {
            let code = CODES[at].code;
            quality.note_many(code, note.count, note.place.map(|p| p.line), note.value.as_deref());
            let file = note.place.filter(|_| self.files.len() > 1).map(|p| &self.files[p.file as usize]);
            let detail = match (note.detail, file) {
                (Some(detail), Some(file)) => Some(format!("{detail}; first in {file}")),
                (None, Some(file)) => Some(format!("first in {file}")),
                (detail, None) => detail,
            };
            if let Some(detail) = detail {
                quality.detail(code, detail);
            }
        }
        quality
    }
}

/// The place of every row, as runs: rows mostly follow each other line by line.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// First row of the run, and its place.
    runs: Vec<(u32, Place)>,
    rows: u32,
}

impl Places {
    pub(crate) fn push(&mut self, place: Place) {
        let goes_on = self.runs.last().is_some_and(|&(row, first)| {
            first.file == place.file && first.line + u64::from(self.rows - row) == place.line
        });
        if !goes_on {
            self.runs.push((self.rows, place));
        }
        self.rows += 1;
    }

    pub(crate) fn get(&self, row: u32) -> Place {
        let at = self.runs.partition_point(|&(first, _)| first <= row) - 1;
        let (first, place) = self.runs[at];
        Place { file: place.file, line: place.line + u64::from(row - first) }
    }

    /// The place of the first row.
    pub(crate) fn first(&self) -> Option<Place> {
        self.runs.first().map(|run| run.1)
    }

    /// The rows `keep` (ascending) alone.
    pub(crate) fn pick(&self, keep: &[u32]) -> Self {
        let mut out = Self::default();
        for &row in keep {
            out.push(self.get(row));
        }
        out
    }
}
