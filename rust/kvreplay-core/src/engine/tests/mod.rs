//! What the tests of several engines share.

pub(crate) mod golden;
