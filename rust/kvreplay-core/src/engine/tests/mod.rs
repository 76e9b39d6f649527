//! What the tests of several engines share.

pub(crate) mod draws;
pub(crate) mod golden;
pub(crate) mod steps;
