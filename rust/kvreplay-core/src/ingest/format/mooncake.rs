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
    is_binary: false,
};

fn read(input: &mut Input<'_>, sink: &mut RowSink) -> Result<()> {
    read_with(input, sink, |_, _, _| {})
}

/// Reads one object a line. `settle` may add to a row, or name problems with it, before the sink takes it.
pub(super) fn read_with(
    input: &mut Input<'_>,
    sink: &mut RowSink,
    mut settle: impl FnMut(&Line<'_>, &mut Row, &mut RowSink),
) -> Result<()> {
    skip_bom(input, sink);
    let mut reader = RowReader::default();
    let mut row = Row::default();
    lines::for_each(input, sink, |line, sink| {
        let mut scanner = Scanner::new(line.bytes, line.end);
        match scan(&mut scanner, &mut reader, &mut row, sink) {
            Ok(true) => {
                settle(line, &mut row, sink);
                sink.accept(line.number, &mut row)
            }
            Ok(false) => sink.reject(line.number, "not_an_object", &line.text()),
            Err(bad) => reject(line, bad, sink),
        }
    })
}

/// Rejects a line that is no JSON.
pub(super) fn reject(line: &Line<'_>, bad: Bad, sink: &mut RowSink) -> Result<()> {
    let code = match bad {
        Bad::Eof if !line.ended => "truncated_last_line",
        Bad::Utf8 => "invalid_utf8",
        Bad::Eof | Bad::Syntax => "json_syntax",
    };
    sink.reject(line.number, code, &line.text())
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
