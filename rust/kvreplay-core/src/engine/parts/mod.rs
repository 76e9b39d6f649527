//! Building blocks that models of several engines share.

mod lists;

pub(crate) use lists::{End, List, Member, Members};
