"""A ledger as ATIF: what becomes of every kind of event, what is never written, and that any ledger converts."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from realcli.api.trial import Tokens
from realcli.ledger.events import (
    ZERO_HASH,
    AgentExit,
    AgentMessage,
    AgentQuestion,
    AgentStart,
    BlobRef,
    Data,
    EpisodeEnd,
    Interrupt,
    LedgerOpen,
    Limit,
    ModelReply,
    ModelRequest,
    PermissionAnswer,
    PermissionRequest,
    RecordGap,
    ToolCall,
    ToolResult,
    UserMessage,
    Yield,
)
from realcli.trajectory import Trajectory
from realcli.trajectory.atif import Sealed, atif_of
from realcli.trajectory.atif_document import AtifDocument, AtifStep
from realcli.trajectory.patterns import NoBlobs
from tests.support.ledgers import Ledger

GOLDEN = Path(__file__).with_name("golden") / "atif.json"
OPEN = LedgerOpen(
    sweep_uid="0f6a2b1c-1111", sweep="nightly", ordinal=7, attempt=2, configuration="claude-code.sonnet", task="greeting",
    mode="COLLAB", repeat=1, lock_digest="sha256:" + ZERO_HASH, session_version="0.2.0",
)  # fmt: skip
USED = Tokens(input=3, cache_read=40, cache_write=7, output=5)


class Store:
    """Blobs by digest. One that must not be read is not in it."""

    def __init__(self) -> None:
        self.held: dict[str, bytes] = {}
        self.asked: list[str] = []

    def put(self, content: bytes) -> BlobRef:
        ref = BlobRef(blob=f"{len(self.held) + 1:064x}", size=len(content))
        self.held[ref.blob] = content
        return ref

    def read(self, ref: BlobRef) -> bytes | None:
        self.asked.append(ref.blob)
        return self.held.get(ref.blob)


class Story(Ledger):
    """Turns with their replies."""

    def does(
        self, *happened: Data, usage: Tokens | None = USED, cost: str | None = "0.01", again: bool = False, **more: Any
    ) -> Story:
        self.asks(again, **more)
        self.emit(*happened)
        reply = ModelReply(
            request_id=self.last_request, status=200, model="m-1", stop_reason="end", usage=usage,
            cost_usd=cost, total_ms=9,
        )  # fmt: skip
        self.emit(reply, actor="gateway")
        return self

    def asks(self, again: bool, **more: Any) -> Story:
        self.turn += not again
        self.last_request = f"r{len(self.events) + 1}"
        request = ModelRequest(
            **{"request_id": self.last_request, "dialect": "anthropic", "path": "/v1/messages", "body_sha256": ZERO_HASH,
               "body_bytes": 1, "model_asked": "m", "counted": not again, **more}
        )  # fmt: skip
        self.emit(request, actor="gateway")
        return self

    def document(self, blobs: Any = None, sealed: Sealed | None = None) -> AtifDocument:
        return atif_of(self.trajectory, blobs or NoBlobs(), sealed)

    def steps(self, blobs: Any = None) -> tuple[AtifStep, ...]:
        return self.document(blobs).steps


def begun() -> Story:
    story = Story()
    story.emit(OPEN, AgentStart(program="claude-code", version="2.1.140", argv=["claude"])).starts()
    return story


def call(name: str = "c1", tool: str = "Bash", **arguments: Any) -> ToolCall:
    return ToolCall(call_id=name, name=tool, input=arguments)


def whole() -> tuple[Story, Store]:
    """A run with something of everything."""
    store = Store()
    tools = [
        {"name": "Bash", "description": "runs", "input_schema": {"type": "object", "properties": {}}},
        {"type": "web_search"},
    ]
    story = begun()
    story.does(AgentMessage(text="I look."), call(command="ls"), tools=store.put(json.dumps(tools).encode()))
    story.emit(ToolResult(call_id="c1", text="a.txt, key [redacted]"))
    story.does(
        AgentQuestion(text="Which one?", request_id="q1", parts=["Which one?"]),
        ToolCall(call_id="c2", name="Write", input=store.put(b'{"path": "/app/a", "blob": "x", "size": 1}')),
        usage=None,
    )
    story.emit(
        ToolResult(call_id="c2", text=store.put("long\u00e9".encode() + b"\xff"), is_error=True),
        PermissionRequest(request_id="p1", tool="Bash", input={}),
        PermissionAnswer(request_id="p1", decision="deny", by="script", text="Not that."),
    )
    story.says("slice:two")
    story.emit(Interrupt(taken=True)).message(["probe:p"], how="mid_turn", text="wait")
    story.does(AgentMessage(text="I see.", field="analysis"), AgentMessage(text="Done.", field="message_to_user"), cost=None)
    story.yields()
    story.emit(
        Limit(limit="turns", allowed="3", measured="4"),
        UserMessage(id="m9", text="Thanks.", source_ids=["closer"], delivered=False),
    )
    story.emit(EpisodeEnd(reason="TurnLimit"))
    return story, store


def test_the_golden_file() -> None:
    """`REALCLI_UPDATE_GOLDEN=1 pytest tests/unit/trajectory` writes it anew."""
    story, store = whole()
    sealed = Sealed(work_seal="sha256:" + "ab" * 32, reason="TurnLimit", valid=True, reward="0", model_id="m-1", effort="high")
    written = story.document(store, sealed).file().decode()
    if os.environ.get("REALCLI_UPDATE_GOLDEN") == "1":
        GOLDEN.write_text(written)
    assert written == GOLDEN.read_text()


def test_reasoning_in_the_bodies_of_replies_is_not_even_read() -> None:
    store = Store()
    body = store.put(b'{"content": [{"type": "thinking", "thinking": "SECRET"}, {"type": "text", "text": "Hi."}]}')
    said = store.put(b'{"role": "user", "content": [{"type": "image", "source": {"data": "AAAA"}}]}')
    story = begun()
    story.asks(again=False, messages=[said], system=[said])
    story.emit(AgentMessage(text="Hi."), ModelReply(request_id=story.last_request, status=200, body=body, usage=USED))
    story.ends()
    written = story.document(store).file().decode()
    assert store.asked == []
    assert "SECRET" not in written
    assert "reasoning" not in written.replace("Reasoning", "").replace("reasoning_effort", "")


@pytest.mark.parametrize(
    "text", ["[image]", "before\n[image]\nafter", "key [redacted] key", "", "\u0000\u001b[31m\u202e", "[red]"]
)
def test_texts_are_the_ledgers(text: str) -> None:
    """Placeholders of what is no text, and redactions, among them."""
    story = begun()
    story.does(call(command=text))
    story.emit(ToolResult(call_id="c1", text=text)).says("slice:a")
    story.message(["probe:p"], text=text)
    steps = story.does(AgentMessage(text=text)).steps()
    assert steps[1].tool_calls is not None
    assert steps[1].tool_calls[0].arguments == {"command": text}
    assert [result.content for result in (steps[1].observation.results if steps[1].observation else ())] == [text]
    assert [step.message for step in steps[3:5]] == [text, text]


def test_a_step_is_a_turn_in_the_order_of_the_ledger() -> None:
    story = begun()
    story.does(AgentMessage(text="one"), call("c1"), call("c2"))
    story.emit(ToolResult(call_id="c2", text="two"), ToolResult(call_id="c1", text="one"))
    story.message(["probe:p"], how="mid_turn")
    story.does(AgentMessage(text="two"))
    story.says("slice:a")
    story.does(AgentMessage(text="three")).ends()
    steps = story.steps()
    assert [step.source for step in steps] == ["user", "agent", "user", "agent", "user", "agent", "system"]
    assert [step.extra and step.extra.get("turn") for step in steps] == [None, 1, None, 2, None, 3, None]
    assert steps[1].observation is not None
    assert [(one.source_call_id, one.content) for one in steps[1].observation.results] == [("c2", "two"), ("c1", "one")]
    assert steps[2].extra is not None
    assert steps[2].extra["how"] == "mid_turn"
    assert [step.step_id for step in steps] == list(range(1, 8))


CUTS: list[tuple[str, Callable[[Story], object], tuple[int | None, int | None, float | None]]] = [
    ("told", lambda s: s.does(), (1, 50, 0.01)),
    ("usage unknown", lambda s: s.does(usage=None), (1, None, 0.01)),
    ("cost unknown", lambda s: s.does(cost=None), (1, 50, None)),
    ("asked again, first told", lambda s: s.does().does(again=True), (2, 100, 0.02)),
    ("asked again, first cut", lambda s: s.does(usage=None, cost=None).does(again=True), (2, None, None)),
    ("no reply yet", lambda s: s.asks(again=False), (1, None, None)),
    ("one reply of two", lambda s: s.does().asks(again=True), (2, None, None)),
    ("tokens were counted", lambda s: s.does().does(again=True, path="/v1/messages/count_tokens"), (1, 50, 0.01)),
]


@pytest.mark.parametrize(("play", "wanted"), [row[1:] for row in CUTS], ids=[row[0] for row in CUTS])
def test_what_nobody_told_is_no_number(play: Callable[[Story], object], wanted: tuple[Any, ...]) -> None:
    story = begun()
    play(story)
    document = story.document()
    step = next(step for step in document.steps if step.source == "agent")
    metrics = step.metrics
    assert (step.llm_call_count, metrics and metrics.prompt_tokens, metrics and metrics.cost_usd) == wanted
    totals = document.final_metrics
    assert (totals.total_prompt_tokens, totals.total_cost_usd) == wanted[1:]
    assert (totals.extra == {"turnsWithoutUsage": 1}) == (wanted[1] is None)


def test_one_unknown_turn_makes_no_sum() -> None:
    totals = begun().does().does(usage=None, cost=None).document().final_metrics
    assert (totals.total_prompt_tokens, totals.total_cached_tokens, totals.total_completion_tokens) == (None, None, None)
    assert (totals.total_cost_usd, totals.extra) == (None, {"turnsWithoutUsage": 1})


def test_refused_requests_are_no_turns() -> None:
    story = begun()
    story.request(refused="turn_limit")
    story.ends("TurnLimit")
    assert [step.source for step in story.steps()] == ["user", "system"]


@pytest.mark.parametrize("value", [[1, None], "text", None, 7, True])
def test_arguments_that_are_no_object_stand_in_one(value: Any) -> None:
    step = begun().does(ToolCall(call_id="c", name="t", input=value)).steps()[1]
    assert step.tool_calls is not None
    assert (step.tool_calls[0].arguments, step.tool_calls[0].extra) == ({"input": value}, {"notAnObject": True})


def test_a_null_argument_stays() -> None:
    document = begun().does(call(path=None, more=[{"deep": None}])).document()
    written = json.loads(document.file())
    assert written["steps"][1]["tool_calls"][0]["arguments"] == {"path": None, "more": [{"deep": None}]}


def test_calls_of_one_name_are_told_apart_and_answered_in_order() -> None:
    story = begun()
    story.does(call("c", number=1), call("c", number=2))
    story.emit(ToolResult(call_id="c", text="first"))
    story.does(call("c", number=3))
    story.emit(ToolResult(call_id="c", text="second"), ToolResult(call_id="none", text="third"))
    story.ends()
    steps = story.steps()
    assert steps[1].tool_calls is not None
    assert [(one.tool_call_id, one.extra) for one in steps[1].tool_calls] == [("c", None), ("c'", {"callId": "c"})]
    results = [
        (step.step_id, one.source_call_id, one.content) for step in steps if step.observation for one in step.observation.results
    ]
    assert results == [(2, "c'", "first"), (3, "c", "second"), (3, None, "third")]


def test_a_blob_that_cannot_be_had_says_so() -> None:
    ref = BlobRef(blob="c" * 64, size=70_000)
    story = begun()
    story.does(AgentMessage(text=ref), ToolCall(call_id="c", name="t", input=ref), tools=ref)
    document = story.document()
    assert document.steps[1].message == f"[70000 bytes that are not here: blob {'c' * 64}]"
    assert f"1 contents could not be had: {'c' * 64}." in document.notes
    assert document.agent.tool_definitions is None


ABOUT = {"name": "a", "description": "d"}
TOOLS: list[dict[str, Any]] = [
    {**ABOUT, "input_schema": {"type": "object"}},
    {"type": "function", **ABOUT, "parameters": {"type": "object"}, "strict": False},
    {"type": "function", "function": {**ABOUT, "parameters": {"type": "object"}}},
]


@pytest.mark.parametrize("offered", TOOLS, ids=["anthropic", "responses", "chat"])
def test_tools_of_every_api_in_one_form(offered: dict[str, Any]) -> None:
    store = Store()
    story = begun()
    for more in ([offered], [offered, {"type": "custom", "name": "patch"}, 7, {}]):
        story.does(tools=store.put(json.dumps(more).encode()))
    function = {**ABOUT, "parameters": {"type": "object"}}
    wanted = ({"type": "function", "function": function}, {"type": "custom", "name": "patch"})
    assert story.document(store).agent.tool_definitions == wanted


def test_events_around_are_told() -> None:
    story = begun()
    story.emit(
        Interrupt(taken=False), Limit(limit="wall", allowed="10", measured="11"), AgentExit(code=0),
        AgentExit(code=1, stderr_tail="bad"), RecordGap(record="ledger", reason="r"),
        EpisodeEnd(reason="AgentCrashed", detail="exit 1"),
    )  # fmt: skip
    story.events.append(story.events[-1].model_copy(update={"seq": story.last + 1, "kind": "of_tomorrow", "data": {}}))
    document = story.document()
    assert [step.message for step in document.steps[1:]] == [
        "The user interrupts; the program does not stop.",
        "Limit wall: 11 of 10.",
        "The agent program ended (code 1, signal None).\n\nbad",
        "End of the work: AgentCrashed.\n\nexit 1",
    ]
    assert "kinds that this version does not know are left out: of_tomorrow." in document.notes
    assert "The ledger itself has gaps" in document.notes


def test_a_ledger_that_was_cut_says_where() -> None:
    story = begun()
    assert story.steps()[-1].message == "The ledger ends here, without an end of the work."
    only = Story()
    only.emit(OPEN)
    assert [(step.source, step.message) for step in only.steps()] == [
        ("system", "The ledger ends here, without an end of the work.")
    ]
    with pytest.raises(ValueError, match="without any event"):
        atif_of(Trajectory(()), NoBlobs())


def test_the_model_refuses_what_the_format_refuses() -> None:
    good = {"step_id": 1, "source": "agent", "message": ""}
    for bad in (
        {"source": "user", "model_name": "m"},
        {"source": "user", "tool_calls": [{"tool_call_id": "c", "function_name": "f", "arguments": {}}]},
        {"observation": {"results": [{"source_call_id": "c", "content": ""}]}},
        {"reasoning_content": "hm"},
        {"llm_call_count": 0},
    ):
        with pytest.raises(ValidationError):
            AtifStep.model_validate({**good, **bad})


def made(kind: type[Data], **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Data]:
    return st.fixed_dictionaries(fields).map(lambda found: kind(**found))


IDS = st.sampled_from(["a", "b", "c"])
HELD = BlobRef(blob=f"{1:064x}", size=3)
TEXTS = st.text(max_size=8) | st.sampled_from([BlobRef(blob="d" * 64, size=3), HELD])
PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
VALUES = st.recursive(
    PLAIN, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3), max_leaves=6
)
HAPPENED = st.one_of(
    made(UserMessage, id=IDS, text=TEXTS, source_ids=st.lists(IDS, max_size=2), delivered=st.booleans()),
    made(
        ModelRequest, request_id=IDS, path=st.sampled_from(["/v1/x", "/v1/x/count_tokens"]), counted=st.booleans(),
        side=st.booleans(), refused=st.none() | st.just("path"), tools=st.none() | st.just(HELD),
        dialect=st.just("chat"), body_sha256=st.just(ZERO_HASH), body_bytes=st.just(1), model_asked=st.just(""),
    ),
    made(ModelReply, request_id=IDS, status=st.just(200), usage=st.none() | st.just(USED), cost_usd=st.none() | st.just("0.1")),
    made(AgentMessage, text=TEXTS, field=st.sampled_from(["", "plan"])),
    made(AgentQuestion, text=TEXTS),
    made(ToolCall, call_id=IDS, name=IDS, input=VALUES),
    made(ToolResult, call_id=IDS, text=TEXTS, is_error=st.booleans()),
    made(Yield, how=st.sampled_from(["yielded", "interrupted", "failed"])),
    made(PermissionAnswer, request_id=IDS, decision=st.just("deny"), by=st.just("policy")),
    made(EpisodeEnd, reason=IDS),
    made(AgentExit, code=st.none() | st.integers(0, 2), stderr_tail=TEXTS),
)  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(HAPPENED, st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=25),
    st.sampled_from([b"[1]", b"\xff", b"{}"]),
)
def test_any_ledger_converts_and_loses_nothing_that_was_said(happened: list[tuple[Data, int, int]], blob: bytes) -> None:
    story, store = Ledger(), Store()
    store.put(blob)
    for data, story.turn, story.exchange in happened:
        story.emit(data)
    items = story.trajectory.items
    document = atif_of(story.trajectory, store)
    assert AtifDocument.model_validate_json(document.file()) == document
    told = [item.data for item in items]
    count = {kind: sum(isinstance(data, kind) for data in told) for kind in (UserMessage, ToolCall, ToolResult)}
    assert [step.extra and step.extra["id"] for step in document.steps if step.source == "user"] == [
        data.id for data in told if isinstance(data, UserMessage) and data.delivered
    ]
    assert sum(len(step.tool_calls or ()) for step in document.steps) == count[ToolCall]
    assert sum(len(step.observation.results) for step in document.steps if step.observation) == count[ToolResult]
    begun_at = [step.extra["seq"] for step in document.steps if step.extra]
    assert begun_at == sorted(begun_at, key=lambda seq: (isinstance(seq, int), seq))
