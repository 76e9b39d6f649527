//! The registries as tables: name, one-line doc, parameters, source.

use crate::arrow::Table;
use kvreplay_core::admission::FILTERS;
use kvreplay_core::hierarchy::{FILLS, Fill};
use kvreplay_core::policy::POLICIES;
use kvreplay_core::policy::spec::Param;
use kvreplay_core::table::{Table as CoreTable, Values};
use kvreplay_core::trace::{CODES, synthetic};
use pyo3::prelude::*;

/// One row of a registry.
struct Entry {
    name: &'static str,
    doc: &'static str,
    parameters: String,
    source: &'static str,
}

fn table(entries: &[Entry]) -> PyResult<Table> {
    let column =
        |get: &dyn Fn(&Entry) -> String| Values::Text(entries.iter().map(|e| Some(get(e))).collect());
    CoreTable::new()
        .with("name", column(&|e| e.name.to_owned()))
        .with("doc", column(&|e| e.doc.to_owned()))
        .with("parameters", column(&|e| e.parameters.clone()))
        .with("source", column(&|e| e.source.to_owned()))
        .try_into()
}

#[pyfunction]
pub(crate) fn generators() -> PyResult<Table> {
    let entries: Vec<Entry> = synthetic::kinds()
        .iter()
        .map(|kind| Entry {
            name: kind.name,
            doc: kind.doc,
            parameters: kind.parameters_text(),
            source: kind.models,
        })
        .collect();
    table(&entries)
}

/// `name=default, ...`; a parameter without a default has to be given.
fn parameters(parameters: &[Param]) -> String {
    let one = |p: &Param| {
        if p.default.is_empty() { p.name.to_owned() } else { format!("{}={}", p.name, p.default) }
    };
    parameters.iter().map(one).collect::<Vec<_>>().join(", ")
}

#[pyfunction]
pub(crate) fn policies() -> PyResult<Table> {
    let entry = |p: &kvreplay_core::policy::PolicyInfo| Entry {
        name: p.name,
        doc: p.doc,
        parameters: parameters(p.parameters),
        source: p.source,
    };
    table(&POLICIES.iter().map(entry).collect::<Vec<_>>())
}

#[pyfunction]
pub(crate) fn admissions() -> PyResult<Table> {
    let entry = |f: &kvreplay_core::admission::FilterInfo| Entry {
        name: f.name,
        doc: f.doc,
        parameters: parameters(f.parameters),
        source: f.source,
    };
    table(&FILTERS.iter().map(entry).collect::<Vec<_>>())
}

#[pyfunction]
pub(crate) fn fill_rules() -> PyResult<Table> {
    let entry = |f: &kvreplay_core::hierarchy::FillInfo| Entry {
        name: f.name,
        doc: f.doc,
        // A victim tier gives up what it serves, so there is nothing to touch.
        parameters: if f.fill == Fill::Victim { String::new() } else { "touch=path".to_owned() },
        source: f.source,
    };
    table(&FILLS.iter().map(entry).collect::<Vec<_>>())
}

#[pyfunction]
pub(crate) fn quality_codes() -> PyResult<Table> {
    let column = |get: &dyn Fn(usize) -> &'static str| {
        Values::Text((0..CODES.len()).map(|i| Some(get(i).to_owned())).collect())
    };
    CoreTable::new()
        .with("code", column(&|i| CODES[i].code))
        .with("severity", column(&|i| CODES[i].severity.name()))
        .with("message", column(&|i| CODES[i].message))
        .with("hint", column(&|i| CODES[i].hint))
        .try_into()
}
