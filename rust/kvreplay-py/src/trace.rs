//! The trace as a Python object.

use crate::arrow::Table;
use crate::errors::to_python;
use crate::{native, plain};
use kvreplay_core::table::{Table as CoreTable, Values};
use kvreplay_core::trace::{CODES, Column, Id, NO_LENGTH, Trace as CoreTrace};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;

/// An immutable trace, shared between threads.
#[pyclass(frozen, module = "kvreplay._core")]
pub(crate) struct Trace(pub(crate) Arc<CoreTrace>);

impl From<CoreTrace> for Trace {
    fn from(trace: CoreTrace) -> Self {
        Self(Arc::new(trace))
    }
}

#[pymethods]
impl Trace {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    #[getter]
    fn sha256(&self, py: Python<'_>) -> String {
        py.detach(|| self.0.sha256().to_owned())
    }

    fn unique_blocks(&self) -> u32 {
        self.0.forest.blocks()
    }

    fn longest_path(&self) -> u32 {
        self.0.totals().longest_path
    }

    fn totals<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let totals = py.detach(|| self.0.totals());
        let out = PyDict::new(py);
        out.set_item("block_refs", totals.block_refs)?;
        out.set_item("input_tokens", totals.input_tokens)?;
        out.set_item("output_tokens", totals.output_tokens)?;
        out.set_item("full_blocks", totals.full_blocks)?;
        out.set_item("longest_path", totals.longest_path)?;
        Ok(out)
    }

    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let trace = &self.0;
        let totals = py.detach(|| trace.totals());
        let arrival = trace.requests.arrival_us.as_deref();
        let out = PyDict::new(py);
        out.set_item("format", &trace.origin.format)?;
        out.set_item("requests", trace.len())?;
        out.set_item("rejected_rows", trace.origin.rejected_rows)?;
        out.set_item("block_refs", totals.block_refs)?;
        out.set_item("unique_blocks", trace.forest.blocks())?;
        out.set_item("input_tokens", totals.input_tokens)?;
        out.set_item("output_tokens", totals.output_tokens)?;
        out.set_item("block_tokens", trace.block_tokens)?;
        out.set_item("tail", trace.tail.name())?;
        out.set_item("namespaces", trace.origin.namespaces)?;
        out.set_item("namespace_columns", &trace.origin.namespace_columns)?;
        out.set_item("chained", trace.origin.chained)?;
        out.set_item("arrival_first_us", arrival.and_then(<[i64]>::first))?;
        out.set_item("arrival_last_us", arrival.and_then(<[i64]>::last))?;
        out.set_item("sha256", self.sha256(py))?;
        Ok(out)
    }

    fn quality(&self) -> PyResult<Table> {
        let findings = self.0.quality.findings();
        let text =
            |get: &dyn Fn(usize) -> Option<String>| Values::Text((0..findings.len()).map(get).collect());
        let code = |i: usize| &CODES[findings[i].code];
        let line = |i: usize| findings[i].first_line.map(|line| line as i64);
        CoreTable::new()
            .with("code", text(&|i| Some(code(i).code.to_owned())))
            .with("severity", text(&|i| Some(code(i).severity.name().to_owned())))
            .with("count", Values::Int(findings.iter().map(|f| f.count as i64).collect()))
            .with("first_line", Values::MaybeInt((0..findings.len()).map(line).collect()))
            .with("first_value", text(&|i| findings[i].first_value.clone()))
            .with(
                "message",
                text(&|i| {
                    let message = code(i).message;
                    let detail = findings[i].detail.as_deref();
                    Some(detail.map_or_else(|| message.to_owned(), |more| format!("{message}: {more}")))
                }),
            )
            .with("hint", text(&|i| Some(code(i).hint.to_owned())))
            .try_into()
    }

    fn requests(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| requests(&self.0)).try_into()
    }

    fn blocks<'py>(&self, py: Python<'py>, request: usize) -> PyResult<Bound<'py, PyList>> {
        let trace = &self.0;
        let node = *trace.requests.node.get(request).ok_or_else(|| {
            PyIndexError::new_err(format!("request {request} of a trace of {} requests", trace.len()))
        })?;
        let mut path = Vec::new();
        trace.forest.path(node, &mut path);
        ids(py, trace, &path)
    }

    fn output_blocks<'py>(&self, py: Python<'py>, request: usize) -> PyResult<Bound<'py, PyList>> {
        let trace = &self.0;
        if request >= trace.len() {
            let message = format!("request {request} of a trace of {} requests", trace.len());
            return Err(PyIndexError::new_err(message));
        }
        let outputs = trace.requests.outputs.as_ref();
        id_list(py, outputs.into_iter().flat_map(|outputs| outputs.of(request)))
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over owned lists")]
    fn select(&self, py: Python<'_>, keep: Vec<u32>) -> PyResult<Self> {
        let rows = self.0.len();
        let ascending = keep.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending || keep.last().is_some_and(|&last| last as usize >= rows) {
            return Err(PyIndexError::new_err(format!("requests to keep: ascending positions below {rows}")));
        }
        let trace = py.detach(|| self.0.select(&keep));
        trace.map(Self::from).map_err(|error| to_python(py, error))
    }

    fn anonymize(&self, py: Python<'_>, shift_times: bool) -> PyResult<Self> {
        let trace = py.detach(|| self.0.anonymize(shift_times));
        trace.map(Self::from).map_err(|error| to_python(py, error))
    }

    fn spread_ties(&self, py: Python<'_>) -> Self {
        py.detach(|| self.0.spread_ties()).into()
    }

    fn plain(&self, py: Python<'_>, begin: usize) -> PyResult<(Table, usize)> {
        py.detach(|| plain::rows(&self.0, begin))
    }

    fn native<'py>(&self, py: Python<'py>) -> PyResult<(Table, Bound<'py, PyAny>)> {
        native::write(py, &self.0)
    }
}

