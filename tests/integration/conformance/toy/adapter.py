"""The adapter of the toy agent: everything the session needs to know of the program."""

import asyncio
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from realcli.api.plan import Deviation
from realcli.api.sweep import Mode
from realcli_session.agents.port import AgentSpec, Decision, LibC, NotWorking, Text, ToolCall, ToolResult, Yield
from realcli_session.agents.program import StdioProgram


class Toy(StdioProgram):
    """Implements `AgentAdapter`; see realcli_session.agents.port for what each verb promises."""

    program: ClassVar[str] = "toy"
    wire_api: ClassVar[Literal["anthropic", "responses", "chat"]] = "chat"
    libcs: ClassVar[tuple[LibC, ...]] = ("glibc", "musl")  # a script: what matters is that the image has a Python
    permission_modes: ClassVar[tuple[Literal["Ask", "Bypass"], ...]] = ("Bypass",)  # it never asks
    visible_text: ClassVar[str] = "every text of the model"

    _working = False

    @classmethod
    def deviations(cls, mode: Mode | None = None) -> tuple[Deviation, ...]:
        """It has no defaults to deviate from, but for where its requests go."""
        return (Deviation(program=cls.program, setting="TOY_URL", value="(per trial)", reason="requests go through the gateway"),)

    async def start(self, spec: AgentSpec) -> None:
        """Set-up, then the program, then wait until it is ready."""
        await self._install(spec, f"{spec.state_dir}/{self.program}")
        given = {"TOY_URL": spec.base_url, "TOY_TOKEN": spec.token, "TOY_MODEL": spec.model}
        kept = {name: value for name, value in spec.environ.items() if not name.startswith("KUBERNETES_")}
        self._ready = asyncio.Event()
        await self._spawn(spec, [f"{spec.program_dir}/program.py"], {**kept, "HOME": spec.home, **given})
        async with asyncio.timeout(60):
            await self._ready.wait()

    async def send(self, text: str, *, mid_turn: bool = False) -> None:
        """It reads one message at a time, so nothing can be put into a running response: mid-turn probes are untriggered."""
        if mid_turn:
            raise NotWorking("the toy takes no message while it works")
        self._working = True
        await self._write({"say": text})

    async def interrupt(self) -> None:
        """It cannot be stopped without ending it."""
        raise NotWorking("the toy cannot be interrupted")

    async def answer(
        self, request_id: str, decision: Decision, text: str = "", *, parts: Mapping[str, str] | None = None
    ) -> None:
        """It asks nothing."""
        raise LookupError(f"request {request_id} of the toy is not open")

    async def _hear(self, line: object) -> None:
        """One line of its output. The gateway records texts and tool calls; these events tell the session where it is."""
        match line:
            case {"ready": True}:
                self._ready.set()
            case {"text": str(text)}:
                await self._put(Text(text))
            case {"run": str(call), "command": str(command), "exit": int(code)}:
                await self._put(ToolCall(call, "shell_command", {"command": command}))
                await self._put(ToolResult(call, code != 0))
            case {"over": "yielded"} if self._working:
                await self._hand_over(Yield("yielded"))
            case {"over": "failed", "why": why} if self._working:
                await self._hand_over(Yield("failed", str(why)))

    async def _handed_over(self, end: Any) -> None:
        """The gateway bears it out (or there was nothing to doubt)."""
        self._working = False
        await self._put(end)
