//! The native file: rows of `kvreplay_core::trace::native` as Arrow, and what they do not say as JSON.
//!
//! | column | type | meaning |
//! |---|---|---|
//! | `arrival_us` | int64 | arrival; missing in a trace without times |
//! | `input_tokens`, `output_tokens` | int64 | lengths; output null where unknown |
//! | `base_back`, `base_blocks`, `new_blocks` | uint32 | the path, see the core's module |
//! | `id_start`, `id_blocks` | list of uint64, uint32 | ids of the new blocks, as runs |
//! | `id_is_text`, `texts` | list of bool, text | only where ids are texts |
//! | `block_tokens`, `namespace` | uint32 | only where they differ between requests |
//! | `output_ids` | list of uint64 | ids of the blocks that fill while decoding; only where a trace has any |
//! | `output_is_text`, `output_texts` | list of bool, text | only where output ids are texts: those ids in order |
//! | `output_namespace` | uint32 | only where output ids lie in several namespaces |
//! | `group.NAME` | text | the group columns |

use crate::arrow::{Strings, Table, field, internal, reader};
use crate::errors::to_python;
use arrow_array::builder::{BooleanBuilder, ListBuilder, StringBuilder, UInt32Builder, UInt64Builder};
use arrow_array::cast::AsArray;
use arrow_array::types::{Int64Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, Int64Array, LargeStringArray, ListArray, RecordBatch, UInt32Array};
use arrow_schema::{DataType, Field, Schema};
use kvreplay_core::Error;
use kvreplay_core::trace::{
    CODES, Column, Finding, Id, NO_LENGTH, NativeHeader, NativeReader, NativeRows, NativeWriter, Origin,
    OutputIds, Quality, Tail, Trace as CoreTrace,
};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::Arc;

const GROUP: &str = "group.";
/// Rows per batch: small enough that a batch of long paths stays far below a megabyte per thousand rows.
const BATCH_ROWS: usize = 1 << 16;

/// The rows and the header of a trace.
pub(crate) fn write<'py>(py: Python<'py>, trace: &CoreTrace) -> PyResult<(Table, Bound<'py, PyAny>)> {
    let batches = py.detach(|| {
        let mut writer = NativeWriter::new(trace);
        let mut batches = Vec::new();
        while let Some(rows) = writer.next_rows(BATCH_ROWS) {
            batches.push(batch(trace, rows)?);
        }
        if batches.is_empty() {
            batches.push(batch(trace, NativeRows::default())?);
        }
        Ok::<_, PyErr>(batches)
    })?;
    let table = Table::new(batches[0].schema(), batches);
    Ok((table, header(py, trace)?))
}

fn batch(trace: &CoreTrace, rows: NativeRows) -> PyResult<RecordBatch> {
    let mut columns = Columns::default();
    if trace.requests.arrival_us.is_some() {
        columns.add(field("arrival_us", DataType::Int64), Int64Array::from(rows.arrival_us));
    }
    let input = rows.input_tokens.iter().map(|&n| i64::from(n));
    columns.add(field("input_tokens", DataType::Int64), Int64Array::from_iter_values(input));
    let known = |&n: &u32| (n != NO_LENGTH).then_some(i64::from(n));
    let output: Int64Array = rows.output_tokens.iter().map(known).collect();
    columns.add(Field::new("output_tokens", DataType::Int64, true), output);
    for (name, values) in
        [("base_back", rows.base_back), ("base_blocks", rows.base_blocks), ("new_blocks", rows.new_blocks)]
    {
        columns.add(field(name, DataType::UInt32), UInt32Array::from(values));
    }
    let mut id_start = ListBuilder::new(UInt64Builder::new());
    let mut id_blocks = ListBuilder::new(UInt32Builder::new());
    let mut id_is_text = ListBuilder::new(BooleanBuilder::new());
    let mut at = 0;
    for &count in &rows.id_runs {
        let end = at + count as usize;
        id_start.values().append_slice(&rows.id_start[at..end]);
        id_start.append(true);
        id_blocks.values().append_slice(&rows.id_blocks[at..end]);
        id_blocks.append(true);
        if !rows.id_is_text.is_empty() {
            id_is_text.values().append_slice(&rows.id_is_text[at..end]);
        }
        id_is_text.append(true);
        at = end;
    }
    columns.add_list("id_start", id_start.finish());
    columns.add_list("id_blocks", id_blocks.finish());
    if trace.ids.has_texts() {
        columns.add_list("id_is_text", id_is_text.finish());
        let mut texts = ListBuilder::new(StringBuilder::new());
        let mut fresh = rows.texts.iter();
        for &count in &rows.text_count {
            fresh.by_ref().take(count as usize).for_each(|text| texts.values().append_value(text));
            texts.append(true);
        }
        columns.add_list("texts", texts.finish());
    }
    if trace.requests.outputs.is_some() {
        outputs(&rows.outputs.unwrap_or_default(), trace, rows.input_tokens.len(), &mut columns);
    }
    for (name, values, present) in [
        ("block_tokens", rows.block_tokens, !trace.requests.block_tokens.is_empty()),
        ("namespace", rows.namespace, trace.forest.has_namespaces()),
    ] {
        if present {
            columns.add(field(name, DataType::UInt32), UInt32Array::from(values));
        }
    }
    for (i, column) in trace.requests.columns.iter().enumerate() {
        let part = rows.columns.get(i);
        let texts: LargeStringArray =
            (0..rows.input_tokens.len()).map(|row| part.and_then(|part| part.get(row))).collect();
        columns.add(Field::new(format!("{GROUP}{}", column.name), DataType::LargeUtf8, true), texts);
    }
    columns.finish()
}

