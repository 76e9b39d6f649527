//! Releases of vLLM whose rules are known, and what they differ in.

use super::gpu::FreeRule;
use super::policy::Recency;
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

/// The first release that prepends blocks without a hash to the free queue.
const UNHASHED_FIRST: Release = Release(0, 23, 0);
/// The first release in which the CPU tier was seen.
pub(super) const CPU: Release = Release(0, 11, 2);
/// The first release in which secondary tiers were seen.
pub(super) const TIERING: Release = Release(0, 22, 1);
/// The first release whose `store_threshold` counts offers.
const OFFERS_COUNT: Release = Release(0, 30, 0);
/// The first release whose recency is request-scoped.
const REQUEST_SCOPED: Release = Release(0, 31, 0);

/// What a release does differently from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags {
    /// Where blocks without a hash go when they are freed.
    pub(crate) free_rule: FreeRule,
    /// How the CPU tier refreshes recency.
    pub(crate) recency: Recency,
    /// Whether `store_threshold` counts offers, not look-ups.
    pub(crate) offers_count: bool,
    /// Whether there is a CPU tier, with LRU and ARC.
    pub(crate) has_cpu: bool,
    /// Whether there are secondary tiers.
    pub(crate) has_tiering: bool,
}

impl Flags {
    /// The rules of a release.
    pub(crate) fn of(release: Release) -> Self {
        let (unhashed_first, scoped) = (release >= UNHASHED_FIRST, release >= REQUEST_SCOPED);
        Self {
            free_rule: if unhashed_first { FreeRule::UnhashedFirst } else { FreeRule::AppendAll },
            recency: if scoped { Recency::RequestScoped } else { Recency::Touch },
            offers_count: release >= OFFERS_COUNT,
            has_cpu: release >= CPU,
            has_tiering: release >= TIERING,
        }
    }
}
