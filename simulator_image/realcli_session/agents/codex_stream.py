"""What `codex app-server` prints, read as events: pure. One JSON-RPC message per line in, typed events and requests out.

The program speaks of threads: ours, and one for each sub-agent. Only ours yields and shows text; tools count for all.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import JsonValue

from realcli.api.trial import Tokens
from realcli_session.agents.port import AgentEvent, Error, Text, ToolCall, ToolResult, Usage, Yield
from realcli_session.agents.questions import objects

_TOOLS = ("commandExecution", "fileChange", "mcpToolCall", "dynamicToolCall", "collabAgentToolCall", "webSearch", "imageView")
_FAILED = ("failed", "declined")
MAX_CALLS = 1000
MAX_ID = 256  # characters of a call's


@dataclass(frozen=True, slots=True)
class Answered:
    """It answers a request of ours."""

    request_id: str
    result: dict[str, Any]
    error: str | None


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of the program. `number` is its id as it has to stand in the answer."""

    number: JsonValue
    method: str
    params: dict[str, Any]

    @property
    def request_id(self) -> str:
        """Unique in the attempt."""
        return f"codex-{self.number}"


@dataclass(frozen=True, slots=True)
class Resolved:
    """A request of the program needs no answer any more."""

    request_id: str


@dataclass(frozen=True, slots=True)
class Started:
    """A turn of the thread began, by us or by itself."""

    turn: str


@dataclass(frozen=True, slots=True)
class Ended:
    """A turn of the thread ended."""

    turn: str
    end: Yield


@dataclass(frozen=True, slots=True)
class Goal:
    """The thread has a goal. While it is active the program goes on by itself after each turn."""

    active: bool


Heard = AgentEvent | Answered | Asked | Resolved | Started | Ended | Goal


@dataclass
class Thread:
    """The conversation; `id` is known once it was started."""

    id: str = ""
    reported: set[str] = field(default_factory=set)
    """Tool calls that were announced and have not ended, at most `MAX_CALLS`: anybody in the container can begin more."""

    def hear(self, line: object) -> list[Heard]:
        """Read one parsed line. A message of an unknown kind says nothing."""
        if not isinstance(line, dict):
            return [Error("a line of its output is JSON but no object")]
        method, params = line.get("method"), line.get("params")
        if not isinstance(method, str):
            return _answered(line)
        found: dict[str, Any] = params if isinstance(params, dict) else {}
        if "id" in line:
            return [Asked(line["id"], method, found)]
        return self._notification(method, found)

    def _notification(self, method: str, params: dict[str, Any]) -> list[Heard]:
        ours = params.get("threadId") == self.id
        if method in ("item/started", "item/completed"):
            return self._item(params.get("item"), method == "item/completed", ours)
        if method == "serverRequest/resolved":
            return [Resolved(f"codex-{params.get('requestId')}")]
        if not ours:
            return []
        if method == "turn/started":
            return [Started(str(_object(params.get("turn")).get("id")))]
        if method == "turn/completed":
            return _ended(_object(params.get("turn")))
        if method == "thread/goal/updated":
            return [Goal(_object(params.get("goal")).get("status") == "active")]
        if method == "thread/goal/cleared":
            return [Goal(False)]
        if method == "thread/tokenUsage/updated":
            return _usage(_object(_object(params.get("tokenUsage")).get("last")))
        if method in ("error", "warning", "configWarning"):
            return [Error(_message(params))]
        return []

    def _item(self, item: object, completed: bool, ours: bool) -> list[Heard]:
        if not isinstance(item, dict):
            return []
        kind, name = item.get("type"), str(item.get("id"))[:MAX_ID]
        if kind == "agentMessage":
            return [Text(str(item.get("text", "")))] if completed and ours else []
        if kind == "error":
            return [Error(str(item.get("message")))]
        if kind not in _TOOLS:
            return []
        heard: list[Heard] = []
        if name not in self.reported and len(self.reported) < MAX_CALLS:
            self.reported.add(name)
            heard.append(ToolCall(name, str(item.get("tool") or kind), _input(item)))
        if completed:
            self.reported.discard(name)
            heard.append(ToolResult(name, item.get("status") in _FAILED or item.get("exitCode") not in (None, 0)))
        return heard


def question_answers(params: dict[str, Any], text: str, parts: dict[str, str]) -> dict[str, Any]:
    """Answers by the questions' ids: the part for a question, else the one text for all."""
    answers = {
        str(question.get("id")): {"answers": [parts.get(str(question.get("question", "")), text)]}
        for question in objects(params.get("questions"))
    }
    return {"answers": answers}


def _input(item: dict[str, Any]) -> JsonValue:
    shown = ("command", "cwd", "changes", "server", "arguments", "prompt", "query", "path")
    return {key: item[key] for key in shown if item.get(key) is not None}


def _answered(line: dict[str, Any]) -> list[Heard]:
    if "id" not in line:
        return []
    error = line.get("error")
    said = _object(error).get("message") if error is not None else None
    return [Answered(str(line["id"]), _object(line.get("result")), str(said or error) if error is not None else None)]


def _ended(turn: dict[str, Any]) -> list[Heard]:
    status = turn.get("status")
    how: Literal["yielded", "interrupted", "failed"] = "failed"
    detail = ""
    if status == "completed":
        how = "yielded"
    elif status == "interrupted":
        how = "interrupted"
    else:
        error = _object(turn.get("error"))
        detail = str(error.get("message") or status)[:2000]
    return [Ended(str(turn.get("id")), Yield(how, detail))]


def _usage(last: dict[str, Any]) -> list[Heard]:
    cached = _count(last.get("cachedInputTokens"))
    return [
        Usage(
            Tokens(
                input=max(0, _count(last.get("inputTokens")) - cached),  # the API's count includes what was cached
                cache_read=cached,
                output=_count(last.get("outputTokens")),
            )
        )
    ]


def _count(value: object) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _message(params: dict[str, Any]) -> str:
    error = _object(params.get("error"))
    retry = " (it retries)" if params.get("willRetry") is True else ""
    return str(error.get("message") or params.get("message") or params.get("summary") or "an error without a text")[:2000] + retry


def _object(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
