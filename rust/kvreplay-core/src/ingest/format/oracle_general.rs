//! libCacheSim's `oracleGeneral`: binary records of single objects, without the requests they came from.
//!
//! 24 bytes a record, little endian, packed: u32 seconds, u64 id, u32 size, i64 index of the next access (-1 = never).
//! Every record becomes a request of one block. What a request of several blocks hits cannot be told from such a
//! file, so it is of use in object mode only, and it is read only when it is asked for by name: its bytes look like
//! nothing in particular.

use super::{Format, FormatInfo};
use crate::error::{Error, Result};
use crate::ingest::input::Input;
use crate::ingest::options::TimeUnit;
use crate::ingest::row::{Row, TimeValue};
use crate::ingest::rows::RowSink;

pub(crate) const FORMAT: Format = Format {
    info: FormatInfo {
        name: "oracle_general",
        doc: "libCacheSim binary records of 24 bytes; one block each, for object mode; only by --format",
        example: "u32 seconds, u64 id, u32 size, i64 next access",
        source: "libCacheSim oracleGeneral",
    },
    detect: |_, _| false,
    read,
    is_binary: true,
};

const RECORD_BYTES: usize = 24;
/// An index of an access beyond this is none: the bytes are those of some other file.
const MAX_INDEX: i64 = 1 << 56;

fn read(input: &mut Input<'_>, sink: &mut RowSink) -> Result<()> {
    // A block of one token makes ratios of tokens and of blocks the same.
    let block_tokens = sink.options.block_tokens.unwrap_or(1);
    if sink.options.block_tokens.is_none() {
        let place = Some(sink.place(1));
        sink.notes.mention("block_tokens_inferred", 1, place, Some("1"));
        sink.notes.detail("block_tokens_inferred", "1 token: the records are objects, not tokens");
    }
    let mut row = Row::default();
    let mut number = 0;
    loop {
        let window = input.window();
        let whole = window.len() / RECORD_BYTES * RECORD_BYTES;
        for record in window[..whole].chunks_exact(RECORD_BYTES) {
            number += 1;
            fill(record, block_tokens, &mut row).map_err(|error| error.at("", Some(number)))?;
            sink.accept(number, &mut row)?;
        }
        input.consume(whole);
        if !input.more()? {
            break;
        }
    }
    match input.window().len() {
        0 => Ok(()),
        rest => {
            let message =
                format!("{rest} bytes are left behind record {number}: a record has {RECORD_BYTES}");
            let hint = "the file is cut or is no oracleGeneral trace; fetch it again";
            Err(Error::trace("truncated_last_line", message, hint).at("", Some(number + 1)))
        }
    }
}

fn fill(record: &[u8], block_tokens: u32, row: &mut Row) -> Result<()> {
    let number = |from: usize, bytes: usize| {
        record[from..from + bytes].iter().rev().fold(0_u64, |number, &byte| number << 8 | u64::from(byte))
    };
    let next = number(16, 8) as i64;
    if next != i64::MAX && !(-2..MAX_INDEX).contains(&next) {
        let message = format!("the next access of the record is {next}, which no trace reaches");
        return Err(Error::trace("bad_type", message, "this is no oracleGeneral file; leave --format out"));
    }
    row.clear();
    row.time =
        Some(TimeValue::Number { whole: number(0, 4) as i64, nanos: 0, unit: Some(TimeUnit::Seconds) });
    row.input_tokens = Some(block_tokens);
    row.block_tokens = Some(block_tokens);
    row.has_path = true;
    row.ids.push(number(4, 8));
    Ok(())
}