/// Ids of blocks as given in the trace: `int` or `str`.
pub(crate) fn ids<'py>(py: Python<'py>, trace: &CoreTrace, blocks: &[u32]) -> PyResult<Bound<'py, PyList>> {
    id_list(py, blocks.iter().map(|&block| trace.ids.get(block)))
}

fn id_list<'py, 'a>(py: Python<'py>, ids: impl Iterator<Item = Id<'a>>) -> PyResult<Bound<'py, PyList>> {
    let list = PyList::empty(py);
    for id in ids {
        match id {
            Id::Number(number) => list.append(number)?,
            Id::Text(text) => list.append(text)?,
        }
    }
    Ok(list)
}

fn requests(trace: &CoreTrace) -> CoreTable {
    let rows = 0..trace.len();
    let columns = &trace.requests;
    let arrival = columns.arrival_us.as_ref();
    let known = |length: u32| (length != NO_LENGTH).then_some(i64::from(length));
    let mut out = CoreTable::new()
        .with("request", Values::Int(rows.clone().map(|r| r as i64).collect()))
        .with("arrival_us", Values::MaybeInt(rows.clone().map(|r| arrival.map(|a| a[r])).collect()))
        .with("input_tokens", Values::Int(columns.input_tokens.iter().map(|&n| i64::from(n)).collect()))
        .with("output_tokens", Values::MaybeInt(columns.output_tokens.iter().map(|&n| known(n)).collect()))
        .with("blocks", Values::Int(rows.clone().map(|r| i64::from(trace.path_len(r))).collect()));
    if let Some(outputs) = &columns.outputs {
        out = out.with("output_blocks", Values::Int(rows.map(|r| i64::from(outputs.count(r))).collect()));
    }
    if !columns.block_tokens.is_empty() {
        let sizes = columns.block_tokens.iter().map(|&n| i64::from(n)).collect();
        out = out.with("block_tokens", Values::Int(sizes));
    }
    columns.columns.iter().fold(out, |out, column| out.with(&column.name, coded(column)))
}

fn coded(column: &Column) -> Values {
    let texts = (0..column.texts.len() as u32).map(|code| column.texts.get(code).to_owned()).collect();
    Values::Coded(column.codes.clone(), texts)
}
