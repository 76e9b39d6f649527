//! `LMCache` look-up hash logs (`lmcache server --lookup-hash-log-dir`): one look-up a line.
//!
//! A request that is preempted is looked up again under the same `request_id`: only its earliest look-up counts. The
//! log has no output lengths, and only chunks that `LMCache` stores are listed.

use super::dialect::{self, Dialect};
use super::head::Head;
use super::{Format, FormatInfo, mooncake};
use crate::error::Result;
use crate::ingest::input::Input;
use crate::ingest::json::Kind;
use crate::ingest::rows::RowSink;

pub(crate) const FORMAT: Format = Format {
    info: FormatInfo {
        name: "lmcache_lookup_log",
        doc: "JSON lines of look-ups: timestamp, request_id, model_name, chunk_size, seq_len, chunk_hashes",
        example: r#"{"timestamp": 1764400000.25, "request_id": "r1", "model_name": "m", "chunk_size": 256, "seq_len": 700, "chunk_hashes": ["0x9f", "0xa0"]}"#,
        source: "LMCache mp_observability lookup_hash subscriber",
    },
    detect: |head, _| (DIALECT.is)(&Head::of(head)),
    read,
    is_binary: false,
};

pub(super) const DIALECT: Dialect = Dialect {
    is: |head| head.is("chunk_hashes", Kind::Array),
    begin: |sink| {
        sink.hints.repeats = true;
        sink.hints.dates = true;
    },
    settle: dialect::seconds,
};

fn read(input: &mut Input<'_>, sink: &mut RowSink) -> Result<()> {
    (DIALECT.begin)(sink);
    mooncake::read_with(input, sink, |_, row, _| (DIALECT.settle)(row))
}
