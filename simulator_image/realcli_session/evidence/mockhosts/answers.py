"""What a mock host answers: pure, from the oracle contract."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from realcli.benchmark.hosts import host_file
from realcli.benchmark.oracle_models import MockHost, Route

UPLOADS = frozenset(("POST", "PUT", "PATCH"))


@dataclass(frozen=True, slots=True)
class Answer:
    """A response. HEAD has the headers of GET and no body."""

    status: int
    body: bytes = b""
    type: str = "text/plain; charset=utf-8"
    headers: Mapping[str, str] = field(default_factory=dict)


def answer(host: str, mock: MockHost, method: str, path: str, files: Mapping[str, bytes]) -> Answer:
    """The answer to a request. `path` is the URL's, decoded, without its query; `files` the rendered bodies by bundle path."""
    for route in mock.routes:
        if _matches(route, method, path):
            body = b"" if route.file is None else files[host_file(host, route.file)]
            return Answer(route.status, body, route.type, dict(route.headers))
    if mock.accept and method in UPLOADS:
        return Answer(200, b"ok\n")
    return Answer(404, b"not found\n")


def _matches(route: Route, method: str, path: str) -> bool:
    return (route.method == method or (method == "HEAD" and route.method == "GET")) and fnmatchcase(path, route.path)
