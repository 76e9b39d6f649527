//! Reads trace files, as `kvreplay inspect` does, and prints what is in them.
//!
//! `cargo run --release --example ingest -- FILE...`

use kvreplay_core::ingest::{ReadOptions, Source, read};
use kvreplay_core::progress::Progress;
use kvreplay_core::trace::CODES;
use std::io::Write;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let sources: Vec<Source> = std::env::args().skip(1).map(Source::path).collect();
    let trace = read(sources, &ReadOptions::default(), &Progress::default())?;
    let totals = trace.totals();
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "format {}, {} requests, {} block references",
        trace.origin.format,
        trace.len(),
        totals.block_refs
    )?;
    writeln!(out, "{} blocks, {} input tokens", trace.forest.blocks(), totals.input_tokens)?;
    writeln!(out, "blocks of {} tokens, tail={}", trace.block_tokens, trace.tail.name())?;
    for finding in trace.quality.findings() {
        let info = CODES[finding.code];
        writeln!(out, "{}: {} {} {:?}", info.code, finding.count, info.message, finding.detail)?;
    }
    Ok(())
}
