//! The one error type of the core: a stable code, the place in the input and a hint for the user.

use std::fmt;

/// Result of every fallible function of the core.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong, sorted by who has to act.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The trace cannot be read or holds nothing usable (exit code 3 of the command line).
    #[error("{0}")]
    Trace(Box<TraceError>),
    /// The configuration is invalid (exit code 4 of the command line).
    #[error("{message}")]
    Config {
        /// What is wrong, with the offending value.
        message: String,
        /// What to write instead.
        hint: String,
    },
    /// The caller asked to stop (Ctrl-C).
    #[error("cancelled")]
    Cancelled,
}

/// An unreadable trace: where, what and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceError {
    /// A quality code of `ingest::quality`, or `io`, `no_rows`, `too_many_blocks` and the like.
    pub code: &'static str,
    /// The file, `-` for standard input; empty when the trace is in memory.
    pub file: String,
    /// The line of the file (row of a table), from 1.
    pub line: Option<u64>,
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    pub hint: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.file.as_str(), self.line) {
            ("", None) => {}
            ("", Some(line)) => write!(f, "row {line}: ")?,
            (file, None) => write!(f, "{file}: ")?,
            (file, Some(line)) => write!(f, "{file}:{line}: ")?,
        }
        f.write_str(&self.message)
    }
}

impl Error {
    /// An unreadable trace without a place; `at` adds one.
    #[must_use]
    pub fn trace(code: &'static str, message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Trace(Box::new(TraceError {
            code,
            file: String::new(),
            line: None,
            message: message.into(),
            hint: hint.into(),
        }))
    }

    /// An invalid configuration.
    #[must_use]
    pub fn config(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::Config { message: message.into(), hint: hint.into() }
    }

    /// The same error with the file and line filled in (only where they are not known yet).
    #[must_use]
    pub fn at(mut self, file: &str, line: Option<u64>) -> Self {
        if let Self::Trace(error) = &mut self {
            if error.file.is_empty() {
                file.clone_into(&mut error.file);
            }
            error.line = error.line.or(line);
        }
        self
    }
}