/// The columns of output ids. All batches have those that any request needs.
fn outputs(part: &OutputIds, trace: &CoreTrace, rows: usize, columns: &mut Columns) {
    let whole = trace.requests.outputs.as_ref();
    let mut ids = ListBuilder::new(UInt64Builder::new());
    let mut is_text = ListBuilder::new(BooleanBuilder::new());
    let mut texts = ListBuilder::new(StringBuilder::new());
    for row in 0..rows {
        for id in part.of(row) {
            ids.values().append_value(if let Id::Number(number) = id { number } else { 0 });
            is_text.values().append_value(matches!(id, Id::Text(_)));
            if let Id::Text(text) = id {
                texts.values().append_value(text);
            }
        }
        ids.append(true);
        is_text.append(true);
        texts.append(true);
    }
    columns.add_list("output_ids", ids.finish());
    if whole.is_some_and(OutputIds::has_texts) {
        columns.add_list("output_is_text", is_text.finish());
        columns.add_list("output_texts", texts.finish());
    }
    if whole.is_some_and(OutputIds::has_namespaces) {
        let namespaces = UInt32Array::from_iter_values((0..rows).map(|row| part.namespace(row)));
        columns.add(field("output_namespace", DataType::UInt32), namespaces);
    }
}

/// Columns of a record batch while they are made.
#[derive(Default)]
pub(crate) struct Columns {
    fields: Vec<Field>,
    arrays: Vec<ArrayRef>,
}

impl Columns {
    pub(crate) fn add(&mut self, field: Field, array: impl Array + 'static) {
        self.fields.push(field);
        self.arrays.push(Arc::new(array));
    }

    pub(crate) fn add_list(&mut self, name: &str, array: ListArray) {
        self.add(field(name, array.data_type().clone()), array);
    }

    pub(crate) fn finish(self) -> PyResult<RecordBatch> {
        RecordBatch::try_new(Arc::new(Schema::new(self.fields)), self.arrays).map_err(internal)
    }
}

fn header<'py>(py: Python<'py>, trace: &CoreTrace) -> PyResult<Bound<'py, PyAny>> {
    let out = PyDict::new(py);
    out.set_item("block_tokens", trace.block_tokens)?;
    out.set_item("tail", trace.tail.name())?;
    out.set_item("rejected_rows", trace.origin.rejected_rows)?;
    out.set_item("namespaces", trace.origin.namespaces)?;
    out.set_item("namespace_columns", &trace.origin.namespace_columns)?;
    let quality = PyList::empty(py);
    for finding in trace.quality.findings() {
        let row = PyDict::new(py);
        row.set_item("code", CODES[finding.code].code)?;
        row.set_item("count", finding.count)?;
        row.set_item("first_line", finding.first_line)?;
        row.set_item("first_value", finding.first_value.as_deref())?;
        row.set_item("detail", finding.detail.as_deref())?;
        quality.append(row)?;
    }
    out.set_item("quality", quality)?;
    let options = PyDict::new(py);
    options.set_item("sort_keys", true)?;
    py.import("json")?.call_method("dumps", (out,), Some(&options))
}

