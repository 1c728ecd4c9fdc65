"""Terminus-2. Its tools are keystrokes in a terminal, its question a field of its reply, and it makes every claim twice."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from realcli_session.agents import terminus_tmux
from tests.integration.conformance.drivers import Differs, Driver, Step
from tests.support.terminus import toolkit_folder

SOURCE = "harbor 0.26.0, harbor/agents/terminus_2/terminus_2.py"
FILLERS = frozenset({"The screen shows what I need.", "Go on.", "Nothing more to do."})
"""What the scripted model puts into the fields that every reply must have."""
NO_PROMPTS = Differs("no such thing", "it asks for no permission: what the model types is typed", f"{SOURCE}: _execute_commands")


def _spoken(texts: Sequence[str]) -> list[str]:
    return [text for text, _ in groupby(text for text in texts if text not in FILLERS)]


def _questions(texts: list[str]) -> Step:
    raise NotImplementedError("it asks in one text")


def _sub_agent(prompt: str, final: str) -> list[dict[str, Any]]:
    raise NotImplementedError("it has no sub-agents")


def _mcp_call(server: str, tool: str, given: dict[str, Any]) -> list[Step]:
    raise NotImplementedError("it calls no MCP server")


def _compacts(request: Mapping[str, Any]) -> bool:
    return "You are about to hand off your work" in json.dumps(request["body"]["messages"][-1])


def _confirms(request: Mapping[str, Any]) -> bool:
    return "Are you sure you want to mark the task as complete?" in json.dumps(request["body"]["messages"][-1])


def _program_dir() -> Path:
    return toolkit_folder() / "agent"


DRIVER = Driver(
    program="terminus-2",
    version="0.26.0",
    api="chat",
    model="gpt-5.2",
    program_dir=_program_dir,
    with_parent=True,
    owns=lambda line: "tmux" in line.split(" ")[0:3] or "/tmux.real" in line or line.startswith(("tmux", "bash --login")),
    question_tool="",
    questions=_questions,
    asked_command="touch asked.txt",
    sub_agent=_sub_agent,
    full={"input": 993_000},
    compacts=_compacts,
    confirms=_confirms,
    confirmations=1,
    spoken=_spoken,
    instructions="",
    mcp_call=_mcp_call,
    user_text_alone=False,
    lasting={"stall": "first-byte", "stall_seconds": 1.0},
    endless={"stall": "first-byte"},
    texts="adapter",
    patience=((terminus_tmux, "CLIENT_SECONDS"),),
    sigterm=(0, None),
    differs={
        "permission_allowed": NO_PROMPTS,
        "permission_denied": NO_PROMPTS,
        "permission_policy": NO_PROMPTS,
        "much_output": Differs(
            "fails",
            "it looks for the last screen in the new one; where that held a prompt alone, it shows the next prompt alone",
            "harbor 0.26.0, harbor/agents/terminus_2/tmux_session.py: _find_new_content",
        ),
        "stream_cut": Differs(
            "no such thing",
            "its answers are not streamed: the gateway repeats one that was cut, and the agent never knows",
            "harbor 0.26.0, harbor/llms/lite_llm.py: call",
        ),
        "question_of_parts": Differs("no such thing", "it asks in one text", "docs/terminus-2.md"),
        "goal": Differs("no such thing", "it sets itself no goals", f"{SOURCE}: _run_agent_loop"),
        "sub_agent": Differs("no such thing", "one conversation; only summaries are delegated", f"{SOURCE}: _run_agent_loop"),
        "forged_lines": Differs(
            "no such thing", "nothing is read from its program's output: the loop is the session's own", "docs/terminus-2.md"
        ),
        "own_setup": Differs(
            "no such thing",
            "it reads no files of a set-up; MCP servers are named in the prompt, and the model has to start them itself",
            f"{SOURCE}: run; tests/integration/terminus covers the prompt",
        ),
    },
)
