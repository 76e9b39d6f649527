//! Checked parameter values of one kind, and helpful refusals.

use super::registry::{Kind, Parameter};
use crate::error::{Error, Result};

/// The value of every parameter of a kind.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    parameters: &'static [Parameter],
    values: Vec<f64>,
}

impl Settings {
    /// The kind's defaults with the given values put in.
    pub(super) fn new(kind: &Kind, given: &[(String, f64)]) -> Result<Self> {
        let parameters = kind.parameters;
        let mut values: Vec<f64> = parameters.iter().map(|p| p.default).collect();
        let mut seen = vec![false; parameters.len()];
        for (name, value) in given {
            let Some(at) = parameters.iter().position(|p| p.name == name) else {
                let known: Vec<&str> = parameters.iter().map(|p| p.name).collect();
                let what = format!("parameter of {}", kind.name);
                return Err(unknown(&what, name, &known));
            };
            if std::mem::replace(&mut seen[at], true) {
                return Err(Error::config(format!("{name} is given twice"), "give each parameter once"));
            }
            check(&parameters[at], *value)?;
            values[at] = *value;
        }
        Ok(Self { parameters, values })
    }

    /// The kind's defaults with one value put in that another kind has worked out, whatever its range.
    pub(super) fn derived(kind: &Kind, name: &str, value: f64) -> Self {
        let parameters = kind.parameters;
        let values = parameters.iter().map(|p| if p.name == name { value } else { p.default }).collect();
        Self { parameters, values }
    }

    /// A parameter's value.
    ///
    /// # Panics
    /// When the kind has no such parameter (a mistake in the kind's file).
    pub(super) fn get(&self, name: &str) -> f64 {
        let at = self.parameters.iter().position(|p| p.name == name);
        self.values[at.unwrap_or_else(|| panic!("no parameter {name}"))]
    }

    /// A whole-number parameter's value.
    pub(super) fn whole(&self, name: &str) -> usize {
        self.get(name) as usize
    }

    /// A number of tokens.
    pub(super) fn tokens(&self, name: &str) -> u32 {
        self.get(name) as u32
    }
}

fn check(parameter: &Parameter, value: f64) -> Result<()> {
    let Parameter { name, min, max, whole, .. } = *parameter;
    let kind = if whole { "a whole number" } else { "a number" };
    if !(min..=max).contains(&value) || (whole && value.fract() != 0.0) {
        return Err(Error::config(
            format!("{name} is {value}"),
            format!("{name} must be {kind} from {min} to {max} (default {})", parameter.default),
        ));
    }
    Ok(())
}

/// Refuses an unknown name: says the nearest known one and lists all.
pub(super) fn unknown(what: &str, name: &str, known: &[&str]) -> Error {
    let shown: String = name.chars().take(40).collect();
    let nearest = known
        .iter()
        .map(|&k| (distance(&shown, k), k))
        .min()
        .filter(|&(d, k)| d <= k.len() / 2)
        .map(|(_, k)| format!("did you mean {k}? "));
    Error::config(
        format!("unknown {what}: {shown:?}"),
        format!("{}known: {}", nearest.unwrap_or_default(), known.join(", ")),
    )
}

/// Levenshtein distance (insertions, deletions, replacements) between two short texts.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, &y) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances_of_words() {
        for (a, b, want) in [("", "abc", 3), ("kitten", "sitting", 3), ("agent", "agent", 0), ("ab", "ba", 2)]
        {
            assert_eq!(distance(a, b), want, "{a} {b}");
            assert_eq!(distance(b, a), want, "{b} {a}");
        }
    }
}
