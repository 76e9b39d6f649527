//! The replay of an engine profile: the same fold over requests, with the engine's own model.

use super::result::{PerRequest, ReplayResult, TierResult};
use super::{ReplaySpec, STEP, STEP_BLOCKS};
use crate::engine::{Grain, Paths, Profile, Recorder};
use crate::error::Result;
use crate::hierarchy::TierSpec;
use crate::progress::Progress;

/// Replays a trace as the engine of a profile would serve it. Blocks of events and contents are those of
/// [`Grain::source`], counters and hits are in engine blocks.
///
/// # Errors
/// [`crate::Error::Config`] for tiers the engine does not have, [`crate::Error::Cancelled`].
pub fn replay_profile(
    grain: &Grain,
    profile: &Profile,
    tiers: &[TierSpec],
    per_request: bool,
    events: bool,
    occupancy: bool,
    progress: &Progress,
) -> Result<ReplayResult> {
    let tiers = &profile.settled(tiers);
    let spec = ReplaySpec { per_request, occupancy, events, ..ReplaySpec::new(tiers.clone()) };
    let mut model = profile.build(tiers, grain)?;
    let trace = grain.trace();
    let mut out = Recorder::new(tiers, trace.forest.blocks(), events);
    let mut rows = per_request.then(|| PerRequest::new(&spec, trace.len()));
    let mut paths = Paths::default();
    let mut blocks = 0;
    progress.start(trace.len() as u64);
    for index in 0..trace.len() {
        if index % STEP == 0 || blocks >= STEP_BLOCKS {
            progress.advance_to(index as u64)?;
            blocks = 0;
        }
        let request = grain.request(index, &mut paths);
        blocks += request.listed.len() as u64 + 1;
        out.begin(request.index);
        model.serve(&request, &mut out);
        out.end(&request);
        if let Some(rows) = &mut rows {
            let mut computed = request.prompt_tokens;
            for (k, row) in out.rows().iter().enumerate() {
                rows.push_hits(k, row.blocks, row.tokens);
                rows.push_resident(k, out.resident_blocks(k));
                computed = computed.saturating_sub(row.tokens);
            }
            rows.push_request(computed, out.stranded_blocks(), 0);
        }
    }
    progress.advance_to(trace.len() as u64)?;
    let mut content: Vec<Vec<u32>> = (0..tiers.len()).map(|k| model.content(k)).collect();
    let (mut events, counters) = out.finish(&content);
    for block in events.block.iter_mut().chain(content.iter_mut().flatten()) {
        *block = grain.named(*block);
    }
    let tiers = counters.into_iter().zip(content);
    Ok(ReplayResult {
        tiers: tiers.map(|(counters, content)| TierResult { counters, content }).collect(),
        requests: rows,
        events,
        input_tokens: trace.totals().input_tokens,
        spec,
    })
}
