//! Options of the profile: which engine, and what its environment variables and configuration set.

use super::doubling::Every;
use super::lineage::Releaf;
use super::order::Order;
use crate::engine::Setup;
use crate::error::{Error, Result};
use crate::policy::spec::{Args, Param};

pub(super) const PARAMS: &[Param] = &[
    Param { name: "engine", default: "v1", doc: "v1 (the kvbm wheels) or v2 (kvbm-engine)" },
    Param {
        name: "transfer_batch_blocks",
        default: "",
        doc: "most blocks of a transfer between host and disk (v1) or of any store (v2); 16 in v1, 64 in v2",
    },
    Param {
        name: "release_order",
        default: "",
        doc: "in which order a request gives blocks back: tail_first (v1) or head_first (v2)",
    },
    Param { name: "disk_filter", default: "true", doc: "v1: whether the disk has its frequency filter" },
    Param { name: "disk_filter_threshold", default: "2", doc: "v1: number from which a block passes" },
    Param {
        name: "disk_filter_interval",
        default: "600 s",
        doc: "v1: when all numbers fall by one: a time like \"600 s\", or \"20000 offers\"",
    },
    Param { name: "disk_filter_entries", default: "1000000", doc: "v1: numbers held at once" },
    Param {
        name: "inactive",
        default: "lineage",
        doc: "v2: order of eviction: lineage, lineage_fifo, lru or multi_lru",
    },
    Param {
        name: "multi_lru_thresholds",
        default: "3 8 15",
        doc: "v2: touches from which multi_lru counts a block as warm, hot and very hot",
    },
    Param {
        name: "g1_to_g2",
        default: "presence",
        doc: "v2: GPU to host: presence, presence_lfu or pass_all",
    },
    Param {
        name: "g2_to_g3",
        default: "presence",
        doc: "v2: host to disk: presence, presence_lfu or pass_all",
    },
    Param {
        name: "min_lfu_count",
        default: "1",
        doc: "v2: presence_lfu passes blocks touched more often, 0..15",
    },
    Param {
        name: "sketch_capacity",
        default: "2097152",
        doc: "v2: blocks the touch counts are made for: 2^18 small, 2^21 medium, 2^24 large",
    },
];

/// Which block manager.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Engine {
    V1,
    V2,
}

/// What a block must meet to be written to the next tier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edge {
    /// Nothing.
    PassAll,
    /// Not being there.
    Presence,
    /// That, and more touches than `min_lfu_count`.
    PresenceLfu,
}

/// The order of a pool's inactive blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Inactive {
    Lineage(Releaf),
    Lru,
    MultiLru([u32; 3]),
}

impl Inactive {
    /// An empty order over so many nodes.
    pub(super) fn order(self, nodes: u32) -> Order {
        match self {
            Self::Lineage(releaf) => Order::lineage(nodes, releaf),
            Self::Lru | Self::MultiLru(_) => Order::lists(nodes),
        }
    }
}

/// Threshold, interval and entries of v1's disk filter.
#[derive(Debug, Clone, Copy)]
pub(super) struct DiskFilter {
    pub(super) threshold: u64,
    pub(super) every: Every,
    pub(super) max_entries: u64,
}

/// The options, checked.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) engine: Engine,
    pub(super) batch_blocks: usize,
    pub(super) head_first: bool,
    /// v1 with a host and a disk.
    pub(super) disk_filter: Option<DiskFilter>,
    pub(super) inactive: Inactive,
    pub(super) to_host: Edge,
    pub(super) to_disk: Edge,
    pub(super) min_lfu_count: u32,
    pub(super) sketch_capacity: u32,
}

