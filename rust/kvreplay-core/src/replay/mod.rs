//! The replay loop and its recorders.
