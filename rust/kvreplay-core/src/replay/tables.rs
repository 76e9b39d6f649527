//! The tables of a replay (`interface.md` section 1), without what needs a model.

use super::{Mode, ReplayResult};
use crate::hierarchy::{Counters, EventKind};
use crate::table::{Table, Values};
use crate::trace::Trace;

fn ratio(numerator: u64, denominator: u64) -> Option<f64> {
    (denominator > 0).then(|| numerator as f64 / denominator as f64)
}

impl ReplayResult {
    /// One row per tier. Bytes are left to whoever knows the model: `written_blocks` and `read_blocks` say
    /// what to multiply, and the causes stand in columns of their own.
    #[must_use]
    pub fn tiers_table(&self, trace: &Trace) -> Table {
        let ints = |of: &dyn Fn(&Counters) -> u64| {
            Values::Int(self.tiers.iter().map(|t| of(&t.counters) as i64).collect())
        };
        let ratios = |of: &dyn Fn(&Counters) -> Option<f64>| {
            Values::Float(self.tiers.iter().map(|t| of(&t.counters)).collect())
        };
        let texts =
            |of: &dyn Fn(usize) -> String| Values::Text((0..self.tiers.len()).map(|k| Some(of(k))).collect());
        let capacity = |k: usize| {
            let spec = &self.spec.tiers[k];
            (spec.capacity_blocks - spec.capacity_blocks % u64::from(spec.chunk_blocks)) as i64
        };
        let capacities =
            |by: i64| Values::Int((0..self.tiers.len()).map(|k| capacity(k).saturating_mul(by)).collect());
        let spec = &self.spec.tiers;
        let mut table = Table::new()
            .with("tier", texts(&|k| spec[k].name.clone()))
            .with("policy", texts(&|k| spec[k].policy.clone()))
            .with("admission", texts(&|k| spec[k].admission.clone()))
            .with("fill", texts(&|k| spec[k].fill.name().to_owned()))
            .with("capacity_blocks", capacities(1))
            .with("capacity_tokens", capacities(i64::from(trace.block_tokens)))
            .with("asked_blocks", ints(&|c| c.asked))
            .with("asked_tokens", ints(&|c| c.asked_tokens))
            .with("hit_blocks", ints(&|c| c.served))
            .with("hit_tokens", ints(&|c| c.served_tokens))
            .with("tier_conditional_hit_ratio", ratios(&|c| ratio(c.served_tokens, c.asked_tokens)))
            .with("tier_share", ratios(&|c| ratio(c.served_tokens, self.input_tokens)))
            .with("inserted_blocks", ints(&Counters::inserted))
            .with("evicted_blocks", ints(&|c| c.evicted))
            .with("rejected_blocks", ints(&Counters::rejected))
            .with("moved_blocks", ints(&Counters::moved))
            .with("dead_on_arrival_blocks", ints(&|c| c.dead_on_arrival))
            .with("unread_at_end_blocks", ints(&|c| c.unread_at_end))
            .with("no_room_blocks", ints(&|c| c.no_room))
            .with("stranded_blocks", ints(&|c| c.stranded))
            .with("resident_blocks", ints(&|c| c.resident))
            .with(
                "read_blocks",
                Values::Int((0..self.tiers.len()).map(|k| self.read_blocks(k) as i64).collect()),
            )
            .with("peak_blocks", ints(&|c| c.peak))
            .with("hits", ints(&|c| c.hit_requests))
            .with("offered_blocks", ints(&|c| c.offered))
            .with("admitted_blocks", ints(&|c| c.admitted))
            .with("rejected_filter_blocks", ints(&|c| c.rejected_filter))
            .with("rejected_no_parent_blocks", ints(&|c| c.rejected_no_parent))
            .with("already_held_blocks", ints(&|c| c.already_held))
            .with("inserted_compute_blocks", ints(&|c| c.inserted_compute))
            .with("inserted_promotion_blocks", ints(&|c| c.inserted_promotion))
            .with("inserted_demotion_blocks", ints(&|c| c.inserted_demotion))
            .with("moved_up_blocks", ints(&|c| c.moved_up))
            .with("superseded_blocks", ints(&|c| c.superseded))
            .with("expired_blocks", ints(&|c| c.expired));
        if self.spec.residence {
            table = table
                .with("residence_requests", ints(&|c| c.residence_requests))
                .with("residence_us", ints(&|c| c.residence_us as u64));
        }
        if self.spec.mode == Mode::Object {
            table = table
                .with("usable_hit_blocks", ints(&|c| c.usable))
                .with("usable_hit_tokens", ints(&|c| c.usable_tokens));
        }
        table
    }

