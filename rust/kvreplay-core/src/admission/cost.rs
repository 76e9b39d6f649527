//! A block passes when computing it again, as often as it is expected back, costs more than writing it.
//!
//! Worth of a block = reuses expected * time to compute it with its prefix at hand; the reuses expected are
//! its earlier offers (each was a need that this tier could not serve) plus a prior. Computing a token takes
//! `recompute_us` and, for attention over the prefix, as much again at a prefix of `balance_tokens`.
//!
//! The defaults are those of an 8B Llama: 2 * 7.0e9 FLOP per token at half of the 9.9e14 FLOP/s of an H100 are
//! 28 us; 131,072 bytes per token at 5 GB/s to a drive are 26 us; the balance is that of the policy
//! `recompute_cost`. They are inputs: give those of your model, GPU and drive.

use super::tracker::Tracker;
use super::{Filter, FilterInfo, Offer};
use crate::error::Result;
use crate::policy::Build;
use crate::policy::spec::{Args, Param};

pub(super) const INFO: FilterInfo = FilterInfo {
    name: "cost",
    doc: "a block passes when recomputing it as often as it is expected back takes longer than writing it",
    parameters: &[
        Param { name: "write_us", default: "26", doc: "microseconds to write a token's KV" },
        Param {
            name: "recompute_us",
            default: "28",
            doc: "microseconds to compute a token without attention",
        },
        Param {
            name: "balance_tokens",
            default: "26700",
            doc: "prefix length at which attention doubles that",
        },
        Param { name: "prior", default: "0", doc: "reuses expected of a block never offered before" },
        Param {
            name: "tracker",
            default: "64000",
            doc: "blocks counted at once; the one offered longest ago is forgotten",
        },
    ],
    source: "break-even of recompute and write; see recompute_cost",
    build: |args: &Args<'_>, build: &Build<'_>| -> Result<Box<dyn Filter>> {
        let positive = f64::MIN_POSITIVE..=1e12;
        Ok(Box::new(Cost {
            write: args.number("write_us", 0.0..=1e12)? / args.number("recompute_us", positive.clone())?,
            blocks_to_balance: args.number("balance_tokens", positive)?
                / f64::from(build.block_tokens.max(1)),
            prior: args.number("prior", 0.0..=1e12)?,
            tracker: Tracker::new(build.blocks(), args.number("tracker", 1..=u32::MAX)?),
        }))
    },
};

struct Cost {
    /// Time to write a block over the time to compute one without attention.
    write: f64,
    /// Blocks of prefix at which attention costs as much as the rest.
    blocks_to_balance: f64,
    prior: f64,
    tracker: Tracker,
}

impl Filter for Cost {
    fn admits(&mut self, offer: &Offer) -> bool {
        let reuses = f64::from(self.tracker.count(offer.block) - 1) + self.prior;
        let compute = 1.0 + (f64::from(offer.depth_units) - 0.5) / self.blocks_to_balance;
        reuses * compute > self.write
    }
}

#[cfg(test)]
mod tests {
    use super::{Cost, Filter, Offer, Tracker};

    #[test]
    fn deep_blocks_pay_sooner() {
        let mut cost = Cost { write: 2.0, blocks_to_balance: 10.0, prior: 0.0, tracker: Tracker::new(9, 9) };
        let offer =
            |block, depth_units| Offer { block, depth_units, path_units: 20, rival: None, now_us: None };
        // At depth 1 a block costs 1.05 to compute, at depth 20 2.95, against 2 to write.
        let shallow: Vec<bool> = (0..3).map(|_| cost.admits(&offer(1, 1))).collect();
        let deep: Vec<bool> = (0..3).map(|_| cost.admits(&offer(2, 20))).collect();
        assert_eq!((shallow, deep), (vec![false, false, true], vec![false, true, true]));
    }
}
