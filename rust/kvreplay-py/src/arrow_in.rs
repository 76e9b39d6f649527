//! Arrow rows into the core's columns: any layout that Polars, pyarrow and Parquet readers hand out.

use crate::arrow::{Strings, internal, reader};
use crate::errors::to_python;
use crate::read::Options;
use crate::run::{Progress, run};
use crate::trace::Trace;
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    TimestampMicrosecondType, TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit as ArrowUnit};
use kvreplay_core::ingest::{Batch, BatchColumn, ColumnReader, TimeUnit, Validity, Values};
use pyo3::prelude::*;
use std::borrow::Cow;
use std::fmt::Write;

/// Values of an array in a form the core takes, borrowed where the layout is the same.
enum Buffer<'a> {
    U64(Cow<'a, [u64]>),
    U32(&'a [u32]),
    I64(Cow<'a, [i64]>),
    F64(Cow<'a, [f64]>),
    Bool(Vec<bool>),
    Text(Vec<&'a str>),
    /// Texts that had to be made: bytes in hexadecimal, entries of a dictionary.
    Owned(Vec<String>),
    Instant(&'a [i64], TimeUnit),
}

fn wide<T: ArrowPrimitiveType, W: From<T::Native> + Clone>(array: &dyn Array) -> Cow<'_, [W]> {
    Cow::Owned(array.as_primitive::<T>().values().iter().map(|&v| W::from(v)).collect())
}

/// The values of an array; `None` for types that hold neither lengths, times, ids nor names.
fn buffer(array: &dyn Array) -> Option<Buffer<'_>> {
    Some(match array.data_type() {
        DataType::UInt64 => Buffer::U64(Cow::Borrowed(array.as_primitive::<UInt64Type>().values())),
        DataType::UInt32 => Buffer::U32(array.as_primitive::<UInt32Type>().values()),
        DataType::UInt16 => Buffer::U64(wide::<UInt16Type, _>(array)),
        DataType::UInt8 => Buffer::U64(wide::<UInt8Type, _>(array)),
        DataType::Int64 => Buffer::I64(Cow::Borrowed(array.as_primitive::<Int64Type>().values())),
        DataType::Int32 => Buffer::I64(wide::<Int32Type, _>(array)),
        DataType::Int16 => Buffer::I64(wide::<Int16Type, _>(array)),
        DataType::Int8 => Buffer::I64(wide::<Int8Type, _>(array)),
        DataType::Float64 => Buffer::F64(Cow::Borrowed(array.as_primitive::<Float64Type>().values())),
        DataType::Float32 => Buffer::F64(wide::<Float32Type, _>(array)),
        DataType::Boolean => Buffer::Bool(array.as_boolean().values().iter().collect()),
        DataType::Timestamp(unit, _) => instants(array, *unit),
        DataType::Binary => Buffer::Owned(array.as_binary::<i32>().iter().map(hex).collect()),
        DataType::LargeBinary => Buffer::Owned(array.as_binary::<i64>().iter().map(hex).collect()),
        DataType::BinaryView => Buffer::Owned(array.as_binary_view().iter().map(hex).collect()),
        DataType::FixedSizeBinary(_) => Buffer::Owned(array.as_fixed_size_binary().iter().map(hex).collect()),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let texts = Strings::of(dictionary.values().as_ref())?;
            let keys = dictionary.normalized_keys();
            let text = |(row, &key): (usize, &usize)| {
                if array.is_valid(row) { texts.get(key).unwrap_or("") } else { "" }
            };
            Buffer::Owned(keys.iter().enumerate().map(text).map(str::to_owned).collect())
        }
        _ => texts(array)?,
    })
}

fn texts(array: &dyn Array) -> Option<Buffer<'_>> {
    if let Some(a) = array.as_string_opt::<i32>() {
        return Some(Buffer::Text(a.iter().map(Option::unwrap_or_default).collect()));
    }
    if let Some(a) = array.as_string_opt::<i64>() {
        return Some(Buffer::Text(a.iter().map(Option::unwrap_or_default).collect()));
    }
    let views = array.as_string_view_opt()?;
    Some(Buffer::Text(views.iter().map(Option::unwrap_or_default).collect()))
}

fn instants(array: &dyn Array, unit: ArrowUnit) -> Buffer<'_> {
    match unit {
        ArrowUnit::Second => {
            Buffer::Instant(array.as_primitive::<TimestampSecondType>().values(), TimeUnit::Seconds)
        }
        ArrowUnit::Millisecond => {
            Buffer::Instant(array.as_primitive::<TimestampMillisecondType>().values(), TimeUnit::Millis)
        }
        ArrowUnit::Microsecond => {
            Buffer::Instant(array.as_primitive::<TimestampMicrosecondType>().values(), TimeUnit::Micros)
        }
        ArrowUnit::Nanosecond => {
            Buffer::Instant(array.as_primitive::<TimestampNanosecondType>().values(), TimeUnit::Nanos)
        }
    }
}

