"""Terminus-2 without a terminal and with words of our own: parser, screen, history, loop, words, answers of the API."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from realcli.api.agents import PROGRAMS
from realcli_session.agents import terminus_chat, terminus_wording
from realcli_session.agents.port import McpServer
from realcli_session.agents.terminus import Terminus2
from realcli_session.agents.terminus_chat import ChatFailed, ContextExceeded, Message, OutputExceeded, Reply
from realcli_session.agents.terminus_history import History, assistant, user
from realcli_session.agents.terminus_launch import mcp_note
from realcli_session.agents.terminus_loop import Asked, Finished, Loop, Talk
from realcli_session.agents.terminus_parser import Keys, Parsed, feedback, parse
from realcli_session.agents.terminus_screen import MAX_BYTES, limited, new_content
from realcli_session.agents.terminus_wording import CHANNEL, Wording, WordingMissing
from tests.support.examples import examples

TEMPLATE = 'Answer as {{"json": 1}}.\n\nThe task:\n{instruction}\n\nThe screen:\n{terminal_state}'
WORDS = Wording(
    TEMPLATE,
    {name: f"<{name}>" for name in terminus_wording.NAMES}
    | {"error_mark": "<feedback_error>", "output_limited": "{0}<{2} of {1}>{3}", "invalid_json_content": "{0}"}
    | {"confirm": "{0} Sure?", "had_warnings": "{0} {1}", "mcp_stdio": "{0}={1} {2};"},
)
ANYTHING = st.text(st.characters(codec=None), max_size=60) | st.text(st.sampled_from('{}[]":,\\ \nae1'), max_size=60)


def dumped(**more: Any) -> str:
    return json.dumps({"analysis": "a", "plan": "p", "commands": []} | more)


def command(keys: str, duration: float = 0) -> dict[str, Any]:
    return {"keystrokes": keys, "duration": duration}


# ------------------------------------------------------------------------------------------------------------------ parser
@given(ANYTHING | st.tuples(ANYTHING, ANYTHING).map(lambda around: around[0] + dumped() + around[1]))
def test_any_reply_is_read(reply: str) -> None:
    parsed = parse(reply, WORDS)
    assert not (parsed.error and (parsed.commands or parsed.complete))
    assert all(0 <= keys.duration <= 60 for keys in parsed.commands)
    assert bool(feedback(parsed, WORDS)) == bool(parsed.error or parsed.warning)


HOSTILE = {
    "open braces": "{" * 300_000,
    "deep": '{"a":' * 100_000 + "1" + "}" * 100_000,
    "braces in pairs": "{" + "{}" * 200_000,
    "triples": "{{{}" * 100_000,
    "backslashes": '{"a": "' + "\\" * 300_001 + '"}',
    "quotes": '"{' * 150_000,
    "many fields": dumped(commands=[{str(n): n for n in range(50_000)}]),
    "many commands": dumped(commands=[command("x")] * 50_000),
    "a long number": '{"analysis": ' + "1" * 100_000 + "}",
    "a huge wait": '{"analysis": "a", "plan": "p", "commands": [{"keystrokes": "x", "duration": 1' + "0" * 400 + "}]}",
    "surrogates": '{"analysis": "\\ud800", "plan": "p", "commands": [{"keystrokes": "\\udfff", "duration": 0}]}',
}


@pytest.mark.parametrize("reply", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_reply_is_read_and_ends(reply: str) -> None:
    parsed = parse(reply, WORDS)
    assert len(parsed.error) < 2_000
    assert all(0 <= keys.duration <= 60 for keys in parsed.commands)


def test_the_users_field() -> None:
    assert parse(dumped(message_to_user="Blue?"), WORDS).to_user == "Blue?"
    assert parse(dumped(message_to_user=["x"]), WORDS) == Parsed(analysis="a", plan="p")
    assert parse(dumped(message_to_user="Blue?", commands=5), WORDS).error


# ------------------------------------------------------------------------------------------------------------------ screen
@given(st.text(max_size=300), st.integers(2, 200))
def test_what_is_shown_is_bounded(text: str, size: int) -> None:
    shown = limited(text, WORDS, size)
    assert shown == text or len(shown.encode()) <= size + 60
    if len(text.encode("utf-8", "replace")) > size:
        assert shown.startswith(text[: max(0, size // 8)])


def test_new_content() -> None:
    assert new_content("$ \n", "$ ls\na b\n$ \n") == "$ ls\na b\n$ \n"
    assert new_content("one\n$ ", "one\n$ ls\n") == "\n$ ls\n"
    assert new_content("gone\n$ ", "$ ls\n") is None
    assert MAX_BYTES == 10_000


# ----------------------------------------------------------------------------------------------------------------- history
def test_lengths_are_the_providers() -> None:
    history = History()
    assert history.tokens == 0
    history.add("p" * 400, Reply("a" * 40, 70, 5))
    assert history.tokens == 75
    history.add("p" * 400, Reply("a" * 40))
    assert history.tokens == 75 + 110
    history.unwind(4_100)
    assert history.messages(user("x")) == [user("p" * 400), assistant("a" * 40), user("x")]
    history.unwind(100)
    assert history.messages() == []


# -------------------------------------------------------------------------------------------------------------------- loop
class Terminal:
    """Takes keys; `dies`: after so many looks."""

    def __init__(self) -> None:
        self.typed: list[str] = []

    async def alive(self) -> bool:
        await asyncio.sleep(0)
        return True

    async def capture(self, whole: bool) -> str:
        await asyncio.sleep(0)
        return "$ " + "".join(f"{keys}\n$ " for keys in self.typed)

    async def type(self, keystrokes: str) -> None:
        await asyncio.sleep(0)
        self.typed.append(keystrokes)


class Recorder:
    def __init__(self) -> None:
        self.turn = 0
        self.calls: list[str] = []
        self.results: list[str] = []

    def said(self, parsed: Parsed, asks: bool) -> None:
        pass

    def called(self, call_id: str, commands: tuple[Keys, ...]) -> None:
        self.calls.append(call_id)

    def shown(self, call_id: str, output: str) -> None:
        self.results.append(call_id)


REPLIES = st.sampled_from(
    [
        dumped(commands=[command("ls\n")]),
        dumped(commands=[command("a\n"), command("")], message_to_user="Note."),
        dumped(message_to_user="Which?"),
        dumped(task_complete=True, message_to_user="Done."),
        dumped(task_complete=True),
        dumped(task_complete=True),
        "nothing",
    ]
)


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(st.tuples(REPLIES, st.sampled_from(["", "", "say", "stop"])), max_size=14), st.booleans())
def test_no_message_is_lost_and_no_hand_over_comes_before_it_was_read(moves: list[tuple[str, str]], channel: bool) -> None:
    asyncio.run(_play(moves, channel))


async def _play(moves: list[tuple[str, str]], channel: bool) -> None:
    terminal, recorder, talk = Terminal(), Recorder(), Talk(channel=channel)
    answered: list[str] = []  # prompts that were
    pending = iter(moves)
    spoken = 0

    def speak() -> None:
        nonlocal spoken
        spoken += 1
        talk.say(f"wish-{spoken}.")

    async def ask(messages: Sequence[Message]) -> Reply:
        recorder.turn += 1
        roles = [message["role"] for message in messages]
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
        reply, meanwhile = next(pending, (dumped(task_complete=True), ""))
        if meanwhile == "say":
            speak()
        if meanwhile == "stop":
            raise asyncio.CancelledError
        answered.append(messages[-1]["content"])
        return Reply(reply)

    loop = Loop(ask, terminal, WORDS, recorder, talk)
    for _ in range(6):
        speak()
        try:
            outcome = await loop.respond()
        except asyncio.CancelledError:
            loop.cut()
            continue
        assert talk.unread == []
        assert isinstance(outcome, Finished) or (channel and outcome == Asked("Which?"))
        read = "\n".join(answered)
        assert all(f"wish-{n}." in read for n in range(1, spoken + 1))
    assert sorted(set(recorder.results)) == sorted(recorder.results)
    assert set(recorder.results) <= set(recorder.calls)


# ------------------------------------------------------------------------------------------------------------------- words
def test_the_channel_stands_before_the_task() -> None:
    assert (
        WORDS.first_prompt("Do {this}.", "$ {x}", channel=False)
        == 'Answer as {"json": 1}.\n\nThe task:\nDo {this}.\n\nThe screen:\n$ {x}'
    )
    told = WORDS.first_prompt("Do {this}.", "$ ", channel=True)
    assert told == f'Answer as {{"json": 1}}.\n\n{CHANNEL}\n\nThe task:\nDo {{this}}.\n\nThe screen:\n$ '


def test_missing_words_are_named(tmp_path: Path) -> None:
    with pytest.raises(WordingMissing, match=r"terminus-json-plain.*hack/terminus_templates\.py"):
        terminus_wording.load(tmp_path)
    (tmp_path / "terminus-json-plain.txt").write_text(TEMPLATE)
    (tmp_path / "wording.json").write_text(json.dumps(dict(WORDS.texts) | {"confirm": ""}))
    assert terminus_wording.load(tmp_path).say("confirm") == ""
    before = terminus_wording.digest(tmp_path)
    (tmp_path / "wording.json").write_text(json.dumps({name: text for name, text in WORDS.texts.items() if name != "confirm"}))
    assert terminus_wording.digest(tmp_path) != before
    with pytest.raises(WordingMissing, match="lacks confirm"):
        terminus_wording.load(tmp_path)
    (tmp_path / "wording.json").write_text("[]")
    with pytest.raises(WordingMissing):
        terminus_wording.load(tmp_path)
    with pytest.raises(WordingMissing):
        terminus_wording.digest(tmp_path / "nowhere")


def test_servers_of_a_set_up_are_named() -> None:
    assert mcp_note((), WORDS) == ""
    assert mcp_note((McpServer("a", ("run", "-x")), McpServer("b", ("go",))), WORDS) == "<mcp_heading>a=run -x;b=go ;"


def test_its_facts_are_those_of_planning() -> None:
    facts = PROGRAMS["terminus-2"]
    assert (Terminus2.wire_api, Terminus2.libcs, Terminus2.permission_modes) == (facts.api, facts.libc, facts.permissions)
    both, execute, talk = (Terminus2.deviations(mode) for mode in (None, "EXEC", "COLLAB"))
    assert {d.setting for d in talk} - {d.setting for d in execute} == {"message_to_user", "summarised task"}
    assert {d.setting for d in both} == {d.setting for d in execute} | {"message_to_user (COLLAB)", "summarised task (COLLAB)"}
    assert all(d.reason and d.value for d in both)


# ----------------------------------------------------------------------------------------------------------------- answers
def completion(**more: Any) -> bytes:
    choice = {"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"} | more
    return json.dumps({"choices": [choice], "usage": {"prompt_tokens": 3, "completion_tokens": 2}}).encode()


def test_answers_of_the_api() -> None:
    assert terminus_chat._reply(completion()) == Reply("hi", 3, 2)
    assert terminus_chat._reply(completion()).total == 5
    assert terminus_chat._reply(completion(message={"content": None})).content == ""
    assert terminus_chat._reply(completion(message={"content": "\ud800x"})).content == "?x"
    assert terminus_chat._reply(b'{"choices": [{"message": {"content": "x"}}], "usage": {"prompt_tokens": true}}').total is None
    with pytest.raises(OutputExceeded) as cut:
        terminus_chat._reply(completion(finish_reason="length"))
    assert cut.value.partial == "hi"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"[]",
        b"{}",
        b'{"choices": []}',
        b'{"choices": [{"message": null}]}',
        b"[" * 100_000,
        completion(message={"content": [1]}),
    ],
)
def test_what_is_no_answer_is_told(raw: bytes) -> None:
    with pytest.raises(ChatFailed):
        terminus_chat._reply(raw)


def test_refusals_of_the_api() -> None:
    long = b'{"error": {"message": "The prompt is too long: 9 tokens"}}'
    assert isinstance(terminus_chat._failure(400, long), ContextExceeded)
    assert not isinstance(terminus_chat._failure(500, long), ContextExceeded)
    assert str(terminus_chat._failure(400, b'{"error": {"message": "call limit reached"}}')) == "status 400: call limit reached"
    assert str(terminus_chat._failure(502, b"<html>")) == "status 502: <html>"
    assert len(str(terminus_chat._failure(502, b"x" * 10**6))) < 3_000
