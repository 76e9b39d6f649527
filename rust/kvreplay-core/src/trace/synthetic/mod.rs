//! Generated traces.
