//! Times as written, and the unit they are in.

use super::links::{self, Link};
use super::notes::{Notes, Places};
use super::options::TimeUnit;
use super::row::TimeValue;
use crate::error::{Error, Result};

const MISSING: i64 = i64::MIN;
/// No time of its own, but one that follows from other rows.
const LINKED: i64 = i64::MIN + 1;
/// 2000-01-01 and 2100-01-01 in seconds since 1970: what lies between is read as an epoch time.
const EPOCH_S: (i64, i64) = (946_684_800, 4_102_444_800);
const YEAR_MS: i64 = 31_557_600_000;

/// The times of all rows in file order.
#[derive(Debug, Default)]
pub(crate) struct Times {
    whole: Vec<i64>,
    /// Billionths; empty while there are none.
    nanos: Vec<u32>,
    /// First row with a number, an ISO instant, and a number under a name that states each unit.
    first_number: Option<u32>,
    first_instant: Option<u32>,
    named: [Option<u32>; 4],
    unnamed: Option<u32>,
    /// Arrivals that depend on other rows, by row.
    links: Vec<Link>,
}

const UNITS: [TimeUnit; 4] = [TimeUnit::Seconds, TimeUnit::Millis, TimeUnit::Micros, TimeUnit::Nanos];

impl Times {
    pub(crate) fn push(&mut self, time: Option<TimeValue>) {
        let row = self.whole.len() as u32;
        let mut billionths = 0;
        self.whole.push(match time {
            None => MISSING,
            Some(TimeValue::Instant(us)) => {
                self.first_instant.get_or_insert(row);
                us
            }
            Some(TimeValue::Number { whole, nanos, unit }) => {
                self.first_number.get_or_insert(row);
                match unit.and_then(|unit| UNITS.iter().position(|&u| u == unit)) {
                    Some(at) => self.named[at].get_or_insert(row),
                    None => self.unnamed.get_or_insert(row),
                };
                billionths = nanos;
                whole
            }
        });
        if billionths > 0 {
            self.nanos.resize(row as usize, 0);
            self.nanos.push(billionths);
        }
    }

    /// Whether any row has a time.
    pub(crate) fn any(&self) -> bool {
        self.first_number.is_some() || self.first_instant.is_some() || !self.links.is_empty()
    }

    /// Whether nothing says when a row arrives.
    pub(crate) fn missing(&self, row: u32) -> bool {
        self.whole[row as usize] == MISSING
    }

    /// Adds what is known about arrivals relative to other rows, in order of rows.
    pub(crate) fn link(&mut self, links: Vec<Link>) {
        for link in &links {
            let whole = &mut self.whole[link.row as usize];
            if *whole == MISSING {
                *whole = LINKED;
            }
        }
        self.links = links;
    }

    /// Whether a row comes before another by its own time; rows without one come last.
    pub(crate) fn earlier(&self, a: u32, b: u32) -> bool {
        let key = |row: u32| {
            let whole = self.whole[row as usize];
            (whole <= LINKED, whole, self.nanos.get(row as usize).copied().unwrap_or(0))
        };
        key(a) < key(b)
    }

    /// Keeps the rows `keep` (ascending) alone.
    pub(crate) fn keep(&mut self, keep: &[u32]) {
        let mut out = Self::default();
        for &row in keep {
            let row = row as usize;
            out.whole.push(self.whole[row]);
            out.nanos.push(self.nanos.get(row).copied().unwrap_or(0));
        }
        if self.nanos.is_empty() {
            out.nanos.clear();
        }
        // Kept rows are like dropped ones, if a row of these lists goes at all, so only the numbers shift.
        let last = keep.len().saturating_sub(1);
        let moved =
            |row: Option<u32>| row.map(|row| keep.partition_point(|&kept| kept < row).min(last) as u32);
        out.first_number = moved(self.first_number);
        out.first_instant = moved(self.first_instant);
        out.unnamed = moved(self.unnamed);
        out.named = self.named.map(moved);
        let now = |row: u32| keep.binary_search(&row).ok().map(|row| row as u32);
        let link = |link: &Link| {
            let base = match link.base {
                Some(base) => Some(now(base)?),
                None => None,
            };
            Some(Link { row: now(link.row)?, base, delay_us: link.delay_us })
        };
        out.links = self.links.iter().filter_map(link).collect();
        *self = out;
    }

