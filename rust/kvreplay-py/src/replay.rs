//! The replay of hierarchies, and curves of any policy.

use crate::arrow::Table;
use crate::errors::to_python;
use crate::run::{Progress, run};
use crate::trace::{Trace, ids};
use kvreplay_core::hierarchy::{FILLS, TOUCHES, TierSpec};
use kvreplay_core::policy::{Closure, parse_opt};
use kvreplay_core::replay::{Mode, ReplayResult, ReplaySpec};
use kvreplay_core::stack::{self, Curve, Point, points_table, ratios_table};
use kvreplay_core::trace::Trace as CoreTrace;
use kvreplay_core::{Error, Progress as CoreProgress, Result};
use pyo3::exceptions::PyIndexError;
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
    fn parse(self) -> Result<TierSpec> {
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
    trace: Arc<CoreTrace>,
    result: ReplayResult,
}

#[pymethods]
impl Replay {
    fn tiers(&self) -> PyResult<Table> {
        self.result.tiers_table(&self.trace).try_into()
    }

    fn requests(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| self.result.requests_table()).try_into()
    }

    fn events(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| self.result.events_table(&self.trace)).try_into()
    }

    fn content<'py>(&self, py: Python<'py>, tier: usize) -> PyResult<Bound<'py, PyList>> {
        let tier =
            self.result.tiers.get(tier).ok_or_else(|| PyIndexError::new_err(format!("no tier {tier}")))?;
        ids(py, &self.trace, &tier.content)
    }

    fn ratios(&self, py: Python<'_>) -> PyResult<Table> {
        py.detach(|| {
            let tiers = self.result.requests.as_ref().map_or(&[][..], |requests| &requests.hit_blocks);
            let hits: Vec<u32> =
                (0..self.trace.len()).map(|request| tiers.iter().map(|tier| tier[request]).sum()).collect();
            ratios_table(&stack::ratios(&self.trace, &hits))
        })
        .try_into()
    }
}

#[pyfunction]
#[pyo3(signature = (trace, tiers, *, mode, last_token, full_blocks_only, events, progress = None))]
#[expect(clippy::too_many_arguments, reason = "keyword-only options of the Python call")]
pub(crate) fn replay(
    py: Python<'_>,
    trace: &Trace,
    tiers: Vec<TierArg>,
    mode: &str,
    last_token: bool,
    full_blocks_only: bool,
    events: bool,
    progress: Option<&Progress>,
) -> PyResult<Replay> {
    let spec = spec_of(tiers, mode).map_err(|error| to_python(py, error))?;
    // Hits per request are always kept: ratios that are means over requests need them.
    let spec = ReplaySpec { last_token, full_blocks_only, per_request: true, events, ..spec };
    let result = run(py, progress, |progress| kvreplay_core::replay::replay(&trace.0, &spec, progress))?;
    Ok(Replay { trace: Arc::clone(&trace.0), result })
}

fn spec_of(tiers: Vec<TierArg>, mode: &str) -> Result<ReplaySpec> {
    let tiers = tiers.into_iter().map(TierArg::parse).collect::<Result<_>>()?;
    let mode = choose("mode", mode, &[("prefix", Mode::Prefix), ("object", Mode::Object)])?;
    Ok(ReplaySpec { mode, ..ReplaySpec::new(tiers) })
}

#[pyfunction]
#[pyo3(signature = (trace, *, policy, capacities, warmup_requests, progress = None))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over owned lists")]
pub(crate) fn policy_curve(
    py: Python<'_>,
    trace: &Trace,
    policy: &str,
    capacities: Vec<u64>,
    warmup_requests: Option<usize>,
    progress: Option<&Progress>,
) -> PyResult<Table> {
    let points =
        run(py, progress, |progress| points(&trace.0, policy, &capacities, warmup_requests, progress))?;
    points_table(points, warmup_requests.is_some()).try_into()
}

fn points(
    trace: &CoreTrace,
    policy: &str,
    capacities: &[u64],
    warmup_requests: Option<usize>,
    progress: &CoreProgress,
) -> Result<Vec<Point>> {
    if policy == "lru" {
        return Ok(Curve::of(trace, warmup_requests, progress)?.at(capacities));
    }
    if parse_opt(policy)? == Some(true) {
        return stack::opt(trace, capacities, warmup_requests, progress);
    }
    capacities.iter().map(|&c| replay_point(trace, policy, c, warmup_requests, progress)).collect()
}

fn replay_point(
    trace: &CoreTrace,
    policy: &str,
    capacity_blocks: u64,
    warmup_requests: Option<usize>,
    progress: &CoreProgress,
) -> Result<Point> {
    let tier = TierSpec { policy: policy.to_owned(), ..TierSpec::new(policy, capacity_blocks) };
    let spec = ReplaySpec { per_request: warmup_requests.is_some(), ..ReplaySpec::new(vec![tier]) };
    let result = kvreplay_core::replay::replay(trace, &spec, progress)?;
    let counters = &result.tiers[0].counters;
    let warm = |first: usize| {
        let tokens = result.requests.as_ref().and_then(|requests| requests.hit_tokens[0].get(first..));
        tokens.unwrap_or(&[]).iter().map(|&n| u64::from(n)).sum()
    };
    Ok(Point {
        capacity_blocks,
        hit_blocks: counters.served,
        hit_tokens: counters.served_tokens,
        warm_hit_tokens: warmup_requests.map(warm),
    })
}
