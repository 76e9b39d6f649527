//! The one list of admission filters.

use super::{Filter, always, cost, doubling, min_count, min_prefix_depth, second_touch, sketch};
use crate::error::Result;
use crate::policy::Build;
use crate::policy::spec::{Args, Param, Spec, unknown};

/// Constructor of a filter.
pub type BuildFn = fn(&Args<'_>, &Build<'_>) -> Result<Box<dyn Filter>>;

/// A filter as users see it.
#[derive(Debug, Clone, Copy)]
pub struct FilterInfo {
    /// The name in specs.
    pub name: &'static str,
    /// One line.
    pub doc: &'static str,
    /// Its parameters, in the order of positional arguments.
    pub parameters: &'static [Param],
    /// Paper or engine.
    pub source: &'static str,
    /// Constructor.
    pub build: BuildFn,
}

/// Every filter.
pub const FILTERS: &[FilterInfo] = &[
    always::INFO,
    min_count::INFO,
    doubling::INFO,
    sketch::INFO,
    second_touch::INFO,
    min_prefix_depth::INFO,
    cost::INFO,
];

/// Builds the filter a spec names.
///
/// # Errors
/// [`crate::Error::Config`] for unknown names (the known ones and the nearest are listed) and for
/// parameters that are unknown or out of range.
pub fn build(text: &str, build: &Build<'_>) -> Result<Box<dyn Filter>> {
    let spec = Spec::parse(text)?;
    let info = FILTERS.iter().find(|f| f.name == spec.name).ok_or_else(|| {
        unknown("admission filter", &spec.name, &FILTERS.iter().map(|f| f.name).collect::<Vec<_>>())
    })?;
    (info.build)(&Args::new(&spec, info.parameters)?, build)
}