impl Options {
    /// Reads and checks them.
    ///
    /// # Errors
    /// [`Error::Config`] for a value out of range, or a filter that needs times on a trace without them.
    pub(super) fn new(setup: &Setup<'_>) -> Result<Self> {
        let args = setup.options;
        let engine = match args.text("engine") {
            "v1" => Engine::V1,
            "v2" => Engine::V2,
            other => return Err(args.bad("engine", other, "v1 or v2")),
        };
        let (batch_blocks, head_first) = if engine == Engine::V1 { (16, false) } else { (64, true) };
        let filters = engine == Engine::V1 && setup.tier("cpu").is_some() && setup.tier("disk").is_some();
        Ok(Self {
            engine,
            batch_blocks: if args.text("transfer_batch_blocks").is_empty() {
                batch_blocks
            } else {
                args.number("transfer_batch_blocks", 1..=1 << 20)?
            },
            head_first: match args.text("release_order") {
                "" => head_first,
                "head_first" => true,
                "tail_first" => false,
                other => return Err(args.bad("release_order", other, "head_first or tail_first")),
            },
            disk_filter: if args.flag("disk_filter")? && filters { Some(disk_filter(setup)?) } else { None },
            inactive: inactive(args)?,
            to_host: edge(args, "g1_to_g2")?,
            to_disk: edge(args, "g2_to_g3")?,
            min_lfu_count: args.number("min_lfu_count", 0..=15)?,
            sketch_capacity: args.number("sketch_capacity", 4..=1 << 24)?,
        })
    }
}

impl Options {
    /// Whether any rule of v2 looks at touches.
    pub(super) fn counts_touches(&self) -> bool {
        let by_touches = [self.to_host, self.to_disk].contains(&Edge::PresenceLfu);
        by_touches || matches!(self.inactive, Inactive::MultiLru(_))
    }
}

fn disk_filter(setup: &Setup<'_>) -> Result<DiskFilter> {
    let args = setup.options;
    let text = args.text("disk_filter_interval");
    let every = if let Some(count) = text.strip_suffix("offers") {
        let offers = count.trim().parse().ok().filter(|&offers| offers > 0);
        Every::Offers(offers.ok_or_else(|| args.bad("disk_filter_interval", text, "like \"20000 offers\""))?)
    } else if setup.timed {
        Every::Us(args.duration_us("disk_filter_interval")?)
    } else {
        return Err(Error::config(
            format!("the disk filter falls every {text}, and this trace has no times"),
            "give disk_filter_interval=\"20000 offers\" (how many blocks one interval offers), or disk_filter=false",
        ));
    };
    Ok(DiskFilter {
        threshold: args.number("disk_filter_threshold", 1..=1 << 30)?,
        every,
        max_entries: args.number("disk_filter_entries", 1..=u64::from(u32::MAX))?,
    })
}

fn inactive(args: &Args<'_>) -> Result<Inactive> {
    Ok(match args.text("inactive") {
        "lineage" => Inactive::Lineage(Releaf::Tick),
        "lineage_fifo" => Inactive::Lineage(Releaf::Fifo),
        "lru" => Inactive::Lru,
        "multi_lru" => Inactive::MultiLru(thresholds(args)?),
        other => return Err(args.bad("inactive", other, "lineage, lineage_fifo, lru or multi_lru")),
    })
}

fn thresholds(args: &Args<'_>) -> Result<[u32; 3]> {
    let text = args.text("multi_lru_thresholds");
    let parsed: Vec<u32> = text.split_whitespace().filter_map(|part| part.parse().ok()).collect();
    match parsed[..] {
        [warm, hot, very_hot] if 1 <= warm && warm < hot && hot < very_hot && very_hot <= 15 => {
            Ok([warm, hot, very_hot])
        }
        _ => {
            Err(args.bad("multi_lru_thresholds", text, "three rising numbers from 1 to 15, like \"3 8 15\""))
        }
    }
}

fn edge(args: &Args<'_>, name: &str) -> Result<Edge> {
    Ok(match args.text(name) {
        "presence" => Edge::Presence,
        "presence_lfu" => Edge::PresenceLfu,
        "pass_all" => Edge::PassAll,
        other => return Err(args.bad(name, other, "presence, presence_lfu or pass_all")),
    })
}
