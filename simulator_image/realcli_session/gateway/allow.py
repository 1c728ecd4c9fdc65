"""What a request may hold: a list of what is allowed, so that a new feature is refused until someone has looked at it.

Refused are all ways by which the provider itself would reach out or keep something: server-side tools (search, fetch, code
execution), MCP connectors, containers, files, URL sources. Every function returns the reason of the refusal, or None.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, Final, Literal

Route = Literal["messages", "count_tokens", "models", "root"]
MAX_MESSAGES: Final = 10_000  # a request event names each by digest in one line
MAX_SYSTEM: Final = 100
MAX_DEPTH: Final = 100  # lists and objects inside each other; what is deeper, nobody after us could read

_FIELDS = frozenset(
    {
        *("model", "messages", "system", "tools", "tool_choice", "metadata", "max_tokens", "thinking", "stream", "temperature"),
        *("top_p", "top_k", "stop_sequences", "service_tier", "context_management", "output_config", "cache_control", "speed"),
    }
)
_CLIENT_TOOLS = re.compile(r"custom|(bash|text_editor|computer|memory)_[0-9]{8}")  # run by the agent program itself
_BLOCKS = frozenset(
    {
        *("text", "image", "document", "tool_use", "tool_result", "thinking", "redacted_thinking"),
        *("tool_reference", "search_result", "compaction"),
    }
)
_SOURCES = frozenset({"base64", "text", "content"})
_MODEL_PATH = re.compile(r"/v1/models(/[A-Za-z0-9._:@-]{1,256})?")


class BodyRefused(ValueError):
    """The body is no JSON object that can mean one thing only."""


def route(method: str, path: str, query: str) -> Route | None:
    """The allowed route of a request line; None for every other."""
    if method == "HEAD" and path == "/" and not query:
        return "root"
    if method == "GET" and _MODEL_PATH.fullmatch(path):
        return "models"
    if method == "POST" and query in ("", "beta=true"):
        if path == "/v1/messages":
            return "messages"
        if path == "/v1/messages/count_tokens":
            return "count_tokens"
    return None


def parse_body(raw: bytes) -> dict[str, Any]:
    """The JSON object of a body. A name given twice is refused: two readers might take different ones."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if len(value) != len(pairs):
            raise BodyRefused("json: a name stands twice in one object")
        return value

    def constant(name: str) -> Any:
        raise BodyRefused(f"json: {name} is not JSON")

    def number(text: str) -> float:
        value = float(text)
        if math.isinf(value):
            raise BodyRefused("json: a number is out of range")
        return value

    try:
        body = json.loads(raw, object_pairs_hook=unique, parse_constant=constant, parse_float=number)
    except BodyRefused:
        raise
    except (ValueError, RecursionError) as error:
        raise BodyRefused(f"json: {type(error).__name__}") from error
    if not isinstance(body, dict):
        raise BodyRefused("json: not an object")
    if depth_of(body) > MAX_DEPTH:
        raise BodyRefused(f"json: more than {MAX_DEPTH} lists and objects inside each other")
    return body


def depth_of(value: object) -> int:
    """How many lists and objects stand inside each other, 0 for a plain value; without recursion."""
    depth, level = 0, [value]
    while level := [item for item in level if isinstance(item, dict | list)]:
        depth += 1
        level = [inner for item in level for inner in (item.values() if isinstance(item, dict) else item)]
    return depth


def feature_refused(body: dict[str, Any]) -> str | None:
    """The first feature of a body that is not on the list, e.g. `feature: tools[2].type web_search_20250305`."""
    for name in body:
        if name not in _FIELDS:
            return f"feature: {name[:64]}"
    return _tools(body.get("tools")) or _messages(body.get("messages")) or _system(body.get("system"))


def _tools(tools: object) -> str | None:
    if tools is None:
        return None
    if not isinstance(tools, list):
        return "feature: tools is not a list"
    for number, tool in enumerate(tools):
        if not isinstance(tool, dict):
            return f"feature: tools[{number}] is not an object"
        kind = tool.get("type", "custom")
        if not isinstance(kind, str) or not _CLIENT_TOOLS.fullmatch(kind):
            return f"feature: tools[{number}].type {str(kind)[:64]}"
        if tool.get("allowed_callers", ["direct"]) != ["direct"]:
            return f"feature: tools[{number}].allowed_callers"
    return None


def _messages(messages: object) -> str | None:
    if not isinstance(messages, list):
        return "feature: messages is not a list"
    if len(messages) > MAX_MESSAGES:
        return f"feature: more than {MAX_MESSAGES} messages"
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            return f"feature: messages[{number}] is not an object"
        found = _blocks(message.get("content"))
        if found:
            return f"feature: messages[{number}] {found}"
    return None


def _system(system: object) -> str | None:
    if isinstance(system, list) and len(system) > MAX_SYSTEM:
        return f"feature: more than {MAX_SYSTEM} system blocks"
    found = _blocks(system)
    return f"feature: system {found}" if found else None


def _blocks(content: object) -> str | None:
    """Content is a text, or a list of blocks which may hold content or a source themselves."""
    if content is None or isinstance(content, str):
        return None
    if not isinstance(content, list):
        return "content is neither text nor a list"
    todo: list[Any] = list(content)
    while todo:
        block = todo.pop()
        if not isinstance(block, dict):
            return "block is not an object"
        kind = block.get("type")
        if not isinstance(kind, str) or kind not in _BLOCKS:
            return f"block {str(kind)[:64]}"
        if kind in ("image", "document"):
            source = block.get("source")
            origin = source.get("type") if isinstance(source, dict) else source
            if not isinstance(source, dict) or not isinstance(origin, str) or origin not in _SOURCES:
                return f"source {str(origin)[:64]}"
            todo.extend(_inner(source.get("content")))
        if kind == "tool_result":
            todo.extend(_inner(block.get("content")))
    return None


def _inner(content: object) -> Iterable[Any]:
    if content is None or isinstance(content, str):
        return ()
    return content if isinstance(content, list) else (content,)
