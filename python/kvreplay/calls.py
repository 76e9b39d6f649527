"""Long calls into the core: progress, cancellation and errors in one place.

The core releases the GIL and works on; Python delivers Ctrl-C to the main thread only between bytecodes. So
the main thread hands the call to a worker, waits in short naps, and asks the worker to stop when it is
interrupted.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Generic, TypeVar

from kvreplay import _core
from kvreplay.errors import translated

if TYPE_CHECKING:
    from collections.abc import Callable

    ProgressHook = Callable[[str, int, int], None]

T = TypeVar("T")

_NAP_S = 0.05


class _Job(Generic[T]):
    """One call on its way: its result or its error."""

    def __init__(self, call: Callable[[_core.Progress], T]) -> None:
        self.call = call
        self.progress = _core.Progress()
        self.done = threading.Event()
        self.result: list[T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            self.result.append(self.call(self.progress))
        except BaseException as error:  # noqa: BLE001 - carried to the thread that waits
            self.error = error
        finally:
            self.done.set()

    def take(self) -> T:
        if self.error is not None:
            raise self.error
        return self.result[0]


def run(
    call: Callable[[_core.Progress], T],
    *,
    what: str,
    hook: ProgressHook | None = None,
    stop: Callable[[], None] | None = None,
) -> T:
    """Run a long call of the core so that it can be watched and interrupted.

    Parameters
    ----------
    call
        Takes the :class:`kvreplay._core.Progress` to pass on.
    what
        Name of the step for the progress hook (``reading``, ``replaying``).
    hook
        Called about every 50 ms with ``(what, done, total)``; total 0 = unknown.
    stop
        Called when interrupted: wakes a worker that waits for something else than the core.

    Raises
    ------
    TraceError, ConfigError
        As the core says.
    KeyboardInterrupt
        When interrupted; the worker has stopped by then.
    """
    job = _Job(call)
    with translated():
        if threading.current_thread() is not threading.main_thread():
            job.run()
            return job.take()
        worker = threading.Thread(target=job.run, name=f"kvreplay-{what}", daemon=True)
        worker.start()
        try:
            while not job.done.wait(_NAP_S):
                if hook is not None:
                    hook(what, *job.progress.get())
        except BaseException:
            job.progress.cancel()
            if stop is not None:
                stop()
            job.done.wait()
            raise
        finally:
            if hook is not None:
                hook(what, -1, 0)
        worker.join()
        return job.take()
