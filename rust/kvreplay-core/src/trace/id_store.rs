//! Ids while a forest is built: as runs where they count up, one by one where they do not.

use super::ids::{Bits, IdRuns, IdTable, Texts, pays};

/// Ids that count up by one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IdRun {
    /// The first id.
    pub first: u64,
    /// How many, at least 1; the last one is `first + count - 1`, which does not overflow.
    pub count: u32,
}

impl IdRun {
    /// Appends an id, to the last run where it goes on from there.
    pub fn append(runs: &mut Vec<Self>, id: u64) {
        match runs.last_mut() {
            Some(run) if run.first.checked_add(u64::from(run.count)) == Some(id) && run.count < u32::MAX => {
                run.count += 1;
            }
            _ => runs.push(Self { first: id, count: 1 }),
        }
    }

    /// The ids.
    pub fn ids(self) -> impl Iterator<Item = u64> {
        (0..u64::from(self.count)).map(move |i| self.first + i)
    }
}

/// Fewer runs than this are kept whatever the rest looks like.
const MIN_RUNS: usize = 1 << 12;

/// The id of every block so far.
#[derive(Debug)]
pub(super) enum IdStore {
    Runs { runs: IdRuns, blocks: u32 },
    Flat(Vec<u64>),
}

impl Default for IdStore {
    fn default() -> Self {
        Self::Runs { runs: IdRuns::default(), blocks: 0 }
    }
}

impl IdStore {
    /// Number of blocks.
    pub(super) fn blocks(&self) -> usize {
        match self {
            Self::Runs { blocks, .. } => *blocks as usize,
            Self::Flat(ids) => ids.len(),
        }
    }

    /// Adds the ids of new blocks, which the caller has checked to be few enough for `u32`.
    pub(super) fn extend(&mut self, more: impl Iterator<Item = IdRun>) {
        match self {
            Self::Runs { runs, blocks } => {
                for run in more {
                    let last = runs.block.last().zip(runs.id.last());
                    let goes_on = last.is_some_and(|(&block, &id)| {
                        id.checked_add(u64::from(*blocks - block)) == Some(run.first)
                    });
                    if !goes_on {
                        runs.block.push(*blocks);
                        runs.id.push(run.first);
                    }
                    *blocks += run.count;
                }
                if runs.block.len() > MIN_RUNS && !pays(runs.block.len(), *blocks as usize) {
                    self.flatten();
                }
            }
            Self::Flat(ids) => more.for_each(|run| ids.extend(run.ids())),
        }
    }

    /// One id per block from now on.
    pub(super) fn flatten(&mut self) -> &mut Vec<u64> {
        if let Self::Runs { runs, blocks } = self {
            *self = Self::Flat(runs.to_flat(*blocks));
        }
        match self {
            Self::Flat(ids) => ids,
            Self::Runs { .. } => unreachable!("was made flat above"),
        }
    }

    /// The ids as runs over the blocks, while they are kept like that.
    pub(super) fn runs(&self) -> Option<&IdRuns> {
        match self {
            Self::Runs { runs, .. } => Some(runs),
            Self::Flat(_) => None,
        }
    }

    /// The finished table.
    pub(super) fn finish(self, text: Bits, texts: Texts) -> IdTable {
        match self {
            Self::Runs { runs, blocks } => IdTable::from_runs(runs, blocks, text, texts),
            Self::Flat(ids) => IdTable::new(ids, text, texts),
        }
    }
}

/// A place in a list of runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'a> {
    runs: &'a [IdRun],
    /// How many ids of the first run are taken.
    used: u32,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(runs: &'a [IdRun]) -> Self {
        Self { runs, used: 0 }
    }

    /// The rest of the current run; `None` at the end.
    pub(super) fn peek(&self) -> Option<IdRun> {
        let run = self.runs.first()?;
        Some(IdRun { first: run.first + u64::from(self.used), count: run.count - self.used })
    }

    /// Takes `count` ids of the current run, at most all that are left of it.
    pub(super) fn take(&mut self, count: u32) {
        self.used += count;
        if self.runs.first().is_some_and(|run| run.count == self.used) {
            self.runs = &self.runs[1..];
            self.used = 0;
        }
    }

    /// The runs that are left.
    pub(super) fn rest(self) -> impl Iterator<Item = IdRun> + 'a {
        self.peek().into_iter().chain(self.runs.iter().skip(1).copied())
    }
}
