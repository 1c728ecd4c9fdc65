"""What of two streams is held to be the same."""

from __future__ import annotations

from typing import Any

import pytest

from realcli.ledger.events import Event
from tests.integration.disturb.streams import apart, asked_once, commands_of, in_a_plain_shell


def event(kind: str, turn: int, **data: Any) -> Event:
    return Event.model_construct(kind=kind, turn=turn, data=data)


def told(*events: Event) -> list[tuple[str, int | None, str]]:
    return [(one.kind, one.turn, str(one.data.get("requestId", one.data.get("text", "")))) for one in asked_once(events)]


def test_a_turn_asked_again_counts_once() -> None:
    found = told(
        event("model_request", 1, requestId="r1"), event("agent_message", 1, text="half"),
        event("tool_result", 1, text="of a call before"), event("model_reply", 1, requestId="r1"),
        event("model_request", 1, requestId="r2"), event("agent_message", 1, text="whole"),
        event("model_reply", 1, requestId="r2"), event("model_request", 2, requestId="r3"),
        event("agent_message", 2, text="more"), event("model_reply", 2, requestId="r3"),
    )  # fmt: skip
    assert found == [
        ("model_request", 1, "r1"), ("tool_result", 1, "of a call before"), ("agent_message", 1, "whole"),
        ("model_reply", 1, "r2"), ("model_request", 2, "r3"), ("agent_message", 2, "more"), ("model_reply", 2, "r3"),
    ]  # fmt: skip


def test_a_message_said_twice_by_one_answer_stays() -> None:
    twice = (event("model_request", 1, requestId="r1"), event("agent_message", 1, text="a"), event("agent_message", 1, text="a"))
    assert len(told(*twice, event("model_reply", 1, requestId="r1"))) == 4


def test_a_login_shell_is_the_shell_that_was_given_its_set_up() -> None:
    login = in_a_plain_shell(event("command", 1, argv=["/bin/bash", "-lc", "cat a"], cwd="/app"))
    plain = in_a_plain_shell(event("command", 1, argv=["/bin/bash", "-c", "cat a"], cwd="/app"))
    assert login is not None
    assert plain is not None
    assert login.data == plain.data
    assert in_a_plain_shell(event("command", 1, argv=["/bin/bash", "-c", "__CODEX_SNAPSHOT_OVERRIDE_SET_0=x"])) is None
    assert in_a_plain_shell(event("command", 1, argv=["id", "-u"])) is None
    assert in_a_plain_shell(event("command", 1, argv=["rm", "-r", "a"])) is not None


def test_the_pace_of_codex_excuses_no_other_program() -> None:
    commands = [
        event("command", 1, argv=["id", "-u"]),
        event("command", 1, argv=["/bin/bash", "-lc", "cat a"]),
        event("yield", 1),
    ]
    assert [one.data["argv"] for one in commands_of("codex", commands)] == [["/bin/bash", "-c", "cat a"]]
    assert commands_of("claude-code", commands) == commands[:2]


@pytest.mark.parametrize(
    ("one", "other", "may_be_the_same"),
    [
        ((7, 9), (7, 8), True),  # the look at the files came a request later
        ((7, 8), (8, 9), False),
        ((7, None), (3, 8), True),
        ((7, None), (3, 7), False),
    ],
)
def test_windows_of_a_write_are_compared_by_what_they_share(one: Any, other: Any, may_be_the_same: bool) -> None:
    assert (not list(apart([("/app/a", *one)], [("/app/a", *other)]))) is may_be_the_same
