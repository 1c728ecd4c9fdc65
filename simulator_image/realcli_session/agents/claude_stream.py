"""What Claude Code prints, read as events: pure. One JSON object per line in, typed events and control messages out.

A yield is a `result` with no user message left unread. The program echoes each message with its uuid at the moment it reads it
(`isReplay`); a message given while it works is read with the next model call, one given during its last text starts the next
response by itself, so the `result` in between is no yield. Nor is the `result` of a response that the program began by itself
(a wake-up it set): nothing was asked, so nothing is handed over.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from realcli.api.trial import Tokens
from realcli_session.agents.port import AgentEvent, Error, Text, ToolCall, ToolResult, Usage, Withdrawn, Yield
from realcli_session.agents.questions import objects


@dataclass(frozen=True, slots=True)
class Asked:
    """The program wants to use a tool and asks (`can_use_tool`)."""

    request_id: str
    tool: str
    input: dict[str, Any]
    call_id: str = ""


@dataclass(frozen=True, slots=True)
class Answered:
    """It answers a control request of ours."""

    request_id: str
    error: str | None


Heard = AgentEvent | Asked | Answered


@dataclass
class Conversation:
    """The messages it was given and has not read yet, and whether it owes a hand-over."""

    unread: set[str] = field(default_factory=set)
    owed: bool = False

    def sent(self, uuid: str) -> None:
        """A user message was written to it."""
        self.unread.add(uuid)
        self.owed = True

    def hear(self, line: object) -> list[Heard]:
        """Read one parsed line. A line of an unknown kind says nothing."""
        if not isinstance(line, dict):
            return [Error("a line of its output is JSON but no object")]
        kind = line.get("type")
        if kind == "assistant":
            return _assistant(line)
        if kind == "user":
            return self._user(line)
        if kind == "result":
            return self._result(line)
        if kind == "control_request":
            return _asked(line)
        if kind == "control_cancel_request":
            return [Withdrawn(str(line.get("request_id")))]
        if kind == "control_response":
            return _answered(line.get("response"))
        if kind == "system" and line.get("subtype") == "api_retry":
            return [Error(f"it retries its request (status {line.get('error_status')}, {line.get('error')})")]
        return []

    def _user(self, line: dict[str, Any]) -> list[Heard]:
        if line.get("isReplay") is True:
            self.unread.discard(str(line.get("uuid")))
            return []
        return [
            ToolResult(str(block.get("tool_use_id")), block.get("is_error") is True)
            for block in _content(line)
            if block.get("type") == "tool_result"
        ]

    def _result(self, line: dict[str, Any]) -> list[Heard]:
        heard: list[Heard] = []
        tokens = _tokens(line.get("usage"))
        if tokens is not None:
            heard.append(Usage(tokens))
        if self.unread or not self.owed:
            return heard
        self.owed = False
        how, detail = _how(line)
        return [*heard, Yield(how, detail)]


def question_answer(asked: dict[str, Any], text: str, parts: Mapping[str, str]) -> dict[str, Any]:
    """The tool's input with the answers filled in: the part for a question, else the one text for all."""
    questions = [str(question.get("question", "")) for question in objects(asked.get("questions"))]
    return {**asked, "answers": {question: parts.get(question, text) for question in questions}}


def _how(line: dict[str, Any]) -> tuple[Literal["yielded", "interrupted", "failed"], str]:
    reason = str(line.get("terminal_reason") or "")
    if reason.startswith("aborted"):
        return "interrupted", reason
    if line.get("is_error") is True:
        status = line.get("api_error_status")
        errors = line.get("errors")
        said = line.get("result") or (errors[0] if isinstance(errors, list) and errors else "") or line.get("subtype")
        return "failed", f"{said}"[:2000] + (f" (status {status})" if status is not None else "")
    return "yielded", reason if reason != "completed" else ""


def _assistant(line: dict[str, Any]) -> list[Heard]:
    heard: list[Heard] = []
    for block in _content(line):
        if block.get("type") == "text" and line.get("parent_tool_use_id") is None:
            heard.append(Text(str(block.get("text", ""))))
        elif block.get("type") == "tool_use":
            heard.append(ToolCall(str(block.get("id")), str(block.get("name")), block.get("input")))
    return heard


def _asked(line: dict[str, Any]) -> list[Heard]:
    request = line.get("request")
    if not isinstance(request, dict) or request.get("subtype") != "can_use_tool":
        return [Error(f"it asks for {request.get('subtype') if isinstance(request, dict) else request!r}, which is not known")]
    given = request.get("input")
    call = str(request.get("tool_use_id") or "")
    return [Asked(str(line.get("request_id")), str(request.get("tool_name")), given if isinstance(given, dict) else {}, call)]


def _answered(response: object) -> list[Heard]:
    if not isinstance(response, dict):
        return []
    failed = response.get("subtype") == "error"
    return [Answered(str(response.get("request_id")), str(response.get("error")) if failed else None)]


def _content(line: dict[str, Any]) -> list[dict[str, Any]]:
    message = line.get("message")
    return objects(message.get("content")) if isinstance(message, dict) else []


def _tokens(usage: object) -> Tokens | None:
    if not isinstance(usage, dict):
        return None
    names = {
        "input": "input_tokens",
        "cache_read": "cache_read_input_tokens",
        "cache_write": "cache_creation_input_tokens",
        "output": "output_tokens",
    }
    found = {name: usage.get(key) for name, key in names.items()}
    return Tokens(**{name: value for name, value in found.items() if isinstance(value, int) and value >= 0})
