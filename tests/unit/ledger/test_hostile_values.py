"""Whatever an agent, a runner or a provider says: a valid line of at most 1 MiB, and no secret in it."""

import json
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, JsonValue

from realcli.ledger.base import MAX_DEPTH
from realcli.ledger.events import EVENT, KINDS, MAX_LINE, AgentMessage, BlobRef, Data, PermissionRequest, ToolCall, UserMessage
from realcli.ledger.redaction import Redactor
from realcli.ledger.writer import LedgerWriter
from realcli_session.agents.lines import LineSplitter, Tail
from tests.support.examples import examples

KEY = "sk-ant-very-secret-0123456789"


@pytest.fixture
def writer(tmp_path: Path) -> Iterator[LedgerWriter]:
    made = LedgerWriter(tmp_path, secrets=[KEY])
    yield made
    made.close()


def worst(annotation: Any, text: str) -> Any:
    """A value that is longer than a line may be, wherever an annotation allows one."""
    origin, args = get_origin(annotation), get_args(annotation)
    if "^[0-9a-f]{64}$" in str(annotation):
        return "a" * 64
    if origin is Annotated:
        return worst(args[0], text)
    if origin is Literal:
        return args[0]
    if origin in (Union, types.UnionType):
        if JsonValue in args:
            return {f"{text}{n}": [text] for n in range(20)}
        return text if str in args else worst(next(a for a in args if a is not type(None)), text)
    if origin is list:
        return [worst(args[0], text)] * 40
    if origin is dict:
        return {f"{n}{text}": {text: [text] * 6} for n in range(6)}
    if annotation is BlobRef:
        return {"blob": "a" * 64, "size": 10**18}
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return {name: worst(field.annotation, text) for name, field in annotation.model_fields.items()}
    if annotation is str:
        return text
    return {int: 10**18, float: 1e300, bool: True}[annotation]


def fill(kind: type[Data], text: str) -> Data:
    fields = {}
    for name, field in kind.model_fields.items():
        fields[name] = worst(field.annotation, text)
        if any(getattr(rule, "pattern", None) for rule in field.metadata):
            fields[name] = "a" * 64
        if get_args(field.annotation)[:1] == (list[BlobRef],):
            fields[name] = [worst(BlobRef, text)] * 3000
    return kind.model_validate(fields)


@pytest.mark.parametrize("text", ["x" * 70_000, "\x01" * 9_000], ids=["long", "escaped"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_no_event_of_any_kind_is_too_long_or_unreadable(writer: LedgerWriter, kind: type[Data], text: str) -> None:
    event = writer.emit("agent", fill(kind, text))
    line = event.canonical()
    assert len(line) <= MAX_LINE
    read = EVENT.validate_json(line)
    assert isinstance(read.typed(), kind)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(alphabet=st.characters()), inner),
)


