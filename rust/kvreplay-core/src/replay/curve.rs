//! Hits of one policy at given capacities, for `hit_curve(policy=...)`.

use super::{PerRequest, ReplaySpec, replay};
use crate::error::Result;
use crate::hierarchy::TierSpec;
use crate::progress::Progress;
use crate::table::{Table, Values};
use crate::trace::Trace;

/// Replays one prefix-mode tier per capacity: columns `capacity_blocks`, `hit_blocks`, `hit_tokens`, and with
/// `warmup_requests` also `warm_hit_tokens`, of the requests after that many.
///
/// # Errors
/// As [`replay`].
pub fn policy_curve(
    trace: &Trace,
    policy: &str,
    capacities: &[u64],
    warmup_requests: Option<usize>,
    progress: &Progress,
) -> Result<Table> {
    let mut columns: [Vec<i64>; 4] = Default::default();
    for &capacity in capacities {
        let tier = TierSpec { policy: policy.to_owned(), ..TierSpec::new("t", capacity) };
        let spec = ReplaySpec { per_request: warmup_requests.is_some(), ..ReplaySpec::new(vec![tier]) };
        let result = replay(trace, &spec, progress)?;
        let counters = result.tiers[0].counters;
        columns[0].push(i64::try_from(capacity).unwrap_or(i64::MAX));
        columns[1].push(counters.served as i64);
        columns[2].push(counters.served_tokens as i64);
        if let (Some(first), Some(requests)) = (warmup_requests, &result.requests) {
            columns[3].push(tokens_from(requests, first));
        }
    }
    let [capacity, blocks, tokens, warm] = columns.map(Values::Int);
    let table =
        Table::new().with("capacity_blocks", capacity).with("hit_blocks", blocks).with("hit_tokens", tokens);
    Ok(if warmup_requests.is_some() { table.with("warm_hit_tokens", warm) } else { table })
}

fn tokens_from(requests: &PerRequest, first: usize) -> i64 {
    requests.hit_tokens[0].iter().skip(first).map(|&tokens| i64::from(tokens)).sum()
}

#[cfg(test)]
mod tests {
    use super::policy_curve;
    use crate::progress::Progress;
    use crate::replay::testing::full_blocks;
    use crate::table::Values;

    #[test]
    fn hits_at_capacities_cold_and_warm() {
        let trace = full_blocks(&[vec![1, 2], vec![1, 2, 3], vec![1, 2, 3]]);
        let table = policy_curve(&trace, "fifo", &[0, 2, 9], Some(2), &Progress::default()).unwrap();
        let int = |name: &str| table.column(name).cloned().unwrap();
        assert_eq!(int("capacity_blocks"), Values::Int(vec![0, 2, 9]));
        assert_eq!(int("hit_blocks"), Values::Int(vec![0, 4, 5]));
        assert_eq!(int("hit_tokens"), Values::Int(vec![0, 4, 5]));
        assert_eq!(int("warm_hit_tokens"), Values::Int(vec![0, 2, 3]));
    }
}
