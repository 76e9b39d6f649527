//! Tests of the SGLang models.

mod engine;
mod golden;
mod hicache;
mod profile;
mod radix;
mod twin;

use super::model::Model;
use super::tree::{NONE, ROOT};
use super::{flavor, hicache as build_hicache, model};
use crate::engine::{EngineModel, EngineRequest, Recorder, Release, Setup};
use crate::error::Result;
use crate::hierarchy::{Counters, EventKind, Events, TierSpec};
use crate::policy::spec::{Args, Spec};

/// A model with what it recorded.
pub(super) struct Run {
    pub(super) model: Model,
    pub(super) out: Recorder,
    served: u32,
}

/// A tier with a policy.
pub(super) fn tier(name: &str, capacity: u64, policy: &str) -> TierSpec {
    TierSpec { policy: policy.to_owned(), ..TierSpec::new(name, capacity) }
}

impl Run {
    /// A model over `tiers` in pages of one token; HiCache where there is a tier `cpu`.
    pub(super) fn new(tiers: &[TierSpec], blocks: u32, options: &[(&str, &str)]) -> Result<Self> {
        Self::of(Release(0, 5, 23), tiers, blocks, options)
    }

    /// The same as of a release.
    pub(super) fn of(
        release: Release,
        tiers: &[TierSpec],
        blocks: u32,
        options: &[(&str, &str)],
    ) -> Result<Self> {
        let known = if tiers.len() > 1 { super::SGLANG_HICACHE } else { super::SGLANG }.options;
        let args = options.iter().map(|&(key, value)| (Some(key.to_owned()), value.to_owned())).collect();
        let spec = Spec { name: "sglang".to_owned(), args };
        let options = Args::new(&spec, known)?;
        let setup =
            Setup { releases: &[release], tiers, options: &options, blocks, block_tokens: 1, timed: false };
        let model = if tiers.len() > 1 { build_hicache(&setup)? } else { model(&setup, flavor(&setup)?)? };
        Ok(Self { model, out: Recorder::new(tiers, blocks, true), served: 0 })
    }

    /// Serves a prompt of `path` and `unnamed` tokens, which generates `decoded` and `private` tokens more.
    /// Returns the tokens that each tier served.
    pub(super) fn serve(&mut self, path: &[u32], unnamed: u64, decoded: &[u32], private: u64) -> Vec<u64> {
        let request = EngineRequest {
            index: self.served,
            listed: path,
            prompt_tokens: path.len() as u64 + unnamed,
            decoded,
            decoded_tokens: decoded.len() as u64 + private,
            block_tokens: 1,
            now_us: None,
        };
        self.serve_request(&request)
    }

    /// Serves a request and returns the tokens that each tier served.
    pub(super) fn serve_request(&mut self, request: &EngineRequest<'_>) -> Vec<u64> {
        self.served += 1;
        self.out.begin(request.index);
        self.model.serve(request, &mut self.out);
        self.out.end(request);
        self.model.validate().unwrap_or_else(|what| panic!("request {}: {what}", request.index));
        self.out.rows().iter().map(|row| row.tokens).collect()
    }

    /// The events and counters.
    pub(super) fn finish(self) -> (Events, Vec<Counters>) {
        let content: Vec<Vec<u32>> =
            (0..self.out.rows().len()).map(|tier| self.model.content(tier)).collect();
        self.out.finish(&content)
    }
}

/// The events of a request in words: `gpu-3` for block 3 leaving the device, `cpu+3` for it coming to host
/// memory. Hits are left out.
pub(super) fn told(events: &Events, request: u32) -> String {
    let of_request = (0..events.len()).filter(|&i| events.request[i] == request);
    let words = of_request.filter(|&i| events.kind[i] != EventKind::Hit).map(|i| {
        let tier = ["gpu", "cpu", "storage"][usize::from(events.tier[i])];
        let sign = if events.kind[i] == EventKind::Insert { '+' } else { '-' };
        format!("{tier}{sign}{}", events.block[i])
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The tree in words: `0-1{2 3-4}` has a node of the blocks 0 and 1 with two children. `*` marks a copy in
/// host memory, `~` one that is nowhere else, `?2` two pages without a name.
pub(super) fn shape(model: &Model) -> String {
    children(model, ROOT)
}

fn children(model: &Model, node: u32) -> String {
    let mut words = Vec::new();
    let mut child = model.tree.first_child(node).unwrap_or(NONE);
    while child != NONE {
        let it = model.tree.node(child);
        let blocks: Vec<u32> = it.key.blocks().collect();
        let mut word = match (blocks.first(), blocks.last()) {
            (Some(first), Some(last)) if first != last => format!("{first}-{last}"),
            (Some(only), _) => only.to_string(),
            _ => String::new(),
        };
        if it.key.unnamed() > 0 {
            word = format!("{word}?{}", it.key.unnamed());
        }
        word += match (it.device, it.host) {
            (true, true) => "*",
            (true, false) => "",
            (false, _) => "~",
        };
        if it.children > 0 {
            word = format!("{word}{{{}}}", children(model, child));
        }
        words.push(word);
        child = model.tree.next_sibling(child).unwrap_or(NONE);
    }
    words.join(" ")
}
