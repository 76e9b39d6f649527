//! Slow, obvious twins of engine models, one file each.

pub(crate) mod lmcache;
pub(crate) mod lmcache_mp;
