//! The Python module `kvreplay._core`: registration only, one file per concern beside it.

mod arrow;
mod arrow_in;
mod errors;
mod generate;
mod native;
mod plain;
mod profile;
mod read;
mod registries;
mod replay;
mod run;
mod stack;
mod trace;

use pyo3::prelude::*;

/// The compiled core of kvreplay; use the `kvreplay` package instead.
#[pymodule(gil_used = false)]
mod _core {
    use super::{native, trace};
    use pyo3::prelude::*;

    #[pymodule_export]
    use super::arrow::Table;
    #[pymodule_export]
    use super::arrow_in::read_arrow;
    #[pymodule_export]
    use super::generate::{Lengths, generate};
    #[pymodule_export]
    use super::profile::{
        EngineTrace, profile_options, profile_rules, profile_trace, profiles, replay_profile,
    };
    #[pymodule_export]
    use super::read::{formats, read, read_lengths, write_rows, writers};
    #[pymodule_export]
    use super::registries::{admissions, fill_rules, generators, policies, quality_codes};
    #[pymodule_export]
    use super::replay::{Replay, lru_tiers, policy_curve, replay};
    #[pymodule_export]
    use super::run::Progress;
    #[pymodule_export]
    use super::stack::{Curve, ceiling, lru_curve, ratios, reuse_runs, reuse_time, window_growth};
    #[pymodule_export]
    use super::trace::Trace;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        super::errors::register(module)
    }

    #[pyfunction]
    #[pyo3(signature = (stream, metadata, *, file = ""))]
    fn read_native(stream: &Bound<'_, PyAny>, metadata: &str, file: &str) -> PyResult<trace::Trace> {
        native::read(stream, metadata, file).map(trace::Trace::from)
    }
}
