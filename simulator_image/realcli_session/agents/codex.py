"""Codex behind the adapter interface: `codex app-server` over its standard streams, spoken through the runner."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from realcli.api.plan import Deviation
from realcli.api.sweep import Mode
from realcli_session.agents import codex_launch, own_setup
from realcli_session.agents.codex_stream import (
    Answered,
    Asked,
    Ended,
    Goal,
    Heard,
    Resolved,
    Started,
    Thread,
    question_answers,
)
from realcli_session.agents.port import (
    AgentSpec,
    AgentUnresponsive,
    Decision,
    Error,
    LibC,
    NotWorking,
    PermissionRequest,
    Question,
    Withdrawn,
    Yield,
)
from realcli_session.agents.program import StdioProgram
from realcli_session.agents.questions import question_parts, question_text
from realcli_session.gateway.port import EventSink
from realcli_session.runner.port import RunnerPort

READY_SECONDS = 120.0
CONTROL_SECONDS = 30.0
NOBODY = "There is nobody to ask."
QUESTION = "item/tool/requestUserInput"
COMMAND = "item/commandExecution/requestApproval"
CHANGE = "item/fileChange/requestApproval"
ELICITATION = "mcpServer/elicitation/request"
QUESTION_TOOL = "request_user_input"
NO_TURN = "no active turn"


class _Refused(AgentUnresponsive):
    """The program answered a request with an error."""


class Codex(StdioProgram):
    """Implements `AgentAdapter`.

    What the reader's task calls (`_heard` and below) must never wait for an answer of the program: it is the one that reads it.
    """

    program: ClassVar[str] = codex_launch.PROGRAM
    wire_api: ClassVar[Literal["anthropic", "responses", "chat"]] = "responses"
    libcs: ClassVar[tuple[LibC, ...]] = ("glibc", "musl", "none")  # static: it starts in an empty image too
    permission_modes: ClassVar[tuple[Literal["Ask", "Bypass"], ...]] = ("Ask", "Bypass")
    visible_text: ClassVar[str] = (
        "message items of the main thread, and the questions of request_user_input; "
        "not reasoning or its summaries, not what sub-agents write, not plans"
    )

    def __init__(self, runner: RunnerPort, sink: EventSink) -> None:
        super().__init__(runner, sink)
        self._thread = Thread()
        self._calls = 0
        self._turn: str | None = None  # the running one
        self._last: str | None = None  # the one that ended last
        self._owed = False  # a message of ours was given and its response has not been handed over
        self._goal = False  # active: a turn that ends is followed by one of its own
        self._asked: dict[str, Asked] = {}
        self._sending = asyncio.Lock()
        self._steering = 0
        self._held: list[Yield] = []  # ends that came while a message was on its way into that turn, or while a stop goes on
        self._interrupting = 0

    @classmethod
    def deviations(cls, mode: Mode | None = None) -> tuple[Deviation, ...]:
        """Every setting that differs from the program's default."""
        return codex_launch.deviations(mode)

    async def start(self, spec: AgentSpec) -> None:
        """Start the program and open its one thread."""
        config = {} if spec.setup is None else {"config.toml": own_setup.codex_config(spec.setup)}
        await self._install(spec, codex_launch.home(spec), config)
        await self._spawn(spec, codex_launch.argv(spec), codex_launch.environment(spec))
        client = {"name": "realcli", "title": "realcli", "version": "1"}
        await self._call("initialize", {"clientInfo": client, "capabilities": {"experimentalApi": True}}, READY_SECONDS)
        await self._write({"method": "initialized"})
        opened = await self._call("thread/start", {"cwd": spec.workdir}, READY_SECONDS)
        self._thread.id = str(_field(opened, "thread", "id"))

    async def send(self, text: str, *, mid_turn: bool = False) -> None:
        """A message starts a turn, or joins the running one (the program reads it with its next request)."""
        async with self._sending:
            if mid_turn and not self._owed:
                raise NotWorking(f"{self.program} has handed over; there is no running response")
            self._forget_doubt()
            if self._turn is None or not await self._steer(text):
                self._held.clear()  # the response goes on: no hand-over before this message was read
                self._owed = True
                given = {"threadId": self._thread.id, "input": _input(text)}
                turn = str(_field(await self._call("turn/start", given, CONTROL_SECONDS), "turn", "id"))
                if turn != self._last:  # its end may have been read already
                    self._turn = turn

    async def _steer(self, text: str) -> bool:
        """Put a message into the running turn. False: it ended first, so the message is still to be given."""
        given = {"threadId": self._thread.id, "expectedTurnId": self._turn, "input": _input(text)}
        self._steering += 1
        self._owed = True  # before the turn's end can be read
        try:
            await self._call("turn/steer", given, CONTROL_SECONDS)
        except _Refused as refused:
            if NO_TURN not in str(refused) and "expected" not in str(refused):
                raise
            self._turn = None
            return False
        finally:
            self._steering -= 1
        await self._release()
        return True

    async def interrupt(self) -> None:
        """Stop the running response and kill its commands, which the program by itself leaves running."""
        if self._turn is None:
            raise NotWorking(f"{self.program} has handed over; there is no running response")
        self._interrupting += 1
        self._stopped = True
        try:
            try:
                given = {"threadId": self._thread.id, "turnId": self._turn}
                await self._call("turn/interrupt", given, CONTROL_SECONDS)
            except _Refused as refused:
                if self._turn is not None:
                    raise
                self._stopped = False
                raise NotWorking(f"{self.program} has handed over; there is no running response") from refused
            finally:
                await self._call("thread/backgroundTerminals/clean", {"threadId": self._thread.id}, CONTROL_SECONDS)
        finally:
            self._interrupting -= 1
            await self._release()

    async def answer(
        self, request_id: str, decision: Decision, text: str = "", *, parts: Mapping[str, str] | None = None
    ) -> None:
        """Answer a question or a permission prompt. LookupError if it is not open (any more)."""
        asked = self._asked.pop(request_id, None)
        if asked is None:
            raise LookupError(f"request {request_id} of {self.program} is not open")
        if asked.method == QUESTION:
            result = question_answers(asked.params, text or NOBODY, dict(parts or {}))
        elif asked.method == ELICITATION:
            result = {"action": "accept" if decision == "allow" else "decline", "content": {} if decision == "allow" else None}
        else:
            # A denial carries no text. It goes before it, so that the next request holds both.
            if decision == "deny" and text and self._turn is not None and not await self._steer(text):
                await self._release()  # the turn has ended: nothing is left to be denied
            result = {"decision": "accept" if decision == "allow" else "decline"}
        await self._write({"id": asked.number, "result": result})

    # ---------------------------------------------------------------------------------------------------------------- inside
    async def _call(self, method: str, params: Mapping[str, Any], seconds: float) -> dict[str, Any]:
        self._calls += 1
        number = self._calls
        message = {"id": number, "method": method, "params": params}
        result: dict[str, Any] = await self._ask(str(number), method, message, seconds)
        return result

    async def _hear(self, line: object) -> None:
        for heard in self._thread.hear(line):
            await self._heard(heard)

    async def _heard(self, heard: Heard) -> None:
        match heard:
            case Answered():
                error = None if heard.error is None else _Refused(f"{self.program} refused a request: {heard.error}")
                self._answered(heard.request_id, heard.result, error)
            case Asked():
                await self._request(heard)
            case Resolved():
                if self._asked.pop(heard.request_id, None) is not None:
                    await self._put(Withdrawn(heard.request_id))
            case Started():
                self._turn = heard.turn
            case Goal():
                self._goal = heard.active
            case Ended():
                await self._end(heard)
            case _:
                await self._put(heard)

    async def _end(self, ended: Ended) -> None:
        """A turn ended. One that nobody asked for is no hand-over, nor is one of a series for a goal before its last."""
        self._last = ended.turn
        if not self._owed:
            self._turn = None if ended.turn == self._turn else self._turn
        elif self._steering or self._interrupting:
            self._turn = None
            self._held.append(ended.end)
        else:
            await self._hand_over(ended.end, "it has an active goal and goes on by itself" if self._goal else None)

    async def _handed_over(self, end: Yield) -> None:
        self._turn, self._owed = None, False
        await self._put(end)

    async def _release(self) -> None:
        """Hand over what had to wait."""
        if self._held and not self._steering and not self._interrupting:
            end = self._held[-1]
            self._held.clear()
            await self._hand_over(end)

    async def _request(self, asked: Asked) -> None:
        """A question goes to the user (COLLAB); so does a prompt with permissions Ask. The fixed policy answers the rest."""
        if asked.method not in (QUESTION, COMMAND, CHANGE, ELICITATION):
            await self._put(Error(f"it asks for {asked.method}, which is not known"))
            await self._write({"id": asked.number, "error": {"code": -32601, "message": "not supported"}})
            return
        tool = QUESTION_TOOL if asked.method == QUESTION else None
        call_id = None if asked.method == ELICITATION else str(asked.params.get("itemId"))
        if not await self._real(asked.request_id, call_id, self._asked, tool):
            return
        self._asked[asked.request_id] = asked
        collab = self._spec is not None and self._spec.mode == "COLLAB"
        if asked.method == QUESTION and collab:
            await self._put(Question(asked.request_id, question_text(asked.params), question_parts(asked.params)))
            return
        decision, text = self._policy(), ""
        if asked.method == QUESTION:  # EXEC offers no question tool and has nobody to ask
            decision, text = "deny", NOBODY
        request = PermissionRequest(asked.request_id, _tool(asked), _shown(asked.params), answered=decision)
        if decision is not None:
            self._record_policy(request, decision, text)
        await self._put(request)
        if decision is not None:
            await self.answer(asked.request_id, decision, text)


def _input(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "text": text, "text_elements": []}]


def _field(result: Mapping[str, Any], part: str, name: str) -> object:
    inner = result.get(part)
    if not isinstance(inner, dict) or name not in inner:
        raise AgentUnresponsive(f"codex answered without {part}.{name}: another version than the pinned one?")
    return inner[name]


def _tool(asked: Asked) -> str:
    names = {QUESTION: QUESTION_TOOL, COMMAND: "exec_command", CHANGE: "apply_patch"}
    return names.get(asked.method) or f"mcp:{asked.params.get('serverName')}"


def _shown(params: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in params.items() if key in ("command", "cwd", "itemId", "reason", "message", "questions")}
