//! Random small forests of requests, for the tests of models against their twins.

use super::steps::Step;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

/// Tokens of a block.
pub(crate) const SIZE: u32 = 4;
/// Names are below this.
pub(crate) const NAMES: u32 = 1024;

/// The same cases at every run.
pub(crate) fn config() -> ProptestConfig {
    ProptestConfig { rng_seed: RngSeed::Fixed(35), ..ProptestConfig::with_cases(300) }
}

/// A request drawn by its path: a walk down a tree with two children a node.
#[derive(Debug, Clone)]
pub(crate) struct Draw {
    turns: Vec<bool>,
    /// How many of the path's blocks are decoded.
    decoded: usize,
    /// How many of the prompt's full blocks are not listed.
    unlisted: usize,
    extra: u64,
    lists_partial: bool,
    private_tokens: u64,
    seconds: i64,
}

/// Any request.
pub(crate) fn draw() -> impl Strategy<Value = Draw> {
    let turns = prop::collection::vec(any::<bool>(), 0..6);
    let counts = (0_usize..3, prop_oneof![4 => Just(0_usize), 1 => 1_usize..3]);
    let flags = (any::<bool>(), 0_u64..4, 0_u64..9, 0_i64..6);
    (turns, counts, flags).prop_map(|(turns, (decoded, unlisted), flags)| {
        let (lists_partial, extra, private_tokens, seconds) = flags;
        let decoded = decoded.min(turns.len());
        Draw { turns, decoded, unlisted, extra, lists_partial, private_tokens, seconds }
    })
}

/// The requests. Names are places in the tree; a partial block is named by its parent and its number of tokens.
/// `whole` leaves out listed decoded blocks that start with tokens of the prompt.
pub(crate) fn steps_of(draws: &[Draw], whole: bool) -> Vec<Step> {
    let mut now = 0;
    let one = |draw: &Draw| {
        now += draw.seconds;
        let mut at = 0_u32;
        let mut listed = Vec::new();
        for turn in &draw.turns {
            at = at * 2 + 1 + u32::from(*turn);
            listed.push(at);
        }
        let lists_decoded = draw.extra == 0 || !whole;
        let decoded = if lists_decoded { listed.split_off(listed.len() - draw.decoded) } else { Vec::new() };
        let full = listed.len() as u64 * u64::from(SIZE);
        if draw.unlisted > 0 {
            listed.truncate(listed.len().saturating_sub(draw.unlisted));
        } else if draw.extra > 0 && draw.lists_partial {
            listed.push(128 + listed.last().map_or(0, |last| last + 1) * 4 + draw.extra as u32);
        }
        let decoded_tokens = if decoded.is_empty() {
            draw.private_tokens
        } else {
            decoded.len() as u64 * u64::from(SIZE) - draw.extra + draw.private_tokens % 4
        };
        let now_us = Some(now * 1_000_000);
        Step { listed, prompt_tokens: full + draw.extra, decoded, decoded_tokens, now_us }
    };
    draws.iter().map(one).collect()
}
