"""COLLAB with a model that words the user's messages: a real session, a real agent, an endpoint that leaks first."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from realcli.api.termination import Result
from realcli.ledger.events import Event, Guard, SliceReleased, UserMessage, Wording, WordingRequest
from realcli_cli.local.provider import ScriptedProvider
from realcli_cli.local.sweep import Model
from realcli_session.user.wording.brief import PROMPT_SHA256
from tests.integration.session.conftest import STARTER
from tests.integration.session.harness import KEY, plan_sweep

WITHHELD = "warning"  # of the slice that comes last


class Words(ThreadingHTTPServer):
    """Chat Completions: every first draft of a message tells what it should not know, the second is honest."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.asked: list[dict[str, Any]] = []
        self.keys: set[str] = set()


class _Handler(BaseHTTPRequestHandler):
    server: Words

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.keys.add(self.headers.get("Authorization", ""))
        content = body["messages"][-1]["content"]
        said = "hi"
        if "response_format" in body:  # else the plan's test request
            brief = json.loads(content)
            self.server.asked.append(brief)
            text = "Right. " + "\n\n".join(item["text"] for item in brief["items"])
            if self.server.asked.count(brief) == 1:
                text += f" The level will be {WITHHELD} later."
            said = json.dumps({"release": [i["id"] for i in brief["items"]], "text": text, "reply_kind": brief["reply_kind"]})
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": said}}
        answer = {"id": "c1", "object": "chat.completion", "model": body["model"], "choices": [choice],
                  "usage": {"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13}}  # fmt: skip
        data = json.dumps(answer).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None:
        return


@pytest.fixture
def words() -> Iterator[Words]:
    server = Words()
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


def of(events: list[Event], kind: type) -> list[Any]:
    return [data for event in events if isinstance(data := event.typed(), kind)]


def test_a_model_words_and_leaks_nothing(
    tmp_path: Path, provider: ScriptedProvider, toolkit: Path, agent: Path, words: Words
) -> None:
    user = Model("words-1", f"http://127.0.0.1:{words.server_port}", KEY)
    sweep = plan_sweep(tmp_path / "store", STARTER, provider.url, toolkit, agent, user=user)
    ordinal = sweep.ordinal("site-settings", "COLLAB")
    ended = sweep.work(ordinal)
    assert ended.termination is not None, ended.stderr
    assert (ended.termination.result, ended.termination.reason) == (Result.WORK_SEALED, "Completed"), ended.stderr
    events = sweep.events(ordinal)
    (wording,) = of(events, Wording)
    assert (wording.mode, wording.model, wording.prompt_sha256) == ("Model", "words-1", PROMPT_SHA256)
    assert set(wording.parameters) == {"api", "temperature", "seed"}

    messages = of(events, UserMessage)
    by = [message.worded_by for message in messages]
    assert by[0] == "script", "the opener is verbatim"
    assert "model" in by[1:]
    released_last = max(at for at, event in enumerate(events) if isinstance(event.typed(), SliceReleased))
    before = [m.text for e in events[: released_last - 1] if isinstance(m := e.typed(), UserMessage)]
    assert not any(WITHHELD in text for text in before), "nothing is said before its time"
    outcomes = [guard.outcome for guard in of(events, Guard)]
    assert outcomes[:2] == ["retry", "sent"]
    assert all("leak" in guard.hits for guard in of(events, Guard) if guard.outcome == "retry")
    assert {request.status for request in of(events, WordingRequest)} == {200}
    assert len(of(events, WordingRequest)) == len(words.asked)
    for brief in words.asked[:2]:
        assert WITHHELD not in json.dumps(brief), "what it has not got it cannot leak"
    everything = b"".join(sweep.store.get(info.key) for info in sweep.store.list(sweep.attempt(ordinal).root + "/"))
    assert KEY.encode() not in everything
    assert words.keys == {f"Bearer {KEY}"}
