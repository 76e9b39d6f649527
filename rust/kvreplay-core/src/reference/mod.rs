//! Slow, obvious twins of the engines, used by tests only.
//!
//! They take plain paths (dense block numbers, root first, one per request in replay order) and search
//! through plain lists. Nothing here shares code with the engines.

#[cfg(test)]
pub(crate) mod engines;
pub mod hierarchy;
pub mod opt;
#[cfg(test)]
pub(crate) mod policies;
pub mod stack;
