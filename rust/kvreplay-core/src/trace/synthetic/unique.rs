//! Prompts that share nothing: what no cache can serve.

use super::prompt::Segment;
use super::random::{LogNormal, Random, later};
use super::registry::{Kind, Parameter};
use super::settings::Settings;
use super::source::{Draft, Source};

pub(super) static KIND: Kind = Kind {
    name: "unique",
    doc: "every prompt is new from its first token on; no cache can hit",
    models: "the bottom line of any cache study, and one-off batch work; lengths are assumptions",
    parameters: &[
        Parameter::rate(4.0),
        Parameter::tokens("prompt_tokens", 1500.0, 1.0, "median tokens of a prompt"),
        Parameter::tokens("output_tokens", 150.0, 1.0, "median tokens of an answer"),
    ],
    start: |settings, seed| Ok(Box::new(Unique::new(settings, seed))),
};

const PROMPT_SIGMA: f64 = 1.0;
const OUTPUT_SIGMA: f64 = 0.8;

#[derive(Debug)]
struct Unique {
    random: Random,
    now_us: i64,
    gap_us: f64,
    prompt: LogNormal,
    output: LogNormal,
}

impl Unique {
    fn new(settings: &Settings, seed: u64) -> Self {
        Self {
            random: Random::new(seed, 0),
            now_us: 0,
            gap_us: 1e6 / settings.get("rate_per_s"),
            prompt: LogNormal::new(settings.get("prompt_tokens"), PROMPT_SIGMA),
            output: LogNormal::new(settings.get("output_tokens"), OUTPUT_SIGMA),
        }
    }
}

impl Source for Unique {
    fn next(&mut self, draft: &mut Draft) {
        let tokens = self.prompt.tokens(&mut self.random);
        draft.segments.push(Segment { content: self.random.bits(), tokens });
        draft.output_tokens = self.output.tokens(&mut self.random);
        draft.arrival_us = self.now_us;
        self.now_us = later(self.now_us, self.random.exponential() * self.gap_us);
    }
}
