//! What changed between the releases that were read.

use crate::engine::Release;
use crate::error::{Error, Result};
use crate::policy::spec::Spec;

/// Known releases of the radix cache, oldest first.
pub(super) const RADIX: &[Release] =
    &[Release(0, 5, 9), Release(0, 5, 14), Release(0, 5, 18), Release(0, 5, 23)];

/// Known releases of HiCache, oldest first.
pub(super) const HICACHE: &[Release] = &[Release(0, 5, 23)];

/// What an insertion adds to hit counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    /// Nothing: `lfu` is `lru`.
    Never,
    /// One per insertion; a request that decodes inserts its prompt twice.
    Insertions,
    /// One per request.
    Requests,
}

/// How many pages leave the device for a prompt that does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shortage {
    /// As many as the prompt takes, though some of these were free.
    Whole,
    /// As many as are missing.
    Missing,
}

/// What a release does where releases differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rules {
    pub(super) counting: Counting,
    pub(super) shortage: Shortage,
    /// Prompts are ranked above what they decoded.
    pub(super) prompts_apart: bool,
}

impl Rules {
    pub(super) fn of(release: Release) -> Self {
        Self {
            counting: if release < Release(0, 5, 10) {
                Counting::Never
            } else if release < Release(0, 5, 23) {
                Counting::Insertions
            } else {
                Counting::Requests
            },
            shortage: if release < Release(0, 5, 18) { Shortage::Whole } else { Shortage::Missing },
            prompts_apart: release >= Release(0, 5, 23),
        }
    }
}

/// Refuses a strategy that a release does not have.
pub(super) fn check_strategy(release: Release, policy: &str) -> Result<()> {
    if Spec::parse(policy)?.name == "slru" && release < Release(0, 5, 10) {
        return Err(Error::config(
            format!("SGLang {release} has no policy slru"),
            "slru came with 0.5.10: use lru, or a later release",
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_differ_in_what_they_count_and_how_much_they_evict() {
        let rules = |counting, shortage, prompts_apart| Rules { counting, shortage, prompts_apart };
        let known: Vec<Rules> = RADIX.iter().map(|&release| Rules::of(release)).collect();
        assert_eq!(
            known,
            [
                rules(Counting::Never, Shortage::Whole, false),
                rules(Counting::Insertions, Shortage::Whole, false),
                rules(Counting::Insertions, Shortage::Missing, false),
                rules(Counting::Requests, Shortage::Missing, true),
            ]
        );
        assert!(check_strategy(Release(0, 5, 9), "slru(3)").is_err());
        assert!(check_strategy(Release(0, 5, 9), "lfu").is_ok());
        assert!(check_strategy(Release(0, 5, 14), "slru").is_ok());
    }
}
