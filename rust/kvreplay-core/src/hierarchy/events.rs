//! What happened, in order.

/// Kind of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum EventKind {
    /// A tier served a block.
    Hit,
    /// A block was stored.
    Insert,
    /// A block was evicted.
    Evict,
    /// An offer was refused by the filter or for want of a parent.
    Reject,
    /// A block left a victim tier for tier 1.
    Move,
}

impl EventKind {
    /// Every kind, in the order of their codes.
    pub const ALL: [Self; 5] = [Self::Hit, Self::Insert, Self::Evict, Self::Reject, Self::Move];

    /// The name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Hit => "hit",
            Self::Insert => "insert",
            Self::Evict => "evict",
            Self::Reject => "reject",
            Self::Move => "move",
        }
    }
}

/// Events by column; empty unless asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Events {
    /// Whether events are kept.
    pub on: bool,
    /// Position of the request in replay order.
    pub request: Vec<u32>,
    /// Position of the tier, from 0.
    pub tier: Vec<u16>,
    /// What happened.
    pub kind: Vec<EventKind>,
    /// The dense block; of a chunk its last block.
    pub block: Vec<u32>,
}

impl Events {
    /// An empty list that keeps events, or not.
    #[must_use]
    pub fn new(on: bool) -> Self {
        Self { on, ..Self::default() }
    }

    pub(crate) fn push(&mut self, request: u32, tier: usize, kind: EventKind, block: u32) {
        self.request.push(request);
        self.tier.push(tier as u16);
        self.kind.push(kind);
        self.block.push(block);
    }

    /// Number of events.
    #[must_use]
    pub fn len(&self) -> usize {
        self.block.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.block.is_empty()
    }
}
