//! A JSON scanner for rows of a trace: exact 64-bit integers, no floats, no allocation per value, no recursion.
//!
//! It reads one value at a time from a slice and says where a text ends before its value does, which is
//! how a cut last line is told from a broken one. `NaN`, `Infinity` and `-Infinity` are scanned as numbers
//! (Python's writer emits them), so that the field that holds one can be named.

pub(crate) mod digits;
pub(crate) mod ids;
pub(crate) mod number;
pub(crate) mod row;
mod skip;

pub(crate) use number::Number;
use std::borrow::Cow;

/// Why a text is not JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bad {
    /// It ends too early; what is there could be the beginning of a valid text.
    Eof,
    /// It breaks the grammar.
    Syntax,
    /// A string is not UTF-8.
    Utf8,
}

/// The kind of the next value, from its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    Text,
    Number,
    Bool,
    Null,
}

/// A place in a text. `bytes` may go on behind `end`: eight bytes are loaded at once.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'a> {
    pub(crate) bytes: &'a [u8],
    pub(crate) at: usize,
    pub(crate) end: usize,
}

impl<'a> Scanner<'a> {
    /// Scans `bytes[..end]`.
    pub(crate) fn new(bytes: &'a [u8], end: usize) -> Self {
        debug_assert!(end <= bytes.len());
        Self { bytes, at: 0, end }
    }

    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        if self.at < self.end { Some(self.bytes[self.at]) } else { None }
    }

    #[inline]
    pub(crate) fn white(&mut self) {
        while let Some(b' ' | b'\t' | b'\n' | b'\r') = self.peek() {
            self.at += 1;
        }
    }

    /// Skips white space and takes `byte`.
    #[inline]
    pub(crate) fn expect(&mut self, byte: u8) -> Result<(), Bad> {
        self.white();
        match self.peek() {
            Some(b) if b == byte => {
                self.at += 1;
                Ok(())
            }
            Some(_) => Err(Bad::Syntax),
            None => Err(Bad::Eof),
        }
    }

    /// Skips white space and takes `byte` if it is next.
    #[inline]
    pub(crate) fn take(&mut self, byte: u8) -> bool {
        self.white();
        let is = self.peek() == Some(byte);
        self.at += usize::from(is);
        is
    }

    /// Skips white space and says what comes.
    #[inline]
    pub(crate) fn kind(&mut self) -> Result<Kind, Bad> {
        self.white();
        match self.peek().ok_or(Bad::Eof)? {
            b'{' => Ok(Kind::Object),
            b'[' => Ok(Kind::Array),
            b'"' => Ok(Kind::Text),
            b'-' | b'0'..=b'9' | b'N' | b'I' => Ok(Kind::Number),
            b't' | b'f' => Ok(Kind::Bool),
            b'n' => Ok(Kind::Null),
            _ => Err(Bad::Syntax),
        }
    }

    /// Takes a word such as `null`; a beginning of it at the end of the text is [`Bad::Eof`].
    pub(crate) fn word(&mut self, word: &[u8]) -> Result<(), Bad> {
        let rest = &self.bytes[self.at..self.end];
        if rest.starts_with(word) {
            self.at += word.len();
            Ok(())
        } else if word.starts_with(rest) {
            Err(Bad::Eof)
        } else {
            Err(Bad::Syntax)
        }
    }

    pub(crate) fn null(&mut self) -> Result<(), Bad> {
        self.word(b"null")
    }

    pub(crate) fn bool(&mut self) -> Result<bool, Bad> {
        if self.peek() == Some(b't') {
            self.word(b"true").map(|()| true)
        } else {
            self.word(b"false").map(|()| false)
        }
    }

    #[inline]
    pub(crate) fn number(&mut self) -> Result<Number, Bad> {
        number::scan(self)
    }

    /// Takes a string and returns what stands between its quotes, still escaped, and whether it has escapes.
    pub(crate) fn raw_text(&mut self) -> Result<(&'a [u8], bool), Bad> {
        debug_assert_eq!(self.peek(), Some(b'"'));
        let begin = self.at + 1;
        let mut at = begin;
        let mut escaped = false;
        let mut high = 0;
        let text = &self.bytes[..self.end];
        loop {
            match *text.get(at).ok_or(Bad::Eof)? {
                b'"' => break,
                b'\\' => {
                    escaped = true;
                    at = skip::escape(text, at + 1)?;
                }
                0..=0x1f => return Err(Bad::Syntax),
                byte => {
                    high |= byte;
                    at += 1;
                }
            }
        }
        let raw = &text[begin..at];
        if high >= 0x80 && std::str::from_utf8(raw).is_err() {
            return Err(Bad::Utf8);
        }
        self.at = at + 1;
        Ok((raw, escaped))
    }

    /// Takes a string and returns its text.
    pub(crate) fn text(&mut self) -> Result<Cow<'a, str>, Bad> {
        let (raw, escaped) = self.raw_text()?;
        let text = std::str::from_utf8(raw).map_err(|_| Bad::Utf8)?;
        Ok(if escaped { Cow::Owned(skip::unescape(text)) } else { Cow::Borrowed(text) })
    }

    /// Takes the object that comes next. `each` is called with every key and takes its value; when it returns
    /// `false` the rest is left, and so does this.
    pub(crate) fn pairs(
        &mut self,
        mut each: impl FnMut(&str, &mut Self) -> Result<bool, Bad>,
    ) -> Result<bool, Bad> {
        self.expect(b'{')?;
        if self.take(b'}') {
            return Ok(true);
        }
        loop {
            if self.kind()? != Kind::Text {
                return Err(Bad::Syntax);
            }
            let key = self.text()?;
            self.expect(b':')?;
            if !each(&key, self)? {
                return Ok(false);
            }
            if !self.take(b',') {
                return self.expect(b'}').map(|()| true);
            }
        }
    }

    /// Takes the array that comes next; `each` takes its elements one by one.
    pub(crate) fn elements(&mut self, mut each: impl FnMut(&mut Self) -> Result<(), Bad>) -> Result<(), Bad> {
        self.expect(b'[')?;
        if self.take(b']') {
            return Ok(());
        }
        loop {
            self.kind()?;
            each(self)?;
            if !self.take(b',') {
                return self.expect(b']');
            }
        }
    }

    /// Checks that nothing but white space follows.
    pub(crate) fn finish(&mut self) -> Result<(), Bad> {
        self.white();
        if self.at == self.end { Ok(()) } else { Err(Bad::Syntax) }
    }
}

#[cfg(test)]
mod tests;
