//! Numbers as written: exact integers, and decimals without a float on the way.

use super::{Bad, Scanner, digits};

/// A number of a JSON text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Number {
    /// An integer of up to 64 bits without a sign.
    Unsigned(u64),
    /// A negative integer; the magnitude of what is written.
    Negative(u64),
    /// An integer beyond 64 bits.
    Large,
    /// Written with a point or an exponent.
    Decimal(Decimal),
    /// `NaN`, `Infinity`, `-Infinity`.
    NotFinite,
}

/// A decimal number: sign, whole part, billionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub(crate) negative: bool,
    /// Whole part of the magnitude; `None` beyond 64 bits.
    pub(crate) whole: Option<u64>,
    /// Billionths of the magnitude, rounded down.
    pub(crate) nanos: u32,
    /// Whether there is any fraction.
    pub(crate) fraction: bool,
}

/// Takes the number at the scanner's place.
#[inline]
pub(super) fn scan(scanner: &mut Scanner<'_>) -> Result<Number, Bad> {
    if let Some((value, after)) = digits::unsigned(scanner.bytes, scanner.at)
        && after < scanner.end
        && !matches!(scanner.bytes[after], b'.' | b'e' | b'E')
    {
        scanner.at = after;
        return Ok(Number::Unsigned(value));
    }
    other(scanner)
}

/// Numbers that are no plain integers.
fn other(scanner: &mut Scanner<'_>) -> Result<Number, Bad> {
    match scanner.peek() {
        Some(b'N') => return scanner.word(b"NaN").map(|()| Number::NotFinite),
        Some(b'I') => return scanner.word(b"Infinity").map(|()| Number::NotFinite),
        _ => {}
    }
    let negative = scanner.peek() == Some(b'-');
    scanner.at += usize::from(negative);
    if negative && scanner.peek() == Some(b'I') {
        return scanner.word(b"Infinity").map(|()| Number::NotFinite);
    }
    slow(scanner, negative)
}

/// The grammar byte by byte.
fn slow(scanner: &mut Scanner<'_>, negative: bool) -> Result<Number, Bad> {
    let whole = run(scanner)?;
    if whole.len() > 1 && whole[0] == b'0' {
        return Err(Bad::Syntax);
    }
    let mut fraction: &[u8] = &[];
    let mut exponent = 0_i32;
    let mut plain = true;
    if scanner.peek() == Some(b'.') {
        plain = false;
        scanner.at += 1;
        fraction = run(scanner)?;
    }
    if let Some(b'e' | b'E') = scanner.peek() {
        plain = false;
        scanner.at += 1;
        let down = scanner.peek() == Some(b'-');
        scanner.at += usize::from(matches!(scanner.peek(), Some(b'+' | b'-')));
        for digit in run(scanner)? {
            exponent = (exponent * 10 + i32::from(digit - b'0')).min(100_000);
        }
        exponent = if down { -exponent } else { exponent };
    }
    if plain {
        return Ok(match join(whole) {
            None => Number::Large,
            Some(value) if negative => Number::Negative(value),
            Some(value) => Number::Unsigned(value),
        });
    }
    Ok(Number::Decimal(decimal(negative, whole, fraction, exponent)))
}

/// At least one digit.
fn run<'a>(scanner: &mut Scanner<'a>) -> Result<&'a [u8], Bad> {
    let rest = &scanner.bytes[scanner.at..scanner.end];
    let digits = rest.iter().take_while(|b| b.is_ascii_digit()).count();
    if digits == 0 {
        return Err(if rest.is_empty() { Bad::Eof } else { Bad::Syntax });
    }
    scanner.at += digits;
    Ok(&rest[..digits])
}

fn join(digits: &[u8]) -> Option<u64> {
    digits.iter().try_fold(0_u64, |sum, digit| sum.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
}

/// Moves the point of `whole.fraction` by `exponent` places.
fn decimal(negative: bool, whole: &[u8], fraction: &[u8], exponent: i32) -> Decimal {
    let digits = || whole.iter().chain(fraction).map(|digit| u64::from(digit - b'0'));
    let point = whole.len() as i64 + i64::from(exponent); // digits before the point, perhaps none
    let before = usize::try_from(point).unwrap_or(0);
    let mut value = Some(0_u64);
    // Zeros behind the last digit count too; a zero number stays zero however far its point moves.
    let any = digits().any(|digit| digit > 0);
    for digit in digits().chain(std::iter::repeat(0)).take(if any { before } else { 0 }) {
        value = value.and_then(|v| v.checked_mul(10)?.checked_add(digit));
        if value.is_none() {
            break;
        }
    }
    let lead = usize::try_from(-point).unwrap_or(0).min(9); // zeros between the point and the first digit
    let mut nanos = 0_u32;
    let behind = std::iter::repeat_n(0, lead).chain(digits().skip(before)).chain(std::iter::repeat(0));
    for digit in behind.take(9) {
        nanos = nanos * 10 + digit as u32;
    }
    Decimal { negative, whole: value, nanos, fraction: digits().skip(before).any(|digit| digit > 0) }
}

/// A text that is one JSON number and nothing else (cells of CSV, quoted numbers).
pub(crate) fn from_text(text: &str) -> Option<Number> {
    if let "nan" | "inf" | "-inf" = text {
        return Some(Number::NotFinite);
    }
    let mut scanner = Scanner::new(text.as_bytes(), text.len());
    if !matches!(scanner.kind(), Ok(super::Kind::Number)) || scanner.at > 0 {
        return None;
    }
    let number = scan(&mut scanner).ok()?;
    (scanner.at == text.len()).then_some(number)
}
