//! The replay of hierarchies, and curves of any policy.

use crate::arrow::Table;
use crate::errors::to_python;
use crate::run::{Progress, run};
use crate::trace::{Trace, ids};
use kvreplay_core::hierarchy::{Events, FILLS, TOUCHES, TierSpec};
use kvreplay_core::policy::Closure;
use kvreplay_core::replay::{
    Mode, ReplayResult, ReplaySpec, TierResult, Unit, curve_points, lru_each, replay_auto,
};
use kvreplay_core::stack::{self, points_table, ratios_table};
use kvreplay_core::trace::Trace as CoreTrace;
use kvreplay_core::{Error, Result};
use pyo3::exceptions::{PyIndexError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::PyList;
use std::sync::Arc;

/// One tier as Python gives it, capacity in blocks.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TierArg {
    name: String,
    capacity_blocks: u64,
    policy: String,
    admission: String,
    fill: String,
    touch: String,
    closure: String,
    chunk_blocks: u32,
}

impl TierArg {
    pub(crate) fn parse(self) -> Result<TierSpec> {
        let fills: Vec<_> = FILLS.iter().map(|info| (info.name, info.fill)).collect();
        Ok(TierSpec {
            policy: self.policy,
            admission: self.admission,
            fill: choose("fill", &self.fill, &fills)?,
            touch: choose("touch", &self.touch, TOUCHES)?,
            closure: choose("closure", &self.closure, &[("leaf", Closure::Leaf), ("none", Closure::None)])?,
            chunk_blocks: self.chunk_blocks,
            ..TierSpec::new(&self.name, self.capacity_blocks)
        })
    }
}

/// The value with a name.
fn choose<T: Copy>(what: &str, name: &str, known: &[(&str, T)]) -> Result<T> {
    known.iter().find(|(known, _)| *known == name).map(|&(_, value)| value).ok_or_else(|| {
        let names: Vec<&str> = known.iter().map(|&(name, _)| name).collect();
        Error::config(format!("unknown {what} {name:?}"), format!("one of {}", names.join(", ")))
    })
}

/// What one replay recorded.
#[pyclass(frozen, module = "kvreplay._core")]
pub(crate) struct Replay {
    /// The trace in the blocks of the counters and hits.
    trace: Arc<CoreTrace>,
    /// The trace whose ids name the blocks of events and contents.
    names: Arc<CoreTrace>,
    engine: &'static str,
    result: ReplayResult,
}

impl Replay {
    /// The result of an engine profile.
    pub(crate) fn of_profile(trace: Arc<CoreTrace>, names: Arc<CoreTrace>, result: ReplayResult) -> Self {
        Self { trace, names, engine: "profile", result }
    }
}

#[pymethods]
impl Replay {
    #[getter]
    fn engine(&self) -> &'static str {
        self.engine
    }

    fn tiers(&self) -> PyResult<Table> {
        self.result.tiers_table(&self.trace).try_into()
    }

    fn requests(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| self.result.requests_table()).try_into()
    }

    fn occupancy(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| self.result.occupancy_table()).try_into()
    }

    fn events(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| self.result.events_table(&self.names)).try_into()
    }

    fn content<'py>(&self, py: Python<'py>, tier: usize) -> PyResult<Bound<'py, PyList>> {
        let tier =
            self.result.tiers.get(tier).ok_or_else(|| PyIndexError::new_err(format!("no tier {tier}")))?;
        ids(py, &self.names, &tier.content)
    }

    fn ratios(&self, py: Python<'_>) -> PyResult<Table> {
        let Some(requests) = &self.result.requests else {
            return Err(PyRuntimeError::new_err("ratios need the hits of each request: per_request=True"));
        };
        py.detach(|| {
            let tiers = &requests.hit_blocks;
            let hits: Vec<u32> =
                (0..self.trace.len()).map(|request| tiers.iter().map(|tier| tier[request]).sum()).collect();
            ratios_table(&stack::ratios(&self.trace, &hits))
        })
        .try_into()
    }
}

#[pyfunction]
#[pyo3(signature = (
    trace, tiers, *, mode, unit, last_token, full_blocks_only, per_request, events, occupancy = false, progress = None
))]
#[expect(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "keyword-only options of the Python call"
)]
pub(crate) fn replay(
    py: Python<'_>,
    trace: &Trace,
    tiers: Vec<TierArg>,
    mode: &str,
    unit: &str,
    last_token: bool,
    full_blocks_only: bool,
    per_request: bool,
    events: bool,
    occupancy: bool,
    progress: Option<&Progress>,
) -> PyResult<Replay> {
    let spec = spec_of(tiers, mode).map_err(|error| to_python(py, error))?;
    let unit = choose("unit", unit, &[("block", Unit::Block), ("request", Unit::Request)]);
    let unit = unit.map_err(|error| to_python(py, error))?;
    let spec = ReplaySpec { last_token, full_blocks_only, per_request, events, occupancy, ..spec };
    let (engine, result) = run(py, progress, |progress| replay_auto(&trace.0, &spec, unit, progress))?;
    let engine = engine.name();
    Ok(Replay { trace: Arc::clone(&trace.0), names: Arc::clone(&trace.0), engine, result })
}

fn spec_of(tiers: Vec<TierArg>, mode: &str) -> Result<ReplaySpec> {
    let tiers = tiers.into_iter().map(TierArg::parse).collect::<Result<_>>()?;
    let mode = choose("mode", mode, &[("prefix", Mode::Prefix), ("object", Mode::Object)])?;
    Ok(ReplaySpec { mode, ..ReplaySpec::new(tiers) })
}

#[pyfunction]
#[pyo3(signature = (trace, *, policy, capacities, warmup_requests, threads, progress = None))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over owned lists")]
pub(crate) fn policy_curve(
    py: Python<'_>,
    trace: &Trace,
    policy: &str,
    capacities: Vec<u64>,
    warmup_requests: Option<usize>,
    threads: usize,
    progress: Option<&Progress>,
) -> PyResult<Table> {
    let points = run(py, progress, |progress| {
        curve_points(&trace.0, policy, &capacities, warmup_requests, threads, progress)
    })?;
    points_table(points, warmup_requests.is_some()).try_into()
}

/// Single LRU tiers of many capacities from one pass, as rows of the table of tiers.
#[pyfunction]
#[pyo3(signature = (trace, *, capacities, progress = None))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over owned lists")]
pub(crate) fn lru_tiers(
    py: Python<'_>,
    trace: &Trace,
    capacities: Vec<u64>,
    progress: Option<&Progress>,
) -> PyResult<Table> {
    let counters = run(py, progress, |progress| lru_each(&trace.0, &capacities, progress))?;
    let tiers = capacities.iter().map(|&capacity| TierSpec::new("lru", capacity)).collect();
    let result = ReplayResult {
        spec: ReplaySpec::new(tiers),
        tiers: counters.into_iter().map(|counters| TierResult { counters, content: Vec::new() }).collect(),
        requests: None,
        events: Events::new(false),
        input_tokens: trace.0.totals().input_tokens,
    };
    result.tiers_table(&trace.0).try_into()
}
