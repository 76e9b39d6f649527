"""Traces behind URLs, from servers of this test on the loopback address."""

from __future__ import annotations

import gzip
import http.server
import signal
import socket
import subprocess
import sys
import threading
import urllib.request
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

import kvreplay as kv
from kvreplay.remote import Download, shown

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytest.importorskip("obstore", reason="the extra kvreplay[remote] is not installed")


class Files(http.server.BaseHTTPRequestHandler):
    """Serves what `files` holds; some places misbehave."""

    files: dict[str, bytes] = {}  # noqa: RUF012 - filled by the fixture
    asked: list[str] = []  # noqa: RUF012 - same

    def do_GET(self) -> None:
        self.asked.append(self.path)
        place, _, name = self.path.lstrip("/").partition("/")
        data = self.files.get(name.partition("?")[0])
        if place == "moved":
            self.send_response(302)
            self.send_header("Location", f"/whole/{name}")
            self.end_headers()
            return
        if data is None:
            self.send_error(404)
            return
        self.send_response(200)
        if place != "unsized":
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        # "short" ends in the middle, which the stated length betrays.
        self.wfile.write(data[: len(data) // 2] if place == "short" else data)

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("served")
    trace = kv.generate("multi_turn", requests=300, seed=7)
    trace.write(folder / "t.jsonl", format="mooncake")
    trace.write(folder / "t.jsonl.zst", format="mooncake")
    trace.write(folder / "t.parquet")
    Files.files = {path.name: path.read_bytes() for path in folder.iterdir()}
    text = Files.files["t.jsonl"]
    Files.files["t.jsonl.gz"] = gzip.compress(text[:9000]) + gzip.compress(text[9000:])
    Files.asked = []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as running:
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.jsonl.zst", "t.parquet"])
@pytest.mark.parametrize("place", ["whole", "moved"])
def test_reading_over_http(server: str, chats: kv.Trace, place: str, name: str) -> None:
    trace = kv.read_trace(f"{server}/{place}/{name}")
    assert trace.info["sha256"] == chats.info["sha256"]
    assert len(trace) == 300


def test_signed_urls_keep_their_query_and_hide_it(server: str) -> None:
    Files.asked.clear()
    assert len(kv.read_trace(f"{server}/whole/t.jsonl?signature=a%2Fb&expires=9")) == 300
    assert Files.asked == ["/whole/t.jsonl?signature=a%2Fb&expires=9"]
    with pytest.raises(kv.TraceError) as caught:
        kv.read_trace(f"{server}/whole/missing.jsonl?signature=secret")
    assert "secret" not in str(caught.value)
    assert "no such object" in str(caught.value)
    assert caught.value.file == f"{server}/whole/missing.jsonl"
    assert shown("https://user:word@host:8/a/b?x=1#y") == "https://host:8/a/b"


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.jsonl.zst", "t.parquet"])
def test_a_short_download_is_an_error(server: str, name: str) -> None:
    with pytest.raises(kv.TraceError, match=r"download broke off|response body") as caught:
        kv.read_trace(f"{server}/short/{name}")
    assert caught.value.code == "io"
    assert caught.value.hint


def test_a_download_of_unknown_length_is_refused(server: str) -> None:
    with pytest.raises(kv.TraceError, match="Content-Length") as caught:
        kv.read_trace(f"{server}/unsized/t.jsonl")
    assert "download the file first" in caught.value.hint


def test_a_server_that_is_not_there() -> None:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Files) as closed:
        port = closed.server_port
    with pytest.raises(kv.TraceError) as caught:
        kv.read_trace(f"http://127.0.0.1:{port}/whole/t.jsonl")
    assert caught.value.code == "io"


def test_several_urls_are_one_trace(server: str, chats: kv.Trace, tmp_path: Path) -> None:
    chats.write(tmp_path / "t.jsonl", format="mooncake")
    lines = (tmp_path / "t.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "b.jsonl").write_bytes(b"".join(lines[100:]))
    Files.files["a.jsonl"] = b"".join(lines[:100])
    trace = kv.read_trace([f"{server}/whole/a.jsonl", tmp_path / "b.jsonl"])
    assert trace.info["sha256"] == chats.info["sha256"]


@pytest.mark.parametrize("sizes", [[], [5], [2, 0, 9, 1]])
def test_downloads_are_counted(sizes: list[int]) -> None:
    data = bytes(range(sum(sizes)))
    ends = [sum(sizes[:at]) for at in range(len(sizes) + 1)]
    chunks = [data[begin:end] for begin, end in pairwise(ends)]
    whole = Download("x", len(data), iter(chunks))
    assert whole.peek(4) == data[:4]
    assert whole.peek(100) == data
    assert whole.read(3) + whole.read() == data
    assert whole.read(3) == b""
    for wrong in (len(data) + 1, len(data) - 1):
        with pytest.raises(OSError, match=f"ended after {len(data)} of {wrong} bytes"):
            Download("x", wrong, iter(chunks)).read()


def test_a_reset_connection_is_an_error() -> None:
    def chunks() -> Iterator[bytes]:
        yield b'{"timestamp": 0, "input_length": 16, "hash_ids": [1]}\n' * 3
        raise ConnectionResetError("connection reset by peer")

    with pytest.raises(kv.TraceError, match="broke off after 162 of 999 bytes: connection reset"):
        kv.read_trace(Download("http://host/t.jsonl", 999, chunks()), block_tokens=16)


def test_an_interrupt_does_not_wait_for_a_silent_server() -> None:
    """The server accepts and says nothing, or stops in the middle; Ctrl-C ends the command at once."""
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9999\r\n\r\n" + b'{"input_length": 16}\n'
    for answer in (b"", head):
        with socket.create_server(("127.0.0.1", 0)) as listening:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}/t.jsonl"
            command = [sys.executable, "-m", "kvreplay", "inspect", url]
            with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE) as running:
                connection, _ = listening.accept()
                with connection:
                    connection.recv(1)
                    connection.sendall(answer)
                    running.send_signal(signal.SIGINT)
                    out, err = running.communicate(timeout=30)
        assert (running.returncode, out) == (130, b"")
        assert b"Traceback" not in err


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kvreplay.remote.find_spec", lambda _: None)
    with pytest.raises(
        kv.ConfigError, match=r"s3://bucket/t.jsonl: .* needs the extra kvreplay\[remote\]"
    ) as caught:
        kv.read_trace("s3://bucket/t.jsonl")
    assert "pip install" in caught.value.hint
    with pytest.raises(kv.TraceError, match="cannot read from ftp://"):
        kv.read_trace("ftp://host/t.jsonl")


