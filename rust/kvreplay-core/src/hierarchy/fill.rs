//! How blocks get into a lower tier, and what refreshes them there.

/// Fill rule of a tier (`semantics.md` section 5). Tier 1 takes every block of a request whatever its rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fill {
    /// Takes what the request computed and what a tier below served.
    #[default]
    WriteThrough,
    /// Takes what the tier above evicts and what a tier below served.
    WriteBack,
    /// Takes what the tier above evicts; a hit moves the block up and out.
    Victim,
}

impl Fill {
    /// Whether evictions of the tier above are offered.
    #[must_use]
    pub fn takes_evictions(self) -> bool {
        self != Self::WriteThrough
    }

    /// The name in specs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::WriteThrough => "write_through",
            Self::WriteBack => "write_back",
            Self::Victim => "victim",
        }
    }
}

/// Which resident blocks of a path a request refreshes in a lower tier that keeps what it serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Touch {
    /// Every resident block of the path.
    #[default]
    Path,
    /// Only blocks this tier served.
    Served,
}

impl Touch {
    /// The name in specs.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Path => "path",
            Self::Served => "served",
        }
    }
}

/// A fill rule as users see it.
#[derive(Debug, Clone, Copy)]
pub struct FillInfo {
    /// The name in specs.
    pub name: &'static str,
    /// One line.
    pub doc: &'static str,
    /// Engines that do so.
    pub source: &'static str,
    /// The rule.
    pub fill: Fill,
}

/// Every fill rule.
pub const FILLS: &[FillInfo] = &[
    FillInfo {
        name: "write_through",
        doc: "stores computed blocks and blocks served by a tier below; hits copy up",
        source: "vLLM offloading, LMCache, SGLang write_through",
        fill: Fill::WriteThrough,
    },
    FillInfo {
        name: "write_back",
        doc: "stores what the tier above evicts and blocks served by a tier below; hits copy up",
        source: "SGLang write_back",
        fill: Fill::WriteBack,
    },
    FillInfo {
        name: "victim",
        doc: "stores what the tier above evicts; hits move up and out (exclusive)",
        source: "exclusive caching (Wong and Wilkes, USENIX ATC 2002)",
        fill: Fill::Victim,
    },
];

/// Every touch rule with its name.
pub const TOUCHES: &[(&str, Touch)] = &[("path", Touch::Path), ("served", Touch::Served)];
