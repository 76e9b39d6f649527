//! WEKA kv-cache-tester traces (callanjfox/kv-cache-tester): one JSON object per session of a coding agent.
//!
//! A file is a session: `id`, `block_size`, `hash_id_scope`, `tool_tokens`, `system_tokens` and its `requests`, each
//! with `t` (seconds from the session's start), `model`, `in`, `out` and `hash_ids`. Ids are local to the session,
//! partial blocks are not listed. A sub-agent is an entry with `requests` of its own. Its inner times count from its
//! own start, and its outer `t` is when it was *done*: it began at `t - duration_ms`, not before the session.
//!
//! Several objects in one file, one a line or not, are several sessions.

mod file;
mod prefix;
mod session;

use super::head::Head;
use super::{Format, FormatInfo};
use crate::ingest::json::Kind;

pub(crate) const FORMAT: Format = Format {
    info: FormatInfo {
        name: "weka",
        doc: "one JSON object per session: id, block_size, requests with t, model, in, out, hash_ids; sub-agents nested",
        example: r#"{"id": "s1", "models": ["m"], "block_size": 64, "hash_id_scope": "local", "tool_tokens": 9000, "system_tokens": 4000, "requests": [{"t": 0.0, "type": "n", "model": "m", "in": 200, "out": 30, "hash_ids": [1, 2, 3]}]}"#,
        source: "callanjfox/kv-cache-tester; SemiAnalysis cc-traces-weka",
    },
    detect: |head, _| {
        let head = Head::of(head);
        let typical = ["hash_id_scope", "block_size", "models"];
        head.is("requests", Kind::Array) && typical.iter().any(|key| head.has(key))
    },
    read: file::read,
    is_binary: false,
};