@pytest.fixture(scope="module")
def bucket(server: str) -> Iterator[str]:  # noqa: ARG001 - fills the files
    """A bucket of moto's S3 server that holds the same files."""
    moto = pytest.importorskip("moto.server", reason="moto is not installed")
    import obstore
    from obstore.store import S3Store

    running = moto.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    settings = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": "us-east-1",
    }
    with pytest.MonkeyPatch.context() as patch:
        for name, value in settings.items():
            patch.setenv(name, value)
        create = urllib.request.Request(f"http://{host}:{port}/traces", method="PUT")
        urllib.request.urlopen(create).close()  # noqa: S310 - loopback
        store = S3Store("traces", client_options={"allow_http": True})
        for name, data in Files.files.items():
            obstore.put(store, f"deep/{name}", data)
        yield "s3://traces/deep"
    running.stop()


@pytest.mark.parametrize("name", ["t.jsonl", "t.jsonl.gz", "t.jsonl.zst", "t.parquet"])
def test_reading_from_s3(bucket: str, chats: kv.Trace, name: str) -> None:
    trace = kv.read_trace(f"{bucket}/{name}")
    assert trace.info["sha256"] == chats.info["sha256"]


def test_what_s3_does_not_have(bucket: str) -> None:
    with pytest.raises(kv.TraceError, match="no such object"):
        kv.read_trace(f"{bucket}/missing.jsonl")
    with pytest.raises(kv.ConfigError, match="names no object"):
        kv.read_trace("s3://traces")
