//! Engine profiles: the registry, a trace in an engine's blocks, and its replay.

use crate::arrow::Table;
use crate::errors::to_python;
use crate::replay::{Replay, TierArg};
use crate::run::{Progress, run};
use crate::trace::Trace;
use kvreplay_core::engine::{Choice, Grain, PROFILES, Profile, ProfileInfo, Role};
use kvreplay_core::policy::spec::Param;
use kvreplay_core::replay::replay_profile as replay_core;
use kvreplay_core::table::{Table as CoreTable, Values};
use pyo3::prelude::*;
use std::sync::Arc;

/// A trace in the blocks of an engine profile.
#[pyclass(frozen, module = "kvreplay._core")]
pub(crate) struct EngineTrace {
    grain: Grain,
    profile: Profile,
}

#[pymethods]
impl EngineTrace {
    /// The resolved profile: `vllm@0.33.0`.
    #[getter]
    fn profile(&self) -> String {
        self.profile.name()
    }

    #[getter]
    fn block_tokens(&self) -> u32 {
        self.grain.trace().block_tokens
    }

    #[getter]
    fn unique_blocks(&self) -> u32 {
        self.grain.trace().forest.blocks()
    }

    /// The trace in the engine's blocks, whose ids are block numbers.
    fn trace(&self) -> Trace {
        Trace(Arc::clone(self.grain.trace()))
    }
}

/// A trace in the blocks of a profile, ready to be replayed.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over owned lists")]
pub(crate) fn profile_trace(
    py: Python<'_>,
    trace: &Trace,
    profile: &str,
    options: Vec<(String, String)>,
) -> PyResult<EngineTrace> {
    let made = py.detach(|| {
        let profile = Profile::parse(profile, &options)?;
        let grain = Grain::new(&trace.0, profile.block_tokens()?, profile.outputs()?)?;
        Ok(EngineTrace { grain, profile })
    });
    made.map_err(|error| to_python(py, error))
}

#[pyfunction]
#[pyo3(signature = (trace, tiers, *, per_request, events, occupancy = false, progress = None))]
pub(crate) fn replay_profile(
    py: Python<'_>,
    trace: &EngineTrace,
    tiers: Vec<TierArg>,
    per_request: bool,
    events: bool,
    occupancy: bool,
    progress: Option<&Progress>,
) -> PyResult<Replay> {
    let tiers: kvreplay_core::Result<Vec<_>> = tiers.into_iter().map(TierArg::parse).collect();
    let tiers = tiers.map_err(|error| to_python(py, error))?;
    let result = run(py, progress, |progress| {
        replay_core(&trace.grain, &trace.profile, &tiers, per_request, events, occupancy, progress)
    })?;
    Ok(Replay::of_profile(Arc::clone(trace.grain.trace()), Arc::clone(trace.grain.source()), result))
}

/// `name@oldest .. name@newest` per component.
fn releases(info: &ProfileInfo) -> String {
    let component = |part: &kvreplay_core::engine::Component| {
        part.releases.iter().map(|release| format!("{}@{release}", part.name)).collect::<Vec<_>>().join(", ")
    };
    info.components.iter().map(component).collect::<Vec<_>>().join(" + ")
}

fn params(params: &[Param]) -> String {
    params.iter().map(|p| format!("{}={}", p.name, p.default)).collect::<Vec<_>>().join(", ")
}

fn choices(choices: &[Choice]) -> Vec<String> {
    let one = |choice: &Choice| {
        if choice.parameters.is_empty() {
            choice.name.to_owned()
        } else {
            format!("{}({})", choice.name, params(choice.parameters))
        }
    };
    choices.iter().map(one).collect()
}

/// `cpu: lru | arc; store_threshold(n=2, ..)`.
fn role(role: &Role) -> String {
    let name = if role.name == "*" { "others" } else { role.name };
    let policies = choices(role.policies).join(" | ");
    let admissions = match choices(role.admissions).join(" | ") {
        known if known.is_empty() => String::new(),
        known => format!("; admission always | {known}"),
    };
    format!("{name}: {policies}{admissions}. {}", role.doc)
}

/// The registry of profiles.
#[pyfunction]
pub(crate) fn profiles() -> PyResult<Table> {
    let text = |get: &dyn Fn(&ProfileInfo) -> String| {
        Values::Text(PROFILES.iter().map(|info| Some(get(info))).collect())
    };
    let common = |info: &ProfileInfo| format!("block_size={}, outputs=private", info.block_tokens);
    CoreTable::new()
        .with("name", text(&|info| info.name.to_owned()))
        .with("doc", text(&|info| info.doc.to_owned()))
        .with(
            "parameters",
            text(&|info| {
                let own = params(info.options);
                if own.is_empty() { common(info) } else { format!("{}, {own}", common(info)) }
            }),
        )
        .with("releases", text(&releases))
        .with("tiers", text(&|info| info.roles.iter().map(role).collect::<Vec<_>>().join("\n")))
        .with("source", text(&|info| info.source.to_owned()))
        .try_into()
}

/// The options a profile has: `name`, `default`, `doc`.
#[pyfunction]
pub(crate) fn profile_options(py: Python<'_>, profile: &str) -> PyResult<Table> {
    let profile = Profile::parse(profile, &[]).map_err(|error| to_python(py, error))?;
    let options = profile.options();
    let text = |get: &dyn Fn(&Param) -> String| {
        Values::Text(options.iter().map(|option| Some(get(option))).collect())
    };
    CoreTable::new()
        .with("name", text(&|p| p.name.to_owned()))
        .with("default", text(&|p| p.default.to_owned()))
        .with("doc", text(&|p| p.doc.to_owned()))
        .try_into()
}

/// The resolved name of a profile, and its rules: `topic`, `rule`, `since`, `source`.
#[pyfunction]
pub(crate) fn profile_rules(py: Python<'_>, profile: &str) -> PyResult<(String, Table)> {
    let profile = Profile::parse(profile, &[]).map_err(|error| to_python(py, error))?;
    let rules = profile.rules();
    let text = |get: &dyn Fn(&kvreplay_core::engine::Rule) -> String| {
        Values::Text(rules.iter().map(|rule| Some(get(rule))).collect())
    };
    let table = CoreTable::new()
        .with("topic", text(&|rule| rule.topic.to_owned()))
        .with("rule", text(&|rule| rule.rule.clone()))
        .with("since", text(&|rule| rule.since.to_owned()))
        .with("source", text(&|rule| rule.source.to_owned()))
        .try_into()?;
    Ok((profile.name(), table))
}
