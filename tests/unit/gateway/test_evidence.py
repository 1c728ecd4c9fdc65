"""What the ledger says of requests and replies: the ground truth of text, tool calls, tool results, files shown and usage."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli_session.gateway import record
from realcli_session.gateway.dialects.anthropic_reply import AnthropicReply
from realcli_session.gateway.dialects.base import Called, Part, Said
from realcli_session.gateway.sse import SseEvent, SseParser, SseTooLong
from tests.unit.gateway.rig import MakeRig, block, end, message, says, sse, start, streams, text_block

THINKING = block(0, {"type": "thinking", "thinking": ""}, {"type": "thinking_delta", "thinking": "secret plan"})
TOOL = block(
    2,
    {"type": "tool_use", "id": "toolu_1", "name": "Bash", "input": {}},
    {"type": "input_json_delta", "partial_json": '{"comm'},
    {"type": "input_json_delta", "partial_json": 'and": "ls"}'},
)
WORK = sse(start(), *THINKING, *text_block(1, "I will ", "look."), *TOOL, *end("tool_use"))


def result(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": call_id, "content": content} | more


async def test_a_turn_in_events(rig: MakeRig) -> None:
    made = await rig(streams(WORK), streams(message("done")), markers={"/app/notes.md": ["keep the port", "never shown"]})
    await made.ask(made.body("start"))
    first = {"role": "user", "content": "start"}
    shown = [{"type": "text", "text": "     7\tkeep the port"}, {"type": "image", "source": {"type": "base64"}}]
    results = {"role": "user", "content": [result("toolu_1", shown), result("toolu_2", "no", is_error=True)]}
    history = [first, {"role": "assistant", "content": []}, results]
    await made.ask(made.body(messages=history))
    await made.ask(made.body(messages=[*history, {"role": "user", "content": "more"}]))  # results once, not again
    told = [(event.kind, event.actor, event.turn) for event in made.events]
    assert told == [
        ("model_request", "gateway", 1),
        ("agent_message", "agent", 1),
        ("tool_call", "agent", 1),
        ("model_reply", "gateway", 1),
        ("model_request", "gateway", 2),
        ("tool_result", "agent", 2),
        ("file_read", "gateway", 2),
        ("tool_result", "agent", 2),
        ("agent_message", "agent", 2),
        ("model_reply", "gateway", 2),
        ("model_request", "gateway", 3),
        ("agent_message", "agent", 3),
        ("model_reply", "gateway", 3),
    ]
    assert made.of("agent_message")[0]["text"] == "I will look."
    assert made.of("tool_call") == [{"callId": "toolu_1", "name": "Bash", "input": {"command": "ls"}}]
    assert made.of("tool_result")[0]["text"] == "     7\tkeep the port\n[image]"
    assert [entry["isError"] for entry in made.of("tool_result")] == [False, True]
    assert made.of("file_read") == [{"path": "/app/notes.md", "marker": "keep the port", "callId": "toolu_1"}]
    assert b"secret plan" not in b"".join(path.read_bytes() for path in (made.ledger.spool / "ledger").iterdir())


async def test_usage_is_normalised_and_summed(rig: MakeRig) -> None:
    made = await rig()
    await made.ask(made.body("a"))
    await made.ask(made.body("b"))
    assert made.of("model_reply")[0]["usage"] == {"input": 100, "cacheRead": 20, "cacheWrite": 10, "output": 7}
    assert made.gateway.tokens.model_dump() == {"input": 200, "cache_read": 40, "cache_write": 20, "output": 14}


async def test_messages_are_stored_once_by_digest(rig: MakeRig) -> None:
    made = await rig()
    history: list[dict[str, Any]] = []
    for n in range(6):
        history.append({"role": "user", "content": f"{n} " + "x" * 1000})
        await made.ask(made.body(messages=history, system=[{"type": "text", "text": "be good"}]))
    requests = made.of("model_request")
    assert [len(entry["messages"]) for entry in requests] == [1, 2, 3, 4, 5, 6]
    assert requests[5]["messages"][:5] == requests[4]["messages"]
    blob = made.ledger.spool / "blobs" / requests[5]["messages"][2]["blob"]
    assert json.loads(blob.read_bytes()) == history[2]
    assert len({ref["blob"] for entry in requests for ref in entry["messages"]}) == 6
    system = made.ledger.spool / "blobs" / requests[0]["system"][0]["blob"]
    assert json.loads(system.read_bytes()) == {"type": "text", "text": "be good"}


@pytest.mark.parametrize(
    ("name", "more", "headers"),
    [("no tools: a title, a summary", {"tools": []}, {}), ("a sub-agent", {}, {"x-claude-code-agent-id": "a1"})],
)
async def test_text_the_user_never_sees_is_no_message(rig: MakeRig, name: str, more: Any, headers: dict[str, str]) -> None:
    made = await rig(streams(WORK))
    async with made.post(made.body(**more), **headers) as response:
        await response.read()
    assert made.of("agent_message") == []
    assert len(made.of("tool_call")) == 1
    assert made.of("model_request")[0]["side"] is (more != {})


async def test_reply_that_is_not_streamed(rig: MakeRig) -> None:
    content = [{"type": "text", "text": "hi"}, {"type": "tool_use", "id": "t", "name": "Bash", "input": {"a": 1}}]
    whole = {
        "id": "m",
        "model": "other-model",
        "content": content,
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 3, "output_tokens": 5},
    }
    made = await rig(says(200, whole))
    await made.ask(made.body(stream=False))
    assert [entry["text"] for entry in made.of("agent_message")] == ["hi"]
    assert made.of("tool_call")[0]["input"] == {"a": 1}
    (reply,) = made.of("model_reply")
    assert (reply["model"], reply["stopReason"]) == ("other-model", "tool_use")
    assert reply["usage"] == {"input": 3, "cacheRead": 0, "cacheWrite": 0, "output": 5}


async def test_half_characters_become_valid_json(rig: MakeRig) -> None:
    """JSON can escape half of a surrogate pair; the ledger's UTF-8 cannot hold it."""
    broken = sse(start(), *text_block(0, "cut \ud83d"), *end())
    made = await rig(streams(broken))
    body = made.body(messages=[{"role": "user", "content": [result("t", "bad \udc00")]}])
    assert await made.ask(body) == (200, broken)
    assert made.of("agent_message")[0]["text"] == "cut ?"
    assert made.of("tool_result")[0]["text"] == "bad ?"
    assert not made.gateway.broken.is_set()


