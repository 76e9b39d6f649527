"""Traces behind URLs: read as a stream, with a broken or short download as an error.

``s3://``, ``gs://``, ``az://``, ``http://`` and ``https://`` go through obstore (the extra
``kvreplay[remote]``), which also finds the credentials: in the environment, as each cloud's own tools do.
"""

from __future__ import annotations

import os
import queue
import tempfile
import threading
from datetime import timedelta
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, BinaryIO, cast
from urllib.parse import urlsplit, urlunsplit

from kvreplay.errors import ConfigError, TraceError

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMES = ("s3", "gs", "az", "https", "http")
# What obstore calls by more names than one.
_ALIASES = {"s3a": "s3", "abfs": "az", "abfss": "az", "azure": "az", "adl": "az"}
_CHUNK_BYTES = 1 << 20
_HEAD_BYTES = 4
# A stalled connection ends after _SILENCE; a download that goes on may take as long as it needs.
_SILENCE = timedelta(seconds=60)
_CONNECT = timedelta(seconds=20)
_LONGEST = timedelta(days=7)
_RETRIES = 3
_AHEAD_CHUNKS = 4
_NAP_S = 0.05
_HINTS = {
    "s3": "set AWS_REGION and credentials, or AWS_SKIP_SIGNATURE=true for a public bucket",
    "gs": "set GOOGLE_APPLICATION_CREDENTIALS, or download the file first",
    "az": "set AZURE_STORAGE_ACCOUNT_NAME and its key, or download the file first",
}


