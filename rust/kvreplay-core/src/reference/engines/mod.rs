//! Slow, obvious twins of engine models, one file each.

pub(crate) mod kvbm_v1;
pub(crate) mod kvbm_v2;
pub(crate) mod plain_gpu;
pub(crate) mod sequence;
pub(crate) mod trtllm_v1;
pub(crate) mod trtllm_v2;
