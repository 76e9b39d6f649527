//! Twins of the engine models, written from their rules as steps, with plain lists.

pub(crate) mod kvbm_v1;
pub(crate) mod kvbm_v2;
pub(crate) mod lmcache;
pub(crate) mod lmcache_mp;
pub(crate) mod plain_gpu;
pub(crate) mod sequence;
pub(crate) mod sglang;
pub(crate) mod trtllm_v1;
pub(crate) mod trtllm_v2;
pub(crate) mod vllm;
