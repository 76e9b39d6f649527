//! Group columns (session, tenant, model, ...): texts by code.

use super::ids::Texts;

/// No value in a row of a [`Column`].
pub const NO_CODE: u32 = u32::MAX;

/// A column of texts, one code per request; equal texts have equal codes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Column {
    /// Our name for it: `session`, `tenant`, `model`, `lora`, `salt`, `request_id`, ... or the file's own.
    pub name: String,
    /// Code per request, [`NO_CODE`] where the row has no value.
    pub codes: Vec<u32>,
    /// The texts by code, in order of first appearance.
    pub texts: Texts,
}

impl Column {
    /// An empty column that lacks a value in the first `rows` rows.
    #[must_use]
    pub fn new(name: &str, rows: usize) -> Self {
        Self { name: name.to_owned(), codes: vec![NO_CODE; rows], texts: Texts::default() }
    }

    /// Adds a row.
    pub fn push(&mut self, value: Option<&str>) {
        let code = value.map_or(NO_CODE, |text| self.texts.number(text));
        self.codes.push(code);
    }

    /// The value of a row.
    #[must_use]
    pub fn get(&self, row: usize) -> Option<&str> {
        let code = self.codes[row];
        (code != NO_CODE).then(|| self.texts.get(code))
    }

    /// The rows `keep` of the column, in that order, with codes by first appearance among them.
    #[must_use]
    pub fn pick(&self, keep: &[u32]) -> Self {
        let mut out = Self::new(&self.name, 0);
        let mut known = vec![NO_CODE; self.texts.len()];
        for &row in keep {
            let code = self.codes[row as usize];
            if code == NO_CODE {
                out.codes.push(NO_CODE);
                continue;
            }
            let known = &mut known[code as usize];
            if *known == NO_CODE {
                *known = out.texts.number(self.texts.get(code));
            }
            out.codes.push(*known);
        }
        out
    }
}
