//! The core's errors as Python exceptions.

use kvreplay_core::Error as CoreError;
use pyo3::create_exception;
use pyo3::exceptions::{PyException, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

create_exception!(
    kvreplay._core,
    Error,
    PyValueError,
    "Base of TraceError and ConfigError; `.hint` says what to do."
);
create_exception!(
    _core,
    TraceError,
    Error,
    "An unreadable trace: `.code`, `.file`, `.line` (from 1, None where there is none) and `.hint`."
);
create_exception!(
    kvreplay._core,
    ConfigError,
    Error,
    "An invalid configuration; `.hint` says what to write instead."
);
create_exception!(kvreplay._core, Cancelled, PyException, "A call was stopped through its Progress.");

/// The exception for an error of the core.
pub(crate) fn to_python(py: Python<'_>, error: CoreError) -> PyErr {
    let made = match error {
        CoreError::Trace(trace) => {
            let out = TraceError::new_err(trace.to_string());
            let value = out.value(py);
            value
                .setattr("code", trace.code)
                .and_then(|()| value.setattr("file", trace.file.as_str()))
                .and_then(|()| value.setattr("line", trace.line))
                .and_then(|()| value.setattr("hint", trace.hint.as_str()))
                .map(|()| out)
        }
        CoreError::Config { message, hint } => {
            let out = ConfigError::new_err(message);
            out.value(py).setattr("hint", hint).map(|()| out)
        }
        CoreError::Cancelled => Ok(Cancelled::new_err("cancelled")),
        other => Ok(PyRuntimeError::new_err(other.to_string())),
    };
    made.unwrap_or_else(|failed| failed)
}

/// Puts the exceptions into the module.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("Error", py.get_type::<Error>())?;
    module.add("TraceError", py.get_type::<TraceError>())?;
    module.add("ConfigError", py.get_type::<ConfigError>())?;
    module.add("Cancelled", py.get_type::<Cancelled>())
}
