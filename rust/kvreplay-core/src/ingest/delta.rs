//! Rows that hold only what their turn adds: the session's history is put before them.
//!
//! The whole prompt of a turn is all inputs and outputs of the session's turns before it, then its own input, as
//! Dynamo's `mooncake-delta` replays it. Blocks are cut from that stream of tokens, so where a turn ends inside a
//! block the next one begins there. A block that is one listed block of one row keeps its id. One that is put
//! together from several pieces, or that holds tokens without an id (outputs, tails that the trace does not list),
//! gets an id from its pieces and the block above it: equal exactly when the pieces are.

use super::lengths::Lengths;
use super::notes::Notes;
use super::rows::Rows;
use super::sessions::common;
use super::token_hash::first_eight;
use crate::error::{Error, Result};
use crate::trace::{Forest, ForestBuilder, Id, IdTable, Kinds, NO_CODE, NO_LENGTH, Node, Tail};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;

/// Blocks of one session's history, at most: a context of 67 million tokens in blocks of 16.
const MAX_HISTORY_BLOCKS: u64 = 1 << 22;

/// Tokens of one source.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    of: Source,
    /// Tokens `from..to` of the block or of the row's tokens without an id.
    from: u32,
    to: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Source {
    Number(u64),
    Text(String),
    /// Input tokens of a row that no block lists.
    Unlisted(u32),
    /// Output tokens of a row.
    Output(u32),
}

/// The history of a session in one namespace.
#[derive(Debug)]
struct History {
    /// The full blocks that are in the forest.
    node: Node,
    tokens: u64,
    /// Full blocks and a partial one that are not in the forest yet.
    rest: Vec<Piece>,
    before: Node,
}

/// Puts every session's history before its rows. Returns the new forest and ids; a row of no session is unchanged.
///
/// A session that changes its namespace (its model) starts over there.
///
/// # Errors
/// `row_too_long` for a session of more than 4 million blocks; as [`ForestBuilder::push`].
pub(crate) fn concatenate(
    rows: &mut Rows,
    forest: &Forest,
    ids: &IdTable,
    lengths: &Lengths,
    notes: &mut Notes,
) -> Result<(Forest, IdTable)> {
    let mut out = Output { builder: ForestBuilder::new(), tail: lengths.tail, path: Vec::new() };
    let mut histories = Histories::default();
    let mut whole = Vec::new();
    for row in 0..rows.node.len() {
        let node = rows.node[row];
        let session = rows.columns.iter().find(|column| column.name == "session");
        let (session, namespace) = histories.key(session.map(|column| column.codes[row]), forest, node);
        let history = histories.of(session, namespace);
        let block_tokens = match rows.block_tokens.get(row) {
            Some(&stated) if stated != 0 => stated,
            _ => lengths.block_tokens,
        };
        if looks_whole(forest, history.before, node) {
            whole.push(row as u32);
        }
        history.before = node;
        let delta = Delta { row: row as u32, block_tokens, input: rows.input_tokens[row] };
        let Some(tokens) = history.add(&delta, forest, ids, node, &mut out.path) else {
            let hint = "are these rows deltas? read them without session_rows=delta otherwise";
            let error = Error::trace("row_too_long", "the history of a session is too long", hint);
            return Err(notes.at(error, Some(rows.places.get(row as u32))));
        };
        rows.input_tokens[row] = tokens;
        rows.node[row] = history.push(&mut out, namespace, block_tokens)?;
        history.add_output(row as u32, rows.output_tokens[row]);
    }
    if let Some(&first) = whole.first() {
        notes.mention("cumulative_rows", whole.len() as u64, Some(rows.places.get(first)), None);
        notes.detail(
            "cumulative_rows",
            "session_rows=delta was asked for, but these rows repeat the turn before",
        );
    }
    Ok(out.builder.finish())
}

/// What is written to, and room for a path.
struct Output {
    builder: ForestBuilder,
    tail: Tail,
    path: Vec<u32>,
}

/// The histories by session and namespace.
#[derive(Default)]
struct Histories {
    by_key: BTreeMap<(u32, u32), History>,
    /// The namespace a session was in last: an empty path has none of its own.
    last: BTreeMap<u32, u32>,
}

impl Histories {
    fn key(&mut self, session: Option<u32>, forest: &Forest, node: Node) -> (u32, u32) {
        let session = session.unwrap_or(NO_CODE);
        let last = self.last.entry(session).or_insert(0);
        if !node.is_empty() {
            *last = forest.namespace(node.chain);
        }
        (session, *last)
    }

    /// The history to go on with; that of no session is always a new one.
    fn of(&mut self, session: u32, namespace: u32) -> &mut History {
        if session == NO_CODE {
            self.by_key.remove(&(session, namespace));
        }
        self.by_key.entry((session, namespace)).or_default()
    }
}

