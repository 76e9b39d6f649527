//! Everything is stored.

use super::{Filter, FilterInfo, Offer};
use crate::error::Result;
use crate::policy::Build;
use crate::policy::spec::Args;

pub(super) const INFO: FilterInfo = FilterInfo {
    name: "always",
    doc: "stores every block that is offered",
    parameters: &[],
    source: "vLLM, LMCache, SGLang write_through",
    build: |_: &Args<'_>, _: &Build<'_>| -> Result<Box<dyn Filter>> { Ok(Box::new(Always)) },
};

struct Always;

impl Filter for Always {
    fn admits(&mut self, _: &Offer) -> bool {
        true
    }

    fn is_always(&self) -> bool {
        true
    }
}
