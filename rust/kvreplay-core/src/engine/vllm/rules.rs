//! The rules of vLLM, as `kvreplay profile show` prints them.

use crate::engine::{Release, Rule};

pub(super) fn rules(_releases: &[Release]) -> Vec<Rule> {
    Vec::new()
}
