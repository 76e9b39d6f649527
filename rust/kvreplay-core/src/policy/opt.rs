//! OPT: who is needed last leaves first. It knows the future, so an engine of its own replays it.
//!
//! Belady, "A Study of Replacement Algorithms for a Virtual-Storage Computer", IBM Systems Journal 1966; with
//! bypass a block that is needed later than everything resident is not stored at all. In prefix mode the
//! choice is made once per request: of what is resident and the path, the blocks with the nearest next
//! request stay, of equals the shallower ones; this is the most hit blocks any policy can reach. In object
//! mode the next use is the next access. `bypass=false` stores every block, as the Belady of the usual
//! simulators does (object mode only). The engine is `replay::opt`.

use super::spec::{Args, Param};
use super::{Build, Policy, PolicyInfo};
use crate::error::{Error, Result};

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "opt",
    doc: "Belady: keeps what is needed soonest; an upper bound for every policy, in blocks",
    parameters: &[Param {
        name: "bypass",
        default: "true",
        doc: "whether blocks may be left out of the tier",
    }],
    source: "Belady 1966; request-granular with bypass",
    build: |_: &Args<'_>, _: &Build<'_>| -> Result<Box<dyn Policy>> {
        Err(Error::config(
            "opt is a bound for one tier with admission=always",
            "give opt as the only tier, or another policy",
        ))
    },
};

/// Whether a spec names `opt`, and if so its `bypass`.
///
/// # Errors
/// [`Error::Config`] when it names `opt` with wrong parameters.
pub fn parse_opt(text: &str) -> Result<Option<bool>> {
    let spec = super::spec::Spec::parse(text)?;
    if spec.name != INFO.name {
        return Ok(None);
    }
    Args::new(&spec, INFO.parameters)?.flag("bypass").map(Some)
}
