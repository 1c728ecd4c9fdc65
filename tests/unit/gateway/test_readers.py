"""Answers read along: whatever a provider sends, the reader survives, and nothing unknown becomes a number."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from realcli.api.trial import Tokens
from realcli_session.gateway.dialects import dialect_of
from realcli_session.gateway.dialects.base import Called, Part, ReplyReader, Said
from realcli_session.gateway.sse import SseEvent, SseParser
from tests.unit.gateway.wires import C_USAGE, CALL, CHAT, R_USAGE, RESPONSES, USED, WIRES, Wire

EACH = pytest.mark.parametrize("wire", WIRES.values(), ids=WIRES)


def read(wire: Wire, data: bytes, size: int = 1 << 20) -> tuple[ReplyReader, list[Part]]:
    reader, parser, parts = dialect_of(wire.api).reader(), SseParser(), []
    for at in range(0, len(data), size):
        for event in parser.feed(data[at : at + size]):
            parts += reader.feed(event)
    return reader, parts + reader.end()


@EACH
@pytest.mark.parametrize("size", [1, 17, 1 << 20])
def test_a_whole_answer_in_any_chunks(wire: Wire, size: int) -> None:
    reader, parts = read(wire, b"".join(wire.stream("hello \u00e9", "m", call=True)), size)
    assert parts == [Said("hello \u00e9"), Called(*CALL)]
    assert (reader.complete, reader.refusal, reader.error, reader.model) == (True, False, None, "m")
    assert reader.tokens() == USED


@EACH
def test_every_cut_of_an_answer_is_incomplete_and_of_unknown_usage(wire: Wire) -> None:
    pieces = wire.stream("hello", "m", call=True)
    ending = {"anthropic": 2, "responses": 1, "chat": 3}[wire.api]  # the pieces that tell the end and the usage
    for end in range(len(pieces) - ending + 1):
        reader, _ = read(wire, b"".join(pieces[:end]))
        assert (reader.complete, reader.tokens()) == (False, None)
        json.dumps(reader.message())


@EACH
def test_an_error_inside_is_no_end(wire: Wire) -> None:
    reader, _ = read(wire, b"".join(wire.broken))
    assert (reader.complete, reader.tokens()) == (False, None)
    assert reader.error is not None
    assert "busy" in reader.error


@EACH
@pytest.mark.parametrize("streamed", [True, False])
def test_refusals(wire: Wire, streamed: bool) -> None:
    if streamed:
        reader, _ = read(wire, b"".join(wire.stream("no", "m", refused=True)))
    else:
        reader = dialect_of(wire.api).reader()
        reader.whole(wire.whole("no", "m", refused=True))
    assert (reader.complete, reader.refusal) == (True, True)


def test_responses_that_stop_early_are_whole_answers() -> None:
    for reason, refused in (("max_output_tokens", False), ("content_filter", True)):
        response = {"id": "r", "model": "m", "status": "incomplete", "incomplete_details": {"reason": reason}, "usage": R_USAGE}
        event = SseEvent("", json.dumps({"type": "response.incomplete", "response": response}))
        reader = dialect_of("responses").reader()
        reader.feed(event)
        assert (reader.complete, reader.stop_reason, reader.refusal, reader.tokens()) == (True, reason, refused, USED)


CALLS: list[tuple[dict[str, Any], Called]] = [
    ({"type": "custom_tool_call", "call_id": "c", "name": "apply_patch", "input": "*** x"}, Called("c", "apply_patch", "*** x")),
    ({"type": "function_call", "call_id": "c", "name": "f", "namespace": "ns", "arguments": "{}"}, Called("c", "ns.f", {})),
    ({"type": "function_call", "call_id": "c", "name": "f", "arguments": "{oops"}, Called("c", "f", "{oops")),
    (
        {"type": "local_shell_call", "call_id": "c", "action": {"command": ["ls"]}},
        Called("c", "local_shell", {"command": ["ls"]}),
    ),
    ({"type": "tool_search_call", "call_id": "c", "arguments": {"query": "x"}}, Called("c", "tool_search", {"query": "x"})),
]


@pytest.mark.parametrize(("item", "call"), CALLS)
def test_calls_of_every_kind(item: dict[str, Any], call: Called) -> None:
    data = json.dumps({"type": "response.output_item.done", "output_index": 0, "item": item})
    assert dialect_of("responses").reader().feed(SseEvent("", data)) == [call]


def test_calls_of_a_chat_server_that_numbers_none() -> None:
    def piece(call_id: str | None, arguments: str) -> dict[str, Any]:
        named = {} if call_id is None else {"id": call_id}
        return named | {"function": {"name": "f" if call_id else None, "arguments": arguments}}

    deltas = [[piece("a", '{"x"'), piece("b", "{}")], [piece("a", ": 1}")], [piece("c", '{"y"')], [piece(None, ": 2}")]]
    reader = dialect_of("chat").reader()
    for calls in deltas:
        reader.feed(SseEvent("", json.dumps({"choices": [{"delta": {"tool_calls": calls}}]})))
    done = SseEvent("", json.dumps({"choices": [{"delta": {}, "finish_reason": "tool_calls"}]}))
    assert reader.feed(done) == [Called("a", "f", {"x": 1}), Called("b", "f", {}), Called("c", "f", {"y": 2})]


USAGES: list[tuple[Wire, dict[str, Any], Tokens | None]] = [
    (CHAT, C_USAGE, USED),
    (CHAT, {"prompt_tokens": 5, "completion_tokens": 2}, Tokens(input=5, output=2)),
    (CHAT, {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": None}, Tokens(input=5, output=2)),
    (CHAT, {"prompt_tokens": 5}, None),
    (CHAT, {"completion_tokens": 5}, None),
    (CHAT, {"prompt_tokens": "5", "completion_tokens": 2}, None),
    (CHAT, {"prompt_tokens": True, "completion_tokens": 2}, None),
    (CHAT, {"prompt_tokens": -1, "completion_tokens": 2}, None),
    (CHAT, {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 6}}, None),
    (CHAT, {"prompt_tokens": 5, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": "x"}}, None),
    (RESPONSES, {"input_tokens": 5, "output_tokens": 1}, Tokens(input=5, output=1)),
    (RESPONSES, {}, None),
    (WIRES["anthropic"], {"input_tokens": 5, "output_tokens": 1}, Tokens(input=5, output=1)),
    (WIRES["anthropic"], {"input_tokens": 5}, None),
    (WIRES["anthropic"], {"input_tokens": 5, "output_tokens": 1, "cache_read_input_tokens": "x"}, None),
]


@pytest.mark.parametrize(("wire", "usage", "want"), USAGES)
def test_usage(wire: Wire, usage: dict[str, Any], want: Tokens | None) -> None:
    reader = dialect_of(wire.api).reader()
    reader.whole(wire.whole() | {"usage": usage})
    assert reader.tokens() == want


COUNTS = st.integers(0, 10**6)
OPENAI = [(CHAT, "prompt_tokens", "completion_tokens"), (RESPONSES, "input_tokens", "output_tokens")]


@pytest.mark.parametrize(("wire", "prompt", "completion"), OPENAI)
@given(total=COUNTS, cached=COUNTS, written=COUNTS, output=COUNTS)
def test_total_input_is_what_an_openai_api_says(
    wire: Wire, prompt: str, completion: str, total: int, cached: int, written: int, output: int
) -> None:
    details = {"cached_tokens": cached, "cache_creation_tokens": written}
    reader = dialect_of(wire.api).reader()
    reader.whole(wire.whole() | {"usage": {prompt: total, completion: output, f"{prompt}_details": details}})
    tokens = reader.tokens()
    if cached + written > total:
        assert tokens is None
    else:
        assert tokens == Tokens(input=total - cached - written, cache_read=cached, cache_write=written, output=output)


MEMBERS = ["code", "id", "name", "content", "delta", "type", "text", "tool_calls", "function", "index", "usage", "refusal"]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "code",
                    "id",
                    "name",
                    "content",
                    "delta",
                    "type",
                    "text",
                    "tool_calls",
                    "function",
                    "index",
                    "usage",
                    "refusal",
                    "reason",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=10,
)
KINDS = [
    *("message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "error"),
    *("response.created", "response.output_item.added", "response.output_item.done", "response.output_text.delta"),
    *("response.completed", "response.incomplete", "response.failed"),
]
NAMES = [
    *("index", "delta", "message", "content_block", "usage", "response", "item", "output_index", "item_id", "error", "choices"),
    *("id", "model", "output", "status", "incomplete_details", "stop_reason", "finish_reason", "code"),
]


@given(st.sampled_from(list(WIRES.values())), st.lists(VALUES, max_size=6))
def test_nonsense_never_breaks_a_reader(wire: Wire, values: list[Any]) -> None:
    reader = dialect_of(wire.api).reader()
    for value in values:
        for kind in KINDS:
            base = {"type": kind} | dict.fromkeys(NAMES, value)
            inner = {**base, "choices": [base, value], "response": base, "item": base, "index": 0, "output": [base, value]}
            for data in (base, inner, {**inner, "error": None}, value):
                reader.feed(SseEvent("x", json.dumps(data)))
                if isinstance(data, dict):
                    dialect_of(wire.api).reader().whole(data)
                    dialect_of(wire.api).refusal_error(400, data)
    reader.feed(SseEvent("x", "[" * 100_000))
    reader.end()
    reader.tokens()
    json.dumps(reader.message())
    assert reader.model is None or isinstance(reader.model, str)
