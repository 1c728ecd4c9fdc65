"""Counts of a run from its ledger; what the ledger cannot tell is None."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from realcli.api.trial import Checks
from realcli.ledger.events import (
    ZERO_HASH,
    AgentMessage,
    Ask,
    Command,
    CommandEnd,
    Data,
    LedgerOpen,
    ModelRequest,
    Recorders,
    RecordGap,
    ToolCall,
    ToolResult,
)
from realcli.scoring.facts import facts_of
from realcli.scoring.retries import Given, Retries, count, normalised, retries
from tests.support.ledgers import Ledger


def opened(mode: Literal["EXEC", "COLLAB"]) -> Data:
    return LedgerOpen(
        sweep_uid="u", sweep="s", ordinal=0, attempt=1, configuration="c", task="t", mode=mode, repeat=1,
        lock_digest="d", session_version="1",
    )  # fmt: skip


def a_run(mode: Literal["EXEC", "COLLAB"] = "COLLAB", *more: Data) -> Ledger:
    ledger = Ledger().emit(opened(mode), Recorders(commands="exec")).starts().request()
    ledger.emit(AgentMessage(text="which port?"), *more).yields()
    if mode == "COLLAB":
        ledger.emit(Ask(wants="information", how="text", answer="neutral", unmatched=True))
        ledger.says().request().emit(AgentMessage(text="done")).yields()
    return ledger.ends()


def test_facts_of_both_modes() -> None:
    call = ToolCall(call_id="a", name="Bash", input={"command": "ls"})
    got = facts_of(a_run("COLLAB", call, Command(id=1, argv=["ls"], record="exec")).trajectory, checks=Checks(passed=3, total=4))
    assert (got.turns, got.exchanges, got.tool_calls, got.commands, got.messages) == (2, 2, 1, 1, 2)
    assert (got.questions, got.ask_unmatched) == (1, 1)
    assert (got.checks_passed, got.checks_total) == (3, 4)
    assert (got.retries, got.tokens, got.cost_usd, got.working_seconds) == (None, None, None, None)  # no outcome, no seal
    alone = facts_of(a_run("EXEC").trajectory)
    assert (alone.questions, alone.ask_unmatched, alone.checks_total) == (None, None, None)
    assert (alone.turns, alone.tool_calls, alone.commands) == (1, 0, 0)


@pytest.mark.parametrize(
    ("gap", "unknown"), [("ledger", {"turns", "tool_calls", "commands", "questions", "messages"}), ("command", {"commands"})]
)
def test_a_gap_makes_counts_unknown(gap: Any, unknown: set[str]) -> None:
    got = facts_of(a_run("COLLAB", RecordGap(record=gap, reason="lost")).trajectory)
    names = ("turns", "tool_calls", "commands", "questions", "messages")
    assert {name for name in names if getattr(got, name) is None} == unknown


def test_no_record_of_commands_is_no_count_of_zero() -> None:
    assert facts_of(Ledger().emit(opened("EXEC"), Recorders(commands="none")).starts().ends().trajectory).commands is None


F, W, U = "failed", "worked", "unknown"


@pytest.mark.parametrize(
    ("history", "expected"),
    [
        ("", Retries(0, 0)),
        ("aF", Retries(0, 0)),
        ("aF aF", Retries(1, 1)),
        ("aF aW", Retries(1, 0)),
        ("aF aF aF aW", Retries(3, 2)),
        ("aF aW aF", Retries(1, 0)),  # a success lies between: the third is no retry
        ("aF bW aF", Retries(1, 1)),  # another command does not
        ("aW aF", Retries(0, 0)),
        ("aF bF aF bW", Retries(2, 1)),
        ("aF aU aF", Retries(0, 0)),  # it may have worked in between
    ],
)
def test_retries(history: str, expected: Retries) -> None:
    words: dict[str, Any] = {"F": F, "W": W, "U": U}
    assert count(Given((step[0],), words[step[1]]) for step in history.split()) == expected


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("pytest -x tests/a.py", "pytest   tests/a.py", True),
        ("cat /srv/app/log.txt", "cat /var/log.txt", True),
        ("/usr/bin/make test", "make test", True),
        ("tar cf out-2026-01-02T03:04:05.tar x", "tar cf out-2026-01-02T03:05:06.tar x", True),
        ("touch run-1700000000", "touch run-1700000999", True),
        ("git push origin", "git pull origin", False),
        ("pytest tests/a.py", "pytest tests/b.py", False),
        ("cat src/a.py", "cat lib/a.py", False),  # relative folders are part of the target
    ],
)
def test_what_is_the_same_command(one: str, other: str, same: bool) -> None:
    assert (normalised([one]) == normalised([other])) is same


def test_the_body_of_a_here_document_counts() -> None:
    assert normalised(["python -"], "<<E\nprint(1)\nE") != normalised(["python -"], "<<E\nprint(2)\nE")


def bash(ledger: Ledger, n: int, text: str, error: bool) -> None:
    ledger.emit(ToolCall(call_id=f"c{n}", name="Bash", input={"command": text}))
    ledger.emit(ToolResult(call_id=f"c{n}", text="", is_error=error))


def test_retries_of_a_ledger_whose_results_say_errors() -> None:
    ledger = Ledger().emit(opened("EXEC")).starts().request()
    for n, (text, error) in enumerate([("make test", True), ("vi x", False), ("make -j2 test", True), ("make test", False)]):
        bash(ledger, n, text, error)
    assert retries(ledger.ends().trajectory) == Retries(2, 1)


def ran(id: int, argv: list[str], code: int | None, parent: int | None = None) -> list[Data]:
    return [Command(id=id, argv=argv, record="exec", parent=parent), CommandEnd(id=id, code=code)]


def test_retries_from_executed_programs() -> None:
    """Terminals and interactive shells are looked through; what a build executes is not the agent's command."""
    ledger = Ledger().emit(opened("EXEC"), Recorders(commands="exec")).starts()
    request = ModelRequest(
        request_id="r", dialect="chat", path="/", body_sha256=ZERO_HASH, body_bytes=1, model_asked="m", counted=True
    )
    ledger.emit(request, Command(id=1, argv=["tmux"], record="exec"), Command(id=2, argv=["-bash"], record="exec", parent=1))
    ledger.emit(*ran(3, ["make"], 2, parent=2), *ran(4, ["cc", "a.c"], 1, parent=3), *ran(5, ["cc", "a.c"], 1, parent=3))
    ledger.emit(*ran(6, ["make"], 2, parent=2), *ran(7, ["bash", "-lc", "pytest -q"], 1), *ran(8, ["bash", "-lc", "pytest"], 0))
    assert retries(ledger.ends().trajectory) == Retries(2, 1)


def test_no_known_outcome_is_no_count() -> None:
    ledger = Ledger().emit(opened("EXEC")).starts().emit(ToolCall(call_id="a", name="shell", input={"command": "make"}))
    assert retries(ledger.ends().trajectory) is None
