//! Columns on their way out: what the engines return and the binding turns into Arrow.

/// A column of values.
#[derive(Debug, Clone, PartialEq)]
pub enum Values {
    /// Integers.
    Int(Vec<i64>),
    /// Integers, some absent.
    MaybeInt(Vec<Option<i64>>),
    /// 64-bit ids.
    Id(Vec<u64>),
    /// Ratios, some absent.
    Float(Vec<Option<f64>>),
    /// Texts, some absent.
    Text(Vec<Option<String>>),
    /// Texts by code (`u32::MAX` = absent), for columns with few different values.
    Coded(Vec<u32>, Vec<String>),
}

impl Values {
    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Self::Int(v) => v.len(),
            Self::MaybeInt(v) => v.len(),
            Self::Id(v) => v.len(),
            Self::Float(v) => v.len(),
            Self::Text(v) => v.len(),
            Self::Coded(v, _) => v.len(),
        }
    }

    /// Whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Named columns of equal length.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Table {
    /// Name and values of each column, in order.
    pub columns: Vec<(String, Values)>,
}

impl Table {
    /// An empty table.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a column.
    #[must_use]
    pub fn with(mut self, name: &str, values: Values) -> Self {
        debug_assert!(self.columns.first().is_none_or(|(_, first)| first.len() == values.len()));
        self.columns.push((name.to_owned(), values));
        self
    }

    /// A column by name.
    #[must_use]
    pub fn column(&self, name: &str) -> Option<&Values> {
        self.columns.iter().find(|(n, _)| n == name).map(|(_, values)| values)
    }
}
