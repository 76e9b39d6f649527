//! A request as a list of blocks of tokens, made up from the names of its blocks.

use crate::engine::EngineRequest;

/// A token: the name of its block and its place there. Tokens nobody can know have a name of their own.
pub(crate) type Token = (u64, u32);

/// The blocks of a finished request.
#[derive(Debug)]
pub(crate) struct Sequence {
    /// Tokens by block, the last block perhaps partial.
    pub(crate) blocks: Vec<Vec<Token>>,
    /// The name each block is counted under.
    pub(crate) labels: Vec<Option<u32>>,
    /// Tokens of the prompt by block.
    pub(crate) prompt: Vec<Vec<Token>>,
}

impl Sequence {
    /// `unknown` counts tokens nobody knows, over all requests.
    pub(crate) fn new(request: &EngineRequest<'_>, unknown: &mut u64) -> Self {
        let size = u64::from(request.block_tokens);
        let full_prompt = (request.prompt_tokens / size) as usize;
        // Behind the first full block without a name no name counts.
        let named = (0..request.total_full_blocks()).take_while(|&at| request.name_of(at).is_some()).count();
        let mut tokens = Vec::new();
        for at in 0..request.total_tokens() {
            let (block, place) = ((at / size) as usize, (at % size) as u32);
            let name = if at < request.prompt_tokens {
                request.listed.get(block)
            } else if (block as u64 + 1) * size <= request.total_tokens() {
                request.decoded.get(block - full_prompt)
            } else {
                None
            };
            tokens.push(name.filter(|_| block <= named).map_or_else(
                || {
                    *unknown += 1;
                    (*unknown + (1 << 40), 0)
                },
                |&name| (u64::from(name), place),
            ));
        }
        let chop = |tokens: &[Token]| tokens.chunks(size as usize).map(<[Token]>::to_vec).collect::<Vec<_>>();
        let blocks = chop(&tokens);
        let label = |(at, block): (usize, &Vec<Token>)| {
            if at > named {
                None
            } else if block.len() as u64 == size {
                let decoded = at.checked_sub(full_prompt).and_then(|at| request.decoded.get(at));
                if at < full_prompt { request.listed.get(at) } else { decoded }.copied()
            } else if request.decoded_tokens == 0 {
                request.listed.get(at).copied()
            } else {
                None
            }
        };
        let labels = blocks.iter().enumerate().map(label).collect();
        Self { labels, prompt: chop(&tokens[..request.prompt_tokens as usize]), blocks }
    }
}
