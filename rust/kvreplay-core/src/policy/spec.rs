//! The grammar of specs, `name(arg, key=value, key="text")`, shared by policies and admission filters.

use crate::error::{Error, Result};
use std::fmt;
use std::ops::RangeInclusive;

/// A parameter as a registry declares it.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Its name; arguments without a name fill the parameters in the order of declaration.
    pub name: &'static str,
    /// What it is when not given, as one would write it.
    pub default: &'static str,
    /// What it means and in which unit.
    pub doc: &'static str,
}

/// A parsed spec: a name and its arguments, nothing checked against a registry yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Spec {
    /// The name before the parenthesis.
    pub name: String,
    /// Argument names (absent for positional ones) and values, in order.
    pub args: Vec<(Option<String>, String)>,
}

impl Spec {
    /// Parses `name` or `name(arg, key=value, key="text")`.
    ///
    /// # Errors
    /// [`Error::Config`] that shows where the text stops being a spec.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        let bad = |what: &str| {
            Error::config(format!("{text:?}: {what}"), "write name or name(value, key=value, key=\"text\")")
        };
        let (name, rest) = match text.find('(') {
            Some(at) => (text[..at].trim_end(), Some(&text[at + 1..])),
            None => (text, None),
        };
        if name.is_empty() || !name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-') {
            return Err(bad("no name"));
        }
        let mut args = Vec::new();
        if let Some(rest) = rest {
            let inside = rest.strip_suffix(')').ok_or_else(|| bad("no closing parenthesis at the end"))?;
            for piece in split(inside).map_err(bad)? {
                args.push(argument(&piece).map_err(bad)?);
            }
        }
        Ok(Self { name: name.to_owned(), args })
    }
}

/// Splits at commas outside quotes.
fn split(inside: &str) -> std::result::Result<Vec<String>, &'static str> {
    let (mut pieces, mut piece, mut quoted) = (Vec::new(), String::new(), false);
    if inside.trim().is_empty() {
        return Ok(pieces);
    }
    for c in inside.chars() {
        match c {
            '"' => quoted = !quoted,
            '(' | ')' if !quoted => return Err("a parenthesis inside the parentheses"),
            ',' if !quoted => {
                pieces.push(std::mem::take(&mut piece));
                continue;
            }
            _ => {}
        }
        piece.push(c);
    }
    if quoted {
        return Err("a quote is not closed");
    }
    pieces.push(piece);
    Ok(pieces)
}

/// `value`, `"text"` or `key=value`.
fn argument(piece: &str) -> std::result::Result<(Option<String>, String), &'static str> {
    let piece = piece.trim();
    let (key, value) = match piece.find(['=', '"']) {
        Some(at) if piece.as_bytes()[at] == b'=' => (Some(piece[..at].trim()), piece[at + 1..].trim()),
        _ => (None, piece),
    };
    if key.is_some_and(str::is_empty) {
        return Err("an equals sign without a name before it");
    }
    let value = match value.strip_prefix('"') {
        Some(text) => text.strip_suffix('"').filter(|t| !t.contains('"')).ok_or("text after a quote")?,
        None if value.contains('"') => return Err("a quote inside a value"),
        None => value,
    };
    if value.is_empty() {
        return Err("an argument without a value");
    }
    Ok((key.map(str::to_owned), value.to_owned()))
}

/// The arguments of a spec matched with declared parameters, defaults filled in.
#[derive(Debug)]
pub struct Args<'a> {
    owner: &'a str,
    values: Vec<(&'static str, String)>,
}

