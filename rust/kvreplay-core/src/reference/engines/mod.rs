//! Twins of the engine models, written from their rules as steps, with plain lists.

pub(crate) mod vllm;
