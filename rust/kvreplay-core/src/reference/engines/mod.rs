//! Twins of the engine models, written from their rules as steps, with plain lists.

pub(crate) mod lmcache;
pub(crate) mod lmcache_mp;
pub(crate) mod sglang;
pub(crate) mod vllm;