impl<'a> Args<'a> {
    /// Matches `spec` with `params`.
    ///
    /// # Errors
    /// [`Error::Config`] for unknown names, too many or repeated arguments.
    pub fn new(spec: &'a Spec, params: &'static [Param]) -> Result<Self> {
        let mut values: Vec<(&'static str, Option<String>)> = params.iter().map(|p| (p.name, None)).collect();
        let known = params.iter().map(|p| format!("{}={}", p.name, p.default)).collect::<Vec<_>>().join(", ");
        let hint =
            if known.is_empty() { "it has no parameters".to_owned() } else { format!("it takes {known}") };
        for (i, (key, value)) in spec.args.iter().enumerate() {
            let slot = match key {
                Some(key) => values.iter_mut().find(|(name, _)| name == key),
                None => values.get_mut(i),
            };
            let Some((name, slot)) = slot else {
                let what = key.as_deref().unwrap_or(value);
                return Err(Error::config(format!("{} has no parameter {what:?}", spec.name), hint));
            };
            if slot.replace(value.clone()).is_some() {
                return Err(Error::config(format!("{}: {name} is given twice", spec.name), hint));
            }
        }
        let values = values
            .into_iter()
            .zip(params)
            .map(|((name, value), param)| (name, value.unwrap_or_else(|| param.default.to_owned())))
            .collect();
        Ok(Self { owner: &spec.name, values })
    }

    /// The value of a declared parameter, as written.
    ///
    /// # Panics
    /// When the parameter was not declared (a mistake in this crate).
    #[must_use]
    pub fn text(&self, name: &str) -> &str {
        let value = self.values.iter().find(|(known, _)| *known == name);
        &value.unwrap_or_else(|| panic!("{} declares no parameter {name}", self.owner)).1
    }

    /// A number within a range.
    ///
    /// # Errors
    /// [`Error::Config`] naming the range.
    pub fn number<T>(&self, name: &str, range: RangeInclusive<T>) -> Result<T>
    where
        T: std::str::FromStr + PartialOrd + fmt::Display,
    {
        let text = self.text(name);
        let value: Option<T> = text.replace('_', "").parse().ok();
        value.filter(|v| range.contains(v)).ok_or_else(|| {
            Error::config(
                format!("{}: {name}={text} is out of range", self.owner),
                format!("{name} is a number from {} to {}", range.start(), range.end()),
            )
        })
    }

    /// `true` or `false`.
    ///
    /// # Errors
    /// [`Error::Config`] for anything else.
    pub fn flag(&self, name: &str) -> Result<bool> {
        match self.text(name) {
            "true" => Ok(true),
            "false" => Ok(false),
            other => Err(self.bad(name, other, "true or false")),
        }
    }

    /// A duration like `600 s` or `5m` in microseconds.
    ///
    /// # Errors
    /// [`Error::Config`] for anything else.
    pub fn duration_us(&self, name: &str) -> Result<i64> {
        let text = self.text(name);
        parse_duration_us(text)
            .ok_or_else(|| self.bad(name, text, "a time like \"600 s\", \"5 m\" or \"1 h\""))
    }

    /// An error about a value.
    #[must_use]
    pub fn bad(&self, name: &str, value: &str, expected: &str) -> Error {
        Error::config(
            format!("{}: {name}={value:?} is not valid", self.owner),
            format!("{name} is {expected}"),
        )
    }
}

/// A positive number with one of the units us, ms, s, m (min), h, d.
fn parse_duration_us(text: &str) -> Option<i64> {
    let text = text.trim();
    let at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let value: f64 = text[..at].trim().parse().ok()?;
    let unit = match text[at..].trim() {
        "us" => 1.0,
        "ms" => 1e3,
        "s" => 1e6,
        "m" | "min" => 60e6,
        "h" => 3600e6,
        "d" => 86400e6,
        _ => return None,
    };
    let us = (value * unit).round();
    (1.0..=9e18).contains(&us).then_some(us as i64)
}

/// An error for a name that a registry lacks: lists the known names and the nearest.
#[must_use]
pub fn unknown(kind: &str, name: &str, known: &[&str]) -> Error {
    let nearest = known.iter().copied().min_by_key(|k| edits(name, k)).filter(|k| edits(name, k) <= 3);
    let guess = nearest.map_or(String::new(), |k| format!("did you mean {k}? "));
    Error::config(format!("unknown {kind} {name:?}"), format!("{guess}known: {}", known.join(", ")))
}

/// Levenshtein distance.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().take(64).enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let here = (diagonal + usize::from(x != *y)).min(row[j] + 1).min(row[j + 1] + 1);
            diagonal = std::mem::replace(&mut row[j + 1], here);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> (String, Vec<(Option<String>, String)>) {
        let spec = Spec::parse(text).unwrap();
        (spec.name, spec.args)
    }

    #[test]
    fn reads_names_values_and_texts() {
        assert_eq!(parsed(" lru "), ("lru".into(), vec![]));
        assert_eq!(parsed("lru()"), ("lru".into(), vec![]));
        let args = vec![(None, "2".into()), (Some("tracker".into()), "64".into())];
        assert_eq!(parsed("min_count(2, tracker=64)"), ("min_count".into(), args));
        let args = vec![(Some("decay_every".into()), "20, or so".into()), (None, "a=b".into())];
        assert_eq!(parsed("doubling(decay_every=\"20, or so\",\"a=b\")"), ("doubling".into(), args));
    }

    #[test]
    fn refuses_what_is_not_a_spec() {
        for text in
            ["", "(2)", "a(", "a(b", "a)b(", "a(b)c", "a((b))", "a(\"b)", "a(=b)", "a(b=)", "a(,)", "a b"]
        {
            assert!(matches!(Spec::parse(text), Err(Error::Config { .. })), "{text:?} was taken");
        }
    }

    const PARAMS: &[Param] = &[
        Param { name: "n", default: "2", doc: "" },
        Param { name: "share", default: "0.5", doc: "" },
        Param { name: "every", default: "600 s", doc: "" },
    ];

    #[test]
    fn arguments_meet_their_parameters() {
        let spec = Spec::parse("f(3, every=\"1.5 ms\")").unwrap();
        let args = Args::new(&spec, PARAMS).unwrap();
        assert_eq!(args.number("n", 1..=9u32).unwrap(), 3);
        assert!((args.number("share", 0.0..=1.0).unwrap() - 0.5_f64).abs() < f64::EPSILON);
        assert_eq!(args.duration_us("every").unwrap(), 1500);
        let Err(Error::Config { message, hint }) = args.number("n", 4..=9u32) else { panic!() };
        assert_eq!(
            (message.as_str(), hint.as_str()),
            ("f: n=3 is out of range", "n is a number from 4 to 9")
        );
        for text in ["f(1, 2, 3, 4)", "f(m=1)", "f(1, n=1)"] {
            assert!(Args::new(&Spec::parse(text).unwrap(), PARAMS).is_err(), "{text} was taken");
        }
    }

    #[test]
    fn the_nearest_name_is_offered() {
        let Error::Config { message, hint } = unknown("policy", "lruu", &["arc", "lru", "fifo"]) else {
            panic!()
        };
        assert_eq!(message, "unknown policy \"lruu\"");
        assert_eq!(hint, "did you mean lru? known: arc, lru, fifo");
    }
}
