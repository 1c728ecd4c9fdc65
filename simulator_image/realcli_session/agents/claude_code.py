"""Claude Code behind the adapter interface: its own stdio protocol (stream-json), spoken through the runner."""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from realcli.api.plan import Deviation
from realcli.api.sweep import Mode
from realcli_session.agents import claude_launch, own_setup
from realcli_session.agents.claude_stream import (
    Answered,
    Asked,
    Conversation,
    Heard,
    question_answer,
)
from realcli_session.agents.port import (
    AgentSpec,
    AgentUnresponsive,
    Decision,
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


class ClaudeCode(StdioProgram):
    """Implements `AgentAdapter`."""

    program: ClassVar[str] = claude_launch.PROGRAM
    wire_api: ClassVar[Literal["anthropic", "responses", "chat"]] = "anthropic"
    libcs: ClassVar[tuple[LibC, ...]] = ("glibc",)
    permission_modes: ClassVar[tuple[Literal["Ask", "Bypass"], ...]] = ("Ask", "Bypass")
    visible_text: ClassVar[str] = (
        "text blocks of the main conversation's replies, and the questions of AskUserQuestion; "
        "not thinking, not what sub-agents write, not titles and summaries"
    )

    def __init__(self, runner: RunnerPort, sink: EventSink) -> None:
        super().__init__(runner, sink)
        self._talk = Conversation()
        self._asked: dict[str, Asked] = {}

    @classmethod
    def deviations(cls, mode: Mode | None = None) -> tuple[Deviation, ...]:
        """Every setting that differs from the program's default."""
        return claude_launch.deviations(mode)

    async def start(self, spec: AgentSpec) -> None:
        """Start the program and wait until it takes messages."""
        servers = () if spec.setup is None else spec.setup.mcp_servers
        extra = {claude_launch.MCP_FILE: own_setup.mcp_config(servers)} if servers else {}
        await self._install(spec, claude_launch.config_dir(spec), extra)
        await self._spawn(spec, claude_launch.argv(spec), claude_launch.environment(spec))
        await self._control({"subtype": "initialize", "hooks": None}, READY_SECONDS)

    async def send(self, text: str, *, mid_turn: bool = False) -> None:
        """Give it a user message; the program itself sorts out whether it works just now."""
        if mid_turn and not self._talk.owed:
            raise NotWorking(f"{self.program} has handed over; there is no running response")
        name = str(uuid.uuid4())
        self._forget_doubt()
        self._talk.sent(name)
        message = {"role": "user", "content": [{"type": "text", "text": text}]}
        await self._write({"type": "user", "message": message, "parent_tool_use_id": None, "session_id": "default", "uuid": name})

    async def interrupt(self) -> None:
        """Stop the running response; its commands are killed by the program itself."""
        if not self._talk.owed:
            raise NotWorking(f"{self.program} has handed over; there is no running response")
        self._stopped = True
        await self._control({"subtype": "interrupt"}, CONTROL_SECONDS)

    async def answer(
        self, request_id: str, decision: Decision, text: str = "", *, parts: Mapping[str, str] | None = None
    ) -> None:
        """Answer a question or a permission prompt. LookupError if it is not open (any more)."""
        asked = self._asked.pop(request_id, None)
        if asked is None:
            raise LookupError(f"request {request_id} of {self.program} is not open")
        if decision == "deny":
            answer: dict[str, Any] = {"behavior": "deny", "message": text or "Denied."}
        elif asked.tool == claude_launch.QUESTION_TOOL:
            answer = {"behavior": "allow", "updatedInput": question_answer(asked.input, text, parts or {})}
        else:
            answer = {"behavior": "allow", "updatedInput": asked.input}
        response = {"subtype": "success", "request_id": request_id, "response": answer}
        await self._write({"type": "control_response", "response": response})

    async def _control(self, request: dict[str, Any], seconds: float) -> None:
        name = str(uuid.uuid4())
        message = {"type": "control_request", "request_id": name, "request": request}
        await self._ask(name, str(request["subtype"]), message, seconds)

    async def _hear(self, line: object) -> None:
        for heard in self._talk.hear(line):
            await self._heard(heard)

    async def _heard(self, heard: Heard) -> None:
        if isinstance(heard, Answered):
            refused = f"{self.program} refused a control request: {heard.error}"
            self._answered(heard.request_id, error=None if heard.error is None else AgentUnresponsive(refused))
        elif isinstance(heard, Withdrawn):
            if self._asked.pop(heard.request_id, None) is not None:
                await self._put(heard)
        elif isinstance(heard, Asked):
            question = claude_launch.QUESTION_TOOL
            if await self._real(heard.request_id, heard.call_id, self._asked, question if heard.tool == question else None):
                await self._permission(heard)
        elif isinstance(heard, Yield):
            self._talk.owed = True  # until it holds
            await self._hand_over(heard)
        else:
            await self._put(heard)

    async def _handed_over(self, end: Yield) -> None:
        self._talk.owed = False
        await self._put(end)

    async def _permission(self, asked: Asked) -> None:
        """A question goes to the user (COLLAB); so does a prompt with permissions Ask. The fixed policy answers the rest."""
        self._asked[asked.request_id] = asked
        collab = self._spec is not None and self._spec.mode == "COLLAB"
        if asked.tool == claude_launch.QUESTION_TOOL and collab:
            await self._put(Question(asked.request_id, question_text(asked.input), question_parts(asked.input)))
            return
        decision, text = self._policy(), ""
        if asked.tool == claude_launch.QUESTION_TOOL:  # EXEC offers no question tool and has nobody to ask
            decision, text = "deny", NOBODY
        request = PermissionRequest(asked.request_id, asked.tool, asked.input, answered=decision)
        if decision is not None:
            self._record_policy(request, decision, text)
        await self._put(request)
        if decision is not None:
            await self.answer(asked.request_id, decision, text)
