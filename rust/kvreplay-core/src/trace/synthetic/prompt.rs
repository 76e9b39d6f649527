//! From texts to chained block ids.

use super::random::{finalize, mix};

/// A piece of text: some tokens of some content. The same content always has the same tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    /// Which text.
    pub(super) content: u64,
    /// How many tokens of it, from its beginning.
    pub(super) tokens: u32,
}

/// The ids of a prompt's blocks, the partial last one included. `out` is cleared.
///
/// An id hashes the id before it and what lies in the block (content, offset and length of every piece),
/// so two prompts share an id exactly when they are equal up to the end of that block. A partial block has
/// another id than the full block that replaces it when the prompt grows, as in engines' traces.
pub(super) fn block_ids(root: u64, segments: &[Segment], block_tokens: u32, out: &mut Vec<u64>) {
    out.clear();
    let mut id = finalize(root);
    let mut filled = 0;
    for segment in segments {
        let mut offset = 0;
        while offset < segment.tokens {
            let piece = (block_tokens - filled).min(segment.tokens - offset);
            id = mix(mix(id, segment.content), u64::from(offset) << 32 | u64::from(piece));
            offset += piece;
            filled += piece;
            if filled == block_tokens {
                out.push(id);
                filled = 0;
            }
        }
    }
    if filled > 0 {
        out.push(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(segments: &[(u64, u32)]) -> Vec<u64> {
        let segments: Vec<Segment> =
            segments.iter().map(|&(content, tokens)| Segment { content, tokens }).collect();
        let mut out = vec![99];
        block_ids(5, &segments, 4, &mut out);
        out
    }

    #[test]
    fn blocks_are_shared_up_to_the_first_difference() {
        let a = ids(&[(1, 6), (2, 5)]);
        assert_eq!(a.len(), 3);
        // Same first text, other second text: only the block that lies in the first text is shared.
        let b = ids(&[(1, 6), (3, 5)]);
        assert_eq!((a[0], a[1] == b[1], a[2] == b[2]), (b[0], false, false));
        // A longer prompt replaces the partial block.
        let c = ids(&[(1, 6), (2, 6)]);
        assert_eq!((&a[..2], a[2] == c[2]), (&c[..2], false));
        // The same text elsewhere is another block.
        assert!(ids(&[(1, 4), (2, 4)])[1] != ids(&[(3, 4), (2, 4)])[1]);
        assert!(ids(&[]).is_empty());
        assert_eq!(ids(&[(1, 0), (2, 4)]), ids(&[(2, 4)]));
    }
}
