//! Formats that the Python package reads from Parquet and Arrow, listed here so that all formats are in one list.

use super::{Format, FormatInfo};
use crate::ingest::length_only::read_elsewhere;

/// Parquet files and tables in memory.
pub(super) const ARROW: Format = Format {
    info: FormatInfo {
        name: "arrow",
        doc: "Parquet, or a table in memory: the fields of mooncake as columns, hash_ids or run_start and run_length as lists",
        example: "kvreplay.read_trace(\"trace.parquet\", columns={\"hash_ids\": \"total_hashes\"})",
        source: "Apache Arrow and Parquet",
    },
    detect: |_, _| false,
    read: |_, _| Err(read_elsewhere("arrow")),
    is_binary: false,
};

/// Our own files.
pub(super) const NATIVE: Format = Format {
    info: FormatInfo {
        name: "native",
        doc: "a Parquet file that kvreplay convert wrote: chains, read without interning",
        example: "kvreplay convert trace.jsonl trace.parquet",
        source: "kvreplay",
    },
    detect: |_, _| false,
    read: |_, _| Err(read_elsewhere("native")),
    is_binary: false,
};
