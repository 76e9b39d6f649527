//! The kinds of traffic, one line each; names, help and ranges that users see come from here.

use super::settings::{Settings, unknown};
use super::source::Source;
use super::{GenerateSpec, MAX_BLOCK_TOKENS, MAX_REQUESTS};
use super::{agent, cyclic_scan, mixed, multi_turn, rag_documents, shared_prefix, unique};
use crate::error::{Error, Result};

/// A parameter of a [`Kind`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Parameter {
    /// Its name; the unit is the last part.
    pub name: &'static str,
    /// What it sets.
    pub doc: &'static str,
    /// Its value unless given.
    pub default: f64,
    /// Its smallest value.
    pub min: f64,
    /// Its largest value.
    pub max: f64,
    /// Whether it must be a whole number.
    pub whole: bool,
}

impl Parameter {
    /// A real number.
    pub(super) const fn real(
        name: &'static str,
        default: f64,
        min: f64,
        max: f64,
        doc: &'static str,
    ) -> Self {
        Self { name, doc, default, min, max, whole: false }
    }

    /// A whole number.
    pub(super) const fn whole(
        name: &'static str,
        default: f64,
        min: f64,
        max: f64,
        doc: &'static str,
    ) -> Self {
        Self { name, doc, default, min, max, whole: true }
    }

    /// A number of tokens, at most a million.
    pub(super) const fn tokens(name: &'static str, default: f64, min: f64, doc: &'static str) -> Self {
        Self::whole(name, default, min, 1e6, doc)
    }

    /// The mean number of requests per second.
    pub(super) const fn rate(default: f64) -> Self {
        Self::real("rate_per_s", default, 1e-3, 1e5, "mean number of requests per second")
    }
}

/// A kind of traffic.
#[derive(Debug)]
pub struct Kind {
    /// Its name.
    pub name: &'static str,
    /// What it is, in one line.
    pub doc: &'static str,
    /// What it models and where its defaults come from.
    pub models: &'static str,
    /// Its parameters.
    pub parameters: &'static [Parameter],
    pub(super) start: fn(&Settings, u64) -> Result<Box<dyn Source>>,
}

impl Kind {
    /// The parameters as text: `name=default, ...`.
    #[must_use]
    pub fn parameters_text(&self) -> String {
        let pairs: Vec<String> =
            self.parameters.iter().map(|p| format!("{}={}", p.name, p.default)).collect();
        pairs.join(", ")
    }
}

static KINDS: [&Kind; 7] = [
    &multi_turn::KIND,
    &shared_prefix::KIND,
    &rag_documents::KIND,
    &agent::KIND,
    &cyclic_scan::KIND,
    &unique::KIND,
    &mixed::KIND,
];

/// Every kind of traffic there is.
#[must_use]
pub fn kinds() -> &'static [&'static Kind] {
    &KINDS
}

/// Checks a spec and starts its stream of requests.
pub(super) fn start(spec: &GenerateSpec) -> Result<Box<dyn Source>> {
    let Some(kind) = KINDS.iter().find(|k| k.name == spec.kind) else {
        let known: Vec<&str> = KINDS.iter().map(|k| k.name).collect();
        return Err(unknown("kind of trace", &spec.kind, &known));
    };
    if !(1..=MAX_REQUESTS).contains(&spec.requests) {
        return Err(Error::config(
            format!("requests is {}", spec.requests),
            format!("requests must be a whole number from 1 to {MAX_REQUESTS}"),
        ));
    }
    if !(1..=MAX_BLOCK_TOKENS).contains(&spec.block_tokens) {
        return Err(Error::config(
            format!("block_tokens is {}", spec.block_tokens),
            format!("block_tokens must be a whole number from 1 to {MAX_BLOCK_TOKENS}"),
        ));
    }
    (kind.start)(&Settings::new(kind, &spec.parameters)?, spec.seed)
}