    /// The times of all rows, which all have one, in microseconds.
    ///
    /// # Errors
    /// `mixed_time_units`; `bad_type` for a time beyond the years an `i64` of microseconds holds.
    pub(crate) fn micros(
        &self,
        given: Option<TimeUnit>,
        places: &Places,
        notes: &mut Notes,
    ) -> Result<Vec<i64>> {
        let unit = match given {
            _ if self.first_number.is_none() && self.first_instant.is_none() => TimeUnit::Micros,
            Some(unit) => self.given(unit, places, notes)?,
            None => self.infer(places, notes)?,
        };
        let mut out = Vec::with_capacity(self.whole.len());
        if !self.links.is_empty() {
            let linked = |row: u32| self.whole[row as usize] <= LINKED;
            let own = |row| if linked(row) { Ok(None) } else { self.one(row, unit, places, notes).map(Some) };
            let own = (0..self.whole.len() as u32).map(own).collect::<Result<Vec<_>>>()?;
            return Ok(links::resolve(&own, &self.links, places, notes));
        }
        for row in 0..self.whole.len() as u32 {
            out.push(self.one(row, unit, places, notes)?);
        }
        Ok(out)
    }

    fn one(&self, row: u32, unit: TimeUnit, places: &Places, notes: &Notes) -> Result<i64> {
        let whole = self.whole[row as usize];
        to_micros(whole, self.nanos.get(row as usize).copied().unwrap_or(0), unit)
            .ok_or_else(|| notes.error("bad_type", Some(places.get(row)), Some(&format!("time: {whole}"))))
    }

    /// A unit the caller states: numbers and texts must not be mixed even then.
    fn given(&self, unit: TimeUnit, places: &Places, notes: &Notes) -> Result<TimeUnit> {
        match (self.first_number, self.first_instant) {
            (Some(_), None) if unit == TimeUnit::Iso => {
                Err(mixed(notes, places, self.first_number, "a number where time_unit is iso"))
            }
            (None, Some(_)) => Ok(TimeUnit::Iso), // an ISO text or an Arrow timestamp says its own unit
            (Some(number), Some(instant)) => {
                Err(mixed(notes, places, Some(number.max(instant)), "numbers and ISO texts"))
            }
            _ => Ok(unit),
        }
    }

    fn infer(&self, places: &Places, notes: &mut Notes) -> Result<TimeUnit> {
        if let (Some(number), Some(instant)) = (self.first_number, self.first_instant) {
            return Err(mixed(notes, places, Some(number.max(instant)), "numbers and ISO texts"));
        }
        if self.first_instant.is_some() {
            return Ok(TimeUnit::Iso);
        }
        let mut firsts: Vec<(u32, usize)> = (0..4)
            .filter_map(|at| Some((self.named[at]?, at)))
            .chain(self.unnamed.map(|row| (row, 4)))
            .collect();
        firsts.sort_unstable();
        if let Some(&(row, _)) = firsts.get(1) {
            return Err(mixed(notes, places, Some(row), "fields whose names state different units"));
        }
        if let Some(&(_, at)) = firsts.first().filter(|first| first.1 < 4) {
            return Ok(UNITS[at]);
        }
        let (unit, why) = self.by_magnitude(places, notes)?;
        let first = self.unnamed.unwrap_or(0);
        let value = self.whole[first as usize].to_string();
        notes.mention("time_unit_inferred", 1, Some(places.get(first)), Some(&value));
        notes.detail("time_unit_inferred", format!("{} ({why})", unit.name()));
        Ok(unit)
    }

