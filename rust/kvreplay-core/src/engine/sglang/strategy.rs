//! Which leaf goes first: SGLang's eviction strategies.

use crate::engine::registry::Choice;
use crate::error::Result;
use crate::policy::spec::{Args, Param, Spec};

/// The strategies, in SGLang's words; the first one is its default.
pub(super) const STRATEGIES: &[Choice] = &[
    Choice { name: "lru", doc: "the leaf accessed longest ago goes first", parameters: &[] },
    Choice {
        name: "lfu",
        doc: "the leaf inserted by the fewest requests goes first, among equals the one accessed longest ago",
        parameters: &[],
    },
    Choice {
        name: "fifo",
        doc: "the oldest leaf goes first (in the code, not among the server's choices)",
        parameters: &[],
    },
    Choice {
        name: "mru",
        doc: "the leaf accessed last goes first (in the code, not among the server's choices)",
        parameters: &[],
    },
    Choice {
        name: "filo",
        doc: "the youngest leaf goes first (in the code, not among the server's choices)",
        parameters: &[],
    },
    Choice {
        name: "slru",
        doc: "leaves inserted by fewer than protected_threshold requests go first, each group in order of access",
        parameters: &[Param {
            name: "protected_threshold",
            default: "2",
            doc: "requests that insert a node until it is protected",
        }],
    },
    Choice {
        name: "priority",
        doc: "lower priority goes first, then order of access; a trace has no priorities, so all requests have 0 and \
              only pages of prompts above generated ones have 1",
        parameters: &[],
    },
];

/// An eviction strategy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strategy {
    Lru,
    Lfu,
    Fifo,
    Mru,
    Filo,
    Slru { protected_threshold: u64 },
    Priority,
}

/// What a strategy looks at.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Usage {
    /// Requests that inserted the node.
    pub(super) hits: u64,
    /// Tick of the last access.
    pub(super) access: u64,
    /// Tick of creation.
    pub(super) created: u64,
    /// 1 for pages of a prompt above generated pages.
    pub(super) priority: u64,
}

/// The smallest rank is evicted first. Two leaves never have the same one: ticks are shared along a path at
/// most, and a path has one leaf.
pub(super) type Rank = (u64, u64);

impl Strategy {
    /// Parses a policy spec that [`STRATEGIES`] has been asked about already.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let spec = Spec::parse(text)?;
        Ok(match spec.name.as_str() {
            "lfu" => Self::Lfu,
            "fifo" => Self::Fifo,
            "mru" => Self::Mru,
            "filo" => Self::Filo,
            "priority" => Self::Priority,
            "slru" => {
                let choice = STRATEGIES.iter().find(|choice| choice.name == "slru");
                let args = Args::new(&spec, choice.map_or(&[], |choice| choice.parameters))?;
                Self::Slru {
                    protected_threshold: args.number("protected_threshold", 0..=u64::from(u32::MAX))?,
                }
            }
            _ => Self::Lru,
        })
    }

    pub(super) fn rank(self, usage: &Usage) -> Rank {
        match self {
            Self::Lru => (0, usage.access),
            Self::Lfu => (usage.hits, usage.access),
            Self::Fifo => (0, usage.created),
            Self::Mru => (0, !usage.access),
            Self::Filo => (0, !usage.created),
            Self::Slru { protected_threshold } => {
                (u64::from(usage.hits >= protected_threshold), usage.access)
            }
            Self::Priority => (usage.priority, usage.access),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_order_leaves_as_each_strategy_says() {
        let usage = |hits, access, created, priority| Usage { hits, access, created, priority };
        let leaves = [usage(3, 5, 4, 0), usage(1, 9, 1, 0), usage(2, 2, 2, 1), usage(1, 7, 6, 0)];
        for (text, order) in [
            ("lru", [2, 0, 3, 1]),
            ("lfu", [3, 1, 2, 0]),
            ("fifo", [1, 2, 0, 3]),
            ("mru", [1, 3, 0, 2]),
            ("filo", [3, 0, 2, 1]),
            ("slru", [3, 1, 2, 0]),
            ("slru(3)", [2, 3, 1, 0]),
            ("slru(protected_threshold=0)", [2, 0, 3, 1]),
            ("priority", [0, 3, 1, 2]),
        ] {
            let strategy = Strategy::parse(text).unwrap();
            let mut got = [0, 1, 2, 3];
            got.sort_by_key(|&i| strategy.rank(&leaves[i]));
            assert_eq!(got, order, "{text}");
        }
        assert!(Strategy::parse("slru(-1)").is_err());
    }
}
