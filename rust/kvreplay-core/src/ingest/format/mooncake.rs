//! JSON lines of Mooncake's fields and of their supersets (`AIPerf`, Dynamo, kvcache-simulator, openanolis).
//!
//! One object a line. Of every field the commonest name and its aliases are known (`ingest::fields`); what
//! else a row holds is kept as a group column when it is a scalar, and skipped otherwise.

use super::{Format, FormatInfo, skip_bom};
use crate::error::Result;
use crate::ingest::input::Input;
use crate::ingest::json::row::RowReader;
use crate::ingest::json::{Bad, Kind, Scanner};
use crate::ingest::lines::{self, Line};
use crate::ingest::row::Row;
use crate::ingest::rows::RowSink;

pub(crate) const FORMAT: Format = Format {
    info: FormatInfo {
        name: "mooncake",
        doc: "JSON lines: timestamp, input_length, output_length, hash_ids, and their aliases",
        example: r#"{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, 2353]}"#,
        source: "kvcache-ai/Mooncake FAST25-release; AIPerf and Dynamo supersets",
    },
    detect: |head, _| head.trim_ascii_start().first() == Some(&b'{'),
    read,
};

fn read(input: &mut Input<'_>, sink: &mut RowSink) -> Result<()> {
    skip_bom(input, sink);
    let mut reader = RowReader::default();
    let mut row = Row::default();
    lines::for_each(input, sink, |line, sink| one(line, &mut reader, &mut row, sink))
}

fn one(line: &Line<'_>, reader: &mut RowReader, row: &mut Row, sink: &mut RowSink) -> Result<()> {
    let mut scanner = Scanner::new(line.bytes, line.end);
    let scanned = scan(&mut scanner, reader, row, sink);
    let value = || String::from_utf8_lossy(&line.bytes[..line.end.min(100)]);
    match scanned {
        Ok(true) => sink.accept(line.number, row),
        Ok(false) => sink.reject(line.number, "not_an_object", &value()),
        Err(Bad::Eof) if !line.ended => sink.reject(line.number, "truncated_last_line", &value()),
        Err(Bad::Utf8) => sink.reject(line.number, "invalid_utf8", &value()),
        Err(Bad::Eof | Bad::Syntax) => sink.reject(line.number, "json_syntax", &value()),
    }
}

/// Takes the line as one object; `false` when it is some other value.
fn scan(
    scanner: &mut Scanner<'_>,
    reader: &mut RowReader,
    row: &mut Row,
    sink: &mut RowSink,
) -> std::result::Result<bool, Bad> {
    row.clear();
    let object = scanner.kind()? == Kind::Object;
    if object {
        reader.object(scanner, row, sink)?;
    } else {
        scanner.skip()?;
    }
    scanner.finish()?;
    Ok(object)
}
