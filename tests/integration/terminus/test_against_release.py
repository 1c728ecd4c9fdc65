"""Our parser and loop beside the release's own: the same for any reply, the same requests for any run."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from realcli_session.agents import terminus_wording
from realcli_session.agents.terminus_chat import ContextExceeded, OutputExceeded, Reply
from realcli_session.agents.terminus_loop import Finished, Loop, Talk
from realcli_session.agents.terminus_parser import Keys, Parsed, parse
from realcli_session.agents.terminus_screen import limited, new_content
from realcli_session.agents.terminus_wording import Wording, load
from tests.integration.terminus import release
from tests.support.terminus import templates_script, words_folder

WORDS = load(words_folder())
PARSER = release.parser()
COMMAND = {"keystrokes": "ls\n", "duration": 0.1}
WHOLE = {"analysis": "a", "plan": "p", "commands": [COMMAND]}


def dumped(**more: Any) -> str:
    return json.dumps(WHOLE | more)


CORPUS = [
    "",
    "Which colour do you want?",
    "{",
    "}",
    "{}",
    "[]",
    "null",
    "}{",
    "{" * 50,
    "{" * 2000 + "}" * 2000,
    '{"a":' * 3000 + "1" + "}" * 3000,
    "\\" * 7 + '{"analysis": 1}',
    dumped(),
    dumped() + dumped(),
    f"```json\n{dumped()}\n```",
    f"Sure! {dumped()} Anything else?",
    f'He said "{{" and then {dumped()}',
    f"{{ {{}} {{ {dumped()}",
    dumped()[:-1],
    dumped()[:-2],
    dumped()[:-3],
    dumped()[:-20],
    dumped().replace('"', "'"),
    dumped().replace("\\n", "\n"),
    dumped(task_complete=True),
    dumped(task_complete="Yes"),
    dumped(task_complete="no"),
    dumped(task_complete=1),
    dumped(task_complete=[0]),
    dumped(task_complete=None),
    dumped(message_to_user="hello"),
    dumped(analysis=None, plan=["x"]),
    dumped(commands=None),
    dumped(commands={}),
    dumped(commands=[1]),
    dumped(commands=[{}]),
    dumped(commands=[{"keystrokes": 5}]),
    dumped(commands=[{"keystrokes": 5}], task_complete=True),
    dumped(commands=["x"], task_complete="TRUE"),
    dumped(commands=[{"keystrokes": "x"}, {"keystrokes": "", "duration": "soon"}, {"keystrokes": "y\n", "duration": -3}]),
    dumped(commands=[{"keystrokes": "x", "duration": True, "ERROR: odd": 1}, COMMAND]),
    '{"plan": "p", "analysis": "a", "commands": []}',
    '{"commands": [], "plan": "\\"analysis\\": x", "analysis": "a"}',
    '{"analysis": "a", "plan": "p"}',
    '{"analysis": "a", "plan": "p", "commands": [{"keystrokes": "x", "duration": NaN}, {"keystrokes": "y", "duration": 1e999}]}',
    '{"analysis": "\ud800\\ud800", "plan": "\x00", "commands": []}',
    '{"analysis": "a", "plan": "p", "commands": [], "commands": [{"keystrokes": "z\\n", "duration": 2}]}',
    "{" + "x" * 300 + "}",
    "noise {not: json} {" + dumped()[1:-1] + "} {more}",
    "ignore all of this and print {{key}} {" * 20,
]


def outcome(reply: str) -> tuple[Any, ...] | None:
    """What the release makes of a reply; None where it raises."""
    try:
        found = PARSER.parse_response(reply)
    except (RecursionError, ValueError, OverflowError):
        return None
    commands = tuple((c.keystrokes, max(0.0, min(c.duration, 60.0)) if c.duration == c.duration else 0.0) for c in found.commands)
    texts = tuple(text if isinstance(text, str) else "" for text in (found.analysis, found.plan))
    return commands, bool(found.is_task_complete), found.error, found.warning, *texts


def same(reply: str) -> None:
    expected = outcome(reply)
    made = parse(reply, WORDS)
    found = (
        tuple((c.keystrokes, c.duration) for c in made.commands),
        made.complete,
        made.error,
        made.warning,
        made.analysis,
        made.plan,
    )
    if expected is None:
        assert made.error
    elif "Unknown fields" in made.warning:  # the release lists them in any order
        assert (*found[:3], sorted(found[3]), *found[4:]) == (*expected[:3], sorted(expected[3]), *expected[4:])
    else:
        assert found == expected


@pytest.mark.parametrize("reply", CORPUS)
def test_the_parser_reads_as_the_release_does(reply: str) -> None:
    same(reply)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(["", "ls\n", "true", 'x"{}']) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*WHOLE, "keystrokes", "duration"]), inner, max_size=4)
    ),
    max_leaves=8,
)
FIELD = st.sampled_from([*WHOLE, "task_complete", "message_to_user", "x"])
COMMANDS = st.lists(
    st.dictionaries(st.sampled_from(["keystrokes", "duration", "x"]), JSON | st.just("ls\n"), max_size=3), max_size=3
)
REPLY = st.one_of(
    st.dictionaries(FIELD, JSON | COMMANDS, max_size=6).map(json.dumps),
    st.builds(
        lambda commands, more: dumped(commands=commands, **more),
        COMMANDS,
        st.dictionaries(FIELD.filter(lambda f: f != "commands"), JSON, max_size=2),
    ),
)
PIECE = st.sampled_from(
    ['"', "\\", "{", "}", "[", "]", ":", ",", " ", "\n", "a", '"analysis": ', '"plan":"p",', dumped(), dumped()[1:-1], "{}"]
)


@st.composite
def spoilt(draw: st.DrawFn) -> str:
    """A good reply with a piece cut out or put in."""
    text = draw(REPLY)
    begin = draw(st.integers(0, len(text)))
    return (
        text[:begin] + draw(st.sampled_from(["", "{", "}", '"', "\\", "\n", "x", "{}"])) + text[begin + draw(st.integers(0, 3)) :]
    )


@settings(max_examples=600, deadline=None)
@given(st.one_of(REPLY, spoilt(), st.lists(PIECE, max_size=25).map("".join), st.text(max_size=40)))
def test_the_parser_reads_anything_as_the_release_does(reply: str) -> None:
    same(reply)


@settings(max_examples=200, deadline=None)
@given(st.text(st.sampled_from("aé€\n\x1b"), max_size=60), st.text(st.sampled_from("aé€\n\x1b"), max_size=60))
@example("x\n$ ", "x\n$ ls\n$")
@example("", "x")
def test_what_is_new_and_how_much_is_shown(before: str, now: str) -> None:
    session = release.methods("tmux_session.py", "TmuxSession", release.SCREEN_METHODS)()
    for previous, current in ((before, now), (before, before + now)):
        session._previous_buffer = previous
        assert new_content(previous, current) == asyncio.run(session._find_new_content(current))
    agent = release.methods("terminus_2.py", "Terminus2", ("_limit_output_length",))()
    for size in (0, 1, 7, 20, 10_000):
        assert limited(now, WORDS, size) == agent._limit_output_length(now, size)


# -------------------------------------------------------------------------------------------------------------------- the loop


class Over(BaseException):
    """The script has no more replies. No Exception: the release catches those."""


class FakeTerminal:
    """Answers keys by a rule; `sizes`: how much is printed for each."""

    def __init__(self, sizes: list[int]) -> None:
        self.typed: list[str] = []
        self._sizes, self._text = sizes, "$ "

    async def alive(self) -> bool:
        return True

    async def capture(self, whole: bool) -> str:
        return self._text if whole else "\n".join(self._text.split("\n")[-5:])

    async def type(self, keystrokes: str) -> None:
        self.typed.append(keystrokes)
        if keystrokes == "clear\n":
            self._text = "$ "
        elif keystrokes:
            size = self._sizes[len(self.typed) % len(self._sizes)]
            self._text += f"{keystrokes}{'o' * size}\n$ "


class Silent:
    turn = 0

    def said(self, parsed: Parsed, asks: bool) -> None:
        assert not asks

    def called(self, call_id: str, commands: tuple[Keys, ...]) -> None:
        pass

    def shown(self, call_id: str, output: str) -> None:
        pass


def count(messages: list[dict[str, Any]]) -> int:
    return sum(len(message["content"].encode()) for message in messages) // 4


LIMIT = 20_000
ANSWERS = st.one_of(
    st.sampled_from(
        [
            dumped(commands=[COMMAND | {"duration": 0}]),
            dumped(commands=[{"keystrokes": "make\n", "duration": 0}, {"keystrokes": "make test", "duration": 0}]),
            dumped(commands=[{"keystrokes": "", "duration": 0}]),
            dumped(commands=[{"keystrokes": "clear\n", "duration": 0}]),
            dumped(commands=[{"keystrokes": "x\n", "duration": 0, "why": 1}], task_complete=True),
            dumped(commands=[], task_complete=True),
            dumped(commands=[], task_complete=True),
            dumped(commands=[], message_to_user="Hello?"),
            dumped(commands=[3]),
            "no JSON at all",
            "x" + dumped(commands=[]),
        ]
    ),
    st.sampled_from(["too long", "cut"]),
    st.sampled_from([2_000, 9_000, 30_000]).map(lambda size: dumped(analysis="l" * size, commands=[])),
)


class Script:
    """A model that answers by a list, and keeps what it was sent."""

    def __init__(self, answers: list[str]) -> None:
        self.requests: list[list[dict[str, Any]]] = []
        self._answers = answers

    def next(self, messages: list[dict[str, Any]]) -> str:
        if len(self.requests) == len(self._answers):
            raise Over
        self.requests.append([dict(message) for message in messages])
        return self._answers[len(self.requests) - 1]


def of_the_release(answers: list[str], sizes: list[int]) -> tuple[Any, ...]:
    script, terminal = Script(answers), FakeTerminal(sizes)

    def model(messages: list[dict[str, Any]]) -> str:
        answer = script.next(messages)
        if answer == "too long":
            raise release.ContextLengthExceededError
        if answer == "cut":
            raise release.OutputLengthExceededError(dumped()[:30])
        return answer

    try:
        asyncio.run(release.Agent(model, terminal, LIMIT, count).run(WORDS.template, "Do it."))
    except Over:
        return script.requests, terminal.typed, "over"
    return script.requests, terminal.typed, "finished"


def of_ours(answers: list[str], sizes: list[int], words: Wording = WORDS) -> tuple[Any, ...]:
    script, terminal = Script(answers), FakeTerminal(sizes)

    async def ask(messages: Any) -> Reply:
        answer = script.next(messages)
        if answer == "too long":
            raise ContextExceeded("too long")
        if answer == "cut":
            raise OutputExceeded(dumped()[:30])
        known = count(messages)
        return Reply(answer, known, count([*messages, {"content": answer}]) - known)

    talk = Talk(channel=False)
    talk.say("Do it.")
    try:
        ended = asyncio.run(Loop(ask, terminal, words, Silent(), talk, limit=LIMIT).respond())
    except Over:
        return script.requests, terminal.typed, "over"
    assert ended == Finished()
    return script.requests, terminal.typed, "finished"


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(ANSWERS, max_size=12), st.lists(st.sampled_from([0, 10, 4_000, 12_000]), min_size=1, max_size=3))
@example([dumped(commands=[COMMAND | {"duration": 0}], analysis="l" * 40_000), "S", "Q", "A", dumped(commands=[])], [0])
@example([dumped(analysis="l" * 30_000, commands=[]), "too long", "S", "Q", "A", "no JSON"], [0])
@example([dumped(commands=[]), "too long", "too long", "short", "no JSON"], [0])
@example([dumped(commands=[]), *["too long"] * 4, dumped(task_complete=True), dumped(task_complete=True)], [0])
def test_the_loop_asks_what_the_release_asks(answers: list[str], sizes: list[int]) -> None:
    assert of_ours(answers, sizes) == of_the_release(answers, sizes)


def test_the_words_are_the_releases(tmp_path: Path) -> None:
    script = templates_script()
    printed = script.unpack(tmp_path)
    assert printed == terminus_wording.digest(tmp_path) == terminus_wording.digest(words_folder())
    assert set(script.TEXTS) == terminus_wording.NAMES
    assert (tmp_path / "LICENSE").read_text().lstrip().startswith("Apache License")
