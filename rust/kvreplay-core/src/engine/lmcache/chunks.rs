//! A request in `LMCache`'s chunks.

use crate::engine::EngineRequest;

/// The complete chunks of a request, each named by its last block. Chunks without a name are last in the
/// prompt, and last among those that fill while decoding.
#[derive(Debug, Clone, Copy)]
pub(super) struct Chunks<'a> {
    /// Named chunks of the prompt, root first.
    pub prompt: &'a [u32],
    /// Chunks of the prompt behind these.
    pub prompt_unnamed: u64,
    /// Named chunks that get full while decoding.
    pub decoded: &'a [u32],
    /// Chunks that get full behind these.
    pub decoded_unnamed: u64,
}

/// Buffers for chunks of several blocks.
#[derive(Debug, Default)]
pub(super) struct ChunkPaths {
    prompt: Vec<u32>,
    decoded: Vec<u32>,
}

impl ChunkPaths {
    /// The chunks of `chunk_blocks` blocks of a request.
    pub(super) fn read<'a>(&'a mut self, request: &EngineRequest<'a>, chunk_blocks: u32) -> Chunks<'a> {
        let chunk = u64::from(chunk_blocks);
        let prompt_blocks = request.prompt_full_blocks();
        let (in_prompt, in_all) = (prompt_blocks / chunk, request.total_full_blocks() / chunk);
        let (prompt, decoded) = if chunk_blocks == 1 {
            let most = (in_all - in_prompt).min(request.decoded.len() as u64);
            (request.full_blocks(), &request.decoded[..most as usize])
        } else {
            let last = chunk_blocks as usize - 1;
            self.prompt.clear();
            self.prompt.extend(request.full_blocks().iter().skip(last).step_by(last + 1));
            // The chunk that holds the end of the prompt is named by a decoded block, as those behind it.
            let first = ((in_prompt + 1) * chunk - 1 - prompt_blocks) as usize;
            let most = (in_all - in_prompt) as usize;
            self.decoded.clear();
            self.decoded.extend(request.decoded.iter().skip(first).step_by(last + 1).take(most));
            (&self.prompt[..], &self.decoded[..])
        };
        Chunks {
            prompt,
            prompt_unnamed: in_prompt - prompt.len() as u64,
            decoded,
            decoded_unnamed: in_all - in_prompt - decoded.len() as u64,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(chunk: u32, listed: &[u32], prompt: u64, decoded: &[u32], tokens: u64) -> [(Vec<u32>, u64); 2] {
        let request = EngineRequest {
            index: 0,
            listed,
            prompt_tokens: prompt,
            decoded,
            decoded_tokens: tokens,
            block_tokens: 2,
            now_us: None,
        };
        let mut paths = ChunkPaths::default();
        let chunks = paths.read(&request, chunk);
        [(chunks.prompt.to_vec(), chunks.prompt_unnamed), (chunks.decoded.to_vec(), chunks.decoded_unnamed)]
    }

    #[test]
    fn a_chunk_is_complete_and_named_by_its_last_block() {
        let (none, listed) = (vec![], [1, 2, 3, 4, 5]);
        assert_eq!(read(1, &listed, 9, &[], 0), [(vec![1, 2, 3, 4], 0), (none.clone(), 0)]);
        assert_eq!(read(2, &listed, 9, &[], 0), [(vec![2, 4], 0), (none.clone(), 0)]);
        assert_eq!(read(2, &listed, 30, &[], 0), [(vec![2, 4], 5), (none.clone(), 0)]);
        assert_eq!(read(3, &[], 0, &[], 0), [(none.clone(), 0), (none, 0)]);
    }

    #[test]
    fn decoded_chunks_begin_with_the_rest_of_the_prompt() {
        // 9 + 7 tokens are 8 blocks: 4 of the prompt, one that decoding completes, three more.
        assert_eq!(read(1, &[1, 2, 3, 4], 9, &[5, 6, 7, 8], 7)[1], (vec![5, 6, 7, 8], 0));
        assert_eq!(read(1, &[1, 2, 3, 4], 9, &[5, 6], 7)[1], (vec![5, 6], 2));
        assert_eq!(read(1, &[1, 2, 3, 4], 9, &[5, 6, 7, 8], 1)[1], (vec![5], 0));
        assert_eq!(read(3, &[1, 2, 3, 4], 9, &[5, 6, 7, 8], 7), [(vec![3], 0), (vec![6], 0)]);
        assert_eq!(read(4, &[1, 2, 3, 4], 9, &[5, 6, 7, 8], 7), [(vec![4], 0), (vec![8], 0)]);
        assert_eq!(read(8, &[1, 2, 3, 4], 9, &[5, 6, 7, 8], 7), [(vec![], 0), (vec![8], 0)]);
    }
}
