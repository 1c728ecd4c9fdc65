"""Terminus-2 behind the adapter interface. Its loop is the session's own; the container has tmux, a shell and what is typed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import JsonValue

from realcli.api.plan import Deviation
from realcli.api.sweep import Mode
from realcli.api.trial import Tokens
from realcli.ledger import events as ledger
from realcli.wire.protocol import ErrorCode
from realcli_session.agents import own_setup, terminus_launch, terminus_wording
from realcli_session.agents.lines import Tail
from realcli_session.agents.port import (
    AgentEvent,
    AgentSpec,
    AgentUnresponsive,
    Decision,
    Error,
    Exit,
    LibC,
    NotWorking,
    Question,
    Text,
    ToolCall,
    ToolResult,
    Usage,
    Withdrawn,
    Yield,
)
from realcli_session.agents.terminus_chat import ChatClient, ChatFailed, Message, Reply
from realcli_session.agents.terminus_history import CONTEXT_LIMIT
from realcli_session.agents.terminus_loop import Asked, Loop, Talk
from realcli_session.agents.terminus_parser import Keys, Parsed
from realcli_session.agents.terminus_tmux import TerminalLost, Tmux
from realcli_session.agents.terminus_wording import USER_FIELD, WordingMissing
from realcli_session.gateway.port import EventSink
from realcli_session.gateway.record import clean
from realcli_session.runner.errors import RunnerLost, SpawnFailed
from realcli_session.runner.port import ExitStatus, RemoteProcess, RunnerPort

TOOL = "terminal"
MAX_BINARY = 64 << 20
MAX_QUEUED = 10_000  # events nobody has taken; further ones that only inform are dropped


class Terminus2:
    """Implements `AgentAdapter`."""

    program: ClassVar[str] = terminus_launch.PROGRAM
    wire_api: ClassVar[Literal["anthropic", "responses", "chat"]] = "chat"
    libcs: ClassVar[tuple[LibC, ...]] = ("glibc", "musl", "none")
    permission_modes: ClassVar[tuple[Literal["Ask", "Bypass"], ...]] = ("Bypass",)  # it asks for nothing
    visible_text: ClassVar[str] = (
        "message_to_user (COLLAB), and the fields analysis and plan of each reply, which the format of replies forces; "
        "not reasoning, not replies that cannot be read, not summaries"
    )

    def __init__(self, runner: RunnerPort, sink: EventSink) -> None:
        self._runner = runner
        self._sink = sink
        self._spec: AgentSpec | None = None
        self._tmux: Tmux | None = None
        self._chat: ChatClient | None = None
        self._loop: Loop | None = None
        self._talk = Talk(channel=False)
        self._queue: asyncio.Queue[AgentEvent | Exception] = asyncio.Queue()
        self._work: asyncio.Task[None] | None = None
        self._watch: asyncio.Task[None] | None = None
        self._question: str | None = None
        self._questions = 0
        self._lost = ""
        self._used = Tokens()
        self._ended = asyncio.Event()

    @classmethod
    def deviations(cls, mode: Mode | None = None) -> tuple[Deviation, ...]:
        """Everything that differs from the pinned release."""
        return terminus_launch.deviations(mode)

    @classmethod
    def key_parts(cls) -> dict[str, str]:
        """Digests for the configuration's key: the release's words, and those of the user's channel. Raises WordingMissing."""
        return {"templates": terminus_wording.digest(), "channel": terminus_wording.channel_digest()}

    # ---------------------------------------------------------------------------------------------------- the adapter's port
    async def start(self, spec: AgentSpec) -> None:
        """Start the terminal."""
        if spec.permissions not in self.permission_modes:
            text = f"{self.program} asks for nothing: permissions {spec.permissions!r} are not known; expected Bypass"
            raise SpawnFailed(ErrorCode.SPAWN_FAILED, text)
        try:
            words = terminus_wording.load()
        except WordingMissing as error:
            raise SpawnFailed(ErrorCode.SPAWN_FAILED, str(error)) from error
        setup = spec.setup
        if setup is not None:
            own_setup.check(self.program, own_setup.read(setup))
        tmux = Tmux(self._runner, await terminus_launch.place_of(self._runner, spec))
        digest = await self._digest(tmux.binary)
        server = await tmux.start()
        self._spec, self._tmux = spec, tmux
        self._talk.channel = spec.mode == "COLLAB"
        self._chat = ChatClient(spec.base_url, spec.token, spec.model)
        note = terminus_launch.mcp_note(setup.mcp_servers, words) if setup is not None else ""
        limit = spec.context_tokens or CONTEXT_LIMIT
        self._loop = Loop(self._ask, tmux, words, self, self._talk, note=note, limit=limit)
        if setup is not None:
            names = [server.name for server in setup.mcp_servers]
            record = ledger.AgentSetup(
                digest=setup.digest, mcp_servers=names, tool_images=list(setup.tool_images), in_reach=list(setup.in_reach)
            )
            self._sink.emit("session", record)
        started = ledger.AgentStart(program=self.program, version=spec.version, argv=tmux.argv, binary_sha256=digest)
        self._sink.emit("session", started)
        self._watch = asyncio.create_task(self._watch_server(server))

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
        """Begin a response, or say it between two requests of the one that runs."""
        if self._loop is None:
            raise RuntimeError(f"{self.program} was not started")
        if mid_turn and self._work is None:
            raise NotWorking(f"{self.program} has handed over")
        self._withdraw()
        self._talk.say(clean(text))
        if self._work is None and not self._ended.is_set():
            self._work = asyncio.create_task(self._respond(self._loop))

    async def interrupt(self) -> None:
        """Stop the loop, then what runs in the terminal's foreground."""
        if self._tmux is None or self._ended.is_set():
            raise AgentUnresponsive(f"{self.program} does not run; it cannot be interrupted")
        if self._work is None or self._loop is None:
            raise NotWorking(f"{self.program} has handed over")
        work, self._work = self._work, None
        await _cancel(work)
        self._loop.cut()
        try:
            if await self._tmux.stop_running():
                self._put(Error("the shell itself did not stop and was replaced"))
        except TerminalLost as error:
            await self._give_up(error)
            raise AgentUnresponsive(f"{self.program} did not answer an interrupt: {error}") from error
        self._put(Yield("interrupted"))

    async def answer(
        self, request_id: str, decision: Decision, text: str = "", *, parts: Mapping[str, str] | None = None
    ) -> None:
        """Answer the question it waits with. LookupError if that is not open (any more)."""
        if self._question is None or request_id != self._question:
            raise LookupError(f"request {request_id} of {self.program} is not open")
        self._question = None
        await self.send(text)

    async def stop(self, *, grace: float = 5.0) -> ExitStatus | None:
        """Stop the loop, end the terminal."""
        work, self._work = self._work, None
        await _cancel(work)
        if self._chat is not None:
            await self._chat.close()
        if self._tmux is None or self._tmux.server is None:
            return None
        with contextlib.suppress(RunnerLost):  # no runner, no terminal: nothing is left to stop
            await self._tmux.end(grace)
        await self._ended.wait()
        return self._tmux.server.exit

    # ------------------------------------------------------------------------------------------------------ the loop's recorder
    @property
    def turn(self) -> int:
        """Number of the newest accepted request."""
        return self._sink.turn

    def said(self, parsed: Parsed, asks: bool) -> None:
        """Visible fields in the order of the reply; a question that is waited for comes as `Question`."""
        fields = [("analysis", parsed.analysis), ("plan", parsed.plan)]
        if self._talk.channel and not asks:
            fields.append((USER_FIELD, parsed.to_user))
        for field, text in fields:
            if text.strip():
                self._sink.emit("agent", ledger.AgentMessage(text=clean(text), field=field))
                self._put(Text(clean(text)))

    def called(self, call_id: str, commands: tuple[Keys, ...]) -> None:
        """One call for all keys of a reply; `command` is what is typed."""
        keys = clean("".join(command.keystrokes for command in commands))
        given: JsonValue = {"command": keys, "durations": [command.duration for command in commands]}
        self._sink.emit("agent", ledger.ToolCall(call_id=call_id, name=TOOL, input=given))
        self._put(ToolCall(call_id, TOOL, given))

    def shown(self, call_id: str, output: str) -> None:
        """The terminal's answer, once it stood in a request."""
        self._sink.emit("agent", ledger.ToolResult(call_id=call_id, text=clean(output)))
        self._put(ToolResult(call_id, False))

    # ---------------------------------------------------------------------------------------------------------------- inside
    async def _ask(self, messages: Sequence[Message]) -> Reply:
        assert self._chat is not None
        reply = await self._chat.ask(messages)
        self._used = Tokens(
            input=self._used.input + (reply.prompt_tokens or 0), output=self._used.output + (reply.completion_tokens or 0)
        )
        return reply

    def _tell_usage(self) -> None:
        used, self._used = self._used, Tokens()
        if used != Tokens():
            self._put(Usage(used))

    async def _respond(self, loop: Loop) -> None:
        """One response. Whatever it ends with is the last thing it tells."""
        try:
            outcome = await loop.respond()
        except ChatFailed as error:
            loop.cut()
            self._work = None
            self._put(Yield("failed", str(error)))
        except TerminalLost as error:
            self._work = None
            await self._give_up(error)
        except Exception as error:
            self._work = None
            self._queue.put_nowait(error)
        else:
            self._work = None
            self._tell_usage()
            if isinstance(outcome, Asked):
                self._questions += 1
                self._question = f"q{self._questions}"
                self._put(Question(self._question, clean(outcome.text), prose=True))
            else:
                self._put(Yield("yielded"))

    def _withdraw(self) -> None:
        """A question is not open any more: the user said something else."""
        if self._question is not None:
            self._put(Withdrawn(self._question))
            self._question = None

    async def _give_up(self, error: TerminalLost) -> None:
        """Without a terminal there is no agent: end what is left; the end of the server is told like any program's."""
        self._lost = self._lost or str(error)
        if self._tmux is not None:
            with contextlib.suppress(RunnerLost):
                await self._tmux.end(1.0)

    async def _watch_server(self, server: RemoteProcess) -> None:
        tail = Tail()
        reading = asyncio.create_task(_keep(server, tail))
        server.stdout.discard()
        try:
            status = await server.wait()
            work, self._work = self._work, None
            await _cancel(work)
            said = "\n".join(part for part in (self._lost, tail.text()) if part)
            self._sink.emit("runner", ledger.AgentExit(code=status.code, signal=status.signal, stderr_tail=said))
            if self._lost:
                self._put(Error(self._lost))
            self._put(Exit(status.code, status.signal))
        except Exception as error:
            self._queue.put_nowait(error)
        finally:
            self._ended.set()
            await _cancel(reading)

    async def _digest(self, path: str) -> str | None:
        scan = await self._runner.scan([path], hash_limit=MAX_BINARY, max_bytes=MAX_BINARY, budget=60.0)
        return scan.entries[0].sha256 if scan.entries else None

    def _put(self, event: AgentEvent) -> None:
        binds = isinstance(event, Question | Withdrawn | Yield | Exit)
        if binds or self._queue.qsize() < MAX_QUEUED:
            self._queue.put_nowait(event)


async def _keep(server: RemoteProcess, tail: Tail) -> None:
    with contextlib.suppress(RunnerLost):
        async for chunk in server.stderr:
            tail.add(chunk)


async def _cancel(task: asyncio.Task[None] | None) -> None:
    """Cancel and wait."""
    if task is not None and task is not asyncio.current_task():
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