async def test_requests_that_are_no_turns_fill_no_storage(rig: MakeRig, monkeypatch: pytest.MonkeyPatch) -> None:
    """An agent may send any number of them, each as long as a body may be."""
    monkeypatch.setattr(record, "MAX_UNCOUNTED_BYTES", 1500)
    made = await rig(says(200, {"input_tokens": 1}))
    for letter in "abc":
        assert (await made.ask(made.body(letter * 700), "/v1/messages/count_tokens"))[0] == 200
    assert [len(entry["messages"]) for entry in made.of("model_request")] == [1, 0, 0]
    assert all(entry["bodyBytes"] > 700 and not entry["side"] for entry in made.of("model_request"))
    assert b"c" * 700 not in made.written()
    await made.ask(made.body("d" * 700))
    assert len(made.of("model_request")[3]["messages"]) == 1, "a turn is always recorded whole"


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        pytest.param("1e999", "inf", id="a number out of range"),
        pytest.param("NaN", "nan", id="no number"),
        pytest.param("[" * 900 + "]" * 900, None, id="lists in lists"),
        pytest.param('{"a": ' * 300 + "1" + "}" * 300, None, id="objects in objects"),
    ],
)
async def test_a_tool_input_that_is_no_plain_json_is_kept_and_breaks_nothing(
    rig: MakeRig, written: str, kept: str | None
) -> None:
    """The model writes it, so the agent can have it written."""
    opened = {"type": "tool_use", "id": "t", "name": "Bash", "input": {}}
    delta = {"type": "input_json_delta", "partial_json": '{"x": ' + written + "}"}
    made = await rig(streams(sse(start(), *block(0, opened, delta), *end("tool_use"))))
    assert (await made.ask(made.body()))[0] == 200
    (call,) = await made.until("tool_call")
    assert call["input"]["x"] == kept if kept else "nested" in json.dumps(call["input"])
    (reply,) = await made.until("model_reply")
    assert (reply["status"], reply["stopReason"]) == (200, "tool_use")
    assert not made.gateway.broken.is_set(), made.gateway.breakage


