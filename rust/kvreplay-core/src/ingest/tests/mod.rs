//! Reading as a whole: bytes in, exact traces and findings out.

mod cases;
mod columns;
mod containers;
mod formats;
mod fuzz;
mod golden;
mod outputs;
mod resync;
mod rules;
mod writing;

use super::*;
use crate::error::TraceError;
use crate::trace::{CODES, Id};
use std::io::Read;
use std::path::PathBuf;

/// `block_tokens = 16`, the size most tests use.
fn sixteen() -> ReadOptions {
    ReadOptions { block_tokens: Some(16), ..ReadOptions::default() }
}

fn strict(options: ReadOptions) -> ReadOptions {
    ReadOptions { strict: true, ..options }
}

fn source(name: &str, bytes: impl Into<Vec<u8>>) -> Source {
    let bytes = bytes.into();
    let length = bytes.len() as u64;
    Source::reader(name, Box::new(std::io::Cursor::new(bytes)), Some(length))
}

fn try_read(bytes: impl Into<Vec<u8>>, options: &ReadOptions) -> Result<Trace> {
    read(vec![source("t", bytes)], options, &Progress::default())
}

#[track_caller]
fn read_ok(bytes: impl Into<Vec<u8>>, options: &ReadOptions) -> Trace {
    try_read(bytes, options).expect("readable")
}

#[track_caller]
fn read_err(bytes: impl Into<Vec<u8>>, options: &ReadOptions) -> TraceError {
    trace_error(try_read(bytes, options))
}

#[track_caller]
fn trace_error(result: Result<Trace>) -> TraceError {
    match result {
        Err(Error::Trace(error)) => *error,
        other => panic!("wanted a trace error, got {other:?}"),
    }
}

/// (code, count, first line, first value) of every finding, without what every test would have to repeat.
fn findings(trace: &Trace) -> Vec<(&'static str, u64, Option<u64>, Option<&str>)> {
    let usual = ["time_unit_inferred", "block_tokens_inferred"];
    trace
        .quality
        .findings()
        .iter()
        .map(|f| (CODES[f.code].code, f.count, f.first_line, f.first_value.as_deref()))
        .filter(|f| !usual.contains(&f.0))
        .collect()
}

fn paths(trace: &Trace) -> Vec<Vec<Id<'_>>> {
    let mut blocks = Vec::new();
    let nodes = trace.requests.node.iter();
    nodes
        .map(|&node| {
            trace.forest.path(node, &mut blocks);
            blocks.iter().map(|&block| trace.ids.get(block)).collect()
        })
        .collect()
}

fn numbers(trace: &Trace) -> Vec<Vec<u64>> {
    let number = |id: &Id<'_>| match id {
        Id::Number(number) => *number,
        Id::Text(text) => panic!("{text} is a text"),
    };
    paths(trace).iter().map(|path| path.iter().map(number).collect()).collect()
}

fn column<'a>(trace: &'a Trace, name: &str) -> Vec<Option<&'a str>> {
    let column = trace.requests.columns.iter().find(|column| column.name == name).expect(name);
    (0..trace.len()).map(|request| column.get(request)).collect()
}

/// A folder of the shared test data, which a checkout may lack.
fn shared(folder: &str) -> Option<PathBuf> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared").join(folder);
    if path.is_dir() {
        return Some(path);
    }
    eprintln!("skipped: there is no shared/{folder} beside the repository");
    None
}

fn file_bytes(path: &std::path::Path) -> Vec<u8> {
    let mut bytes = Vec::new();
    std::fs::File::open(path).and_then(|mut file| file.read_to_end(&mut bytes)).expect("readable file");
    bytes
}
