"""Test requests of the plan Job against a real server: what stands in the lock, and what a person is told."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from realcli.api.sweep import SweepSpec
from realcli_session.gateway.port import SystemClock
from realcli_session.plan.probing import Finding, probe_all, targets_of

KEY = "sk-the-real-key"
GOOD: dict[str, Any] = {
    "/v1/messages": {"type": "message", "model": "m-1", "content": [], "usage": {}},
    "/v1/responses": {"object": "response", "status": "completed", "model": "m-1", "output": []},
    "/v1/chat/completions": {"model": "m-1", "choices": [{"message": {"content": "Hi"}, "finish_reason": "stop"}]},
}
Script = Callable[[str, dict[str, Any]], tuple[int, Any]]


class Waits(SystemClock):
    """Waits pass at once and are remembered."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


class Server:
    """Answers by a function; remembers (path, headers, body)."""

    def __init__(self, script: Script) -> None:
        self.seen: list[tuple[str, dict[str, str], dict[str, Any]]] = []
        seen = self.seen

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: object) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                seen.append((self.path, dict(self.headers), body))
                status, answer = script(self.path, body)
                data = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}"
        self.thread = threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def serve() -> Iterator[Callable[[Script], Server]]:
    servers: list[Server] = []

    def start(script: Script) -> Server:
        servers.append(Server(script))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def ask(build: Any, url: str, clock: Waits | None = None, **sweep: Any) -> list[Finding]:
    def endpoint(path: str) -> dict[str, Any]:
        return {"url": url + path, "apiKey": {"secretRef": {"name": "keys", "key": "k"}}}

    endpoints = {"anthropic": endpoint(""), "responses": endpoint("/v1"), "chat": endpoint("/v1")}
    base = {"models": [{"name": "m", "model": "asked", "endpoints": endpoints}]}
    spec = SweepSpec.model_validate(build.spec | base | sweep)
    keys = {f"REALCLI_KEY_0_{api}": KEY for api in ("ANTHROPIC", "RESPONSES", "CHAT")} | {
        "REALCLI_KEY_USER": KEY,
        "REALCLI_KEY_JUDGE": KEY,
    }
    targets = list(targets_of(spec, keys))
    return asyncio.run(probe_all(targets, cluster_domain="cluster.local", allow_loopback=True, clock=clock or Waits()))


ALL = [{"name": "claude-code"}, {"name": "codex"}, {"name": "terminus-2"}, {"name": "other", "program": "codex"}]


def test_one_request_per_model_and_api_that_is_used(build: Any, serve: Callable[[Script], Server]) -> None:
    server = serve(lambda path, body: (200, GOOD[path]))
    assert ask(build, server.url, agents=ALL) == [Finding("m-1", None, passing=False)] * 3
    assert sorted(path for path, _, _ in server.seen) == sorted(GOOD)
    sent = {path: headers for path, headers, _ in server.seen}
    assert sent["/v1/messages"]["x-api-key"] == KEY
    assert sent["/v1/responses"]["authorization"] == sent["/v1/chat/completions"]["authorization"] == f"Bearer {KEY}"
    assert all(body["model"] == "asked" for _, _, body in server.seen)
    ask(build, server.url, agents=[{"name": "codex"}])
    assert [path for path, _, _ in server.seen[3:]] == ["/v1/responses"]


def test_the_simulated_users_model_is_asked_too(build: Any, serve: Callable[[Script], Server]) -> None:
    server = serve(lambda path, body: (200, GOOD[path]))
    endpoint = {"url": server.url + "/v1", "apiKey": {"secretRef": {"name": "u", "key": "k"}}}
    user = {"mode": "Model", "model": {"model": "words", "endpoints": {"chat": endpoint}}}
    ask(build, server.url, simulatedUser=user)
    assert ("/v1/chat/completions", "words") in [(path, body["model"]) for path, _, body in server.seen]
    ask(build, server.url, simulatedUser=user, modes=["EXEC"])
    assert len(server.seen) == 3


def test_the_judge_s_model_is_asked_too_in_every_mode(build: Any, serve: Callable[[Script], Server]) -> None:
    server = serve(lambda path, body: (200, GOOD[path]))
    endpoint = {"url": server.url + "/v1", "apiKey": {"secretRef": {"name": "u", "key": "k"}}}
    judge = {"model": {"model": "judges", "endpoints": {"responses": endpoint}}}
    ask(build, server.url, judge=judge)
    assert ("/v1/responses", "judges") in [(path, body["model"]) for path, _, body in server.seen]
    ask(build, server.url, judge=judge, modes=["EXEC"])  # it says why runs failed, of either mode
    assert [body["model"] for _, _, body in server.seen].count("judges") == 2


def test_a_bound_of_another_name_is_tried(build: Any, serve: Callable[[Script], Server]) -> None:
    def script(path: str, body: dict[str, Any]) -> tuple[int, Any]:
        return (400, {"error": {"message": "unknown"}}) if "max_completion_tokens" in body else (200, GOOD[path])

    server = serve(script)
    assert ask(build, server.url, agents=[{"name": "terminus-2"}])[0].model == "m-1"
    assert ["max_tokens" in body for _, _, body in server.seen] == [False, True]


ERROR = {"error": {"message": f"you sent {KEY}"}}
PROBLEMS = [
    ("a wrong key", 401, ERROR, False, ["spec.models[m].endpoints.anthropic.apiKey", "key k of Secret keys", "(401)"]),
    ("a key without the right", 403, ERROR, False, ["key k of Secret keys", "may use asked"]),
    ("an unknown model", 404, ERROR, False, ["spec.models[m].model", "no model 'asked'", "without /v1"]),
    ("a refused request", 422, ERROR, False, ["refuses a plain request to asked (422)"]),
    ("another API", 200, GOOD["/v1/chat/completions"], False, ["does not speak the anthropic API", "without /v1"]),
    ("no JSON", 200, b"<html>", False, ["does not speak the anthropic API"]),
    ("overload that stays", 529, ERROR, True, ["answers 529 again and again"]),
]


@pytest.mark.parametrize(("name", "status", "answer", "passing", "words"), PROBLEMS, ids=[row[0] for row in PROBLEMS])
def test_what_a_person_is_told(
    build: Any, serve: Callable[[Script], Server], name: str, status: int, answer: Any, passing: bool, words: list[str]
) -> None:
    server, clock = serve(lambda path, body: (status, answer)), Waits()
    (found,) = ask(build, server.url, clock)
    assert found.problem is not None
    assert (found.model, found.passing, KEY in found.problem) == (None, passing, False)
    assert [word for word in words if word not in found.problem] == []
    assert len(server.seen) == (4 if passing else 1)
    assert clock.slept == ([2.0, 6.0, 18.0] if passing else [])


def test_nobody_there(build: Any) -> None:
    (found,) = ask(build, "http://127.0.0.1:9")
    assert found.problem is not None
    assert found.passing
    assert "spec.models[m].endpoints.anthropic.url: http://127.0.0.1:9 does not answer" in found.problem


def test_overload_that_passes(build: Any, serve: Callable[[Script], Server]) -> None:
    answers = iter([(529, ERROR), (503, ERROR), (200, GOOD["/v1/messages"])])
    server = serve(lambda path, body: next(answers))
    assert ask(build, server.url)[0] == Finding("m-1", None, passing=False)
