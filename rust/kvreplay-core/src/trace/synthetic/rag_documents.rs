//! Retrieval: popular documents between a shared system prompt and a fresh question.

use super::prompt::Segment;
use super::random::{LogNormal, Random, Zipf, later, mix};
use super::registry::{Kind, Parameter};
use super::settings::Settings;
use super::source::{Draft, Source};
use crate::error::{Error, Result};

pub(super) static KIND: Kind = Kind {
    name: "rag_documents",
    doc: "questions about retrieved documents; only equal documents in equal order share a prefix",
    models: "retrieval-augmented generation: a document behind another document is another prefix, so reuse \
             is far below the documents' popularity; all defaults are assumptions",
    parameters: &[
        Parameter::rate(2.0),
        Parameter::tokens("system_tokens", 400.0, 0.0, "tokens of the system prompt, shared by all requests"),
        Parameter::whole("documents", 2000.0, 1.0, 1e6, "number of documents"),
        Parameter::tokens("document_tokens", 1500.0, 1.0, "median tokens of a document"),
        Parameter::whole("documents_per_request", 3.0, 1.0, 100.0, "different documents in a prompt"),
        Parameter::real("zipf", 0.9, 0.0, 4.0, "exponent of the documents' popularity (0 = all alike)"),
        Parameter::tokens("question_tokens", 60.0, 1.0, "median tokens of a question"),
        Parameter::tokens("output_tokens", 200.0, 1.0, "median tokens of an answer"),
    ],
    start: |settings, seed| Ok(Box::new(RagDocuments::new(settings, seed)?)),
};

const DOCUMENT_SIGMA: f64 = 0.6;
const QUESTION_SIGMA: f64 = 0.6;
const OUTPUT_SIGMA: f64 = 0.8;

#[derive(Debug)]
struct RagDocuments {
    random: Random,
    seed: u64,
    now_us: i64,
    gap_us: f64,
    system: Segment,
    documents: usize,
    popularity: Zipf,
    per_request: usize,
    document: LogNormal,
    question: LogNormal,
    output: LogNormal,
    chosen: Vec<usize>,
}

impl RagDocuments {
    fn new(settings: &Settings, seed: u64) -> Result<Self> {
        let (documents, per_request) = (settings.whole("documents"), settings.whole("documents_per_request"));
        if per_request > documents {
            return Err(Error::config(
                format!("documents_per_request is {per_request}, but there are {documents} documents"),
                "documents_per_request must be at most documents",
            ));
        }
        Ok(Self {
            random: Random::new(seed, 0),
            seed,
            now_us: 0,
            gap_us: 1e6 / settings.get("rate_per_s"),
            system: Segment { content: mix(seed, 1), tokens: settings.tokens("system_tokens") },
            documents,
            popularity: Zipf::new(documents, settings.get("zipf")),
            per_request,
            document: LogNormal::new(settings.get("document_tokens"), DOCUMENT_SIGMA),
            question: LogNormal::new(settings.get("question_tokens"), QUESTION_SIGMA),
            output: LogNormal::new(settings.get("output_tokens"), OUTPUT_SIGMA),
            chosen: Vec::new(),
        })
    }

    /// Different documents, the more popular ones more often; a document already chosen gives way to the
    /// next free one in order of popularity.
    fn choose(&mut self) {
        self.chosen.clear();
        for _ in 0..self.per_request {
            let mut document = self.popularity.sample(&mut self.random);
            while self.chosen.contains(&document) {
                document = (document + 1) % self.documents;
            }
            self.chosen.push(document);
        }
    }

    /// A document: drawn from its number alone, so that nothing need be kept.
    fn text_of(&self, document: usize) -> Segment {
        let mut own = Random::new(mix(self.seed, 2), document as u64);
        Segment { content: own.bits(), tokens: self.document.tokens(&mut own) }
    }
}

impl Source for RagDocuments {
    fn next(&mut self, draft: &mut Draft) {
        self.choose();
        draft.segments.push(self.system);
        draft.segments.extend(self.chosen.iter().map(|&document| self.text_of(document)));
        let tokens = self.question.tokens(&mut self.random);
        draft.segments.push(Segment { content: self.random.bits(), tokens });
        draft.output_tokens = self.output.tokens(&mut self.random);
        draft.arrival_us = self.now_us;
        self.now_us = later(self.now_us, self.random.exponential() * self.gap_us);
    }
}
