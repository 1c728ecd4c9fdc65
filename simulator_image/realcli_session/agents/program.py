"""An agent program that speaks JSON lines over its standard streams: what every adapter of such a program needs.

`StdioProgram` spawns it, reads its lines whatever it prints, bounds what nobody takes, tells its end, re-hashes its binary at
every yield. An adapter subclasses it and reads and writes the program's own messages.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from realcli.ledger import events as ledger
from realcli.wire.protocol import ErrorCode
from realcli_session.agents import own_setup
from realcli_session.agents.lines import LineSplitter, Oversize, Tail
from realcli_session.agents.port import (
    AgentEvent,
    AgentSpec,
    AgentUnresponsive,
    Decision,
    Error,
    Exit,
    LibC,
    PermissionRequest,
    Question,
    Withdrawn,
    Yield,
)
from realcli_session.gateway.port import EventSink
from realcli_session.gateway.record import clean_json
from realcli_session.gateway.witness import Witness
from realcli_session.runner.errors import RunnerLost, SpawnFailed
from realcli_session.runner.port import ExitStatus, RemoteProcess, RunnerPort

DRAIN_SECONDS = 2.0  # for output after the program's end; a background process may hold its pipe for ever
DOUBT_SECONDS = 20.0
LOOK_SECONDS = 0.05
MAX_BINARY = 1 << 30
MAX_QUEUED = 10_000  # events nobody has taken; further ones that only inform are dropped
MAX_QUEUED_BYTES = 32 << 20  # of the lines they were read from; likewise
MAX_ERRORS = 100
MAX_ERROR = 2000  # characters of one
MAX_VALUES = 100_000
"""Values of a line by its separators, those inside texts counted too: 16 MB of `[],[],…` would be 800 MB of objects, and a
session that dies of memory has lost its trial."""
MAX_PROMPT = 1 << 20  # bytes of a line that asks for an answer; what a model wrote is shorter
MAX_OPEN = 32  # prompts at a time


class StdioProgram:
    """A program behind the runner. Subclasses set the class variables and implement `_hear` (one parsed line)."""

    program: ClassVar[str]
    libcs: ClassVar[tuple[LibC, ...]]
    permission_modes: ClassVar[tuple[Literal["Ask", "Bypass"], ...]]

    def __init__(self, runner: RunnerPort, sink: EventSink) -> None:
        self._runner = runner
        self._sink = sink
        self._process: RemoteProcess | None = None
        self._spec: AgentSpec | None = None
        self._stderr = Tail()
        self._queue: asyncio.Queue[tuple[AgentEvent | Exception, int]] = asyncio.Queue()  # with the size of its line
        self._queued = 0  # bytes
        self._size = 0  # of the line that is being heard
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._errors = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._ended = asyncio.Event()
        self._doubt: asyncio.Task[None] | None = None
        self._stopped = False  # it was interrupted by us, and has not handed over since
        self._binary = ""
        self._sha256: str | None = None
        self._known = False  # that digest is what the file had; else the runner could not look

    # ------------------------------------------------------------------------------------------------------- for subclasses
    async def _hear(self, line: object) -> None:
        """One line of JSON that the program printed."""
        raise NotImplementedError

    async def _install(self, spec: AgentSpec, folder: str, extra: Mapping[str, bytes] | None = None) -> None:
        """Make the program's configuration folder and put the user's own set-up in place; `extra`: more files of that folder."""
        self._check(spec)
        await own_setup.install(self._runner, spec, self.program, folder, extra or {})
        if spec.setup is not None:
            setup = spec.setup
            names = [server.name for server in setup.mcp_servers]
            event = ledger.AgentSetup(
                digest=setup.digest,
                files=own_setup.count(setup),
                mcp_servers=names,
                tool_images=list(setup.tool_images),
                in_reach=list(setup.in_reach),
            )
            self._sink.emit("session", event)

    async def _spawn(self, spec: AgentSpec, argv: Sequence[str], env: Mapping[str, str]) -> None:
        """Start the program; `argv[0]` is its binary. Raises SpawnFailed where it cannot be started."""
        self._spec = spec
        self._binary = argv[0]
        self._known, digest = await self._digest()
        self._sha256 = digest
        self._process = await self._runner.spawn(argv, env=env, cwd=spec.workdir, uid=spec.uid, gid=spec.gid, stdin=True)
        started = ledger.AgentStart(program=self.program, version=spec.version, argv=list(argv), binary_sha256=digest)
        self._sink.emit("session", started)
        self._tasks = [
            asyncio.create_task(self._read(self._process)),
            asyncio.create_task(self._read_errors(self._process)),
        ]

    async def _write(self, message: Mapping[str, Any]) -> None:
        """One line to its standard input."""
        if self._process is None or self._process.stdin is None:
            raise RuntimeError(f"{self.program} was not started")
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        await self._process.stdin.drain()

    async def _ask(self, name: str, what: str, message: Mapping[str, Any], seconds: float) -> Any:
        """Write a message and wait until `_answered(name, …)`. AgentUnresponsive: it ended, refused, or took too long."""
        if self._ended.is_set():
            raise AgentUnresponsive(f"{self.program} has ended; it cannot take {what}")
        waiting = self._waiting[name] = asyncio.get_running_loop().create_future()
        try:
            await self._write(message)
            async with asyncio.timeout(seconds):
                return await waiting
        except TimeoutError:
            raise AgentUnresponsive(f"{self.program} did not answer {what} within {seconds:g} s") from None
        finally:
            self._waiting.pop(name, None)

    def _answered(self, name: str, value: Any = None, error: Exception | None = None) -> None:
        """The answer to `_ask` has come; one that nobody waits for is dropped."""
        waiting = self._waiting.get(name)
        if waiting is None or waiting.done():
            return
        if error is None:
            waiting.set_result(value)
        else:
            waiting.set_exception(error)

    def _policy(self) -> Decision | None:
        """The fixed answer to a permission prompt; None: the simulated user gives it."""
        spec = self._spec
        if spec is None or spec.permissions == "Bypass":
            return "allow"
        return spec.exec_permissions if spec.mode == "EXEC" else None

    def _record_policy(self, request: PermissionRequest, decision: Decision, text: str = "") -> None:
        """Write down a prompt and the answer that the fixed policy gives."""
        self._sink.emit("agent", ledger.PermissionRequest(request_id=request.request_id, tool=request.tool, input=request.input))
        answer = ledger.PermissionAnswer(request_id=request.request_id, decision=decision, by="policy", text=text)
        self._sink.emit("session", answer)

    async def _put(self, event: AgentEvent) -> None:
        """Hand an event to whoever reads `events`."""
        if isinstance(event, Error):
            self._errors += 1
            if self._errors > MAX_ERRORS:
                return
            event = replace(event, message=event.message[:MAX_ERROR])
        size = 0 if isinstance(event, Error | Yield | Exit) else self._size
        if isinstance(event, Yield):
            await self._check_binary()
        binds = isinstance(event, Question | PermissionRequest | Withdrawn | Yield | Exit)
        if not binds and (self._queue.qsize() >= MAX_QUEUED or self._queued + size > MAX_QUEUED_BYTES):
            return
        self._queued += size
        self._queue.put_nowait((event, size))

    def _broke(self, error: Exception) -> None:
        """Whoever reads `events` gets the error: nothing more can be told."""
        self._queue.put_nowait((error, 0))

    async def _handed_over(self, end: Yield) -> None:
        """A hand-over that holds: note that nothing is owed any more, and `_put` it."""
        raise NotImplementedError

    async def _hand_over(self, end: Yield, doubt: str | None = None) -> None:
        """The program says that it hands over. Anybody in the container can say so: it holds when the gateway bears it out.

        One that does not (or is doubted by the adapter) waits, and is forgotten when a later one comes. If no request is open
        and none comes for `DOUBT_SECONDS`, it holds all the same (a hook of the user's own set-up may end a response after a
        tool), with a note.
        """
        self._forget_doubt()
        witness = None if self._spec is None else self._spec.witness
        expected = end.how == "failed" or (end.how == "interrupted" and self._stopped)
        if not expected and witness is not None and witness.move != "user":
            doubt = f"the gateway waits for the {witness.move}"
        if expected or doubt is None:
            self._stopped = False
            await self._handed_over(end)
        else:
            self._doubt = asyncio.create_task(self._doubted(end, doubt, witness or Witness()))

    def _forget_doubt(self) -> None:
        """What was doubted is over: another end came, or the program was given a message, so that its response goes on."""
        if self._doubt is not None:
            self._doubt.cancel()
            self._doubt = None

    async def _doubted(self, end: Yield, why: str, witness: Witness) -> None:
        newest, left = witness.newest, DOUBT_SECONDS
        try:
            await self._put(Error(f"it says that it hands over, but {why}"))
            while left > 0:
                await asyncio.sleep(LOOK_SECONDS)
                left = DOUBT_SECONDS if witness.move == "model" or witness.newest != newest else left - LOOK_SECONDS
                newest = witness.newest
            await self._put(Error("the doubted hand-over holds: no request came"))
            self._stopped = False
            await self._handed_over(end)
        except Exception as error:  # nobody waits for this task; without a word the trial would hang
            self._broke(error)

    async def _real(self, request_id: str, call_id: str | None, opened: Collection[str], tool: str | None = None) -> bool:
        """Whether a prompt is one: about a call that the model asked for (of that `tool`), not asked already, not too much.

        One that is not gets no answer. `call_id` None: an MCP server asks, so a call has to be under way. `opened`: ids of the
        prompts that wait for an answer.
        """
        witness = None if self._spec is None else self._spec.witness
        problem = ""
        if request_id in opened:
            problem = f"it asks a second time as {request_id[:64]!r}, which is not answered yet"
        elif self._size > MAX_PROMPT or len(opened) >= MAX_OPEN:
            problem = f"it asks more than can be answered: {self._size} bytes, {len(opened)} prompts are open"
        elif witness is None:
            return True
        elif call_id is None and witness.move != "agent":
            problem = "it asks about a call while the model has asked for none"
        elif call_id is not None and (call_id not in witness.calls or tool not in (None, witness.calls[call_id])):
            problem = f"it asks about a call {call_id[:64]!r} that no answer of the model has asked for"
        if problem:
            await self._put(Error(problem))
        return not problem

    # ---------------------------------------------------------------------------------------------------- the adapter's port
    async def events(self) -> AsyncIterator[AgentEvent]:
        """Typed events, ending with `Exit`."""
        while True:
            event, size = await self._queue.get()
            self._queued -= size
            if isinstance(event, Exception):
                raise event
            yield event
            if isinstance(event, Exit):
                return

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

    # ---------------------------------------------------------------------------------------------------------------- inside
    def _check(self, spec: AgentSpec) -> None:
        if spec.libc not in self.libcs:
            needs = " or ".join(self.libcs)
            text = f"{self.program} {spec.version} needs {needs}; the task's image has {spec.libc}"
            raise SpawnFailed(ErrorCode.SPAWN_FAILED, text)
        if spec.permissions not in self.permission_modes:
            known = " or ".join(self.permission_modes)
            text = f"permissions {spec.permissions!r} of {self.program} are not known; expected {known}"
            raise SpawnFailed(ErrorCode.SPAWN_FAILED, text)

    async def _digest(self) -> tuple[bool, str | None]:
        """(the runner could look, sha256 of the program as it reads it; None if there is no such file)."""
        scan = await self._runner.scan([self._binary], hash_limit=MAX_BINARY, max_bytes=MAX_BINARY, budget=60.0)
        found = scan.entries[0].sha256 if scan.entries else None
        return scan.complete and not scan.unreadable, found

    async def _check_binary(self) -> None:
        """An agent that edits or updates its own program is recorded, once per change."""
        known, after = await self._digest()
        if not known:  # a slow disk is no change
            return
        before, knew = self._sha256, self._known
        self._sha256, self._known = after, True
        if knew and after != before:
            self._sink.emit("runner", ledger.Harness(path=self._binary, sha256_before=before, sha256_after=after))

    async def _read(self, process: RemoteProcess) -> None:
        """Everything the program prints, then its end."""
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
            await self._finish(status)
        except Exception as error:
            self._fail(AgentUnresponsive(f"{self.program}: {error}"))
            self._broke(error)
        finally:
            self._forget_doubt()
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
            await self._put(Error(f"a line of its output is {line.size} bytes long and was skipped"))
            return
        if not line.strip():
            return
        self._size = len(line)
        values = line.count(b",") + line.count(b"[") + line.count(b"{")
        if values > MAX_VALUES:
            await self._put(Error(f"a line of its output holds more than {MAX_VALUES} values and was skipped"))
            return
        try:
            parsed = clean_json(json.loads(line))
        except (ValueError, RecursionError):
            await self._put(Error(f"a line of its output is no JSON: {line[:200].decode('utf-8', 'replace')}"))
            return
        await self._hear(parsed)

    async def _finish(self, status: ExitStatus) -> None:
        tail = self._stderr.text()
        self._sink.emit("runner", ledger.AgentExit(code=status.code, signal=status.signal, stderr_tail=tail))
        how = f"code {status.code}" if status.code is not None else f"signal {status.signal}"
        self._fail(AgentUnresponsive(f"{self.program} ended with {how}: {tail[-2000:].strip()}"))
        await self._put(Exit(status.code, status.signal))

    def _fail(self, error: AgentUnresponsive) -> None:
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)
