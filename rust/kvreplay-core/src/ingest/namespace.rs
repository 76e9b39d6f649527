//! Which requests may share blocks: small numbers for combinations of column values, block size and scope.

use crate::trace::NO_CODE;
use std::collections::BTreeMap;

/// What makes a row's ids local.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum ScopeKey {
    /// They are not.
    #[default]
    Global,
    /// Only inside the row's value of a column (number of the column, code of the value).
    Column(u16, u32),
    /// Only inside the file.
    File(u32),
}

/// The parts of a namespace.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) struct Key {
    /// Code per namespace column.
    pub(crate) codes: Vec<u32>,
    /// Block size as the row states it, 0 where it does not.
    pub(crate) block_tokens: u32,
    pub(crate) scope: ScopeKey,
}

/// Namespaces in order of first appearance.
#[derive(Debug, Default)]
pub(crate) struct Namespaces {
    numbers: BTreeMap<Key, u32>,
    last: Option<(Key, u32)>,
    /// Codes of the first row, to say which rows differ from it.
    first: Vec<u32>,
}

impl Namespaces {
    /// The number of a namespace, new or known.
    pub(crate) fn number(&mut self, key: &Key) -> u32 {
        if let Some((last, number)) = &self.last
            && last == key
        {
            return *number;
        }
        let fresh = self.numbers.len() as u32;
        if fresh == 0 {
            self.first.clone_from(&key.codes);
        }
        let known = self.numbers.get(key).copied();
        let number = known.unwrap_or(fresh);
        if known.is_none() {
            self.numbers.insert(key.clone(), fresh);
        }
        self.last = Some((key.clone(), number));
        number
    }

    /// How many there are.
    pub(crate) fn len(&self) -> u32 {
        self.numbers.len() as u32
    }

    /// The first column (by position) in which `codes` differ from the first row's.
    pub(crate) fn differs(&self, codes: &[u32]) -> Option<usize> {
        if self.numbers.len() < 2 {
            return None;
        }
        (0..codes.len()).find(|&at| codes[at] != self.first.get(at).copied().unwrap_or(NO_CODE))
    }

    /// Which columns take more than one value.
    pub(crate) fn varying_columns(&self) -> Vec<usize> {
        let count = self.numbers.keys().map(|key| key.codes.len()).max().unwrap_or(0);
        let code = |key: &Key, at: usize| key.codes.get(at).copied().unwrap_or(NO_CODE);
        let varies = |at: &usize| {
            let mut codes = self.numbers.keys().map(|key| code(key, *at));
            codes.next().is_some_and(|first| codes.any(|other| other != first))
        };
        (0..count).filter(varies).collect()
    }

    /// Whether block sizes, and whether scopes, tell namespaces apart.
    pub(crate) fn varying_others(&self) -> (bool, bool) {
        let Some(first) = self.numbers.keys().next() else { return (false, false) };
        (
            self.numbers.keys().any(|key| key.block_tokens != first.block_tokens),
            self.numbers.keys().any(|key| key.scope != first.scope),
        )
    }
}
