"""Executed commands into the ledger: from the runner's record where the kernel gives one, else from tool calls."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable, Iterable
from typing import Final, Literal

from pydantic import JsonValue

from realcli.ledger.events import Command, CommandEnd, Data, Event, Recorders, RecordGap, ToolCall
from realcli_session.gateway.port import EventSink
from realcli_session.runner.errors import RunnerError, RunnerLost
from realcli_session.runner.port import CommandEndRow, CommandRow, Recorded, Recording, RunnerPort

Where = Literal["exec", "tool_text", "none"]
Subscribe = Callable[[Callable[[Event, Data], None]], None]

ARGUMENT: Final = 8_000
"""Characters of one argument that are kept."""
SETTLE_SECONDS: Final = 10.0
SHELL_TOOLS: Final = frozenset(
    ("Bash", "shell", "shell_command", "exec_command", "local_shell", "container.exec", "unified_exec", "commandExecution")
)
_TEXTS: Final = ("command", "cmd", "script")
_FOLDERS: Final = ("workdir", "cwd", "working_directory")


class Turns:
    """Which request was the highest at a moment of the machine's monotonic clock."""

    def __init__(self) -> None:
        self._accepted: list[int] = []  # nanoseconds; index + 1 is the turn

    def accepted(self, turn: int, when_ns: int) -> None:
        """Request `turn` was accepted; turns come in order, one that was not seen has the time of the next that was."""
        self._accepted.extend([when_ns] * (turn - len(self._accepted)))

    def at(self, when_ns: int) -> int:
        """Highest request accepted by then, 0 before the first."""
        return bisect_right(self._accepted, when_ns)


class CommandRecorder:
    """Writes `recorders`, then `command`, `command_end` and `record_gap`.

    `tool_text`: the agent's tool calls hold its commands. `exec_record` false: not asked of the kernel (a task with setuid
    programs, which no_new_privs would break).
    """

    def __init__(self, sink: EventSink, subscribe: Subscribe, *, tool_text: bool) -> None:
        self._sink = sink
        self._subscribe = subscribe
        self._tool_text = tool_text
        self._turns = Turns()
        self._reader: asyncio.Task[None] | None = None
        self._runner: RunnerPort | None = None
        self._number = 0
        self._roots: set[int] = set()

    async def start(self, runner: RunnerPort, *, exec_record: bool, files: bool, net: bool) -> Where:
        """Before the agent starts. Says in the ledger where commands come from, and why not from the kernel."""
        recording = Recording(False, "the task needs setuid programs, which do not work under no_new_privs", _nothing())
        if exec_record:
            recording = await runner.record()
        where: Where = "exec" if recording.works else "tool_text" if self._tool_text else "none"
        self._sink.emit("session", Recorders(commands=where, reason=recording.why, files=files, net=net))
        if where == "exec":
            self._runner = runner
            self._reader = asyncio.create_task(self._read(recording))
        if where != "none":
            self._subscribe(self._on_event)
        return where

    async def settle(self) -> None:
        """Until what was executed before this call stands in the ledger; at most some seconds, then a gap says so."""
        if self._reader is None or self._runner is None or self._reader.done():
            return
        try:
            async with asyncio.timeout(SETTLE_SECONDS):
                await self._runner.settle_record()
        except TimeoutError:
            self._gap(None, f"the runner did not hand over its record within {SETTLE_SECONDS:g} s")
        except RunnerError:
            self._gap(None, "the runner could not hand over its record")

    async def close(self) -> None:
        """No event after this."""
        if self._reader is not None:
            self._reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._reader
            self._reader = None

    async def _read(self, recording: Recording) -> None:
        try:
            async for row in recording.rows:
                self._row(row)
        except RunnerLost:
            self._gap(None, "the runner was lost: what it had not handed over is missing")
            return
        self._gap(None, "the runner ended its record")

    def _row(self, row: Recorded) -> None:
        turn = min(self._turns.at(row.when_ns), self._sink.turn)
        if isinstance(row, CommandRow):
            if row.root:
                self._roots.add(row.id)
                return
            parent = None if row.parent in self._roots else row.parent
            argv = [part[:ARGUMENT] for part in row.argv]
            cut = row.cut or argv != list(row.argv)
            command = Command(
                id=row.id, argv=argv, cwd=row.cwd, path=row.path, record="exec", pid=row.pid, parent=parent, cut=cut
            )
            self._sink.emit("runner", command, turn=turn)
        elif isinstance(row, CommandEndRow):
            if row.id in self._roots:
                return
            self._sink.emit("runner", CommandEnd(id=row.id, code=row.code, signal=row.signal), turn=turn)
        else:
            self._sink.emit("runner", RecordGap(record="command", count=row.count, reason=row.why), turn=turn)

    def _gap(self, count: int | None, reason: str) -> None:
        self._sink.emit("session", RecordGap(record="command", count=count, reason=reason))

    def _on_event(self, event: Event, data: Data) -> None:
        if self._reader is not None:
            if event.kind == "model_request":
                self._turns.accepted(self._sink.turn, time.monotonic_ns())
        elif isinstance(data, ToolCall) and data.name in SHELL_TOOLS and isinstance(data.input, dict | str):
            self._said(data.call_id, data.input)

    def _said(self, call_id: str, content: JsonValue) -> None:
        argv, cwd = _command_of(content)
        if argv:
            self._number += 1
            cut = [part[:ARGUMENT] for part in argv]
            command = Command(id=self._number, argv=cut, cwd=cwd, record="tool_text", call_id=call_id, cut=cut != argv)
            self._sink.emit("agent", command)


def _command_of(content: JsonValue) -> tuple[list[str], str]:
    """(argv, directory) of a shell tool's input; a text is one argument, as the tool hands it to a shell."""
    if isinstance(content, str):
        try:
            content = json.loads(content)
        except ValueError:
            return [str(content)], ""
    if not isinstance(content, dict):
        return [], ""
    found = next((content[name] for name in _TEXTS if name in content), None)
    cwd = next((value for name in _FOLDERS if isinstance(value := content.get(name), str)), "")
    if isinstance(found, str):
        return [found], cwd
    if isinstance(found, list):
        return [str(part) for part in found], cwd
    return [], ""


async def _nothing() -> AsyncIterator[Recorded]:
    rows: Iterable[Recorded] = ()
    for row in rows:
        yield row
