//! Qwen-Bailian usage traces (alibaba-edu/qwen-bailian-usagetraces-anon; USENIX ATC 2025): one turn of a chat a line.
//!
//! Times are seconds, blocks 16 tokens. `chat_id` names the turn, `parent_chat_id` the turn before it (-1 = none):
//! a session is the tree below one root. The last block of a turn is padded, so its id is another one as soon as
//! output takes the place of the padding: the next turn never finds it.

use super::dialect::{self, Dialect};
use super::head::Head;
use super::{Format, FormatInfo, mooncake};
use crate::error::Result;
use crate::ingest::input::Input;
use crate::ingest::json::Kind;
use crate::ingest::rows::RowSink;

pub(crate) const FORMAT: Format = Format {
    info: FormatInfo {
        name: "bailian",
        doc: "JSON lines of chat turns: seconds, chat_id, parent_chat_id, turn, type, blocks of 16 tokens",
        example: r#"{"chat_id": 159, "parent_chat_id": 55, "timestamp": 61.114, "input_length": 521, "output_length": 132, "type": "text", "turn": 2, "hash_ids": [1089, 1090, 6326]}"#,
        source: "alibaba-edu/qwen-bailian-usagetraces-anon, ATC'25",
    },
    detect: |head, _| (DIALECT.is)(&Head::of(head)),
    read,
    is_binary: false,
};

const PADDED: &str =
    "the block size of the format; the last block of a turn includes padding, so no later turn finds it";

pub(super) const DIALECT: Dialect = Dialect {
    is: |head| head.has("chat_id") && head.has("parent_chat_id") && head.is("hash_ids", Kind::Array),
    begin: |sink| sink.hints.block_tokens = Some((16, PADDED)),
    settle: dialect::seconds,
};

fn read(input: &mut Input<'_>, sink: &mut RowSink) -> Result<()> {
    (DIALECT.begin)(sink);
    mooncake::read_with(input, sink, |_, row, _| (DIALECT.settle)(row))
}
