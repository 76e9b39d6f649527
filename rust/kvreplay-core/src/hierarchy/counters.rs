//! What a tier counts.

use super::Request;

/// Counters of one tier over all requests, in blocks unless the name says otherwise.
///
/// `offered = admitted + rejected_filter + rejected_no_parent + no_room`, and
/// `admitted = inserted_compute + inserted_promotion + inserted_demotion
///           = evicted + moved_up + superseded + resident`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Requests this tier served a block to.
    pub hit_requests: u64,
    /// Listed blocks that no tier above served.
    pub asked: u64,
    /// Input tokens that no tier above served.
    pub asked_tokens: u64,
    /// Blocks served.
    pub served: u64,
    /// Tokens served.
    pub served_tokens: u64,
    /// Object mode: blocks in the leading run of hits.
    pub usable: u64,
    /// Object mode: tokens of the leading run of hits.
    pub usable_tokens: u64,
    /// Blocks resident behind the end of a request's run.
    pub stranded: u64,
    /// Absent blocks offered.
    pub offered: u64,
    /// Offers that were stored.
    pub admitted: u64,
    /// Offers the filter refused.
    pub rejected_filter: u64,
    /// Offers refused for want of a parent.
    pub rejected_no_parent: u64,
    /// Offers dropped because every resident block was guarded.
    pub no_room: u64,
    /// Blocks handed down that were resident already.
    pub already_held: u64,
    /// Stored because the request computed them.
    pub inserted_compute: u64,
    /// Stored because a tier below served them.
    pub inserted_promotion: u64,
    /// Stored because the tier above evicted them.
    pub inserted_demotion: u64,
    /// Evicted, expired ones among them.
    pub evicted: u64,
    /// Past their time (`ttl`).
    pub expired: u64,
    /// Victim tier: left because this tier served them.
    pub moved_up: u64,
    /// Victim tier: left because the request put them into tier 1 from elsewhere.
    pub superseded: u64,
    /// Left without having been served by this tier since they were stored.
    pub dead_on_arrival: u64,
    /// The same, still resident.
    pub unread_at_end: u64,
    /// Resident now.
    pub resident: u64,
    /// Most blocks resident at once.
    pub peak: u64,
    /// Requests between storing and leaving, summed over departures.
    pub residence_requests: u64,
    /// Microseconds between storing and leaving, summed over departures; 0 without times.
    pub residence_us: i64,
}

impl Counters {
    /// Blocks stored, whatever the cause.
    #[must_use]
    pub fn inserted(&self) -> u64 {
        self.inserted_compute + self.inserted_promotion + self.inserted_demotion
    }

    /// Blocks moved out of a victim tier.
    #[must_use]
    pub fn moved(&self) -> u64 {
        self.moved_up + self.superseded
    }

    /// Offers refused by the filter or for want of a parent.
    #[must_use]
    pub fn rejected(&self) -> u64 {
        self.rejected_filter + self.rejected_no_parent
    }

    /// Counts a request that asks this tier first and is served its leading `blocks`.
    pub(crate) fn count_request(&mut self, request: &Request, blocks: u32) {
        self.hit_requests += u64::from(blocks > 0);
        self.asked += u64::from(request.listed_blocks);
        self.asked_tokens += request.input_tokens;
        self.served += u64::from(blocks);
        self.served_tokens += request.tokens(blocks);
    }

    /// Counters kept in chunks, turned into blocks. What is counted in blocks from the start stays.
    #[must_use]
    pub(crate) fn scaled(mut self, chunk_blocks: u64) -> Self {
        for counter in [
            &mut self.offered,
            &mut self.admitted,
            &mut self.rejected_filter,
            &mut self.rejected_no_parent,
            &mut self.no_room,
            &mut self.already_held,
            &mut self.inserted_compute,
            &mut self.inserted_promotion,
            &mut self.inserted_demotion,
            &mut self.evicted,
            &mut self.expired,
            &mut self.moved_up,
            &mut self.superseded,
            &mut self.dead_on_arrival,
            &mut self.unread_at_end,
            &mut self.resident,
            &mut self.peak,
            &mut self.residence_requests,
        ] {
            *counter *= chunk_blocks;
        }
        self.residence_us = self.residence_us.saturating_mul(chunk_blocks as i64);
        self
    }
}
