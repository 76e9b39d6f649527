//! Data structures that several engine models share.

mod links;
mod lists;

pub(crate) use links::Links;
pub(crate) use lists::{End, List, Member, Members};
