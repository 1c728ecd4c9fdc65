"""Claude Code behind the adapter interface: its own stdio protocol (stream-json), spoken through the runner."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import uuid
from collections.abc import AsyncIterator
from typing import Any, ClassVar

from realcli.api.plan import Deviation
from realcli.api.sweep import Mode
from realcli.ledger import events as ledger
from realcli.wire.protocol import ErrorCode
from realcli_session.agents import claude_launch
from realcli_session.agents.claude_stream import Answered, Asked, Conversation, Heard, Withdrawn, question_answer, question_text
from realcli_session.agents.lines import LineSplitter, Oversize, Tail
from realcli_session.agents.port import (
    AgentEvent,
    AgentSpec,
    AgentUnresponsive,
    Decision,
    Error,
    Exit,
    PermissionRequest,
    Question,
    Yield,
)
from realcli_session.gateway.port import EventSink
from realcli_session.gateway.record import clean_json
from realcli_session.runner.errors import RunnerLost, SpawnFailed
from realcli_session.runner.port import ExitStatus, RemoteProcess, RunnerPort

READY_SECONDS = 120.0
CONTROL_SECONDS = 30.0
DRAIN_SECONDS = 2.0  # for output after the program's end; a background process may hold its pipe for ever
MAX_BINARY = 1 << 30
MAX_QUEUED = 10_000  # events nobody has taken; further ones that only inform are dropped
MAX_ERRORS = 100


class ClaudeCode:
    """Implements `AgentAdapter`."""

    program: ClassVar[str] = claude_launch.PROGRAM

    def __init__(self, runner: RunnerPort, sink: EventSink) -> None:
        self._runner = runner
        self._sink = sink
        self._talk = Conversation()
        self._process: RemoteProcess | None = None
        self._spec: AgentSpec | None = None
        self._stderr = Tail()
        self._queue: asyncio.Queue[AgentEvent | Exception] = asyncio.Queue()
        self._controls: dict[str, asyncio.Future[None]] = {}
        self._asked: dict[str, Asked] = {}
        self._errors = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._ended = asyncio.Event()

    @classmethod
    def deviations(cls, mode: Mode | None = None) -> tuple[Deviation, ...]:
        """Every setting that differs from the program's default."""
        return claude_launch.deviations(mode)

    async def start(self, spec: AgentSpec) -> None:
        """Start the program and wait until it takes messages."""
        try:
            line = claude_launch.argv(spec)
        except ValueError as error:
            raise SpawnFailed(ErrorCode.SPAWN_FAILED, str(error)) from error
        digest = await self._digest(line[0])
        self._spec = spec
        self._process = await self._runner.spawn(
            line, env=claude_launch.environment(spec), cwd=spec.workdir, uid=spec.uid, gid=spec.gid, stdin=True
        )
        started = ledger.AgentStart(program=self.program, version=spec.version, argv=line, binary_sha256=digest)
        self._sink.emit("session", started)
        self._tasks = [
            asyncio.create_task(self._read(self._process)),
            asyncio.create_task(self._read_errors(self._process)),
        ]
        await self._control({"subtype": "initialize", "hooks": None}, READY_SECONDS)

    async def events(self) -> AsyncIterator[AgentEvent]:
        """Typed events, ending with `Exit`."""
        while True:
            event = await self._queue.get()
            if isinstance(event, Exception):
                raise event
            yield event
            if isinstance(event, Exit):
                return

    async def send(self, text: str, *, mid_turn: bool = False) -> None:
        """Give it a user message; the program itself sorts out whether it works just now."""
        name = str(uuid.uuid4())
        self._talk.sent(name)
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        await self._write({"type": "user", "message": message, "parent_tool_use_id": None, "session_id": "default", "uuid": name})

    async def interrupt(self) -> None:
        """Stop the running response."""
        await self._control({"subtype": "interrupt"}, CONTROL_SECONDS)

    async def answer(self, request_id: str, decision: Decision, text: str = "") -> None:
        """Answer a question or a permission prompt. LookupError if it is not open (any more)."""
        asked = self._asked.pop(request_id, None)
        if asked is None:
            raise LookupError(f"request {request_id} of {self.program} is not open")
        if decision == "deny":
            answer: dict[str, Any] = {"behavior": "deny", "message": text or "Denied."}
        elif asked.tool == claude_launch.QUESTION_TOOL:
            answer = {"behavior": "allow", "updatedInput": question_answer(asked.input, text)}
        else:
            answer = {"behavior": "allow", "updatedInput": asked.input}
        response = {"subtype": "success", "request_id": request_id, "response": answer}
        await self._write({"type": "control_response", "response": response})

    async def stop(self, *, grace: float = 5.0) -> ExitStatus | None:
        """End the program and what belongs to its session."""
        if self._process is None:
            return None
        with contextlib.suppress(RunnerLost):  # no runner, no program: nothing is left to stop
            await self._stop(self._process, grace)
        await self._ended.wait()
        return self._process.exit

    async def _stop(self, process: RemoteProcess, grace: float) -> None:
        if process.stdin is not None:
            await process.stdin.close()
        try:
            async with asyncio.timeout(grace):
                await process.wait()
        except TimeoutError:
            await process.signal(signal.SIGKILL, to="session")
            await process.wait()

    async def _digest(self, path: str) -> str | None:
        """sha256 of the program as the runner reads it; None (recorded as unknown) where it cannot."""
        scan = await self._runner.scan([path], hash_limit=MAX_BINARY, max_bytes=MAX_BINARY, budget=60.0)
        return scan.entries[0].sha256 if scan.entries else None

    async def _control(self, request: dict[str, Any], seconds: float) -> None:
        if self._ended.is_set():
            raise AgentUnresponsive(f"{self.program} has ended; it cannot take {request['subtype']}")
        name = str(uuid.uuid4())
        waiting = self._controls[name] = asyncio.get_running_loop().create_future()
        try:
            await self._write({"type": "control_request", "request_id": name, "request": request})
            async with asyncio.timeout(seconds):
                await waiting
        except TimeoutError:
            raise AgentUnresponsive(f"{self.program} did not answer {request['subtype']} within {seconds:g} s") from None
        finally:
            self._controls.pop(name, None)

    async def _write(self, message: dict[str, Any]) -> None:
        if self._process is None or self._process.stdin is None:
            raise RuntimeError(f"{self.program} was not started")
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        await self._process.stdin.drain()

    async def _read(self, process: RemoteProcess) -> None:
        """Everything the program prints, then its end. The only writer of the queue."""
        lines = LineSplitter()
        reading = asyncio.create_task(self._read_lines(process, lines))
        ending = asyncio.create_task(process.wait())
        try:
            await asyncio.wait({reading, ending}, return_when=asyncio.FIRST_COMPLETED)
            if reading.done():
                await reading  # raises what it failed on
            status = await ending
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(DRAIN_SECONDS):
                    await reading
            for line in lines.close():
                await self._line(line)
            self._finish(status)
        except Exception as error:
            self._fail(AgentUnresponsive(f"{self.program}: {error}"))
            self._queue.put_nowait(error)
        finally:
            self._ended.set()
            reading.cancel()
            ending.cancel()
            await asyncio.gather(reading, ending, return_exceptions=True)

    async def _read_lines(self, process: RemoteProcess, lines: LineSplitter) -> None:
        async for chunk in process.stdout:
            for line in lines.feed(chunk):
                await self._line(line)

    async def _read_errors(self, process: RemoteProcess) -> None:
        with contextlib.suppress(RunnerLost):
            async for chunk in process.stderr:
                self._stderr.add(chunk)

    async def _line(self, line: bytes | Oversize) -> None:
        if isinstance(line, Oversize):
            self._put(Error(f"a line of its output is {line.size} bytes long and was skipped"))
            return
        if not line.strip():
            return
        try:
            parsed = clean_json(json.loads(line))
        except (ValueError, RecursionError):
            self._put(Error(f"a line of its output is no JSON: {line[:200].decode('utf-8', 'replace')}"))
            return
        for heard in self._talk.hear(parsed):
            await self._heard(heard)

    async def _heard(self, heard: Heard) -> None:
        if isinstance(heard, Answered):
            waiting = self._controls.get(heard.request_id)
            if waiting is not None and not waiting.done():
                if heard.error is None:
                    waiting.set_result(None)
                else:
                    waiting.set_exception(AgentUnresponsive(f"{self.program} refused a control request: {heard.error}"))
        elif isinstance(heard, Withdrawn):
            self._asked.pop(heard.request_id, None)
        elif isinstance(heard, Asked):
            await self._permission(heard)
        else:
            self._put(heard)

    async def _permission(self, asked: Asked) -> None:
        """A question goes to the user (COLLAB); every other prompt gets the fixed policy's answer, and both are recorded."""
        self._asked[asked.request_id] = asked
        question = asked.tool == claude_launch.QUESTION_TOOL
        if question and self._spec is not None and self._spec.mode == "COLLAB":
            self._put(Question(asked.request_id, question_text(asked.input)))
            return
        decision: Decision = "deny" if question else "allow"  # EXEC offers no question tool and has nobody to ask
        text = "There is nobody to ask." if question else ""
        self._sink.emit("agent", ledger.PermissionRequest(request_id=asked.request_id, tool=asked.tool, input=asked.input))
        answer = ledger.PermissionAnswer(request_id=asked.request_id, decision=decision, by="policy", text=text)
        self._sink.emit("session", answer)
        self._put(PermissionRequest(asked.request_id, asked.tool, asked.input, answered=decision))
        await self.answer(asked.request_id, decision, text)

    def _put(self, event: AgentEvent) -> None:
        if isinstance(event, Error):
            self._errors += 1
            if self._errors > MAX_ERRORS:
                return
        informs = not isinstance(event, Question | Yield | Exit)
        if informs and self._queue.qsize() >= MAX_QUEUED:
            return
        self._queue.put_nowait(event)

    def _finish(self, status: ExitStatus) -> None:
        tail = self._stderr.text()
        self._sink.emit("runner", ledger.AgentExit(code=status.code, signal=status.signal, stderr_tail=tail))
        how = f"code {status.code}" if status.code is not None else f"signal {status.signal}"
        self._fail(AgentUnresponsive(f"{self.program} ended with {how}: {tail[-2000:].strip()}"))
        self._queue.put_nowait(Exit(status.code, status.signal))

    def _fail(self, error: AgentUnresponsive) -> None:
        for waiting in self._controls.values():
            if not waiting.done():
                waiting.set_exception(error)