# ------------------------------------------------------------------------------------------------ reading along, any chunking


def parse(chunks: list[bytes]) -> list[SseEvent]:
    parser = SseParser()
    return [event for chunk in chunks for event in parser.feed(chunk)]


def by_the_book(raw: bytes) -> list[SseEvent]:
    """The same from the whole stream at once, line by line as the standard words it."""
    text = raw.decode("utf-8", "replace").removeprefix("\ufeff")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]
    found, kind, data = [], "", []
    for line in lines:
        if line == "":
            if data:
                found.append(SseEvent(kind or "message", "\n".join(data)))
            kind, data = "", []
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "event":
            kind = value
        elif name == "data":
            data.append(value)
    return found


LINES = st.sampled_from(
    [
        b"data: a",
        b"data:b",
        b"data",
        b"data:  two",
        b"event: x",
        b"event",
        b": c",
        b"id: 1",
        b"",
        b"",
        "data: é\U0001f600".encode(),
    ]
)
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r"])


@given(st.lists(st.tuples(LINES, ENDS), max_size=30), st.lists(st.integers(0, 400), max_size=20), st.booleans())
def test_events_do_not_depend_on_chunks(lines: list[tuple[bytes, bytes]], cuts: list[int], bom: bool) -> None:
    raw = (b"\xef\xbb\xbf" if bom else b"") + b"".join(line + ending for line, ending in lines)
    at = [0, *sorted(cut for cut in cuts if cut < len(raw)), len(raw)]
    assert parse([raw[a:b] for a, b in itertools.pairwise(at)]) == by_the_book(raw)


def test_reply_in_single_bytes() -> None:
    reply = AnthropicReply()
    parts: list[Part] = [found for event in parse([bytes([byte]) for byte in WORK]) for found in reply.feed(event)]
    assert [type(part) for part in parts] == [Said, Called]
    assert parts[1] == Called("toolu_1", "Bash", {"command": "ls"})
    assert [entry["type"] for entry in reply.message()["content"]] == ["thinking", "text", "tool_use"]
    assert (reply.complete, reply.stop_reason) == (True, "tool_use")


def test_tool_input_cut_in_the_middle_is_kept_as_text() -> None:
    reply = AnthropicReply()
    half = block(
        0, {"type": "tool_use", "id": "t", "name": "B", "input": {}}, {"type": "input_json_delta", "partial_json": '{"a'}
    )
    found = [entry for event in parse([sse(*half)]) for entry in reply.feed(event)]
    assert found == [Called("t", "B", '{"a')]


def test_unfinished_block_stays_visible_in_the_stored_reply() -> None:
    reply = AnthropicReply()
    for event in parse([sse(start(), *text_block(0, "one"), *text_block(1, "two")[:-1])]):
        reply.feed(event)
    content = reply.message()["content"]
    assert content == [{"type": "text", "text": "one"}, {"type": "text", "text": "two", "unfinished": True}]
    assert reply.tokens() is None


def test_endless_event_is_bounded() -> None:
    parser = SseParser(max_event=1000)
    parser.feed(b"data: " + b"x" * 900)
    with pytest.raises(SseTooLong):
        parser.feed(b"x" * 200)