/// The trace of a native file.
pub(crate) fn read(stream: &Bound<'_, PyAny>, metadata: &str, file: &str) -> PyResult<CoreTrace> {
    let py = stream.py();
    let fail = |error: Error| to_python(py, error.at(file, None));
    let header = parse_header(py, metadata).map_err(|_| fail(bad_header()))?;
    let mut rows = NativeReader::default();
    for batch in reader(stream)? {
        let batch = batch.map_err(|error| fail(unreadable(&error)))?;
        let batch = rows_of(&batch).map_err(fail)?;
        py.detach(|| rows.push(&batch)).map_err(fail)?;
    }
    py.detach(|| rows.finish(header)).map_err(fail)
}

fn rows_of(batch: &RecordBatch) -> kvreplay_core::Result<NativeRows> {
    let mut rows = NativeRows {
        arrival_us: ints(batch, "arrival_us")?.unwrap_or_default(),
        input_tokens: lengths(batch, "input_tokens")?,
        output_tokens: lengths(batch, "output_tokens")?,
        base_back: u32s(batch, "base_back")?.ok_or_else(bad_header)?,
        base_blocks: u32s(batch, "base_blocks")?.ok_or_else(bad_header)?,
        new_blocks: u32s(batch, "new_blocks")?.ok_or_else(bad_header)?,
        block_tokens: u32s(batch, "block_tokens")?.unwrap_or_default(),
        namespace: u32s(batch, "namespace")?.unwrap_or_default(),
        ..NativeRows::default()
    };
    let starts = list(batch, "id_start")?.ok_or_else(bad_header)?;
    let blocks = list(batch, "id_blocks")?.ok_or_else(bad_header)?;
    let texts = list(batch, "texts")?;
    let is_text = list(batch, "id_is_text")?;
    for row in 0..batch.num_rows() {
        let start = starts.value(row);
        let start = start.as_primitive_opt::<UInt64Type>().ok_or_else(bad_header)?;
        let block = blocks.value(row);
        let block = block.as_primitive_opt::<UInt32Type>().ok_or_else(bad_header)?;
        if start.len() != block.len() || start.null_count() + block.null_count() > 0 {
            return Err(bad_header());
        }
        rows.id_runs.push(start.len() as u32);
        rows.id_start.extend_from_slice(start.values());
        rows.id_blocks.extend_from_slice(block.values());
        if let (Some(texts), Some(is_text)) = (texts, is_text) {
            let flags = is_text.value(row);
            let flags = flags.as_boolean_opt().ok_or_else(bad_header)?;
            rows.id_is_text.extend(flags.iter().map(|flag| flag.unwrap_or(false)));
            let fresh = texts.value(row);
            let strings = Strings::of(fresh.as_ref()).ok_or_else(bad_header)?;
            rows.text_count.push(fresh.len() as u32);
            for i in 0..fresh.len() {
                rows.texts.push(strings.get(i).ok_or_else(bad_header)?.to_owned());
            }
        }
    }
    rows.outputs = outputs_of(batch)?;
    for (field, array) in batch.schema().fields().iter().zip(batch.columns()) {
        if let Some(name) = field.name().strip_prefix(GROUP) {
            let strings = Strings::of(array.as_ref()).ok_or_else(bad_header)?;
            let mut column = Column::new(name, 0);
            (0..batch.num_rows()).for_each(|row| column.push(strings.get(row)));
            rows.columns.push(column);
        }
    }
    Ok(rows)
}

