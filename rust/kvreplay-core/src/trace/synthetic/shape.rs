//! Arrivals and lengths of a recorded trace put on a generated one.
//!
//! Traces such as Azure's and `BurstGPT` list when requests came and how long they were, but not what was in them. The
//! kind then says what requests share, the recording says the rest. How much can be reused is the kind's assumption.

use super::prompt::Segment;
use super::random::mix;
use super::source::Draft;

/// Keeps filling texts apart from those of the kinds, which mix the seed with small numbers.
const FILLER: u64 = 0x66_69_6c_6c_65_72;

/// What a recording says about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shape {
    /// Arrival in microseconds; `None` keeps the kind's.
    pub arrival_us: Option<i64>,
    /// Input length in tokens.
    pub input_tokens: u32,
    /// Output length in tokens; `None` keeps the kind's.
    pub output_tokens: Option<u32>,
}

/// Gives the request number `request` the shape: a longer prompt is cut at its end, a shorter one filled up with
/// text that no other request has.
pub(super) fn give(draft: &mut Draft, shape: Shape, seed: u64, request: u64) {
    draft.arrival_us = shape.arrival_us.unwrap_or(draft.arrival_us);
    draft.output_tokens = shape.output_tokens.unwrap_or(draft.output_tokens);
    let mut left = shape.input_tokens;
    for segment in &mut draft.segments {
        segment.tokens = segment.tokens.min(left);
        left -= segment.tokens;
    }
    draft.segments.retain(|segment| segment.tokens > 0);
    if left > 0 {
        draft.segments.push(Segment { content: mix(mix(seed, FILLER), request), tokens: left });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_are_cut_or_filled() {
        let text = |content: u64, tokens: u32| Segment { content, tokens };
        let shaped = |input_tokens: u32, request: u64| {
            let mut draft = Draft { arrival_us: 7, output_tokens: 9, ..Draft::default() };
            draft.segments.extend([text(1, 5), text(2, 3)]);
            give(&mut draft, Shape { arrival_us: None, input_tokens, output_tokens: Some(0) }, 4, request);
            assert_eq!((draft.arrival_us, draft.output_tokens), (7, 0));
            draft.segments
        };
        assert_eq!(shaped(0, 0), []);
        assert_eq!(shaped(5, 0), [text(1, 5)]);
        assert_eq!(shaped(6, 0), [text(1, 5), text(2, 1)]);
        assert_eq!(shaped(8, 0), [text(1, 5), text(2, 3)]);
        let (one, two) = (shaped(10, 0), shaped(10, 1));
        assert_eq!((&one[..2], one[2].tokens), (&[text(1, 5), text(2, 3)][..], 2));
        assert!(one[2].content != two[2].content);
    }
}
