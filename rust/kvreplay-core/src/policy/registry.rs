//! The one list of policies: the command line, its help and the documentation read it too.

use super::parts::Topology;
use super::spec::{Args, Param, Spec, unknown};
use super::{
    Policy, arc, fifo, gdsf, lfu, lru, lruk, opt, random, recompute_cost, s3fifo, sieve, slru, tail_lru, ttl,
    twoq, wtinylfu,
};
use crate::error::Result;

/// What a policy is built for.
#[derive(Debug, Clone, Copy)]
pub struct Build<'a> {
    /// Parents and depths of the blocks (chunks) of its tier.
    pub topology: &'a Topology<'a>,
    /// Most blocks (chunks) of the tier.
    pub capacity: u32,
    /// Tokens per block (chunk).
    pub block_tokens: u32,
    /// Whether the trace has times.
    pub timed: bool,
}

impl Build<'_> {
    /// Number of distinct blocks, the length of per-block arrays.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.topology.blocks() as usize
    }
}

/// Constructor of a policy.
pub type BuildFn = fn(&Args<'_>, &Build<'_>) -> Result<Box<dyn Policy>>;

/// A policy as users see it.
#[derive(Debug, Clone, Copy)]
pub struct PolicyInfo {
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

/// Every policy.
pub const POLICIES: &[PolicyInfo] = &[
    lru::INFO,
    fifo::INFO,
    lfu::INFO,
    lruk::INFO,
    slru::INFO,
    twoq::INFO,
    arc::INFO,
    s3fifo::INFO,
    sieve::INFO,
    wtinylfu::INFO,
    gdsf::INFO,
    recompute_cost::INFO,
    tail_lru::INFO,
    ttl::INFO,
    random::INFO,
    opt::INFO,
];

/// Builds the policy a spec names.
///
/// # Errors
/// [`crate::Error::Config`] for unknown names (the known ones and the nearest are listed) and for parameters
/// that are unknown or out of range.
pub fn build(text: &str, build: &Build<'_>) -> Result<Box<dyn Policy>> {
    let spec = Spec::parse(text)?;
    let info = POLICIES
        .iter()
        .find(|p| p.name == spec.name)
        .ok_or_else(|| unknown("policy", &spec.name, &POLICIES.iter().map(|p| p.name).collect::<Vec<_>>()))?;
    (info.build)(&Args::new(&spec, info.parameters)?, build)
}