    /// Blocks read out of a tier: those it served, and those the tier below took when it evicted them.
    fn read_blocks(&self, k: usize) -> u64 {
        let demoted = self.tiers.get(k + 1).map_or(0, |below| below.counters.inserted_demotion);
        self.tiers[k].counters.served + demoted
    }

    /// One row per request: `request`, hits per tier, `computed_tokens`, `stranded_blocks`; without rows
    /// unless hits per request were asked for.
    #[must_use]
    pub fn requests_table(&self) -> Table {
        let ints = |column: &[u32]| Values::Int(column.iter().map(|&v| i64::from(v)).collect());
        let Some(requests) = &self.requests else { return Table::new() };
        let rows = requests.computed_tokens.len() as i64;
        let mut table = Table::new().with("request", Values::Int((0..rows).collect()));
        for (k, tier) in self.spec.tiers.iter().enumerate() {
            table = table
                .with(&format!("hit_blocks_{}", tier.name), ints(&requests.hit_blocks[k]))
                .with(&format!("hit_tokens_{}", tier.name), ints(&requests.hit_tokens[k]));
        }
        table = table
            .with("computed_tokens", ints(&requests.computed_tokens))
            .with("stranded_blocks", ints(&requests.stranded_blocks));
        if self.spec.mode == Mode::Object {
            table = table.with("usable_hit_blocks", ints(&requests.usable_hit_blocks));
        }
        table
    }

    /// One row per request: `resident_blocks_<tier>` after it; without columns unless that was asked for.
    #[must_use]
    pub fn occupancy_table(&self) -> Table {
        let Some(requests) = &self.requests else { return Table::new() };
        let columns = self.spec.tiers.iter().zip(&requests.resident_blocks);
        columns.fold(Table::new(), |table, (tier, blocks)| {
            let blocks = Values::Int(blocks.iter().map(|&v| i64::from(v)).collect());
            table.with(&format!("resident_blocks_{}", tier.name), blocks)
        })
    }

    /// One row per event, in order: `request`, `tier`, `event`, `block` (as given in the trace).
    #[must_use]
    pub fn events_table(&self, trace: &Trace) -> Table {
        let events = &self.events;
        let tiers = self.spec.tiers.iter().map(|t| t.name.clone()).collect();
        let kinds = EventKind::ALL.iter().map(|kind| kind.name().to_owned()).collect();
        Table::new()
            .with("request", Values::Int(events.request.iter().map(|&r| i64::from(r)).collect()))
            .with("tier", Values::Coded(events.tier.iter().map(|&t| u32::from(t)).collect(), tiers))
            .with("event", Values::Coded(events.kind.iter().map(|&k| k as u32).collect(), kinds))
            .with("block", ids(trace, &events.block))
    }
}

/// The ids of dense blocks as given in the trace: numbers where all are, else texts.
#[must_use]
pub fn ids(trace: &Trace, blocks: &[u32]) -> Values {
    use crate::trace::Id;
    if trace.ids.has_texts() {
        let text = |block: u32| match trace.ids.get(block) {
            Id::Number(number) => number.to_string(),
            Id::Text(text) => text.to_owned(),
        };
        return Values::Text(blocks.iter().map(|&block| Some(text(block))).collect());
    }
    Values::Id(blocks.iter().map(|&block| trace.ids.number(block)).collect())
}
