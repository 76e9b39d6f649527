//! Generated traces.

use crate::run::{Progress, run};
use crate::trace::Trace;
use kvreplay_core::ingest::LengthRow;
use kvreplay_core::trace::synthetic::{GenerateSpec, Shape, generate_shaped};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Arrivals and lengths of a recorded trace, for `generate`.
#[pyclass(frozen, module = "kvreplay._core")]
pub(crate) struct Lengths(Vec<Shape>);

impl From<Vec<LengthRow>> for Lengths {
    fn from(rows: Vec<LengthRow>) -> Self {
        let shape = |row: LengthRow| Shape {
            arrival_us: row.arrival_us,
            input_tokens: row.input_tokens,
            output_tokens: row.output_tokens,
        };
        Self(rows.into_iter().map(shape).collect())
    }
}

#[pymethods]
impl Lengths {
    fn __len__(&self) -> usize {
        self.0.len()
    }
}

#[pyfunction]
#[pyo3(signature = (kind, *, requests, seed, block_tokens, parameters, lengths = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of the Python call")]
pub(crate) fn generate(
    py: Python<'_>,
    kind: String,
    requests: u64,
    seed: u64,
    block_tokens: u32,
    parameters: BTreeMap<String, f64>,
    lengths: Option<&Lengths>,
    progress: Option<&Progress>,
) -> PyResult<Trace> {
    let spec =
        GenerateSpec { kind, requests, seed, block_tokens, parameters: parameters.into_iter().collect() };
    let shapes = lengths.map(|lengths| lengths.0.as_slice());
    run(py, progress, |progress| generate_shaped(&spec, shapes, progress)).map(Trace::from)
}
