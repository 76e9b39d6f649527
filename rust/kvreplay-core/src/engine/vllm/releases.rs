//! Releases of vLLM whose rules are known, and what they differ in.

use super::gpu::FreeRule;
use crate::engine::Release;

/// Releases whose rules were read or run.
pub(crate) const RELEASES: &[Release] = &[
    Release(0, 10, 2),
    Release(0, 11, 2),
    Release(0, 14, 1),
    Release(0, 18, 1),
    Release(0, 22, 1),
    Release(0, 23, 0),
    Release(0, 24, 0),
    Release(0, 25, 1),
    Release(0, 26, 0),
    Release(0, 27, 1),
    Release(0, 28, 0),
    Release(0, 29, 0),
    Release(0, 30, 0),
    Release(0, 31, 0),
    Release(0, 32, 0),
    Release(0, 33, 0),
];

/// What a release does differently from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags {
    /// Where blocks without a hash go when they are freed.
    pub(crate) free_rule: FreeRule,
}

impl Flags {
    /// The rules of a release.
    pub(crate) fn of(release: Release) -> Self {
        let free_rule =
            if release >= Release(0, 23, 0) { FreeRule::UnhashedFirst } else { FreeRule::AppendAll };
        Self { free_rule }
    }
}
