//! All other kinds at once, each with its share of the traffic.

use super::random::{Random, later, mix};
use super::registry::{Kind, Parameter};
use super::settings::Settings;
use super::source::{Draft, Source};
use super::{agent, cyclic_scan, multi_turn, rag_documents, shared_prefix, unique};
use crate::error::{Error, Result};

pub(super) static KIND: Kind = Kind {
    name: "mixed",
    doc: "the other kinds side by side; the column workload says which a request is of",
    models: "a shared endpoint; the kinds keep their own defaults but the rate; shares are assumptions",
    parameters: &[
        Parameter::rate(4.0),
        Parameter::real("multi_turn", 0.40, 0.0, 1e6, "weight of multi_turn in the traffic"),
        Parameter::real("shared_prefix", 0.25, 0.0, 1e6, "weight of shared_prefix in the traffic"),
        Parameter::real("rag_documents", 0.12, 0.0, 1e6, "weight of rag_documents in the traffic"),
        Parameter::real("agent", 0.10, 0.0, 1e6, "weight of agent in the traffic"),
        Parameter::real("cyclic_scan", 0.03, 0.0, 1e6, "weight of cyclic_scan in the traffic"),
        Parameter::real("unique", 0.10, 0.0, 1e6, "weight of unique in the traffic"),
    ],
    start: |settings, seed| Ok(Box::new(Mixed::new(settings, seed)?)),
};

static PARTS: [&Kind; 6] = [
    &multi_turn::KIND,
    &shared_prefix::KIND,
    &rag_documents::KIND,
    &agent::KIND,
    &cyclic_scan::KIND,
    &unique::KIND,
];

struct Part {
    name: &'static str,
    source: Box<dyn Source>,
    /// The parts do not all begin at the same moment.
    phase_us: f64,
    next: Draft,
}

impl Part {
    fn draw(&mut self) {
        self.next.clear();
        self.source.next(&mut self.next);
        self.next.workload = Some(self.name);
        self.next.arrival_us = later(self.next.arrival_us, self.phase_us);
    }
}

struct Mixed {
    parts: Vec<Part>,
}

impl Mixed {
    fn new(settings: &Settings, seed: u64) -> Result<Self> {
        let total: f64 = PARTS.iter().map(|kind| settings.get(kind.name)).sum();
        if total <= 0.0 {
            return Err(Error::config("all weights are 0", "give at least one kind a weight above 0"));
        }
        let (mut parts, mut random) = (Vec::new(), Random::new(seed, 0));
        for (number, kind) in PARTS.iter().enumerate() {
            let rate = settings.get("rate_per_s") * settings.get(kind.name) / total;
            if rate <= 0.0 {
                continue;
            }
            let own = if kind.name == "cyclic_scan" {
                Settings::derived(kind, "interval_s", 1.0 / rate)
            } else {
                Settings::derived(kind, "rate_per_s", rate)
            };
            let source = (kind.start)(&own, mix(seed, number as u64 + 1))?;
            let mut part = Part {
                name: kind.name,
                source,
                phase_us: random.unit() * 1e6 / rate,
                next: Draft::default(),
            };
            part.draw();
            parts.push(part);
        }
        Ok(Self { parts })
    }
}

impl Source for Mixed {
    /// The earliest request of all parts; ties in the order of the parts.
    fn next(&mut self, draft: &mut Draft) {
        let earliest = self.parts.iter_mut().min_by_key(|part| part.next.arrival_us);
        if let Some(part) = earliest {
            std::mem::swap(draft, &mut part.next);
            part.draw();
        }
    }
}
