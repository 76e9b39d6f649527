//! Greedy-Dual with the worth of a block = the time saved by not computing it again, per byte.
//!
//! Computing `m` tokens behind a prefix of `p` takes b m + a (2 p m + m^2): a linear part and attention over
//! what is before. Blocks are of one size, so worth per byte grows with the middle of the block in tokens:
//! 1 + middle / balance, where balance = b / 2a is the prefix at which attention costs as much as the rest.
//! Value = inflation + uses * worth, as in Greedy-Dual-Size-Frequency (Cherkasova, HP Labs 1998).
//!
//! The default balance of 26,700 tokens is that of an 8B Llama (32 layers, 32 heads of 128, 7.0e9 weights in
//! the layers: 2 * 7.0e9 FLOP per token against 4 * 32 * 32 * 128 FLOP per token and prefix token) at equal
//! efficiency of both parts. Where the profile of a GPU is known, give the measured one.

use super::parts::{GreedyDual, Large, Slot, Small};
use super::spec::{Args, Param};
use super::{Build, Policy, PolicyInfo, Room, Stored, validate_content};
use crate::error::Result;

pub(super) const INFO: PolicyInfo = PolicyInfo {
    name: "recompute_cost",
    doc: "keeps what takes longest to compute again: uses * (1 + depth / balance_tokens), Greedy-Dual ageing",
    parameters: &[Param {
        name: "balance_tokens",
        default: "26700",
        doc: "prefix length at which attention costs as much per token as the rest",
    }],
    source: "Greedy-Dual-Size-Frequency (HPL-98-69R1) with recompute time as cost",
    build: |args: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Policy>> {
        let balance_tokens = args.number("balance_tokens", 1.0..=1e12)?;
        Ok(if build.blocks() < Small::MOST_BLOCKS {
            Box::new(RecomputeCost::<Small>::new(build, balance_tokens))
        } else {
            Box::new(RecomputeCost::<Large>::new(build, balance_tokens))
        })
    },
};

struct RecomputeCost<S> {
    order: GreedyDual<S>,
    block_tokens: f64,
    /// Prefix length at which attention over it costs as much per token as everything else.
    balance_tokens: f64,
}

impl<S: Slot> RecomputeCost<S> {
    fn new(build: &Build<'_>, balance_tokens: f64) -> Self {
        Self {
            order: GreedyDual::new(build.blocks()),
            block_tokens: f64::from(build.block_tokens),
            balance_tokens,
        }
    }

    /// Time to compute the block again with its prefix at hand, in units of a block without attention.
    fn worth(&self, block: u32, room: &Room<'_>) -> f64 {
        let middle_tokens = (f64::from(room.topology().depth(block)) - 0.5) * self.block_tokens;
        1.0 + middle_tokens / self.balance_tokens
    }
}

impl<S: Slot + Send> Policy for RecomputeCost<S> {
    fn hit(&mut self, block: u32, room: &Room<'_>) {
        self.order.hit(block, self.worth(block, room));
    }

    fn insert(&mut self, block: u32, room: &Room<'_>) -> Stored {
        let mut victim = None;
        if room.is_full() {
            victim = self.order.evict(room);
            if victim.is_none() {
                return Stored::NoRoom;
            }
        }
        self.order.push(block, self.worth(block, room), room.exposed(block));
        Stored::Done { victim }
    }

    fn remove(&mut self, block: u32, _: &Room<'_>) {
        self.order.remove(block);
    }

    fn expose(&mut self, block: u32, exposed: bool) {
        self.order.expose(block, exposed);
    }

    fn candidate(&mut self, room: &Room<'_>) -> Option<u32> {
        self.order.candidate(room)
    }

    fn content(&self) -> Vec<u32> {
        self.order.content()
    }

    fn validate(&self, room: &Room<'_>) -> std::result::Result<(), String> {
        validate_content(&self.content(), room)
    }
}
