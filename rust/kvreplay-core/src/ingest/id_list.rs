//! The ids of one row while it is read.

use super::json::{Number, number};
use crate::trace::{Id, IdRun};

/// Ids of a path: numbers, or numbers of the texts kept beside them.
///
/// Readers of the usual case, plain numbers, put down runs; whatever else comes turns them into single ids.
#[derive(Debug, Default)]
pub(crate) struct IdList {
    /// What was put down as runs; empty once there are `numbers`.
    runs: Vec<IdRun>,
    numbers: Vec<u64>,
    /// Per id whether it is a text; empty while all are numbers.
    is_text: Vec<bool>,
    texts: String,
    ends: Vec<usize>,
}

impl IdList {
    pub(crate) fn clear(&mut self) {
        self.runs.clear();
        self.numbers.clear();
        self.is_text.clear();
        self.texts.clear();
        self.ends.clear();
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.numbers.is_empty()
    }

    pub(crate) fn all_numbers(&self) -> bool {
        self.is_text.is_empty()
    }

    /// All ids as runs, while nothing has made them single ids.
    pub(crate) fn runs(&self) -> Option<&[IdRun]> {
        self.numbers.is_empty().then_some(&self.runs)
    }

    /// Where runs can be put down.
    pub(crate) fn runs_mut(&mut self) -> Option<&mut Vec<IdRun>> {
        self.numbers.is_empty().then_some(&mut self.runs)
    }

    /// All ids one by one: numbers, and numbers of texts where [`Self::is_text`] says so.
    pub(crate) fn numbers(&mut self) -> &mut Vec<u64> {
        for run in self.runs.drain(..) {
            self.numbers.extend(run.ids());
        }
        &mut self.numbers
    }

    /// Whether an id is a text.
    pub(crate) fn is_text(&self, at: usize) -> bool {
        self.is_text.get(at).copied().unwrap_or(false)
    }

    /// All ids one by one with their kinds, to give the texts other numbers.
    pub(crate) fn mixed(&mut self, mut renumber: impl FnMut(&str) -> u64) -> (&[u64], &[bool]) {
        self.numbers();
        for at in 0..self.numbers.len() {
            if self.is_text(at) {
                self.numbers[at] = renumber(self.text(self.numbers[at]));
            }
        }
        (&self.numbers, &self.is_text)
    }

    pub(crate) fn push(&mut self, id: u64) {
        self.numbers().push(id);
        if !self.is_text.is_empty() {
            self.is_text.push(false);
        }
    }

    /// Adds a run of numbers.
    pub(crate) fn push_run(&mut self, run: IdRun) {
        match self.runs_mut() {
            Some(runs) => runs.push(run),
            None => run.ids().for_each(|id| self.push(id)),
        }
    }

    /// A number of the file as an id, or the code that says why it is none.
    pub(crate) fn push_number(&mut self, number: Number) -> Result<(), &'static str> {
        let id = match number {
            Number::Unsigned(id) => id,
            Number::Negative(magnitude) if magnitude <= 1 << 63 => magnitude.wrapping_neg(),
            Number::Negative(_) | Number::Large => return Err("id_out_of_range"),
            Number::NotFinite => return Err("not_finite"),
            Number::Decimal(decimal) => match decimal.whole {
                // From 2^53 on a float stands for several integers.
                Some(whole) if whole < 1 << 53 && !decimal.fraction => {
                    if decimal.negative {
                        whole.wrapping_neg()
                    } else {
                        whole
                    }
                }
                Some(whole) if whole < 1 << 53 => return Err("id_not_integer"),
                _ => return Err("ids_look_rounded"),
            },
        };
        self.push(id);
        Ok(())
    }

    /// A text as an id: the way an integer is written stands for that integer, anything else for itself.
    pub(crate) fn push_text(&mut self, text: &str) {
        if let Some(Number::Unsigned(id)) = number::from_text(text) {
            return self.push(id);
        }
        if let Some(Number::Negative(magnitude @ 1..=0x8000_0000_0000_0000)) = number::from_text(text) {
            return self.push(magnitude.wrapping_neg());
        }
        self.push_raw_text(text);
    }

    /// A text as an id that stands for itself, however it is written.
    fn push_raw_text(&mut self, text: &str) {
        let before = self.numbers().len();
        self.is_text.resize(before, false);
        self.is_text.push(true);
        self.numbers.push(self.ends.len() as u64);
        self.texts.push_str(text);
        self.ends.push(self.texts.len());
    }

    /// Renames the ids from position `from` on. Those for which `rename` has no number, and all texts, become texts
    /// behind `prefix`.
    pub(crate) fn rename_from(&mut self, from: usize, rename: impl Fn(u64) -> Option<u64>, prefix: &str) {
        let mut out = Self::default();
        self.numbers();
        for (at, &id) in self.numbers.iter().enumerate() {
            match (at < from, self.is_text(at)) {
                (true, false) => out.push(id),
                (true, true) => out.push_raw_text(self.text(id)),
                (false, true) => out.push_raw_text(&format!("{prefix}/{}", self.text(id))),
                (false, false) => match rename(id) {
                    Some(id) => out.push(id),
                    None => out.push_raw_text(&format!("{prefix}/{id}")),
                },
            }
        }
        *self = out;
    }

    /// The ids.
    pub(crate) fn iter(&self) -> impl Iterator<Item = Id<'_>> {
        let runs = self.runs.iter().flat_map(|run| run.ids()).map(Id::Number);
        let single = self.numbers.iter().enumerate().map(|(at, &number)| {
            if self.is_text(at) { Id::Text(self.text(number)) } else { Id::Number(number) }
        });
        runs.chain(single)
    }

    /// The text that number `n` stands for.
    fn text(&self, n: u64) -> &str {
        let n = n as usize;
        let begin = if n == 0 { 0 } else { self.ends[n - 1] };
        &self.texts[begin..self.ends[n]]
    }
}
