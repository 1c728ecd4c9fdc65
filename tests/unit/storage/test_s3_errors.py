"""What S3-compatible servers answer, and what it means to us: a refusal, something that passes, or not there."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from botocore.exceptions import SSLError

from realcli.storage import NotFound, ObjectStore, StorageConfig, StorageRefused, StorageUnavailable
from realcli.storage.opening import open_store
from realcli.storage.s3 import S3Store

Answer = tuple[int, bytes, int | None]  # status, body, Content-Length where it is not that of the body


class Server(ThreadingHTTPServer):
    """Answers every request by its method and path, the query left out."""

    daemon_threads = True
    answers: dict[str, Answer]


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        assert isinstance(self.server, Server)
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        status, body, length = self.server.answers[f"{self.command} {self.path.split('?')[0]}"]
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)
        self.close_connection = True

    do_GET = do_PUT = do_HEAD = answer

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "a")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "b")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    found = Server(("127.0.0.1", 0), Handler)
    found.answers = {}
    thread = threading.Thread(target=found.serve_forever, args=(0.01,))
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


@pytest.fixture
def store(server: Server) -> ObjectStore:
    return open_store(StorageConfig(bucket="evals", endpoint=f"http://127.0.0.1:{server.server_port}"))


def error(code: str) -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>it says why</Message></Error>".encode()


PUTS: list[tuple[int, str, type[Exception], str]] = [
    (501, "NotImplemented", StorageRefused, "cannot create an object only if it is not there"),
    (409, "OperationAborted", StorageUnavailable, "racing"),
    (409, "ConditionalRequestConflict", StorageUnavailable, "racing"),
    (400, "IncompleteBody", StorageUnavailable, "IncompleteBody"),
    (400, "BadDigest", StorageUnavailable, "BadDigest"),
    (403, "RequestTimeTooSkewed", StorageRefused, "it says why"),
    (403, "QuotaExceeded", StorageRefused, "it says why"),
    (404, "NoSuchBucket", StorageRefused, "the bucket does not exist"),
    (400, "ExpiredToken", StorageRefused, "session token has expired"),
]


@pytest.mark.parametrize(("status", "code", "kind", "text"), PUTS, ids=[row[1] for row in PUTS])
def test_answers_to_a_put(server: Server, store: ObjectStore, status: int, code: str, kind: type[Exception], text: str) -> None:
    server.answers["PUT /evals/k"] = (status, error(code), None)
    with pytest.raises(kind, match=text):
        store.put_once("k", b"data")


def test_a_body_that_is_cut_passes(server: Server, store: ObjectStore, tmp_path: Path) -> None:
    """The connection ends in the middle of an object: half of it is never taken for the whole."""
    server.answers["GET /evals/k"] = (200, b"half", 8)
    for action in (lambda: store.get("k"), lambda: store.download("k", tmp_path / "k")):
        with pytest.raises(StorageUnavailable):
            action()
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_is_no_answer_of_a_store_passes(server: Server, store: ObjectStore) -> None:
    """A proxy's own page, with a status of success."""
    server.answers["GET /evals"] = (200, b"<html>be right back", None)
    with pytest.raises(StorageUnavailable):
        list(store.list("p/"))


def test_an_object_that_is_not_there(server: Server, store: ObjectStore) -> None:
    server.answers |= {"HEAD /evals/k": (404, b"", None), "HEAD /evals": (200, b"", None)}
    assert store.exists("k") is False
    server.answers["GET /evals/k"] = (404, error("NoSuchKey"), None)
    with pytest.raises(NotFound):
        store.get("k")


@pytest.mark.parametrize(("status", "text"), [(404, "the bucket does not exist"), (403, "access is denied")])
def test_a_bucket_that_is_not_there_is_never_an_object_that_is_not(
    server: Server, store: ObjectStore, status: int, text: str
) -> None:
    """The answer to HEAD has no body, so the bucket and the object look alike."""
    server.answers |= {"HEAD /evals/k": (404, b"", None), "HEAD /evals": (status, b"", None)}
    with pytest.raises(StorageRefused, match=text):
        store.exists("k")


def test_folders_a_console_made_are_no_objects(server: Server, store: ObjectStore) -> None:
    items = "".join(
        f"<Contents><Key>{key}</Key><Size>{size}</Size></Contents>" for key, size in (("p/", 0), ("p/a", 3), ("p/b/", 0))
    )
    page = f"<ListBucketResult><IsTruncated>false</IsTruncated>{items}</ListBucketResult>"
    server.answers["GET /evals"] = (200, page.encode(), None)
    assert [item.key for item in store.list("p/")] == ["p/a"]


def test_tls_that_breaks_off_passes_and_an_unknown_authority_does_not(server: Server) -> None:
    endpoint = f"https://127.0.0.1:{server.server_port}"
    store = S3Store(StorageConfig(bucket="evals", endpoint=endpoint))
    with pytest.raises(StorageUnavailable):
        store.get("k")  # the server speaks plain HTTP
    unknown = SSLError(endpoint_url=endpoint, error="[SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed")
    with pytest.raises(StorageRefused, match=r"the Secret's ca\.crt"), store._asking("k"):
        raise unknown