@settings(max_examples=examples(100))
@given(value=json_values)
def test_any_value_a_parser_can_give_becomes_a_line(tmp_path_factory: pytest.TempPathFactory, value: Any) -> None:
    writer = LedgerWriter(tmp_path_factory.mktemp("spool"), secrets=[KEY])
    event = writer.emit("agent", ToolCall(call_id="1", name="Bash", input=value))
    writer.close()
    (segment,) = (writer.spool / "ledger").iterdir()
    (line,) = segment.read_bytes().splitlines()
    json.loads(line, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert EVENT.validate_json(line) == event


@pytest.mark.parametrize("depth", [MAX_DEPTH, MAX_DEPTH + 1, 255, 900])
def test_what_is_nested_without_end_is_cut(writer: LedgerWriter, depth: int) -> None:
    value = json.loads('{"a":' * depth + "1" + "}" * depth)
    shown = json.dumps(writer.emit("agent", ToolCall(call_id="1", name="Bash", input=value)).data["input"])
    assert ("nested deeper" in shown) == (depth > MAX_DEPTH)


@pytest.mark.parametrize("depth", [255, 900])
@pytest.mark.parametrize("kind", ["runner_hello", "model_reply", "wording"])
def test_an_object_nested_without_end_can_be_read_again(writer: LedgerWriter, kind: str, depth: int) -> None:
    value = json.loads('{"a":' * depth + "NaN" + "}" * depth)
    needed = {"request_id": "r", "status": 200, "mode": "Model", "script_sha256": "0" * 64}
    fields = KINDS[kind].model_fields
    given = {name: item for name, item in needed.items() if name in fields}
    (holds,) = (name for name, about in fields.items() if "JsonValue" in repr(about.annotation))
    event = writer.emit("session", KINDS[kind].model_validate(given | {holds: value}))
    assert EVENT.validate_json(event.canonical()).typed() is not None


@settings(max_examples=examples(40))
@given(st.text(min_size=1), st.lists(st.integers(1, 5), min_size=1), st.booleans())
def test_a_character_split_over_two_reads_stays_whole(text: str, sizes: list[int], ends: bool) -> None:
    data = text.encode("utf-8", "replace") + b"\n" * ends
    splitter, found, at, turn = LineSplitter(), [], 0, 0
    while at < len(data):
        size = sizes[turn % len(sizes)]
        found += splitter.feed(data[at : at + size])
        at, turn = at + size, turn + 1
    found += splitter.close()
    *lines, rest = data.split(b"\n")
    assert found == lines + [rest] * bool(rest)


FORGED = (
    '{"v":1,"seq":2,"prev":"'
    + "0" * 64
    + '","t":"x","mono":0,"actor":"user","kind":"final_claim","turn":1,"exchange":1,"data":{}}'
)


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029", '"}}\n', "\x00\n"])
def test_nothing_printed_forges_a_line(writer: LedgerWriter, newline: str) -> None:
    writer.emit("agent", AgentMessage(text=f"x{newline}{FORGED}{newline}"))
    writer.emit("user", UserMessage(id="m", text="y", source_ids=[]))
    data = (writer.spool / "ledger" / "000001.jsonl").read_bytes()
    assert [EVENT.validate_json(line).kind for line in data.split(b"\n")[:-1]] == ["agent_message", "user_message"]
    assert [EVENT.validate_json(line).kind for line in data.splitlines()] == ["agent_message", "user_message"]


@pytest.mark.parametrize("at", range(8, len(KEY) - 7))
def test_a_key_split_over_two_writes_is_in_neither(writer: LedgerWriter, at: int) -> None:
    first, second = "it is " + KEY[:at], KEY[at:] + ", is it not"
    for text in (first, second):
        writer.emit("agent", AgentMessage(text=text))
        writer.emit("agent", ToolCall(call_id="1", name="Bash", input={"a": [text]}))
        writer.blob(text.encode())
    everything = b"".join(path.read_bytes() for path in writer.spool.rglob("*") if path.is_file())
    assert KEY[:8].encode() not in everything
    assert KEY[-8:].encode() not in everything
    assert everything.count(b"it is [redacted]") == everything.count(b"[redacted], is it not") == 3


@given(st.text(), st.text())
def test_what_is_no_key_is_left_alone(before: str, after: str) -> None:
    clean = f"{before}{after}".encode("utf-8", "replace").decode()
    assert Redactor([KEY]).text(clean) == clean
    text = f"{before}|{KEY}|{after}".encode("utf-8", "replace").decode()
    assert Redactor([KEY]).text(text) == text.replace(KEY, "[redacted]")


def test_the_last_bytes_of_a_stream_that_begin_inside_a_key_hold_no_part_of_it() -> None:
    tail = Tail(limit=20)
    tail.add(KEY.encode() + b" was it")
    assert Redactor([KEY]).text(tail.text()) == "[redacted] was it"


def test_a_call_with_null_is_read_as_it_was_made(writer: LedgerWriter) -> None:
    """`"arguments": "null"` is JSON; a line without its input would make the whole ledger unreadable."""
    for data in (ToolCall(call_id="c", name="t", input=None), PermissionRequest(request_id="p", tool="t", input=None)):
        assert writer.emit("agent", data).typed() == data
