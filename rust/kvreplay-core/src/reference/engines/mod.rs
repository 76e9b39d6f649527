//! Slow, obvious twins of engine models, one file each.

pub(crate) mod sglang;
