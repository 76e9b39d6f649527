//! One-shot questions behind the system prompts of many tenants.

use super::prompt::Segment;
use super::random::{LogNormal, Random, Zipf, later, mix};
use super::registry::{Kind, Parameter};
use super::settings::Settings;
use super::source::{Draft, Source};

pub(super) static KIND: Kind = Kind {
    name: "shared_prefix",
    doc: "single questions, each behind its tenant's system prompt; tenants by Zipf's law",
    models: "API traffic of many applications, each with its own instructions and examples; all defaults are \
             assumptions",
    parameters: &[
        Parameter::rate(4.0),
        Parameter::whole("tenants", 64.0, 1.0, 1e6, "number of tenants, each with a system prompt"),
        Parameter::tokens("prefix_tokens", 2000.0, 1.0, "median tokens of a system prompt"),
        Parameter::real("zipf", 1.0, 0.0, 4.0, "exponent of the tenants' popularity (0 = all alike)"),
        Parameter::tokens("question_tokens", 200.0, 1.0, "median tokens of a question"),
        Parameter::tokens("output_tokens", 150.0, 1.0, "median tokens of an answer"),
    ],
    start: |settings, seed| Ok(Box::new(SharedPrefix::new(settings, seed))),
};

const PREFIX_SIGMA: f64 = 0.7;
const QUESTION_SIGMA: f64 = 0.8;
const OUTPUT_SIGMA: f64 = 0.8;

#[derive(Debug)]
struct SharedPrefix {
    random: Random,
    seed: u64,
    now_us: i64,
    gap_us: f64,
    tenants: Zipf,
    prefix: LogNormal,
    question: LogNormal,
    output: LogNormal,
}

impl SharedPrefix {
    fn new(settings: &Settings, seed: u64) -> Self {
        Self {
            random: Random::new(seed, 0),
            seed,
            now_us: 0,
            gap_us: 1e6 / settings.get("rate_per_s"),
            tenants: Zipf::new(settings.whole("tenants"), settings.get("zipf")),
            prefix: LogNormal::new(settings.get("prefix_tokens"), PREFIX_SIGMA),
            question: LogNormal::new(settings.get("question_tokens"), QUESTION_SIGMA),
            output: LogNormal::new(settings.get("output_tokens"), OUTPUT_SIGMA),
        }
    }

    /// A tenant's system prompt: drawn from its number alone, so that nothing need be kept.
    fn prefix_of(&self, tenant: usize) -> Segment {
        let mut own = Random::new(mix(self.seed, 1), tenant as u64);
        Segment { content: own.bits(), tokens: self.prefix.tokens(&mut own) }
    }
}

impl Source for SharedPrefix {
    fn next(&mut self, draft: &mut Draft) {
        let tenant = self.tenants.sample(&mut self.random);
        let tokens = self.question.tokens(&mut self.random);
        let question = Segment { content: self.random.bits(), tokens };
        draft.segments.extend([self.prefix_of(tenant), question]);
        draft.output_tokens = self.output.tokens(&mut self.random);
        draft.tenant = Some(format!("tenant-{}", tenant + 1));
        draft.arrival_us = self.now_us;
        self.now_us = later(self.now_us, self.random.exponential() * self.gap_us);
    }
}
