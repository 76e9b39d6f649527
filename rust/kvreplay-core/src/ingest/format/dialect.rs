//! Rows of `mooncake`'s fields that mean more than their names say, one a line or in an array.

use super::head::Head;
use crate::ingest::options::TimeUnit;
use crate::ingest::row::{Row, TimeValue};
use crate::ingest::rows::RowSink;

/// What is known about the rows of a format once a file is known to be of it.
pub(super) struct Dialect {
    /// Whether a first row of these keys is of it.
    pub(super) is: fn(&Head) -> bool,
    /// Tells the sink what holds for the whole file.
    pub(super) begin: fn(&mut RowSink),
    /// Settles what a row leaves open.
    pub(super) settle: fn(&mut Row),
}

/// All dialects; files are of the first that fits.
const DIALECTS: &[&Dialect] = &[&super::lmcache_lookup_log::DIALECT, &super::bailian::DIALECT];

/// The dialect of a file by its first row.
pub(super) fn of(first_row: &[u8]) -> Option<&'static Dialect> {
    let head = Head::of(first_row);
    DIALECTS.iter().find(|dialect| (dialect.is)(&head)).copied()
}

/// Takes seconds as the unit of a row's time where the row's own names say nothing. A number that would be a date
/// beyond the year 5000 is left to be inferred.
pub(super) fn seconds(row: &mut Row) {
    if let Some(TimeValue::Number { whole, unit: unit @ None, .. }) = &mut row.time
        && whole.unsigned_abs() < 100_000_000_000
    {
        *unit = Some(TimeUnit::Seconds);
    }
}
