"""An endpoint whose answer never ends, byte by byte or at any length, is as good as away."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import pytest

from realcli.judging.model import JudgeRequest, Message, Parameters
from realcli.judging.port import Backend, BackendUnavailable
from realcli_judge.backends import anthropic_sdk, openai_sdk, timed
from realcli_judge.backends.calling import ATTEMPTS


class Endless(BaseHTTPRequestHandler):
    """Answers with spaces, as JSON may begin, until nobody listens."""

    asked: ClassVar[list[str]] = []

    def do_POST(self) -> None:
        self.asked.append(self.path)
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Connection", "close")
        self.end_headers()
        try:
            while True:
                self.wfile.write(b" ")
        except OSError:
            self.close_connection = True

    def log_message(self, *_: Any) -> None:
        """Nothing."""


@pytest.fixture
def url() -> Iterator[str]:
    Endless.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Endless)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("api", ["anthropic", "chat", "responses"])
@pytest.mark.parametrize(("limit", "told"), [({"seconds": 5.0}, "timed out"), ({"most": 1_000}, "Connection error")])
def test_an_answer_without_end_is_given_up(
    url: str, monkeypatch: pytest.MonkeyPatch, api: Any, limit: dict[str, Any], told: str
) -> None:
    ticks = itertools.count()  # a second passes with every look at the clock
    more = {"now": lambda: float(next(ticks))} if "seconds" in limit else {}
    module = anthropic_sdk if api == "anthropic" else openai_sdk
    monkeypatch.setattr(module, "hooks", lambda library: timed.hooks(library, **limit, **more))
    make: Any = anthropic_sdk.AnthropicBackend if api == "anthropic" else openai_sdk.OpenAIBackend
    backend: Backend = make(url, "key", sleep=lambda _: None)
    request = JudgeRequest(
        purpose="checks", about=["a/b"], vote=1, model="m", api=api, parameters=Parameters(max_output_tokens=10), system="s",
        tools=[], messages=[Message(role="user", text="t")],
    )  # fmt: skip
    with pytest.raises(BackendUnavailable, match=told):
        backend.complete(request)
    assert len(Endless.asked) == ATTEMPTS
    backend.close()  # type: ignore[attr-defined]
