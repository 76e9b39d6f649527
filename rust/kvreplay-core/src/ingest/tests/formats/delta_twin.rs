//! Delta rows against a twin that writes every prompt out token by token.

use super::*;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::fmt::Write;

/// A row: session, input and output length, and which texts its blocks are taken from.
#[derive(Debug, Clone)]
struct Turn {
    session: u8,
    input: u32,
    output: u32,
    text: u8,
}

/// A token: what it is of, and where in it. Equal tokens are the same token of the same text.
type Token = (String, u32);

const BLOCK: u32 = 4;

/// Id of block `k` of a turn: equal for equal texts, positions and lengths.
fn id(turn: &Turn, k: u32, floor: bool) -> Option<u32> {
    let length = BLOCK.min(turn.input - k * BLOCK);
    (length == BLOCK || !floor).then_some(u32::from(turn.text) * 1000 + k * 10 + length)
}

fn ids(turn: &Turn, floor: bool) -> Vec<u32> {
    (0..turn.input.div_ceil(BLOCK)).filter_map(|k| id(turn, k, floor)).collect()
}

/// The whole prompt of every turn, token by token.
fn prompts(turns: &[Turn], floor: bool) -> Vec<Vec<Token>> {
    let mut histories: BTreeMap<u8, Vec<Token>> = BTreeMap::new();
    let mut out = Vec::new();
    for (row, turn) in turns.iter().enumerate() {
        let history = histories.entry(turn.session).or_default();
        for at in 0..turn.input {
            history.push(match id(turn, at / BLOCK, floor) {
                Some(id) => (format!("block {id}"), at % BLOCK),
                None => (format!("input of {row}"), at % BLOCK),
            });
        }
        out.push(history.clone());
        history.extend((0..turn.output).map(|at| (format!("output of {row}"), at)));
    }
    out
}

/// Leading blocks that two prompts share: equal tokens, and as many of them.
fn shared(a: &[Token], b: &[Token], floor: bool) -> usize {
    let blocks = |prompt: &[Token]| -> Vec<Vec<Token>> {
        let chunks = prompt.chunks(BLOCK as usize).filter(|chunk| !floor || chunk.len() == BLOCK as usize);
        chunks.map(<[Token]>::to_vec).collect()
    };
    blocks(a).iter().zip(&blocks(b)).take_while(|(a, b)| a == b).count()
}

fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let turn = (0..3_u8, 0..14_u32, 0..7_u32, 0..3_u8).prop_map(|(session, input, output, text)| Turn {
        session,
        input,
        output,
        text,
    });
    prop::collection::vec(turn, 1..14)
}

proptest! {
    #![proptest_config(crate::ingest::tests::cases(400))]
    #[test]
    fn prompts_share_what_they_share_token_by_token(turns in turns(), floor in any::<bool>()) {
        let mut text = String::new();
        for (row, turn) in turns.iter().enumerate() {
            let Turn { session, input, output, .. } = turn;
            let ids = ids(turn, floor);
            writeln!(
                text,
                "{{\"session_id\":\"s{session}\",\"timestamp\":{row},\"input_length\":{input},\"output_length\":{output},\"hash_ids\":{ids:?}}}"
            )
            .unwrap();
        }
        let mut options = ReadOptions { block_tokens: Some(BLOCK), ..ReadOptions::default() };
        options.set_session_rows("delta").unwrap();
        options.set_tail(if floor { "floor" } else { "ceil" }).unwrap();
        let trace = read_ok(text, &options);
        let (got, want) = (paths(&trace), prompts(&turns, floor));
        for a in 0..turns.len() {
            let length = want[a].len() as u32;
            prop_assert_eq!(trace.requests.input_tokens[a], length);
            let listed = if floor { length / BLOCK } else { length.div_ceil(BLOCK) };
            prop_assert_eq!(got[a].len() as u32, listed);
            for b in 0..a {
                let common = got[a].iter().zip(&got[b]).take_while(|(a, b)| a == b).count();
                prop_assert_eq!(common, shared(&want[a], &want[b], floor), "rows {} and {}", b, a);
            }
        }
    }
}
