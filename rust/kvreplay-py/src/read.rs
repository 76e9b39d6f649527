//! Reading text formats: paths opened by the core, file objects read through Python.

use crate::arrow::Table;
use crate::errors::to_python;
use crate::generate::Lengths;
use crate::run::{Progress, run};
use crate::trace::Trace;
use kvreplay_core::ingest::{self, Namespace, Packing, ReadOptions, Source};
use kvreplay_core::table::{Table as CoreTable, Values};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::collections::BTreeMap;
use std::io::{self, Read};

/// Options as Python gives them: a mapping with every key (`ReadOptions` in the stub).
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Options {
    format: String,
    block_tokens: Option<u32>,
    tail: String,
    time_unit: String,
    scope: String,
    namespace: NamespaceArg,
    strict: bool,
    columns: BTreeMap<String, String>,
    session_rows: String,
    shared_prefix: String,
    session_starts: String,
    concurrency: Option<u32>,
    seed: u64,
}

/// `auto`, `none` or the names of columns.
#[derive(FromPyObject)]
pub(crate) enum NamespaceArg {
    Word(String),
    Columns(Vec<String>),
}

impl Options {
    /// The core's options.
    pub(crate) fn parse(self) -> kvreplay_core::Result<ReadOptions> {
        let mut options = ReadOptions {
            format: self.format,
            block_tokens: self.block_tokens,
            namespace: match self.namespace {
                NamespaceArg::Word(word) if word == "auto" => Namespace::Auto,
                NamespaceArg::Word(word) if word == "none" => Namespace::None,
                NamespaceArg::Word(column) => Namespace::Columns(vec![column]),
                NamespaceArg::Columns(columns) => Namespace::Columns(columns),
            },
            strict: self.strict,
            columns: self.columns.into_iter().collect(),
            ..ReadOptions::default()
        };
        options.set_tail(&self.tail)?;
        options.set_time_unit(&self.time_unit)?;
        options.set_scope(&self.scope)?;
        options.set_session_rows(&self.session_rows)?;
        options.set_shared_prefix(&self.shared_prefix)?;
        options.sessions.set_rule(&self.session_starts)?;
        options.sessions.concurrency = self.concurrency;
        options.sessions.seed = self.seed;
        options.check()?;
        Ok(options)
    }
}

/// Reads a binary Python file object, piece by piece, under the interpreter lock.
struct FileObject {
    object: Py<PyAny>,
    name: String,
}

impl Read for FileObject {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let got =
                self.object.bind(py).call_method1("read", (buffer.len(),)).map_err(|e| failed(py, &e))?;
            let bytes = got.cast::<PyBytes>().map_err(|_| {
                io::Error::other(format!(
                    "{}: read() must give bytes: open the file in binary mode",
                    self.name
                ))
            })?;
            let bytes = bytes.as_bytes();
            let room = buffer
                .get_mut(..bytes.len())
                .ok_or_else(|| io::Error::other(format!("{}: read(n) gave more than n bytes", self.name)))?;
            room.copy_from_slice(bytes);
            Ok(bytes.len())
        })
    }
}

fn failed(py: Python<'_>, error: &PyErr) -> io::Error {
    io::Error::other(error.value(py).to_string())
}

/// A path or a binary file object.
fn source(object: &Bound<'_, PyAny>) -> PyResult<Source> {
    if let Ok(path) = object.extract::<String>() {
        return Ok(Source::path(path));
    }
    if !object.hasattr("read")? {
        let kind = object.get_type().name()?.to_string();
        return Err(PyTypeError::new_err(format!("a source is a path or a binary file object, not {kind}")));
    }
    let name =
        object.getattr("name").and_then(|name| name.extract::<String>()).unwrap_or_else(|_| "-".to_owned());
    let file = FileObject { object: object.clone().unbind(), name: name.clone() };
    Ok(Source::reader(&name, Box::new(file), None))
}

#[pyfunction]
#[pyo3(signature = (sources, options, progress = None))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over owned lists")]
pub(crate) fn read(
    py: Python<'_>,
    sources: Vec<Bound<'_, PyAny>>,
    options: Options,
    progress: Option<&Progress>,
) -> PyResult<Trace> {
    let options = options.parse().map_err(|error| to_python(py, error))?;
    let sources = sources.iter().map(source).collect::<PyResult<Vec<_>>>()?;
    run(py, progress, |progress| ingest::read(sources, &options, progress)).map(Trace::from)
}

/// Arrivals and lengths only: the rows of traces that list no blocks as well.
#[pyfunction]
#[pyo3(signature = (sources, options, progress = None))]
#[expect(clippy::needless_pass_by_value, reason = "pyo3 hands over owned lists")]
pub(crate) fn read_lengths(
    py: Python<'_>,
    sources: Vec<Bound<'_, PyAny>>,
    options: Options,
    progress: Option<&Progress>,
) -> PyResult<Lengths> {
    let options = options.parse().map_err(|error| to_python(py, error))?;
    let sources = sources.iter().map(source).collect::<PyResult<Vec<_>>>()?;
    run(py, progress, |progress| ingest::read_lengths(sources, &options, progress)).map(Lengths::from)
}

impl io::Write for FileObject {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Python::attach(|py| {
            let written = self.object.bind(py).call_method1("write", (PyBytes::new(py, buffer),));
            written.map_err(|error| failed(py, &error)).map(|_| buffer.len())
        })
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[pyfunction]
#[pyo3(signature = (trace, file, *, format, name, progress = None))]
pub(crate) fn write_rows(
    py: Python<'_>,
    trace: &Trace,
    file: &Bound<'_, PyAny>,
    format: &str,
    name: &str,
    progress: Option<&Progress>,
) -> PyResult<()> {
    let mut file = io::BufWriter::with_capacity(
        1 << 20,
        FileObject { object: file.clone().unbind(), name: String::new() },
    );
    let packing = Packing::of_name(name);
    run(py, progress, |progress| ingest::write(&trace.0, format, packing, &mut file, progress))
}

#[pyfunction]
pub(crate) fn writers() -> PyResult<Table> {
    let writers = ingest::writers();
    let column = |get: &dyn Fn(&ingest::WriterInfo) -> &'static str| {
        Values::Text(writers.iter().map(|writer| Some(get(writer).to_owned())).collect())
    };
    CoreTable::new()
        .with("name", column(&|w| w.name))
        .with("doc", column(&|w| w.doc))
        .with("loses", column(&|w| w.loses))
        .with("source", column(&|w| w.source))
        .try_into()
}

#[pyfunction]
pub(crate) fn formats() -> PyResult<Table> {
    let formats = ingest::formats();
    let column = |get: &dyn Fn(&ingest::FormatInfo) -> &'static str| {
        Values::Text(formats.iter().map(|format| Some(get(format).to_owned())).collect())
    };
    CoreTable::new()
        .with("name", column(&|f| f.name))
        .with("doc", column(&|f| f.doc))
        .with("example", column(&|f| f.example))
        .with("source", column(&|f| f.source))
        .try_into()
}
