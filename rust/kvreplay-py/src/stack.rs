//! The stack engine: curves, reuse tables, ceiling, bounds.

use crate::arrow::Table;
use crate::run::{Progress, run};
use crate::trace::Trace;
use kvreplay_core::stack::{self, bins_table, points_table, ratios_table};
use kvreplay_core::table::{Table as CoreTable, Values};
use kvreplay_core::trace::Trace as CoreTrace;
use pyo3::prelude::*;

/// Exact LRU hits at every capacity, from one pass.
#[pyclass(frozen, module = "kvreplay._core")]
pub(crate) struct Curve {
    curve: stack::Curve,
    warm: bool,
}

#[pymethods]
impl Curve {
    #[getter]
    fn breakpoints(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.curve.breakpoints())
    }

    #[getter]
    fn last_capacity_blocks(&self) -> u64 {
        self.curve.last_capacity_blocks()
    }

    #[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over owned lists")]
    fn at(&self, py: Python<'_>, capacities: Vec<u64>) -> PyResult<Table> {
        py.detach(|| points_table(self.curve.at(&capacities), self.warm)).try_into()
    }

    fn steps(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| points_table(self.curve.steps(), self.warm)).try_into()
    }

    fn reuse_distance(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| bins_table(&self.curve.reuse_distance())).try_into()
    }
}

#[pyfunction]
#[pyo3(signature = (trace, *, warmup_requests, progress = None))]
pub(crate) fn lru_curve(
    py: Python<'_>,
    trace: &Trace,
    warmup_requests: Option<usize>,
    progress: Option<&Progress>,
) -> PyResult<Curve> {
    let curve = run(py, progress, |progress| stack::Curve::of(&trace.0, warmup_requests, progress))?;
    Ok(Curve { curve, warm: warmup_requests.is_some() })
}

#[pyfunction]
#[pyo3(signature = (trace, progress = None))]
pub(crate) fn reuse_runs(py: Python<'_>, trace: &Trace, progress: Option<&Progress>) -> PyResult<Table> {
    run(py, progress, |progress| stack::reuse_runs(&trace.0, progress))?.try_into()
}

#[pyfunction]
#[pyo3(signature = (trace, progress = None))]
pub(crate) fn reuse_time(py: Python<'_>, trace: &Trace, progress: Option<&Progress>) -> PyResult<Table> {
    bins_table(&run(py, progress, |progress| stack::reuse_time(&trace.0, progress))?).try_into()
}

#[pyfunction]
pub(crate) fn ceiling(py: Python<'_>, trace: &Trace) -> PyResult<Table> {
    py.detach(|| hits_table(&trace.0, &stack::ceiling(&trace.0))).try_into()
}

fn hits_table(trace: &CoreTrace, hit_blocks: &[u32]) -> CoreTable {
    let tokens = hit_blocks.iter().enumerate().map(|(request, &hit)| trace.tokens(request, hit) as i64);
    CoreTable::new()
        .with("request", Values::Int((0..hit_blocks.len() as i64).collect()))
        .with("hit_blocks", Values::Int(hit_blocks.iter().map(|&hit| i64::from(hit)).collect()))
        .with("hit_tokens", Values::Int(tokens.collect()))
}

#[pyfunction]
pub(crate) fn ratios(py: Python<'_>, trace: &Trace) -> PyResult<Table> {
    py.detach(|| ratios_table(&stack::ratios(&trace.0, &stack::ceiling(&trace.0)))).try_into()
}

#[pyfunction]
#[pyo3(signature = (trace, *, capacities, windows, progress = None))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over owned lists")]
pub(crate) fn window_growth(
    py: Python<'_>,
    trace: &Trace,
    capacities: Vec<u64>,
    windows: usize,
    progress: Option<&Progress>,
) -> PyResult<Table> {
    run(py, progress, |progress| stack::window_growth(&trace.0, &capacities, windows, progress))?.try_into()
}
