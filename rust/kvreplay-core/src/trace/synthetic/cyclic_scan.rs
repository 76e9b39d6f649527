//! The same documents in the same order, again and again: LRU's worst case.

use super::prompt::Segment;
use super::random::mix;
use super::registry::{Kind, Parameter};
use super::settings::Settings;
use super::source::{Draft, Source};

pub(super) static KIND: Kind = Kind {
    name: "cyclic_scan",
    doc: "whole documents read in turn, again and again; all or nothing under LRU",
    models: "a batch job that runs over a fixed set: with one block less than the set LRU hits nothing, with \
             the whole set everything (the textbook cliff); nothing is random but the ids",
    parameters: &[
        Parameter::whole("documents", 10.0, 1.0, 1e6, "number of documents"),
        Parameter::tokens("document_tokens", 5008.0, 1.0, "tokens of every document"),
        Parameter::tokens("output_tokens", 64.0, 1.0, "tokens of every answer"),
        Parameter::real("interval_s", 1.0, 0.0, 1e6, "seconds between two requests"),
    ],
    start: |settings, seed| Ok(Box::new(CyclicScan::new(settings, seed))),
};

#[derive(Debug)]
struct CyclicScan {
    seed: u64,
    request: u64,
    documents: u64,
    document_tokens: u32,
    output_tokens: u32,
    interval_s: f64,
}

impl CyclicScan {
    fn new(settings: &Settings, seed: u64) -> Self {
        Self {
            seed,
            request: 0,
            documents: settings.whole("documents") as u64,
            document_tokens: settings.tokens("document_tokens"),
            output_tokens: settings.tokens("output_tokens"),
            interval_s: settings.get("interval_s"),
        }
    }
}

impl Source for CyclicScan {
    fn next(&mut self, draft: &mut Draft) {
        let content = mix(self.seed, self.request % self.documents);
        draft.segments.push(Segment { content, tokens: self.document_tokens });
        draft.output_tokens = self.output_tokens;
        draft.arrival_us = (self.request as f64 * self.interval_s * 1e6) as i64;
        self.request += 1;
    }
}
