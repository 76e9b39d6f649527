//! Slow, obvious twins of the engines, used by tests only.

#[cfg(test)]
pub(crate) mod policies;
