//! Releases of vLLM whose rules are known, and what they differ in. Every switch was read in the sources of the
//! releases listed; between two of them it may have come earlier.

use super::gpu::FreeRule;
use super::policy::Recency;
use crate::engine::Release;

/// Releases whose rules were read.
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

/// The first release with a CPU tier.
pub(super) const CPU: Release = Release(0, 11, 2);
/// The first release whose ARC works: before, a chunk just stored is touched, and that fails with a `KeyError`.
pub(super) const ARC: Release = Release(0, 18, 1);
/// The first release with `store_threshold`.
pub(super) const THRESHOLD: Release = Release(0, 18, 1);
/// The first release with secondary tiers.
pub(super) const TIERING: Release = Release(0, 22, 1);
/// The first release with secondary tiers of objects.
pub(super) const OBJECTS: Release = Release(0, 23, 0);
/// The first release that can leave decoded chunks out, and does so unless told.
pub(super) const PROMPT_ONLY: Release = Release(0, 23, 0);

/// What `store_threshold` counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Counted {
    /// Every complete chunk of the prompt behind the GPU hit, when it is looked up.
    LookUps,
    /// Chunks looked up one by one, up to the first one missing.
    LookUpsToMiss,
    /// Offered chunks one by one; a full table may drop one of the same offer.
    EachOffer,
    /// Offered chunks, known ones first; a full table drops none of the same offer.
    Offers,
}

/// Which chunks of an offer its own store call may not evict.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spared {
    /// None.
    Nothing,
    /// Those that were counted often enough.
    Counted,
    /// All.
    Offer,
}

/// What a release does differently from others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Flags {
    /// Where blocks without a hash go when they are freed.
    pub(crate) free_rule: FreeRule,
    /// How the CPU tier refreshes recency.
    pub(crate) recency: Recency,
    /// What `store_threshold` counts.
    pub(crate) counted: Counted,
    /// What a store call may not evict.
    pub(crate) spared: Spared,
    /// Whether a call that ARC cannot make room for evicts nothing.
    pub(crate) arc_is_atomic: bool,
    /// Whether ARC takes from a T1 below its target when T2 has no victim.
    pub(crate) arc_falls_back: bool,
    /// Whether a refused range is offered once more when the request has ended.
    pub(crate) offers_at_end: bool,
}

impl Flags {
    /// The rules of a release.
    pub(crate) fn of(release: Release) -> Self {
        // The newest entry that is not newer than the release.
        fn pick<T: Copy>(release: Release, table: &[(Release, T)]) -> T {
            let known = table.iter().rev().find(|(since, _)| release >= *since);
            known.unwrap_or(&table[0]).1
        }
        Self {
            free_rule: pick(release, FREE_RULES),
            recency: pick(release, RECENCIES),
            counted: pick(release, COUNTED),
            spared: pick(release, SPARED),
            arc_is_atomic: release >= Release(0, 22, 1),
            arc_falls_back: release >= Release(0, 30, 0),
            offers_at_end: release >= Release(0, 26, 0),
        }
    }
}

const FREE_RULES: &[(Release, FreeRule)] =
    &[(Release(0, 10, 2), FreeRule::AppendAll), (Release(0, 23, 0), FreeRule::UnhashedFirst)];

const RECENCIES: &[(Release, Recency)] = &[
    (Release(0, 11, 2), Recency::Touch),
    (Release(0, 24, 0), Recency::TouchAndTransfer),
    (Release(0, 31, 0), Recency::AtEnd),
    (Release(0, 33, 0), Recency::AtUse),
];

const COUNTED: &[(Release, Counted)] = &[
    (Release(0, 18, 1), Counted::LookUps),
    (Release(0, 22, 1), Counted::LookUpsToMiss),
    (Release(0, 29, 0), Counted::EachOffer),
    (Release(0, 30, 0), Counted::Offers),
];

const SPARED: &[(Release, Spared)] = &[
    (Release(0, 11, 2), Spared::Nothing),
    (Release(0, 18, 1), Spared::Counted),
    (Release(0, 31, 0), Spared::Offer),
];

#[cfg(test)]
mod tests {
    use super::*;
    use Counted::{EachOffer, LookUps, LookUpsToMiss, Offers};
    use Recency::{AtEnd, AtUse, Touch, TouchAndTransfer};

    #[test]
    fn a_release_has_the_rules_of_the_last_switch_before_it() {
        let flags = |minor| Flags::of(Release(0, minor, 9));
        assert_eq!(flags(22).free_rule, FreeRule::AppendAll);
        assert_eq!(Flags::of(Release(0, 23, 0)).free_rule, FreeRule::UnhashedFirst);
        let recencies = [10, 23, 24, 30, 31, 32, 33].map(|minor| flags(minor).recency);
        assert_eq!(recencies, [Touch, Touch, TouchAndTransfer, TouchAndTransfer, AtEnd, AtEnd, AtUse]);
        let counted = [18, 28, 29, 33].map(|minor| flags(minor).counted);
        assert_eq!(counted, [LookUps, LookUpsToMiss, EachOffer, Offers]);
        assert_eq!(
            [14, 18, 30, 31].map(|minor| flags(minor).spared),
            [Spared::Nothing, Spared::Counted, Spared::Counted, Spared::Offer]
        );
        assert_eq!([18, 22].map(|minor| flags(minor).arc_is_atomic), [false, true]);
        assert_eq!([29, 30].map(|minor| flags(minor).arc_falls_back), [false, true]);
        assert_eq!([25, 26].map(|minor| flags(minor).offers_at_end), [false, true]);
        assert!(RELEASES.is_sorted());
    }
}
