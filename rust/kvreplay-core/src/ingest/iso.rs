//! ISO 8601 instants, without a calendar library: days from the civil date, then the offset.

const DAY_US: i64 = 86_400_000_000;

/// Microseconds since 1970-01-01T00:00:00Z, or `None` when `text` is no instant.
///
/// Takes `YYYY-MM-DD`, then `T` or a blank, `HH:MM[:SS[.fraction]]`, then nothing (UTC), `Z`, `+HH`, `+HHMM`
/// or `+HH:MM`. Digits behind the sixth of a fraction are cut.
pub(crate) fn parse(text: &str) -> Option<i64> {
    let mut rest = Rest(text.as_bytes());
    let year = rest.digits(4)?;
    rest.byte(b'-')?;
    let month = rest.digits(2)?;
    rest.byte(b'-')?;
    let day = rest.digits(2)?;
    if !(1..=12).contains(&month) || !(1..=days_of(year, month)).contains(&day) {
        return None;
    }
    let mut us = days(year, month, day) * DAY_US;
    if rest.0.is_empty() {
        return Some(us);
    }
    if !matches!(rest.next()?, b'T' | b't' | b' ') {
        return None;
    }
    us += clock(&mut rest)?;
    us -= offset(&mut rest)?;
    rest.0.is_empty().then_some(us)
}

fn clock(rest: &mut Rest<'_>) -> Option<i64> {
    let hour = rest.digits(2)?;
    rest.byte(b':')?;
    let minute = rest.digits(2)?;
    let mut second = 0;
    let mut fraction_us = 0;
    if rest.byte(b':').is_some() {
        second = rest.digits(2)?;
        if rest.byte(b'.').or_else(|| rest.byte(b',')).is_some() {
            fraction_us = rest.fraction_us()?;
        }
    }
    // A leap second reads as the second after it.
    (hour < 24 && minute < 60 && second <= 60)
        .then_some(((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction_us)
}

fn offset(rest: &mut Rest<'_>) -> Option<i64> {
    let sign = match rest.next() {
        None | Some(b'Z' | b'z') => return Some(0),
        Some(b'+') => 1,
        Some(b'-') => -1,
        Some(_) => return None,
    };
    let hours = rest.digits(2)?;
    let mut minutes = 0;
    if !rest.0.is_empty() {
        let _ = rest.byte(b':');
        minutes = rest.digits(2)?;
    }
    (hours < 24 && minutes < 60).then_some(sign * (hours * 60 + minutes) * 60_000_000)
}

struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn next(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn byte(&mut self, byte: u8) -> Option<()> {
        if self.0.first() != Some(&byte) {
            return None;
        }
        self.next().map(drop)
    }

    fn digits(&mut self, count: usize) -> Option<i64> {
        let digits = self.0.get(..count)?;
        if !digits.iter().all(u8::is_ascii_digit) {
            return None;
        }
        self.0 = &self.0[count..];
        Some(digits.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0')))
    }

    fn fraction_us(&mut self) -> Option<i64> {
        let count = self.0.iter().take_while(|b| b.is_ascii_digit()).count();
        if count == 0 {
            return None;
        }
        let digits = self.0[..count].iter().map(|digit| i64::from(digit - b'0'));
        let us = digits.chain(std::iter::repeat(0)).take(6).fold(0, |sum, digit| sum * 10 + digit);
        self.0 = &self.0[count..];
        Some(us)
    }
}

fn leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let before = year - 1;
    let whole_years = before * 365 + before / 4 - before / 100 + before / 400;
    let months: i64 = (1..month).map(|m| days_of(year, m)).sum();
    // 719162 days lie between 0001-01-01 and 1970-01-01.
    whole_years + months + day - 1 - 719_162
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_instants() {
        for (text, want) in [
            ("1970-01-01", 0),
            ("1970-01-01T00:00:00Z", 0),
            ("2026-03-01T09:00:00.250+09:00", 1_772_323_200_250_000),
            ("2026-02-28T19:00:00.500-05:00", 1_772_323_200_500_000),
            ("2024-11-29T11:33:21Z", 1_732_880_001_000_000),
            ("2024-11-29 11:33:21", 1_732_880_001_000_000),
            ("2024-11-29T11:33:21+0000", 1_732_880_001_000_000),
            ("2023-11-16 18:17:03.9799600", 1_700_158_623_979_960),
            ("2024-02-29T23:59+01", 1_709_247_540_000_000),
            ("1969-12-31T23:59:59.999999Z", -1),
        ] {
            assert_eq!(parse(text), Some(want), "{text}");
        }
    }

    #[test]
    fn what_is_no_instant() {
        for text in [
            "",
            "2024",
            "2024-13-01",
            "2023-02-29",
            "2024-1-1",
            "2024-01-01T",
            "2024-01-01T24:00",
            "2024-01-01T00:60",
            "2024-01-01T00:00:00.",
            "2024-01-01T00:00:00+",
            "2024-01-01T00:00:00Zx",
            "2024-01-01T00:00:00+0x",
            "１2024-01-01",
            "29/11/2024",
            "2024-01-01T00:00:61Z",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
