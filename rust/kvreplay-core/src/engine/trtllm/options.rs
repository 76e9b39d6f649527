//! Options of the profile: what a deployment sets in `KvCacheConfig` and `KvCacheRetentionConfig`.

use super::slots::{MAX_PRIORITY, Retention};
use super::tree::Partial;
use crate::engine::Setup;
use crate::error::{Error, Result};
use crate::policy::spec::{Args, Param};

pub(super) const PARAMS: &[Param] = &[
    Param {
        name: "priority",
        default: "",
        doc: "retention priority 0..100 of prompt blocks; not given: new blocks get 35, found ones keep theirs",
    },
    Param {
        name: "priority_tokens",
        default: "0",
        doc: "priority holds for blocks that start in the first so many tokens; 0 for the whole prompt",
    },
    Param { name: "duration", default: "", doc: "how long priority holds after a release, like \"30 s\"" },
    Param { name: "decode_priority", default: "35", doc: "retention priority 0..100 of decoded blocks" },
    Param { name: "decode_duration", default: "", doc: "how long decode_priority holds, like \"30 s\"" },
    Param {
        name: "secondary_offload_min_priority",
        default: "30",
        doc: "lowest priority that goes to the host when evicted: 30 in the code, 35 in the documentation",
    },
    Param {
        name: "emptied_slot",
        default: "back",
        doc: "where a host slot emptied by a hit queues: back (code), front (pull request 18868)",
    },
    Param {
        name: "partial_reuse",
        default: "true",
        doc: "enable_partial_reuse: leading tokens of a block count",
    },
    Param {
        name: "copy_on_partial_reuse",
        default: "true",
        doc: "copy_on_partial_reuse: false reuses parts of blocks that nobody needs only",
    },
];

/// Where the host slot queues that a hit emptied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EmptiedSlot {
    Back,
    Front,
}

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct Options {
    prompt: Retention,
    priority_tokens: u64,
    decode: Retention,
    pub(super) secondary_offload_min_priority: u8,
    pub(super) emptied_slot: EmptiedSlot,
    pub(super) partial: Partial,
}

impl Options {
    /// Reads and checks them.
    ///
    /// # Errors
    /// [`Error::Config`] for a value out of range, or a duration on a trace without times.
    pub(super) fn new(setup: &Setup<'_>) -> Result<Self> {
        let args = setup.options;
        let prompt = Retention {
            priority: given(args, "priority").then(|| priority(args, "priority")).transpose()?,
            duration_us: duration_us(setup, "duration")?,
        };
        if prompt.duration_us > 0 && prompt.priority.is_none() {
            return Err(Error::config(
                "duration is given without priority",
                "give the priority that it limits too, like priority=80",
            ));
        }
        let emptied_slot = match args.text("emptied_slot") {
            "back" => EmptiedSlot::Back,
            "front" => EmptiedSlot::Front,
            other => return Err(args.bad("emptied_slot", other, "back or front")),
        };
        let partial = match (args.flag("partial_reuse")?, args.flag("copy_on_partial_reuse")?) {
            (false, _) => Partial::Off,
            (true, true) => Partial::Copy,
            (true, false) => Partial::Own,
        };
        Ok(Self {
            prompt,
            priority_tokens: args.number("priority_tokens", 0..=1 << 40)?,
            decode: Retention {
                priority: Some(priority(args, "decode_priority")?),
                duration_us: duration_us(setup, "decode_duration")?,
            },
            secondary_offload_min_priority: priority(args, "secondary_offload_min_priority")?,
            emptied_slot,
            partial,
        })
    }

    /// What the prompt block that starts at a token gets.
    pub(super) fn prompt_retention(&self, token: u64) -> Retention {
        let covered = self.priority_tokens == 0 || token < self.priority_tokens;
        if covered { self.prompt } else { Retention::default() }
    }

    /// What decoded blocks get.
    pub(super) fn decode_retention(&self) -> Retention {
        self.decode
    }
}

fn given(args: &Args<'_>, name: &str) -> bool {
    !args.text(name).is_empty()
}

fn priority(args: &Args<'_>, name: &str) -> Result<u8> {
    args.number(name, 0..=MAX_PRIORITY)
}

fn duration_us(setup: &Setup<'_>, name: &str) -> Result<i64> {
    if !given(setup.options, name) {
        return Ok(0);
    }
    let duration_us = setup.options.duration_us(name)?;
    if setup.timed {
        Ok(duration_us)
    } else {
        Err(Error::config(
            format!("{name} needs times, and this trace has none"),
            format!("leave {name} out, or use a trace with arrival times"),
        ))
    }
}