fn outputs_of(batch: &RecordBatch) -> kvreplay_core::Result<Option<OutputIds>> {
    let Some(ids) = list(batch, "output_ids")? else { return Ok(None) };
    let namespaces = u32s(batch, "output_namespace")?.unwrap_or_default();
    let (is_text, texts) = (list(batch, "output_is_text")?, list(batch, "output_texts")?);
    let mut out = OutputIds::default();
    for row in 0..batch.num_rows() {
        let numbers = ids.value(row);
        let numbers = numbers.as_primitive_opt::<UInt64Type>().ok_or_else(bad_header)?;
        let flags = is_text.map(|list| list.value(row));
        let flags =
            flags.as_deref().map(|array| array.as_boolean_opt().ok_or_else(bad_header)).transpose()?;
        let texts = texts.map(|list| list.value(row));
        let texts_len = texts.as_ref().map_or(0, Array::len);
        let texts = texts.as_deref().map(|a| Strings::of(a).ok_or_else(bad_header)).transpose()?;
        if flags.is_some_and(|flags| flags.len() != numbers.len()) {
            return Err(bad_header());
        }
        let mut next = 0;
        let mut listed = Vec::with_capacity(numbers.len());
        for (at, &number) in numbers.values().iter().enumerate() {
            if flags.is_none_or(|flags| !flags.value(at)) {
                listed.push(Id::Number(number));
                continue;
            }
            let text = texts.as_ref().filter(|_| next < texts_len).and_then(|texts| texts.get(next));
            listed.push(Id::Text(text.ok_or_else(bad_header)?));
            next += 1;
        }
        out.push(namespaces.get(row).copied().unwrap_or(0), listed)?;
    }
    Ok(Some(out))
}

fn ints(batch: &RecordBatch, name: &str) -> kvreplay_core::Result<Option<Vec<i64>>> {
    let Some(array) = batch.column_by_name(name) else { return Ok(None) };
    let array =
        array.as_primitive_opt::<Int64Type>().filter(|a| a.null_count() == 0).ok_or_else(bad_header)?;
    Ok(Some(array.values().to_vec()))
}

fn u32s(batch: &RecordBatch, name: &str) -> kvreplay_core::Result<Option<Vec<u32>>> {
    let Some(array) = batch.column_by_name(name) else { return Ok(None) };
    let array =
        array.as_primitive_opt::<UInt32Type>().filter(|a| a.null_count() == 0).ok_or_else(bad_header)?;
    Ok(Some(array.values().to_vec()))
}

fn lengths(batch: &RecordBatch, name: &str) -> kvreplay_core::Result<Vec<u32>> {
    let array = batch.column_by_name(name).and_then(|a| a.as_primitive_opt::<Int64Type>());
    let length = |n: Option<i64>| match n {
        None => Ok(NO_LENGTH),
        Some(n) => u32::try_from(n).ok().filter(|&n| n != NO_LENGTH).ok_or_else(bad_header),
    };
    array.ok_or_else(bad_header)?.iter().map(length).collect()
}

fn list<'a>(batch: &'a RecordBatch, name: &str) -> kvreplay_core::Result<Option<&'a ListArray>> {
    let Some(array) = batch.column_by_name(name) else { return Ok(None) };
    array.as_list_opt::<i32>().map(Some).ok_or_else(bad_header)
}

fn parse_header(py: Python<'_>, metadata: &str) -> PyResult<NativeHeader> {
    let json = py.import("json")?.call_method1("loads", (metadata,))?;
    let get = |name: &str| json.get_item(name);
    let tail: String = get("tail")?.extract()?;
    let mut quality = Quality::default();
    for row in get("quality")?.try_iter()? {
        let row = row?;
        let code: String = row.get_item("code")?.extract()?;
        // A code of a newer version is left out; the rows themselves are unaffected.
        let Some(code) = CODES.iter().position(|known| known.code == code) else { continue };
        quality.restore(Finding {
            code,
            count: row.get_item("count")?.extract()?,
            first_line: row.get_item("first_line")?.extract()?,
            first_value: row.get_item("first_value")?.extract()?,
            detail: row.get_item("detail")?.extract()?,
        });
    }
    Ok(NativeHeader {
        block_tokens: get("block_tokens")?.extract()?,
        tail: if tail == "floor" { Tail::Floor } else { Tail::Ceil },
        origin: Origin {
            format: "native".to_owned(),
            rejected_rows: get("rejected_rows")?.extract()?,
            namespaces: get("namespaces")?.extract()?,
            namespace_columns: get("namespace_columns")?.extract()?,
            chained: true,
        },
        quality,
    })
}

fn bad_header() -> Error {
    Error::trace(
        "bad_type",
        "not a native trace file of a version this kvreplay knows",
        "write it again with kvreplay convert, or read it with --format arrow and --columns",
    )
}

fn unreadable(error: &impl std::fmt::Display) -> Error {
    Error::trace("io", format!("the file cannot be decoded: {error}"), "fetch or write the file again")
}