fn hex(bytes: Option<&[u8]>) -> String {
    bytes.unwrap_or_default().iter().fold(String::new(), |mut out, byte| {
        // Writing to a String cannot fail.
        let _ = write!(out, "{byte:02x}");
        out
    })
}

fn validity(array: &dyn Array) -> Validity<'_> {
    Validity(array.nulls().map(|nulls| (nulls.validity(), nulls.offset())))
}

/// One column, owning what had to be converted.
struct Column<'a> {
    name: &'a str,
    array: &'a dyn Array,
    /// Row offsets and elements of a list column; for scalars the elements are the array itself.
    offsets: Option<Vec<usize>>,
    elements: &'a dyn Array,
    buffer: Buffer<'a>,
}

impl<'a> Column<'a> {
    /// `None` for a type that no field can have; the sink then says what is missing.
    fn new(name: &'a str, array: &'a dyn Array) -> Option<Self> {
        let wide = |offsets: &[i32]| offsets.iter().map(|&o| o as usize).collect::<Vec<_>>();
        let (offsets, elements) = match array.data_type() {
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                (Some(wide(list.value_offsets())), list.values().as_ref())
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                let offsets = list.value_offsets().iter().map(|&o| o as usize).collect();
                (Some(offsets), list.values().as_ref())
            }
            DataType::FixedSizeList(_, size) => {
                let list = array.as_fixed_size_list();
                let size = *size as usize;
                (Some((0..=array.len()).map(|row| row * size).collect()), list.values().as_ref())
            }
            _ => (None, array),
        };
        Some(Self { name, array, offsets, elements, buffer: buffer(elements)? })
    }

    /// The owned texts of the column, for `values` to borrow.
    fn owned_texts(&self) -> Vec<&str> {
        if let Buffer::Owned(texts) = &self.buffer {
            texts.iter().map(String::as_str).collect()
        } else {
            Vec::new()
        }
    }

    fn values<'b>(&'b self, owned: &'b [&'b str]) -> Values<'b> {
        match &self.buffer {
            Buffer::U64(v) => Values::U64(v),
            Buffer::U32(v) => Values::U32(v),
            Buffer::I64(v) => Values::I64(v),
            Buffer::F64(v) => Values::F64(v),
            Buffer::Bool(v) => Values::Bool(v),
            Buffer::Text(v) => Values::Text(v),
            Buffer::Owned(_) => Values::Text(owned),
            Buffer::Instant(v, unit) => Values::Instant(v, *unit),
        }
    }

    fn batch_column<'b>(&'b self, owned: &'b [&'b str]) -> BatchColumn<'b> {
        match &self.offsets {
            None => BatchColumn::Scalars { values: self.values(owned), validity: validity(self.array) },
            Some(offsets) => BatchColumn::Lists {
                offsets,
                validity: validity(self.array),
                values: self.values(owned),
                values_validity: validity(self.elements),
            },
        }
    }
}

fn push(
    reader: &mut ColumnReader,
    batch: &RecordBatch,
    progress: &kvreplay_core::Progress,
) -> kvreplay_core::Result<()> {
    let schema = batch.schema();
    let columns: Vec<Column<'_>> = schema
        .fields()
        .iter()
        .zip(batch.columns())
        .filter_map(|(field, array)| Column::new(field.name(), array.as_ref()))
        .collect();
    let owned: Vec<Vec<&str>> = columns.iter().map(Column::owned_texts).collect();
    let columns = columns.iter().zip(&owned).map(|(c, owned)| (c.name, c.batch_column(owned))).collect();
    reader.push(&Batch { rows: batch.num_rows(), columns }, progress)
}

#[pyfunction]
#[pyo3(signature = (stream, options, *, file = "", progress = None))]
pub(crate) fn read_arrow(
    stream: &Bound<'_, PyAny>,
    options: Options,
    file: &str,
    progress: Option<&Progress>,
) -> PyResult<Trace> {
    let py = stream.py();
    let options = options.parse().map_err(|error| to_python(py, error))?;
    let mut rows = ColumnReader::new(file, &options).map_err(|error| to_python(py, error))?;
    for batch in reader(stream)? {
        let batch = batch.map_err(internal)?;
        run(py, progress, |progress| push(&mut rows, &batch, progress))?;
    }
    run(py, progress, |_| rows.finish("arrow")).map(Trace::from)
}
