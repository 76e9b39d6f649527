//! Runs a model request by request and writes down what it did, for tests.

use crate::engine::{EngineModel, EngineRequest, Profile, Recorder, Release};
use crate::error::Result;
use crate::hierarchy::TierSpec;

/// A request of named blocks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Step {
    pub(crate) listed: Vec<u32>,
    pub(crate) prompt_tokens: u64,
    pub(crate) decoded: Vec<u32>,
    pub(crate) decoded_tokens: u64,
    pub(crate) now_us: Option<i64>,
}

impl Step {
    /// A prompt of full blocks and, if `extra` is not 0, that many tokens more.
    pub(crate) fn new(listed: &[u32], block_tokens: u32, extra: u64) -> Self {
        let full = listed.len() as u64 * u64::from(block_tokens);
        Self { listed: listed.to_vec(), prompt_tokens: full + extra, ..Self::default() }
    }

    pub(crate) fn request(&self, index: usize, block_tokens: u32) -> EngineRequest<'_> {
        EngineRequest {
            index: index as u32,
            listed: &self.listed,
            prompt_tokens: self.prompt_tokens,
            decoded: &self.decoded,
            decoded_tokens: self.decoded_tokens,
            block_tokens,
            now_us: self.now_us,
        }
    }
}

/// What a request did: hit tokens per tier, then events as `kind tier block`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Done {
    pub(crate) hit_tokens: Vec<u64>,
    pub(crate) events: Vec<String>,
}

impl Done {
    /// `16+0: hit gpu 1, insert gpu 2`.
    pub(crate) fn text(&self) -> String {
        let tokens: Vec<String> = self.hit_tokens.iter().map(u64::to_string).collect();
        format!("{}: {}", tokens.join("+"), self.events.join(", "))
    }
}

/// A model and its recorder.
pub(crate) struct Steps {
    pub(crate) model: Box<dyn EngineModel>,
    out: Recorder,
    tiers: Vec<TierSpec>,
    block_tokens: u32,
    requests: usize,
}

impl Steps {
    /// A profile of one component over names below `blocks`.
    pub(crate) fn new(
        profile: &str,
        release: Release,
        options: &[(&str, &str)],
        tiers: &[TierSpec],
        blocks: u32,
        block_tokens: u32,
    ) -> Result<Self> {
        let options: Vec<(String, String)> =
            options.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        let profile = Profile::parse(&format!("{profile}@{release}"), &options)?;
        let model = profile.build_for(tiers, blocks, block_tokens, true)?;
        let out = Recorder::new(tiers, blocks, true);
        Ok(Self { model, out, tiers: tiers.to_vec(), block_tokens, requests: 0 })
    }

    /// Runs a request and checks the model afterwards.
    pub(crate) fn run(&mut self, step: &Step) -> Done {
        let seen = self.out.events().len();
        let request = step.request(self.requests, self.block_tokens);
        self.requests += 1;
        self.out.begin(request.index);
        self.model.serve(&request, &mut self.out);
        self.out.end(&request);
        self.model.validate().unwrap();
        let hit_tokens: Vec<u64> = self.out.rows().iter().map(|row| row.tokens).collect();
        assert!(hit_tokens.iter().sum::<u64>() <= step.prompt_tokens);
        let log = self.out.events();
        let name = |at: usize| {
            format!("{} {} {}", log.kind[at].name(), self.tiers[log.tier[at] as usize].name, log.block[at])
        };
        Done { hit_tokens, events: (seen..log.len()).map(name).collect() }
    }

    /// [`Done::text`] of a request.
    pub(crate) fn text(&mut self, step: &Step) -> String {
        self.run(step).text()
    }

    /// What a tier holds, the last to be evicted first.
    pub(crate) fn content(&self, tier: usize) -> Vec<u32> {
        self.model.content(tier)
    }

    /// Checks that counters and contents agree; blocks without a name are in no content.
    pub(crate) fn finish(self) {
        let content: Vec<Vec<u32>> = (0..self.tiers.len()).map(|tier| self.model.content(tier)).collect();
        for (tier, spec) in self.tiers.iter().enumerate() {
            assert!(content[tier].len() as u64 <= spec.capacity_blocks, "{} holds too much", spec.name);
        }
        let (_, counters) = self.out.finish(&content);
        for ((counters, content), spec) in counters.iter().zip(&content).zip(&self.tiers) {
            let left = counters.evicted + counters.moved();
            assert_eq!(counters.inserted(), left + counters.resident);
            assert!(counters.resident >= content.len() as u64);
            assert!(counters.peak <= spec.capacity_blocks);
        }
    }
}