class Download:
    """One object behind a URL as a binary file object that is read once, in order.

    Raises
    ------
    OSError
        By :meth:`read`, when the connection breaks or the object ends before its stated length.
    """

    def __init__(self, name: str, size_bytes: int, chunks: Iterator[Any]) -> None:
        self.name = name
        self.size_bytes = size_bytes
        self._chunks = chunks
        self._chunk = memoryview(b"")
        self._got_bytes = 0
        self._ended = False

    def __del__(self) -> None:
        self.kvreplay_stop()

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes (everything when negative); empty at the end."""
        if size < 0:
            return b"".join(iter(lambda: self.read(_CHUNK_BYTES), b""))
        if size and not self._chunk:
            self._chunk = self._next()
        part, self._chunk = self._chunk[:size], self._chunk[size:]
        return bytes(part)

    def peek(self, size: int) -> bytes:
        """Look at the next bytes, at most `size`, without taking them."""
        while len(self._chunk) < size:
            more = self._next()
            if not more:
                break
            self._chunk = memoryview(bytes(self._chunk) + bytes(more))
        return bytes(self._chunk[:size])

    def kvreplay_stop(self) -> None:
        """Let a :meth:`read` that waits in another thread fail at once."""
        if isinstance(self._chunks, _Fetch):
            self._chunks.stop.set()

    def _next(self) -> memoryview:
        while not self._ended:
            where = f"after {self._got_bytes:,} of {self.size_bytes:,} bytes"
            try:
                chunk = next(self._chunks, None)
            except Exception as error:  # noqa: BLE001 - obstore has an exception per kind of failure
                raise OSError(f"the download broke off {where}: {_first_line(error)}") from None
            if chunk is None:
                self._ended = True
                if self._got_bytes != self.size_bytes:
                    raise OSError(f"the download ended {where}")
            elif len(chunk):
                self._got_bytes += len(chunk)
                return memoryview(chunk)
        return memoryview(b"")


class _Fetch:
    """The size and then the chunks of an object, fetched by a thread of its own.

    A network call cannot be interrupted; waiting for a thread can. So Ctrl-C ends a command at once, whatever
    the server does, and a few chunks are fetched ahead while the reader works.
    """

    def __init__(self, url: str, scheme: str) -> None:
        self.stop = threading.Event()
        self._ready: queue.Queue[Any] = queue.Queue(_AHEAD_CHUNKS)
        # The thread knows the queue but not this object, which can then be dropped, and stops it.
        work = (url, scheme, self._ready, self.stop)
        threading.Thread(target=_fetch, args=work, name="kvreplay-download", daemon=True).start()

    def __iter__(self) -> _Fetch:
        return self

    def __next__(self) -> Any:
        while not self.stop.is_set():
            try:
                item = self._ready.get(timeout=_NAP_S)
            except queue.Empty:
                continue
            if isinstance(item, Exception):
                raise item
            if item is None:
                raise StopIteration
            return item
        raise OSError("it was stopped")


def _fetch(url: str, scheme: str, ready: queue.Queue[Any], stop: threading.Event) -> None:
    def hand_over(item: Any) -> bool:
        while not stop.is_set():
            try:
                ready.put(item, timeout=_NAP_S)
            except queue.Full:
                continue
            return True
        return False

    try:
        import obstore

        store, path = _store(url, scheme)
        found = obstore.get(store, path)
        hand_over(int(found.meta["size"]))
        for chunk in found.stream(min_chunk_size=_CHUNK_BYTES):
            if not hand_over(chunk):
                return
        hand_over(None)
    except Exception as error:  # noqa: BLE001 - raised again where the object is read
        hand_over(error)


def scheme_of(url: str) -> str:
    """Scheme of a URL, in its usual form.

    Raises
    ------
    TraceError
        When it is none that can be read.
    """
    scheme = urlsplit(url).scheme.lower()
    scheme = _ALIASES.get(scheme, scheme)
    if scheme not in SCHEMES:
        raise TraceError(
            f"{shown(url)}: cannot read from {scheme}://",
            code="io",
            file=shown(url),
            hint=f"known: {', '.join(f'{one}://' for one in SCHEMES)}; or pipe it into kvreplay analyze -",
        )
    return scheme


def shown(url: str) -> str:
    """The URL as messages may show it: what follows ``?`` and a password can be secret."""
    parts = urlsplit(url)
    place = parts.netloc.rpartition("@")[2]
    return urlunsplit((parts.scheme, place, parts.path, "", ""))


def open_url(url: str) -> BinaryIO:
    """Open what a URL names.

    Returns
    -------
    BinaryIO
        A :class:`Download`; for Parquet, whose index stands at the end, an unnamed temporary file with the
        whole object (in ``TMPDIR``, gone when it is closed).

    Raises
    ------
    TraceError
        When it cannot be fetched, or breaks off.
    ConfigError
        Without the extra ``kvreplay[remote]``.
    """
    scheme = scheme_of(url)
    name = shown(url)
    if find_spec("obstore") is None:
        raise ConfigError(
            f"{name}: reading from URLs needs the extra kvreplay[remote]",
            hint="pip install 'kvreplay[remote]', or pipe it: curl -sL URL | kvreplay analyze -",
        )
    chunks = _Fetch(url, scheme)
    try:
        download = Download(name, next(chunks), chunks)
        if download.peek(_HEAD_BYTES) != b"PAR1":
            return cast("BinaryIO", download)
        return _spooled(download)
    except ConfigError:
        raise
    except Exception as error:
        raise _failed(name, scheme, error) from error
    except BaseException:
        chunks.stop.set()
        raise


def _store(url: str, scheme: str) -> tuple[Any, str]:
    from obstore.store import HTTPStore, from_url

    client: dict[str, Any] = {"timeout": _LONGEST, "read_timeout": _SILENCE, "connect_timeout": _CONNECT}
    retry: dict[str, Any] = {"max_retries": _RETRIES, "retry_timeout": _SILENCE}
    if scheme in ("http", "https"):
        # The whole URL is the store: the query of a signed URL belongs to it, a path could not carry it.
        client["allow_http"] = scheme == "http"
        return HTTPStore.from_url(
            url, client_options=cast("Any", client), retry_config=cast("Any", retry)
        ), ""
    parts = urlsplit(url)
    path = parts.path.lstrip("/")
    if not parts.netloc or not path:
        raise ConfigError(f"{url} names no object", hint=f"{scheme}://bucket/path/to/trace.jsonl")
    if os.environ.get("AWS_ALLOW_HTTP", "").lower() == "true" or _is_http_endpoint():
        client["allow_http"] = True
    root = urlunsplit((scheme, parts.netloc, "", "", ""))
    store = from_url(root, client_options=cast("Any", client), retry_config=cast("Any", retry))
    return store, path


def _is_http_endpoint() -> bool:
    """Whether the environment names an S3 server without TLS, which is a choice of whoever set it."""
    names = ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT")
    return any(os.environ.get(name, "").startswith("http://") for name in names)


def _spooled(download: Download) -> BinaryIO:
    file = tempfile.TemporaryFile()  # noqa: SIM115 - closed by whoever reads it
    try:
        while part := download.read(_CHUNK_BYTES):
            file.write(part)
        file.seek(0)
    except BaseException:
        file.close()
        raise
    return cast("BinaryIO", _Named(file, download.name))


class _Named:
    """A temporary file under the name that messages show."""

    def __init__(self, file: Any, name: str) -> None:
        self._file = file
        self.name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._file, attribute)

    def __del__(self) -> None:
        # Nobody else knows that there is a file to close: to its reader this is a source like any other.
        self._file.close()


def _failed(name: str, scheme: str, error: Exception) -> TraceError:
    if isinstance(error, FileNotFoundError):
        reason, hint = "there is no such object", "check the URL"
    elif isinstance(error, PermissionError):
        reason, hint = "access is denied", "check the credentials in the environment"
    else:
        reason, hint = _first_line(error), _HINTS.get(scheme, "fetch it again, or download the file first")
    return TraceError(f"{name}: {reason}", code="io", file=name, hint=hint)


def _first_line(error: BaseException) -> str:
    text = str(error).splitlines()
    return text[0] if text else type(error).__name__