/// Whether a row repeats the row of its session before it, all but a last block that may have been partial.
fn looks_whole(forest: &Forest, before: Node, node: Node) -> bool {
    let had = forest.path_len(before);
    let shared = common(forest, before, node);
    shared > 0 && shared + 1 >= had && forest.path_len(node) >= had
}

/// What a row adds.
struct Delta {
    row: u32,
    block_tokens: u32,
    input: u32,
}

impl Delta {
    /// Appends the pieces of the row's input.
    fn append(&self, ids: &IdTable, path: &[u32], out: &mut Vec<Piece>) {
        let mut covered = 0;
        for &block in path {
            let to = self.block_tokens.min(self.input - covered);
            if to == 0 {
                break;
            }
            let of = match ids.get(block) {
                Id::Number(number) => Source::Number(number),
                Id::Text(text) => Source::Text(text.to_owned()),
            };
            out.push(Piece { of, from: 0, to });
            covered += to;
        }
        if covered < self.input {
            out.push(Piece { of: Source::Unlisted(self.row), from: 0, to: self.input - covered });
        }
    }
}

impl Default for History {
    fn default() -> Self {
        Self { node: Node::EMPTY, tokens: 0, rest: Vec::new(), before: Node::EMPTY }
    }
}

impl History {
    /// Adds a row's input; returns the length of the whole prompt, or `None` when that is too long.
    fn add(
        &mut self,
        delta: &Delta,
        forest: &Forest,
        ids: &IdTable,
        node: Node,
        path: &mut Vec<u32>,
    ) -> Option<u32> {
        self.tokens += u64::from(delta.input);
        if self.tokens.div_ceil(u64::from(delta.block_tokens)) > MAX_HISTORY_BLOCKS {
            return None;
        }
        forest.path(node, path);
        delta.append(ids, path, &mut self.rest);
        u32::try_from(self.tokens).ok().filter(|&tokens| tokens != NO_LENGTH)
    }

    fn add_output(&mut self, row: u32, output: u32) {
        if output != NO_LENGTH {
            self.tokens += u64::from(output);
            self.rest.push(Piece { of: Source::Output(row), from: 0, to: output });
        }
    }

    /// Puts the blocks of the rest into the forest; returns the node of the whole prompt.
    fn push(&mut self, out: &mut Output, namespace: u32, block_tokens: u32) -> Result<Node> {
        let mut block = Vec::new();
        let mut room = block_tokens;
        for mut piece in std::mem::take(&mut self.rest) {
            while piece.to - piece.from >= room {
                let cut = piece.from + room;
                block.push(Piece { of: piece.of.clone(), from: piece.from, to: cut });
                self.node = push_block(&mut out.builder, namespace, self.node, &block, block_tokens)?;
                block.clear();
                room = block_tokens;
                piece.from = cut;
            }
            if piece.from < piece.to {
                room -= piece.to - piece.from;
                block.push(piece);
            }
        }
        let node = match out.tail {
            Tail::Ceil if !block.is_empty() => {
                push_block(&mut out.builder, namespace, self.node, &block, block_tokens)?
            }
            _ => self.node,
        };
        self.rest = block;
        Ok(node)
    }
}

/// Adds the block of some pieces below a node.
fn push_block(
    builder: &mut ForestBuilder,
    namespace: u32,
    above: Node,
    pieces: &[Piece],
    block_tokens: u32,
) -> Result<Node> {
    match pieces {
        [Piece { of: Source::Number(id), from: 0, .. }] => {
            builder.push_below(above, namespace, &[*id], Kinds::Numbers)
        }
        [Piece { of: Source::Text(text), from: 0, .. }] => {
            let id = builder.text_number(text);
            builder.push_below(above, namespace, &[id], Kinds::Mixed(&[true]))
        }
        _ => {
            let id = composed(above, pieces, block_tokens);
            builder.push_below(above, namespace, &[id], Kinds::Numbers)
        }
    }
}

/// The id of a block that is put together: from the place of the block above and the pieces.
fn composed(above: Node, pieces: &[Piece], block_tokens: u32) -> u64 {
    let mut hash = Sha256::new();
    for part in [above.chain, above.len, block_tokens] {
        hash.update(part.to_le_bytes());
    }
    for piece in pieces {
        match &piece.of {
            Source::Number(id) => hash.update([&[0][..], &id.to_le_bytes()].concat()),
            Source::Text(text) => hash.update([&[1][..], &Sha256::digest(text.as_bytes())].concat()),
            Source::Unlisted(row) => hash.update([&[2][..], &row.to_le_bytes()].concat()),
            Source::Output(row) => hash.update([&[3][..], &row.to_le_bytes()].concat()),
        }
        hash.update([piece.from.to_le_bytes(), piece.to.to_le_bytes()].concat());
    }
    first_eight(&hash.finalize())
}
