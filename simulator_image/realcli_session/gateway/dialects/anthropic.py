"""Anthropic Messages, as Claude Code speaks it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from realcli.api.models import Api
from realcli_session.gateway.allow import MAX_BLOCKS, MAX_MESSAGES, MAX_SYSTEM, digest_of, result_text, unknown_field
from realcli_session.gateway.dialects.anthropic_reply import AnthropicReply
from realcli_session.gateway.dialects.base import Output, ReplyReader, Route, Shown

SUB_AGENT: Final = "x-claude-code-agent-id"
"""Header by which the program marks the requests of its sub-agents; their text is not shown to the user."""
_COMPACTION = "an <analysis> block followed by a <summary> block"  # what Claude Code 2.1.140 asks for, in a text of its own
_SIGNATURE = "x-anthropic-billing-header:"
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
_FORWARDED = frozenset({"accept", "content-type", "user-agent", "x-app"})
_PASSED_BACK = frozenset({"content-type", "request-id", "retry-after", "x-should-retry"})
_ERROR_FIRST = re.compile(rb"\s*event: ?error\b")
_KINDS = {401: "authentication_error", 408: "timeout_error", 413: "request_too_large"}


class Anthropic:
    """The dialect; see `Dialect`."""

    name: Api = "anthropic"
    plain_path = "/v1/messages"

    def base_url(self, origin: str) -> str:
        """Without /v1."""
        return origin

    def route(self, method: str, path: str, query: str) -> Route | None:
        """Messages, count_tokens, models, and the program's HEAD /."""
        if method == "HEAD" and path == "/" and not query:
            return "root"
        if method == "GET" and _MODEL_PATH.fullmatch(path):
            return "models"
        if method == "POST" and query in ("", "beta=true"):
            if path == "/v1/messages":
                return "generate"
            if path == "/v1/messages/count_tokens":
                return "count"
        return None

    def upstream_url(self, upstream: str, path: str, query: str) -> str:
        """The endpoint has no /v1."""
        return f"{upstream.rstrip('/')}{path}" + (f"?{query}" if query else "")

    def credentials(self, key: str) -> dict[str, str]:
        """As an API key, not as a bearer token."""
        return {"x-api-key": key}

    def forwarded(self, header: str) -> bool:
        """Version and betas (what they would allow in the body is refused there), and what tells the program."""
        return header in _FORWARDED or header.startswith(("anthropic-", "x-stainless-"))

    def passed_back(self, header: str) -> bool:
        """What the program reads; not whose account it is."""
        return header in _PASSED_BACK or (header.startswith("anthropic-") and "organization" not in header)

    def refused(self, body: Mapping[str, Any], *, network: bool = False) -> str | None:
        """Server-side tools, MCP connectors, containers, files, URL sources, unknown fields."""
        return (
            unknown_field(body, _FIELDS | ({"mcp_servers", "container"} if network else frozenset()))
            or _tools(body.get("tools"), network)
            or _messages(body.get("messages"), network)
            or _system(body.get("system"), network)
        )

    def turn_key(self, body: Mapping[str, Any]) -> str:
        """Everything but `stream` and the program's signature: it signs each body in a system block of its own."""
        kept = {name: value for name, value in body.items() if name != "stream"}
        if isinstance(kept.get("system"), list):
            kept["system"] = [block for block in kept["system"] if not _signature(block)]
        return digest_of(kept)

    def shown(self, body: Mapping[str, Any]) -> Shown:
        """As they stand in the body."""
        system = body.get("system")
        return Shown(
            system=system if isinstance(system, list) else [system] if system else [],
            tools=body.get("tools") or None,
            messages=body["messages"],
        )

    def outputs(self, body: Mapping[str, Any]) -> Iterator[Output]:
        """tool_result blocks."""
        for block in _content(body):
            if block.get("type") == "tool_result":
                yield Output(
                    str(block.get("tool_use_id")), result_text(block.get("content")), is_error=block.get("is_error") is True
                )

    def texts(self, body: Mapping[str, Any]) -> Iterator[str]:
        """Text blocks of user messages: the user's, and what the program puts beside them."""
        for message in body["messages"]:
            if message.get("role") == "user" and isinstance(message.get("content"), str):
                yield message["content"]
        for block in _content(body, role="user"):
            if block.get("type") == "text" and isinstance(block.get("text"), str):
                yield block["text"]

    def visible(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
        """Requests without tools are titles. A compaction offers tools all the same and is told by the program's own wording."""
        return bool(body.get("tools")) and SUB_AGENT not in headers and not _compacts(body)

    def reader(self) -> ReplyReader:
        """For one message."""
        return AnthropicReply()

    def begins_with_error(self, first: bytes) -> bool:
        """An error event first."""
        return _ERROR_FIRST.match(first) is not None

    def refusal_error(self, status: int, message: Mapping[str, Any]) -> bool:
        """The API has no such error: a refusal is a stop reason."""
        return False

    def plain(self, model: str) -> Sequence[dict[str, Any]]:
        """One token."""
        return [{"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "Hi"}]}]

    def error(self, status: int, message: str, code: str | None = None) -> dict[str, Any]:
        """The shape after which Claude Code stops at once (with `x-should-retry: false`)."""
        kind = _KINDS.get(status, "invalid_request_error" if status < 500 else "api_error")
        return {"type": "error", "error": {"type": kind, **({"code": code} if code else {}), "message": message}}

    def models(self, model: str) -> dict[str, Any]:
        """A list of one."""
        entry = {"type": "model", "id": model, "display_name": model, "created_at": "1970-01-01T00:00:00Z"}
        return {"data": [entry], "has_more": False, "first_id": model, "last_id": model}


ANTHROPIC = Anthropic()


def _content(body: Mapping[str, Any], role: str | None = None) -> Iterator[Mapping[str, Any]]:
    for message in body["messages"]:
        content = message.get("content")
        if isinstance(content, list) and role in (None, message.get("role")):
            yield from content


def _compacts(body: Mapping[str, Any]) -> bool:
    """Whether the newest message asks for a summary of the conversation."""
    messages = body.get("messages")
    last = messages[-1] if isinstance(messages, list) and messages and isinstance(messages[-1], dict) else {}
    content = last.get("content")
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    newest = blocks[-1] if blocks and isinstance(blocks[-1], dict) else {}
    return newest.get("type") == "text" and _COMPACTION in str(newest.get("text"))


def _signature(block: object) -> bool:
    text = block.get("text") if isinstance(block, dict) else None
    return isinstance(text, str) and text.startswith(_SIGNATURE)


def _tools(tools: object, network: bool) -> str | None:
    if tools is None:
        return None
    if not isinstance(tools, list):
        return "feature: tools is not a list"
    for number, tool in enumerate(tools):
        if not isinstance(tool, dict):
            return f"feature: tools[{number}] is not an object"
        if network:
            continue
        kind = tool.get("type", "custom")
        if not isinstance(kind, str) or not _CLIENT_TOOLS.fullmatch(kind):
            return f"feature: tools[{number}].type {str(kind)[:64]}"
        if tool.get("allowed_callers", ["direct"]) != ["direct"]:
            return f"feature: tools[{number}].allowed_callers"
    return None


def _messages(messages: object, network: bool) -> str | None:
    if not isinstance(messages, list):
        return "feature: messages is not a list"
    if len(messages) > MAX_MESSAGES:
        return f"feature: more than {MAX_MESSAGES} messages"
    total = 0
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            return f"feature: messages[{number}] is not an object"
        content = message.get("content")
        total += len(content) if isinstance(content, list) else 1
        if total > MAX_BLOCKS:
            return f"feature: more than {MAX_BLOCKS} blocks"
        found = _blocks(content, network)
        if found:
            return f"feature: messages[{number}] {found}"
    return None


def _system(system: object, network: bool) -> str | None:
    if isinstance(system, list) and len(system) > MAX_SYSTEM:
        return f"feature: more than {MAX_SYSTEM} system blocks"
    found = _blocks(system, network)
    return f"feature: system {found}" if found else None


def _blocks(content: object, network: bool) -> str | None:
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
        if not isinstance(kind, str) or not (network or kind in _BLOCKS):
            return f"block {str(kind)[:64]}"
        if kind in ("image", "document"):
            source = block.get("source")
            origin = source.get("type") if isinstance(source, dict) else source
            if not isinstance(source, dict) or not isinstance(origin, str) or not (network or origin in _SOURCES):
                return f"source {str(origin)[:64]}"
            todo.extend(_inner(source.get("content")))
        if kind == "tool_result":
            todo.extend(_inner(block.get("content")))
    return None


def _inner(content: object) -> Iterable[Any]:
    if content is None or isinstance(content, str):
        return ()
    return content if isinstance(content, list) else (content,)
