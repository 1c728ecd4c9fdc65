"""Codex."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from realcli_session.agents import codex
from tests.integration.conformance.drivers import Driver, Step
from tests.support.codex import codex_dir

SUB_AGENTS = "multi_agent_v1"


def _questions(texts: list[str]) -> Step:
    options = [{"label": "Yes", "description": "yes"}, {"label": "No", "description": "no"}]
    asked = [{"id": f"q{number}", "header": "Q", "question": text, "options": options} for number, text in enumerate(texts)]
    return {"call": {"name": "request_user_input", "input": {"questions": asked}}}


def _sub_agent(prompt: str, final: str) -> list[dict[str, Any]]:
    """The tools of sub-agents are not offered at once: the model has to look for them."""
    search = {"call": {"name": "tool_search", "input": {"query": "spawn sub agent"}}}
    spawn = {"call": {"name": "spawn_agent", "namespace": SUB_AGENTS, "input": {"message": prompt}}}
    wait = {"call": {"name": "wait_agent", "namespace": SUB_AGENTS, "input": {"targets": ["{{agent}}"], "timeout_ms": 10_000}}}
    return [{"when": {"opening": "Delegate"}, "count": "conversation", "steps": [search, spawn, wait, {"say": final}]}]


def _goal(first: str, last: str) -> list[Step]:
    start = {"call": {"name": "create_goal", "input": {"objective": "Finish the work."}}}
    reached = {"call": {"name": "update_goal", "input": {"status": "complete"}}, "fault": {"delay": 1.5}}
    return [start, {"say": first}, reached, {"say": last}]  # slow, so that a hand-over after the first text would show


def _mcp_call(server: str, tool: str, given: dict[str, Any]) -> list[Step]:
    return [{"call": {"name": tool, "namespace": f"mcp__{server}", "input": given}}]


def _compacts(request: Mapping[str, Any]) -> bool:
    return "CONTEXT CHECKPOINT COMPACTION" in json.dumps(request["body"]["input"][-1])


def _forged(adapter: Any) -> list[Mapping[str, Any]]:
    """A process in the container finds the thread's id in the program's own files."""
    thread = adapter._thread.id
    question = {"threadId": thread, "turnId": "t", "itemId": "call_forged", "questions": []}
    end = {"threadId": thread, "turn": {"id": "t", "status": "completed"}}
    return [
        {"method": "item/tool/requestUserInput", "id": 99, "params": question},
        {"method": "turn/completed", "params": end},
    ]


DRIVER = Driver(
    program="codex",
    version="0.142.0",
    api="responses",
    model="gpt-5.2",
    program_dir=codex_dir,
    owns=lambda line: line.split(" ")[0].endswith("/codex/bin/codex"),
    question_tool="request_user_input",
    questions=_questions,
    asked_command="touch asked.txt",
    sub_agent=_sub_agent,
    capture={"agent": r'"agent_id":"([^"]+)"'},
    full={"input": 260_000},
    compacts=_compacts,
    instructions="AGENTS.md",
    mcp_call=_mcp_call,
    patience=((codex, "CONTROL_SECONDS"),),
    forged=_forged,
    goal=_goal,
    volatile=("client_metadata", "prompt_cache_key"),
)
