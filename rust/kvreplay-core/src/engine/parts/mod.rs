//! Data structures that several engine models share.

mod links;

pub(crate) use links::Links;
