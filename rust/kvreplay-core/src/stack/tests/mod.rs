//! The stack engine against the literal twins of `reference`, and the golden numbers.

mod bounds;
mod curve;
pub(super) mod forests;
mod golden;
mod hierarchies;
mod pass;
mod shape;
mod tables;
