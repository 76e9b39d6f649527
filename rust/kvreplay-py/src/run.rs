//! Long calls: off the interpreter lock, stoppable by Ctrl-C and by their `Progress`.

use crate::errors::to_python;
use kvreplay_core::{Progress as CoreProgress, Result};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// How often a waiting call looks for signals; Ctrl-C is answered within twice this time.
const LOOK_EVERY: Duration = Duration::from_millis(40);

/// Progress and cancellation of one long call.
#[pyclass(frozen, module = "kvreplay._core")]
#[derive(Default)]
pub(crate) struct Progress(Arc<CoreProgress>);

#[pymethods]
impl Progress {
    #[new]
    fn new() -> Self {
        Self::default()
    }

    fn get(&self) -> (u64, u64) {
        self.0.get()
    }

    fn cancel(&self) {
        self.0.cancel();
    }
}

/// Runs `work` on a thread of its own while this one waits for it without the lock and looks for signals.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    progress: Option<&Progress>,
    work: impl FnOnce(&CoreProgress) -> Result<T> + Send,
) -> PyResult<T> {
    let progress = progress.map_or_else(|| Arc::new(CoreProgress::default()), |p| Arc::clone(&p.0));
    std::thread::scope(|scope| {
        let (sender, mut receiver) = channel();
        let worker_progress = Arc::clone(&progress);
        let worker = scope.spawn(move || sender.send(work(&worker_progress)));
        let mut interrupted = None;
        loop {
            let (back, received) = py.detach(move || {
                let received = receiver.recv_timeout(LOOK_EVERY);
                (receiver, received)
            });
            receiver = back;
            match received {
                Ok(result) => {
                    return match interrupted {
                        Some(signal) => Err(signal),
                        None => result.map_err(|error| to_python(py, error)),
                    };
                }
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(signal) = py.check_signals() {
                        progress.cancel();
                        interrupted = Some(signal);
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    // The worker panicked; its message is on stderr already.
                    let _ = worker.join();
                    return Err(PyRuntimeError::new_err("internal error in the core: please report it"));
                }
            }
        }
    })
}
