//! Blocks from token ids: the chained hash that engines use, in one fixed and simple form.
//!
//! The id of a block is the first 8 bytes, little endian, of the SHA-256 of 8 bytes for the block before it (its
//! id, little endian; zeros for the first block) followed by the block's tokens, 4 bytes little endian each. Anyone
//! can recompute it. It is no engine's own hash: engines hash other encodings and more keys, but two blocks are
//! equal here exactly when their prompts are equal up to their end (64-bit collisions aside).

use sha2::{Digest, Sha256};

/// The block size where neither the caller nor the rows state one: that of vLLM and most engines.
pub(crate) const USUAL_BLOCK_TOKENS: u32 = 16;

/// Appends the ids of the blocks of a prompt; the last one may be partial.
pub(crate) fn blocks(tokens: &[u32], block_tokens: u32, out: &mut Vec<u64>) {
    let mut above = 0_u64;
    let mut bytes = Vec::new();
    for block in tokens.chunks(block_tokens.max(1) as usize) {
        bytes.clear();
        bytes.extend_from_slice(&above.to_le_bytes());
        bytes.extend(block.iter().flat_map(|token| token.to_le_bytes()));
        above = first_eight(&Sha256::digest(&bytes));
        out.push(above);
    }
}

/// The first eight bytes of a digest as a number.
pub(crate) fn first_eight(digest: &[u8]) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&digest[..8]);
    u64::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(tokens: &[u32], block_tokens: u32) -> Vec<u64> {
        let mut out = Vec::new();
        blocks(tokens, block_tokens, &mut out);
        out
    }

    /// Values from Python: `int.from_bytes(sha256(prev + b"".join(t.to_bytes(4, "little") for t in block)).digest()[:8], "little")`.
    #[test]
    fn ids_equal_those_of_the_published_construction() {
        assert_eq!(ids(&[1, 2, 3], 2), [0x6db3_db91_b1f3_c98f, 0xf94b_aab1_64fd_7b84]);
        assert_eq!(ids(&[], 2), [0_u64; 0]);
    }

    #[test]
    fn an_id_names_the_whole_prefix() {
        let (a, b) = (ids(&[1, 2, 3, 4, 5], 2), ids(&[9, 2, 3, 4, 5], 2));
        assert_eq!((a.len(), b.len()), (3, 3));
        assert!(a.iter().zip(&b).all(|(a, b)| a != b));
        assert_eq!(a[..2], ids(&[1, 2, 3, 4], 2));
        // A partial block has another id than the full one that takes its place.
        assert_ne!(a[2], ids(&[1, 2, 3, 4, 5, 6], 2)[2]);
        // Another block size names other blocks.
        assert_ne!(ids(&[1, 2], 2)[0], ids(&[1, 2, 3, 4], 4)[0]);
    }
}
