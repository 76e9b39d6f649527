//! kvreplay-core: run-encoded prefix traces of LLM requests and exact replay engines for KV-cache tiers.
//!
//! Data moves one way: `ingest` makes a [`trace::Trace`], the engines in `stack` and `replay` read it.
//! What every number means is written in the project's documentation ("What the numbers mean").

pub mod admission;
pub mod engine;
pub mod error;
pub mod hierarchy;
pub mod ingest;
pub mod policy;
pub mod progress;
pub mod reference;
pub mod replay;
pub mod stack;
pub mod table;
pub mod trace;

pub use error::{Error, Result};
pub use progress::Progress;
pub use trace::Trace;
