//! Token ids: prompts as lists of tokens, which are cut into blocks and hashed here (`ingest::token_hash`).
//!
//! One file can so be read at any block size. The other fields are those of `mooncake`.

use super::head::Head;
use super::{Format, FormatInfo, mooncake};
use crate::error::Result;
use crate::ingest::fields::{self, Ours};
use crate::ingest::input::Input;
use crate::ingest::json::Kind;
use crate::ingest::options::ReadOptions;
use crate::ingest::row::Problem;
use crate::ingest::rows::RowSink;

pub(crate) const FORMAT: Format = Format {
    info: FormatInfo {
        name: "token_ids",
        doc: "JSON lines of prompts as token ids: timestamp, token_ids, output_length; hashed at --block-tokens",
        example: r#"{"timestamp": 0, "token_ids": [151644, 8948, 198], "output_length": 20}"#,
        source: "vLLM prompt_token_ids, LLMServingSim input_tok_ids",
    },
    detect,
    read,
    is_binary: false,
};

fn detect(head: &[u8], options: &ReadOptions) -> bool {
    let head = Head::of(head);
    let lists = |what: Ours| {
        let names = fields::names_of(what, &options.columns);
        names.iter().any(|name| head.is(name, Kind::Array) || head.is(name, Kind::Text))
    };
    lists(Ours::TokenIds) && !lists(Ours::HashIds)
}

fn read(input: &mut Input<'_>, sink: &mut RowSink) -> Result<()> {
    mooncake::read_with(input, sink, |_, row, _| {
        if !row.has_tokens && !row.is_marked {
            row.problems.push(Problem::missing("token_ids"));
        }
    })
}
