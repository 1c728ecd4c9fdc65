"""Commands in the ledger: where they come from, which turn they belong to, what a gap says."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from realcli.ledger.events import Event, ToolCall
from realcli.ledger.writer import LedgerWriter
from realcli_session.evidence.commands import CommandRecorder, Turns
from realcli_session.runner.errors import RunnerLost
from realcli_session.runner.port import CommandEndRow, CommandRow, GapRow, Recorded, Recording


class Runner:
    """Only the record: rows as given, then lost."""

    def __init__(self, rows: list[Recorded], *, works: bool = True) -> None:
        self._rows = rows
        self._works = works
        self.done = asyncio.Event()

    async def record(self) -> Recording:
        return Recording(self._works, "" if self._works else "seccomp: Permission denied", self._give())

    async def _give(self) -> AsyncIterator[Recorded]:
        for row in self._rows:
            yield row
        self.done.set()
        raise RunnerLost("end of stream")

    async def settle_record(self) -> None:
        await self.done.wait()


@pytest.fixture
def events() -> list[Event]:
    return []


@pytest.fixture
def writer(tmp_path: Path, events: list[Event]) -> Iterator[LedgerWriter]:
    made = LedgerWriter(tmp_path, on_event=events.append)
    yield made
    made.close()


def a_command(
    number: int, *, parent: int | None = None, root: bool = False, when: int = 5, argv: tuple[str, ...] = ("ls",)
) -> CommandRow:
    return CommandRow(when, number, 100 + number, parent, argv, False, "/app", "/bin/ls", root)


async def recorded(writer: LedgerWriter, rows: list[Recorded]) -> None:
    recorder = CommandRecorder(writer, writer.subscribe, tool_text=True)
    runner = Runner(rows)
    assert await recorder.start(runner, exec_record=True, files=True, net=False) == "exec"  # type: ignore[arg-type]
    await recorder.settle()
    await recorder.close()


async def test_rows_become_events_and_what_the_session_started_does_not(writer: LedgerWriter, events: list[Event]) -> None:
    rows: list[Recorded] = [
        a_command(1, root=True),
        a_command(2, parent=1),
        a_command(3, parent=2),
        CommandEndRow(6, 3, 7, None),
        CommandEndRow(6, 1, 0, None),
        GapRow(6, 4, "more than fits"),
    ]
    await recorded(writer, rows)
    assert [event.kind for event in events] == ["recorders", "command", "command", "command_end", "record_gap", "record_gap"]
    assert [event.data.get("parent") for event in events[1:3]] == [None, 2]
    assert events[1].data["record"] == "exec"
    assert events[3].data | {"signal": None} == {"id": 3, "code": 7, "signal": None}
    assert events[4].data["count"] == 4
    assert "lost" in events[5].data["reason"]


async def test_without_the_kernel_the_tool_calls_say_what_was_run(writer: LedgerWriter, events: list[Event]) -> None:
    recorder = CommandRecorder(writer, writer.subscribe, tool_text=True)
    assert await recorder.start(Runner([], works=False), exec_record=True, files=True, net=False) == "tool_text"  # type: ignore[arg-type]
    assert events[0].data["reason"] == "seccomp: Permission denied"
    for name, content in (
        ("Bash", {"command": "ls -l", "description": "List"}),
        ("shell", {"command": ["bash", "-lc", "pytest"], "workdir": "/app"}),
        ("exec_command", '{"cmd": "make"}'),
        ("Read", {"file_path": "/x"}),
        ("Bash", {"nothing": 1}),
    ):
        writer.emit("agent", ToolCall(call_id="c", name=name, input=content))
    found = [event.data for event in events if event.kind == "command"]
    assert [(row["argv"], row.get("cwd", "")) for row in found] == [
        (["ls -l"], ""),
        (["bash", "-lc", "pytest"], "/app"),
        (["make"], ""),
    ]
    assert [row["id"] for row in found] == [1, 2, 3]


@pytest.mark.parametrize(("tool_text", "where"), [(True, "tool_text"), (False, "none")])
async def test_a_task_with_setuid_programs_is_not_asked(
    writer: LedgerWriter, events: list[Event], tool_text: bool, where: str
) -> None:
    recorder = CommandRecorder(writer, writer.subscribe, tool_text=tool_text)
    assert await recorder.start(Runner([]), exec_record=False, files=True, net=False) == where  # type: ignore[arg-type]
    assert "setuid" in events[0].data["reason"]


async def test_a_long_argument_is_cut_and_says_so(writer: LedgerWriter, events: list[Event]) -> None:
    await recorded(writer, [a_command(1, argv=("echo", "x" * 100_000))])
    assert events[1].data["cut"]
    assert len(events[1].data["argv"][1]) == 8000


def test_the_turn_of_a_moment() -> None:
    turns = Turns()
    turns.accepted(1, 100)
    turns.accepted(3, 300)  # the second was not seen
    assert [turns.at(when) for when in (99, 100, 299, 300, 10**9)] == [0, 1, 1, 3, 3]
