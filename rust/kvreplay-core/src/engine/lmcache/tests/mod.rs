//! `LMCache` against the numbers of its own policy classes, step by step by hand, and against slow twins.

mod by_hand;
mod mp_by_hand;
mod refusals;
mod twins;

use crate::engine::tests::golden;
use crate::engine::{EngineModel, EngineRequest, Profile, Recorder};
use crate::hierarchy::{EventKind, TierSpec};

#[test]
fn golden_vectors() {
    golden::check("lmcache", |_| true);
    golden::check("vllm+lmcache", |_| true);
}

/// Blocks of the traces of these tests are below this.
const BLOCKS: u32 = 1000;

/// A tier of `capacity` blocks.
fn tier(name: &str, capacity: u64, policy: &str) -> TierSpec {
    TierSpec { policy: policy.to_owned(), ..TierSpec::new(name, capacity) }
}

/// A profile under test: chunks of 10 tokens unless told otherwise.
struct Bench {
    model: Box<dyn EngineModel>,
    out: Recorder,
    tiers: usize,
    block_tokens: u32,
    requests: u32,
}

/// Hit tokens per tier.
type Hits = Vec<u64>;

impl Bench {
    fn new(profile: &str, tiers: &[TierSpec], options: &[(&str, &str)]) -> Self {
        let options: Vec<(String, String)> =
            options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let profile = Profile::parse(profile, &options).unwrap();
        Self {
            model: profile.build_for(tiers, BLOCKS, 10, false).unwrap(),
            out: Recorder::new(tiers, BLOCKS, true),
            tiers: tiers.len(),
            block_tokens: 10,
            requests: 0,
        }
    }

    /// Serves a prompt of `tokens` tokens.
    fn ask(&mut self, listed: &[u32], tokens: u64) -> Hits {
        self.decode(listed, tokens, &[], 0)
    }

    /// Serves a prompt of full chunks.
    fn full(&mut self, listed: &[u32]) -> Hits {
        self.ask(listed, listed.len() as u64 * u64::from(self.block_tokens))
    }

    fn decode(&mut self, listed: &[u32], prompt_tokens: u64, decoded: &[u32], decoded_tokens: u64) -> Hits {
        let request = EngineRequest {
            index: self.requests,
            listed,
            prompt_tokens,
            decoded,
            decoded_tokens,
            block_tokens: self.block_tokens,
            now_us: None,
        };
        self.requests += 1;
        self.out.begin(request.index);
        self.model.serve(&request, &mut self.out);
        self.out.end(&request);
        self.model.validate().unwrap();
        self.out.rows().iter().map(|row| row.tokens).collect()
    }

    /// What is resident, the next victim first.
    fn next_out(&self, tier: usize) -> Vec<u32> {
        let mut content = self.model.content(tier);
        content.reverse();
        content
    }

    /// Resident chunks of a tier, those without a name included.
    fn resident(&self, tier: usize) -> u64 {
        self.out.counters()[tier].resident
    }

    fn no_room(&self, tier: usize) -> u64 {
        self.out.counters()[tier].no_room
    }

    /// Blocks of the events of one kind, per tier, in order.
    fn events(self, kind: EventKind) -> Vec<Vec<u32>> {
        let contents: Vec<Vec<u32>> = (0..self.tiers).map(|tier| self.model.content(tier)).collect();
        let (events, _) = self.out.finish(&contents);
        let of = |tier: usize| {
            let here = |i: &usize| events.kind[*i] == kind && usize::from(events.tier[*i]) == tier;
            (0..events.len()).filter(here).map(|i| events.block[i]).collect()
        };
        (0..self.tiers).map(of).collect()
    }
}
