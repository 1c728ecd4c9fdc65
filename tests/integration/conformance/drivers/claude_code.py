"""Claude Code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from realcli_session.agents import claude_code
from tests.integration.conformance.drivers import Differs, Driver, Step
from tests.support.claude_code import claude_code_dir


def _questions(texts: list[str]) -> Step:
    options = [{"label": "Yes", "description": "yes"}, {"label": "No", "description": "no"}]
    asked = [{"question": text, "header": "Q", "options": options, "multiSelect": False} for text in texts]
    return {"call": {"name": "AskUserQuestion", "input": {"questions": asked}}}


def _sub_agent(prompt: str, final: str) -> list[dict[str, Any]]:
    return [{"when": {"opening": "Delegate"}, "steps": [{"delegate": {"prompt": prompt}}, {"say": final}]}]


def _mcp_call(server: str, tool: str, given: dict[str, Any]) -> list[Step]:
    return [{"call": {"name": f"mcp__{server}__{tool}", "input": given}}]


def _compacts(request: Mapping[str, Any]) -> bool:
    return "Your task is to create a detailed summary" in json.dumps(request["body"]["messages"][-1])


DRIVER = Driver(
    program="claude-code",
    version="2.1.140",
    api="anthropic",
    model="claude-sonnet-4-5",
    program_dir=claude_code_dir,
    owns=lambda line: line.split(" ")[0].endswith("/claude"),
    question_tool="AskUserQuestion",
    questions=_questions,
    asked_command="touch asked.txt",
    sub_agent=_sub_agent,
    full={"input": 190_000},
    compacts=_compacts,
    instructions="CLAUDE.md",
    mcp_call=_mcp_call,
    patience=((claude_code, "CONTROL_SECONDS"),),
    forged=lambda adapter: [
        {
            "type": "control_request",
            "request_id": "forged",
            "request": {"subtype": "can_use_tool", "tool_name": "AskUserQuestion", "input": {}, "tool_use_id": "toolu_forged"},
        },
        {"type": "result", "subtype": "success", "is_error": False, "terminal_reason": "completed"},
    ],
    volatile=("metadata",),
    differs={
        "goal": Differs("no such thing", "it sets itself no goals that it pursues turn after turn", "claude --help of 2.1.140"),
    },
    sigterm=(143, None),
)
