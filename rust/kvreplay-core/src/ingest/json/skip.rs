//! Values nobody asked for, and escapes.

use super::{Bad, Kind, Scanner};

/// Objects and arrays inside each other, at most.
const MAX_DEPTH: u32 = 127;

impl Scanner<'_> {
    /// Takes a value of any kind, checking its grammar.
    pub(crate) fn skip(&mut self) -> Result<(), Bad> {
        // One bit per open container: 1 = object. No recursion, so that no input can exhaust the stack.
        let mut open = 0_u128;
        let mut depth = 0_u32;
        loop {
            match self.kind()? {
                kind @ (Kind::Object | Kind::Array) => {
                    if depth == MAX_DEPTH {
                        return Err(Bad::Syntax);
                    }
                    self.at += 1;
                    let object = kind == Kind::Object;
                    if !self.take(if object { b'}' } else { b']' }) {
                        open = open << 1 | u128::from(object);
                        depth += 1;
                        if object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                Kind::Text => drop(self.raw_text()?),
                Kind::Number => drop(self.number()?),
                Kind::Bool => drop(self.bool()?),
                Kind::Null => self.null()?,
            }
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let object = open & 1 == 1;
                if self.take(b',') {
                    if object {
                        self.key()?;
                    }
                    break;
                }
                self.expect(if object { b'}' } else { b']' })?;
                open >>= 1;
                depth -= 1;
            }
        }
    }

    fn key(&mut self) -> Result<(), Bad> {
        match self.kind()? {
            Kind::Text => drop(self.raw_text()?),
            _ => return Err(Bad::Syntax),
        }
        self.expect(b':')
    }
}

/// Checks the escape whose letter is at `at` and returns the place behind it.
pub(super) fn escape(text: &[u8], at: usize) -> Result<usize, Bad> {
    match *text.get(at).ok_or(Bad::Eof)? {
        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => Ok(at + 1),
        b'u' => {
            for digit in at + 1..at + 5 {
                if !text.get(digit).ok_or(Bad::Eof)?.is_ascii_hexdigit() {
                    return Err(Bad::Syntax);
                }
            }
            Ok(at + 5)
        }
        _ => Err(Bad::Syntax),
    }
}

/// The text of a string whose escapes are valid. Half of a surrogate pair becomes U+FFFD.
pub(super) fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let letter = rest.as_bytes()[at + 1];
        rest = &rest[at + 2..];
        match letter {
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'n' => out.push('\n'),
            b'r' => out.push('\r'),
            b't' => out.push('\t'),
            b'u' => {
                let first = hex(rest);
                rest = &rest[4..];
                let second = rest.strip_prefix("\\u").map(hex).filter(|s| (0xDC00..0xE000).contains(s));
                match (first, second) {
                    (0xD800..0xDC00, Some(second)) => {
                        rest = &rest[6..];
                        let code = 0x1_0000 + ((first - 0xD800) << 10) + (second - 0xDC00);
                        out.push(char::from_u32(code).unwrap_or('\u{FFFD}'));
                    }
                    _ => out.push(char::from_u32(first).unwrap_or('\u{FFFD}')),
                }
            }
            other => out.push(char::from(other)),
        }
    }
    out.push_str(rest);
    out
}

fn hex(text: &str) -> u32 {
    text.get(..4).and_then(|digits| u32::from_str_radix(digits, 16).ok()).unwrap_or(0xFFFD)
}
