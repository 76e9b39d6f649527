//! The replay loop: a fold of the requests over a hierarchy, with recorders.

mod engine;
mod opt;
mod parallel;
mod profile;
mod references;
mod result;
mod sequences;
mod slices;
mod spec;
mod tables;

pub use tables::ids;

pub use engine::{Engine, Unit, replay_auto};
pub use parallel::{curve_points, each};
pub use profile::replay_profile;
pub use result::{PerRequest, ReplayResult, TierResult};
pub use slices::lru_each;
pub use spec::{Mode, ReplaySpec};

use crate::error::Result;
use crate::hierarchy::{Events, Ground, Hierarchy, Request};
use crate::policy::parse_opt;
use crate::policy::spec::Spec;
use crate::progress::Progress;
use crate::trace::Trace;

/// Requests between two looks at the progress (and at the wish to stop).
const STEP: usize = 2048;

/// Block references between two looks, for traces of very long requests.
const STEP_BLOCKS: u64 = 1 << 20;

/// Replays a trace against one hierarchy.
///
/// # Errors
/// [`crate::Error::Config`] for specs that are not valid, [`crate::Error::Cancelled`].
pub fn replay(trace: &Trace, spec: &ReplaySpec, progress: &Progress) -> Result<ReplayResult> {
    spec.check()?;
    if let [tier] = spec.tiers.as_slice()
        && Spec::parse(&tier.admission)?.name == "always"
        && let Some(bypass) = parse_opt(&tier.policy)?
    {
        return opt::replay(trace, spec, bypass, progress);
    }
    let ground = Ground::new(trace, &spec.tiers);
    let topologies = ground.topologies();
    let mut hierarchy = Hierarchy::new(trace, &spec.built_tiers(), &ground, &topologies, spec.residence)?;
    let mut events = Events::new(spec.events);
    let mut recorder = spec.per_request.then(|| PerRequest::new(spec, trace.len()));
    visit(trace, spec, progress, |request| {
        match spec.mode {
            Mode::Prefix => hierarchy.serve(request, &mut events),
            Mode::Object => hierarchy.access(request, &mut events),
        }
        if let Some(recorder) = &mut recorder {
            recorder.record(request, &hierarchy);
        }
    })?;
    let tiers = (0..hierarchy.len())
        .map(|k| TierResult { counters: hierarchy.counters(k), content: hierarchy.content(k) })
        .collect();
    Ok(ReplayResult {
        spec: spec.clone(),
        tiers,
        requests: recorder,
        events,
        input_tokens: trace.totals().input_tokens,
    })
}

/// Calls `serve` with every request in replay order.
pub(crate) fn visit(
    trace: &Trace,
    spec: &ReplaySpec,
    progress: &Progress,
    mut serve: impl FnMut(&Request),
) -> Result<()> {
    progress.start(trace.len() as u64);
    let mut blocks = 0;
    for index in 0..trace.len() {
        if index % STEP == 0 || blocks >= STEP_BLOCKS {
            progress.advance_to(index as u64)?;
            blocks = 0;
        }
        let request = request(trace, spec, index);
        blocks += u64::from(request.blocks);
        serve(&request);
    }
    progress.advance_to(trace.len() as u64)
}

/// A request under the rules of the spec.
fn request(trace: &Trace, spec: &ReplaySpec, index: usize) -> Request {
    let node = trace.requests.node[index];
    let listed_blocks = trace.forest.path_len(node);
    let block_tokens = trace.block_tokens_of(index);
    let input_tokens = trace.requests.input_tokens[index];
    let blocks = if spec.full_blocks_only { trace.full_blocks(index) } else { listed_blocks };
    let limit_blocks = if spec.last_token { input_tokens.saturating_sub(1) / block_tokens } else { u32::MAX };
    Request {
        index: index as u32,
        node: if blocks == listed_blocks { node } else { trace.forest.truncate(node, blocks) },
        blocks,
        listed_blocks,
        limit_blocks,
        input_tokens: u64::from(input_tokens),
        block_tokens,
        now_us: trace.requests.arrival_us.as_ref().map(|times| times[index]),
    }
}

#[cfg(test)]
mod golden;
#[cfg(test)]
mod invariants;
#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;