    /// The unit by the size of the numbers.
    fn by_magnitude(&self, places: &Places, notes: &Notes) -> Result<(TimeUnit, &'static str)> {
        let mut bands = Bands::default();
        for (row, &whole) in self.whole.iter().enumerate().filter(|(_, whole)| **whole > LINKED) {
            bands.add(row as u32, whole);
        }
        if let Some(row) = bands.stray() {
            return Err(mixed(notes, places, Some(row), "numbers of very different sizes"));
        }
        if let Some(unit) = bands.epoch() {
            return Ok((unit, "the numbers are times since 1970"));
        }
        let fraction = self.nanos.iter().any(|&nanos| nanos > 0);
        let span = bands.max.saturating_sub(bands.min.min(0));
        if fraction && span < YEAR_MS / 1_000 {
            return Ok((TimeUnit::Seconds, "the numbers have fractions"));
        }
        // A trace of more than a year is unlikely: then the ticks are finer.
        Ok(match span {
            ..YEAR_MS => (TimeUnit::Millis, "relative times are milliseconds unless something else shows"),
            YEAR_MS..=31_557_600_000_000 => {
                (TimeUnit::Micros, "as milliseconds they would span more than a year")
            }
            _ => (TimeUnit::Nanos, "as microseconds they would span more than a year"),
        })
    }
}

/// A number of a unit, with billionths, in microseconds.
pub(crate) fn to_micros(whole: i64, nanos: u32, unit: TimeUnit) -> Option<i64> {
    let nanos = i64::from(nanos);
    // Halves round up, so that 0.1 ms written as 0.0001 s and the like come out even.
    match unit {
        TimeUnit::Iso => Some(whole),
        TimeUnit::Seconds => whole.checked_mul(1_000_000)?.checked_add((nanos + 500) / 1_000),
        TimeUnit::Millis => whole.checked_mul(1_000)?.checked_add((nanos + 500_000) / 1_000_000),
        TimeUnit::Micros => whole.checked_add((nanos + 500_000_000) / 1_000_000_000),
        TimeUnit::Nanos => Some(whole.div_euclid(1_000) + i64::from(whole.rem_euclid(1_000) >= 500)),
    }
}

fn mixed(notes: &Notes, places: &Places, row: Option<u32>, what: &str) -> Error {
    notes.error("mixed_time_units", row.map(|row| places.get(row)), Some(what))
}

/// Numbers by size: two bands below the epoch, then epoch bands for s, ms, us, ns with gaps between them.
#[derive(Debug)]
struct Bands {
    first: [Option<u32>; 10],
    min: i64,
    max: i64,
}

impl Default for Bands {
    fn default() -> Self {
        Self { first: [None; 10], min: i64::MAX, max: i64::MIN }
    }
}

impl Bands {
    fn add(&mut self, row: u32, value: i64) {
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        let mut band = usize::from(value >= 100_000_000);
        for k in 0..4 {
            let scale = 1_000_i64.pow(k);
            let (from, to) = (EPOCH_S.0.saturating_mul(scale), EPOCH_S.1.saturating_mul(scale));
            band += usize::from(value >= from) + usize::from(value >= to && k < 3);
        }
        self.first[band].get_or_insert(row);
    }

    /// The unit when all numbers are epoch times of one unit: bands 2, 4, 6 and 8.
    fn epoch(&self) -> Option<TimeUnit> {
        let mut used = (0..10).filter(|&band| self.first[band].is_some());
        let band = used.next()?;
        (used.next().is_none() && band >= 2 && band % 2 == 0).then(|| UNITS[band / 2 - 1])
    }

    /// The first row that is far from the rest: an epoch band in use, nothing just below it, and rows further down.
    fn stray(&self) -> Option<u32> {
        let far = (1..5).map(|k| 2 * k).filter(|&band| {
            self.first[band].is_some()
                && self.first[band - 1].is_none()
                && self.first[..band - 1].iter().any(Option::is_some)
        });
        let band = far.max()?;
        let low = self.first[..band - 1].iter().flatten().min()?;
        let high = self.first[band..].iter().flatten().min()?;
        Some(*low.max(high))
    }
}
