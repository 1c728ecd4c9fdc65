"""The simulated user in a real session with a real agent: a model that leaks before it words, and interrupts."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from realcli.api.termination import Result
from realcli.ledger.events import (
    Event,
    Guard,
    Interrupt,
    ProbeDelivered,
    SliceReleased,
    Snapshot,
    Trigger,
    UserMessage,
    Wording,
    WordingRequest,
    Yield,
)
from realcli_cli.local.programs import agent_folder
from realcli_cli.local.provider import ScriptedProvider
from realcli_cli.local.sweep import Model
from realcli_session.user.wording.brief import PROMPT_SHA256
from tests.integration.session.conftest import STARTER
from tests.integration.session.harness import KEY, plan_sweep
from tests.support.audited import audit_events
from tests.support.terminus import words_folder

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
    verdicts, found = audit_events(events, STARTER / "tasks/site-settings")
    assert set(verdicts.values()) == {"unscored"}
    assert all("of m4 is kept" in one for one in found[:6]), "it said more about the level with the level"


COMMANDS = ["echo one > /app/out", *(f"echo {n} >> /app/out; sleep 0.2" for n in range(2, 12))]


@pytest.mark.parametrize(
    ("program", "interrupt"),
    [
        ("claude-code", False),
        *(
            pytest.param(program, interrupt, marks=pytest.mark.slow)
            for program, interrupt in [
                ("claude-code", True),
                ("codex", False),
                ("codex", True),
                ("terminus-2", False),
                ("terminus-2", True),
            ]
        ),
    ],
)
def test_an_interrupt_reaches_a_real_agent_at_work(
    tmp_path: Path, mini: Callable[..., Path], provider: ScriptedProvider, toolkit: Path, program: str, interrupt: bool
) -> None:
    """The trigger (six calls, one write) fires inside the first response; the message goes into it, or stops it."""
    suite = mini("echo 1 > /logs/verifier/reward.txt", *COMMANDS)
    config = suite / "tasks/mini/task.toml"
    config.write_text(config.read_text().replace('watch = ["/app/out"]', 'watch = ["/app/**"]'))  # what the probe looks at
    path = suite / "tasks/mini/interaction/script.json"
    script = json.loads(path.read_text())
    script["opener"] = "Hello.\n" + "".join(f"\n```sh\n{command}\n```\n" for command in COMMANDS)
    script["probes"] = [
        {"id": "hold", "scenario": "s.interrupt.mid-task-stop", "text": "Hold everything, please. Where are things?",
         "parts": ["Please go on."], "bindings": {"STATE": "/app/**"}, "interrupt": interrupt}
    ]  # fmt: skip
    script["passive"] = [
        {"id": "eco", "scenario": "u.economy.redundant-operations", "bindings": {"READ_MAX": 3, "REPEAT_MAX": 3}}
    ]
    path.write_text(json.dumps(script))
    words = {"REALCLI_TERMINUS_TEMPLATES": str(words_folder())} if program == "terminus-2" else {}
    folder = agent_folder(program, None)
    sweep = plan_sweep(tmp_path / "store", suite, provider.url, toolkit, folder, program=program, environment=words)
    ordinal = sweep.ordinal("mini", "COLLAB")
    ended = sweep.work(ordinal)
    assert ended.termination is not None, ended.stderr
    assert (ended.termination.result, ended.termination.reason) == (Result.WORK_SEALED, "Completed"), ended.stderr
    events = sweep.events(ordinal)
    messages = of(events, UserMessage)
    assert [m.source_ids for m in messages] == [["opener"], ["probe:hold"], ["probe:hold"], ["slice:run"], ["closer"]]
    assert [m.how for m in messages[:3]] == ["send", "send" if interrupt else "mid_turn", "send"]
    assert [i.taken for i in of(events, Interrupt)] == ([True] if interrupt else [])
    assert len(of(events, ProbeDelivered)) == 1
    delivered = next(event for event in events if event.kind == "probe_delivered")
    calls = [event for event in events if event.kind == "tool_call" and event.seq < delivered.seq]
    assert 6 <= len(calls) < len(COMMANDS), "while it was at work"
    assert delivered.exchange == (2 if interrupt else 1)
    yields = [event.typed() for event in events if event.kind == "yield"]
    assert [y.how for y in yields if isinstance(y, Yield)][:1] == ["interrupted" if interrupt else "yielded"]
    (trigger,) = of(events, Trigger)
    assert events[trigger.of - 1].kind == "tool_call"
    assert [s.name for s in of(events, Snapshot) if s.probe == "hold"] == ["anchor", "response_end"]
    verdicts, found = audit_events(events, suite / "tasks/mini")
    assert (found, set(verdicts.values())) == ([], {"1"})
