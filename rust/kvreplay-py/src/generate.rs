//! Generated traces.

use crate::run::{Progress, run};
use crate::trace::Trace;
use kvreplay_core::trace::synthetic::{GenerateSpec, generate_with_progress};
use pyo3::prelude::*;
use std::collections::BTreeMap;

#[pyfunction]
#[pyo3(signature = (kind, *, requests, seed, block_tokens, parameters, progress = None))]
pub(crate) fn generate(
    py: Python<'_>,
    kind: String,
    requests: u64,
    seed: u64,
    block_tokens: u32,
    parameters: BTreeMap<String, f64>,
    progress: Option<&Progress>,
) -> PyResult<Trace> {
    let spec =
        GenerateSpec { kind, requests, seed, block_tokens, parameters: parameters.into_iter().collect() };
    run(py, progress, |progress| generate_with_progress(&spec, progress)).map(Trace::from)
}
