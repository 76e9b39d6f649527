//! The Arrow hand-over: tables out and streams in, by the Arrow `PyCapsule` interface.
//!
//! The only file of the project with `unsafe`: a capsule is a C pointer whose type is promised by its name.
#![allow(unsafe_code)]

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::UInt32Type;
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Float64Array, Int64Array, LargeStringArray, RecordBatch,
    RecordBatchIterator, StringArray, UInt32Array, UInt64Array,
};
use arrow_schema::{DataType, Field, Schema, SchemaRef};
use kvreplay_core::table::{Table as CoreTable, Values};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyCapsuleMethods, PyDict};
use std::ffi::CStr;
use std::sync::Arc;

const STREAM: &CStr = c"arrow_array_stream";

/// Columns of equal length; `__arrow_c_stream__` hands them to Polars, pyarrow and others without a copy.
#[pyclass(frozen, module = "kvreplay._core")]
pub(crate) struct Table {
    schema: SchemaRef,
    batches: Vec<RecordBatch>,
}

impl Table {
    pub(crate) fn new(schema: SchemaRef, batches: Vec<RecordBatch>) -> Self {
        Self { schema, batches }
    }
}

impl TryFrom<CoreTable> for Table {
    type Error = PyErr;

    fn try_from(table: CoreTable) -> PyResult<Self> {
        let mut fields = Vec::with_capacity(table.columns.len());
        let mut arrays = Vec::with_capacity(table.columns.len());
        for (name, values) in table.columns {
            let array = array(values);
            fields.push(Field::new(name, array.data_type().clone(), true));
            arrays.push(array);
        }
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays).map_err(internal)?;
        Ok(Self::new(schema, vec![batch]))
    }
}

fn array(values: Values) -> ArrayRef {
    match values {
        Values::Int(v) => Arc::new(Int64Array::from(v)),
        Values::MaybeInt(v) => Arc::new(Int64Array::from(v)),
        Values::Id(v) => Arc::new(UInt64Array::from(v)),
        Values::Float(v) => Arc::new(Float64Array::from(v)),
        Values::Text(v) => Arc::new(LargeStringArray::from(v)),
        Values::Coded(codes, texts) => {
            let text = |code: u32| (code != u32::MAX).then(|| texts[code as usize].as_str());
            Arc::new(codes.into_iter().map(text).collect::<LargeStringArray>())
        }
    }
}

#[pymethods]
impl Table {
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The protocol lets a producer ignore the wish for another schema.
        drop(requested_schema);
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }

    fn to_pydict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for (column, field) in self.schema.fields().iter().enumerate() {
            let list = pyo3::types::PyList::empty(py);
            for batch in &self.batches {
                let array = batch.column(column);
                for row in 0..array.len() {
                    list.append(value(py, array, row)?)?;
                }
            }
            out.set_item(field.name(), list)?;
        }
        Ok(out)
    }
}

/// One value as a Python object, of the types [`array`] makes.
fn value(py: Python<'_>, array: &ArrayRef, row: usize) -> PyResult<Py<PyAny>> {
    if array.is_null(row) {
        return Ok(py.None());
    }
    let any = array.as_any();
    Ok(if let Some(a) = any.downcast_ref::<Int64Array>() {
        a.value(row).into_pyobject(py)?.into_any().unbind()
    } else if let Some(a) = any.downcast_ref::<UInt64Array>() {
        a.value(row).into_pyobject(py)?.into_any().unbind()
    } else if let Some(a) = any.downcast_ref::<Float64Array>() {
        a.value(row).into_pyobject(py)?.into_any().unbind()
    } else if let Some(a) = any.downcast_ref::<LargeStringArray>() {
        a.value(row).into_pyobject(py)?.into_any().unbind()
    } else {
        return Err(PyRuntimeError::new_err(format!("no plain value for {}", array.data_type())));
    })
}

/// The record batches of any object with `__arrow_c_stream__`.
pub(crate) fn reader(stream: &Bound<'_, PyAny>) -> PyResult<RecordBatchStreamReader> {
    let capsule = stream.call_method0("__arrow_c_stream__")?;
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| {
        PyTypeError::new_err("__arrow_c_stream__ did not return a PyCapsule of an Arrow stream")
    })?;
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name points at a valid ArrowArrayStream (Arrow PyCapsule interface); from_raw
    // moves the stream out and leaves a released one behind, as the consumer has to.
    unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr()) }.map_err(internal)
}

/// Texts of a string column of any layout a reader of Parquet or Polars hands out.
pub(crate) enum Strings<'a> {
    Small(&'a StringArray),
    Large(&'a LargeStringArray),
    View(&'a arrow_array::StringViewArray),
    Coded(&'a UInt32Array, Box<Strings<'a>>),
}

impl<'a> Strings<'a> {
    pub(crate) fn of(array: &'a dyn Array) -> Option<Self> {
        let any = array.as_any();
        if let Some(a) = any.downcast_ref() {
            return Some(Self::Small(a));
        }
        if let Some(a) = any.downcast_ref() {
            return Some(Self::Large(a));
        }
        if let Some(a) = any.downcast_ref() {
            return Some(Self::View(a));
        }
        let dictionary = any.downcast_ref::<DictionaryArray<UInt32Type>>()?;
        Some(Self::Coded(dictionary.keys(), Box::new(Self::of(dictionary.values().as_ref())?)))
    }

    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        match self {
            Self::Small(a) => a.is_valid(row).then(|| a.value(row)),
            Self::Large(a) => a.is_valid(row).then(|| a.value(row)),
            Self::View(a) => a.is_valid(row).then(|| a.value(row)),
            Self::Coded(keys, texts) => {
                if keys.is_valid(row) {
                    texts.get(keys.value(row) as usize)
                } else {
                    None
                }
            }
        }
    }
}

/// A field that is never null.
pub(crate) fn field(name: &str, kind: DataType) -> Field {
    Field::new(name, kind, false)
}

/// An Arrow error is a mistake on our side of the border (or of the producer of a stream).
pub(crate) fn internal(error: impl std::fmt::Display) -> PyErr {
    PyRuntimeError::new_err(format!("arrow: {error}"))
}
