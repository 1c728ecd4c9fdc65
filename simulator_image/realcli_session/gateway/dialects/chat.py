"""OpenAI Chat Completions, as Terminus-2 (and LiteLLM for it) speaks it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from realcli.api.models import Api
from realcli_session.gateway.allow import MAX_MESSAGES, digest_of, result_text, unknown_field
from realcli_session.gateway.dialects import openai
from realcli_session.gateway.dialects.base import Output, ReplyReader, Route, Shown
from realcli_session.gateway.dialects.chat_reply import ChatReply

_FIELDS = frozenset(
    {
        *("model", "messages", "tools", "tool_choice", "parallel_tool_calls", "stream", "stream_options", "temperature", "top_p"),
        *("max_tokens", "max_completion_tokens", "stop", "seed", "n", "presence_penalty", "frequency_penalty", "logit_bias"),
        *("logprobs", "top_logprobs", "response_format", "reasoning_effort", "verbosity", "user", "metadata", "store"),
        *("service_tier", "safety_identifier", "prompt_cache_key", "top_k", "min_p", "thinking"),
    }
)
_TOOLS = frozenset({"function", "custom"})
_PARTS = frozenset({"text", "refusal", "image_url", "thinking", "redacted_thinking"})
_ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
_ERROR_FIRST = re.compile(rb'\s*(event: ?error\b|data: ?\{\s*"error"\s*:\s*[{"])')
_UNREAD = frozenset({"stream", "stream_options"})


class Chat:
    """The dialect; see `Dialect`."""

    name: Api = "chat"
    plain_path = "/v1/chat/completions"

    def base_url(self, origin: str) -> str:
        """With /v1."""
        return f"{origin}/v1"

    def route(self, method: str, path: str, query: str) -> Route | None:
        """Completions and models; the API counts no tokens."""
        if method == "GET" and openai.MODEL_PATH.fullmatch(path):
            return "models"
        return "generate" if method == "POST" and not query and path == "/v1/chat/completions" else None

    def upstream_url(self, upstream: str, path: str, query: str) -> str:
        """The endpoint has the /v1."""
        return openai.upstream_url(upstream, path, query)

    def credentials(self, key: str) -> dict[str, str]:
        """A bearer token."""
        return {"authorization": f"Bearer {key}"}

    def forwarded(self, header: str) -> bool:
        """See openai.forwarded."""
        return openai.forwarded(header)

    def passed_back(self, header: str) -> bool:
        """See openai.passed_back."""
        return openai.passed_back(header)

    def refused(self, body: Mapping[str, Any], *, network: bool = False) -> str | None:
        """Web search, stored completions, audio, files, images by URL; more than one choice, which no reader takes apart."""
        if body.get("store"):
            return "feature: store"
        if body.get("n") not in (None, 1):
            return "feature: n other than 1"
        return (
            unknown_field(body, _FIELDS | ({"web_search_options"} if network else frozenset()))
            or _tools(body.get("tools"), network)
            or _messages(body.get("messages"), network)
        )

    def turn_key(self, body: Mapping[str, Any]) -> str:
        """Everything but how the answer is sent."""
        return digest_of({name: value for name, value in body.items() if name not in _UNREAD})

    def shown(self, body: Mapping[str, Any]) -> Shown:
        """System prompts stand among the messages."""
        return Shown(system=[], tools=body.get("tools") or None, messages=body["messages"])

    def outputs(self, body: Mapping[str, Any]) -> Iterator[Output]:
        """Messages of the role tool."""
        for message in body["messages"]:
            if message.get("role") == "tool":
                yield Output(str(message.get("tool_call_id")), result_text(message.get("content")), is_error=False)

    def texts(self, body: Mapping[str, Any]) -> Iterator[str]:
        """User messages: for Terminus-2 these are the screen."""
        for message in body["messages"]:
            if message.get("role") != "user":
                continue
            content = message.get("content")
            if isinstance(content, str):
                yield content
            else:
                yield from (part["text"] for part in content or () if isinstance(part.get("text"), str))

    def visible(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
        """Nothing tells main and side requests apart: Terminus-2 offers no tools at all."""
        return True

    def reader(self) -> ReplyReader:
        """For one completion."""
        return ChatReply()

    def begins_with_error(self, first: bytes) -> bool:
        """An error object first."""
        return _ERROR_FIRST.match(first) is not None

    def refusal_error(self, status: int, message: Mapping[str, Any]) -> bool:
        """The error names a filter."""
        return status == 400 and openai.declined(message)

    def plain(self, model: str) -> Sequence[dict[str, Any]]:
        """The name of the bound depends on model and server; some reasoning models refuse a small one."""
        body = {"model": model, "messages": [{"role": "user", "content": "Hi"}]}
        return [{**body, "max_completion_tokens": 16}, {**body, "max_tokens": 1}, body]

    def error(self, status: int, message: str, code: str | None = None) -> dict[str, Any]:
        """See openai.error."""
        return openai.error(status, message, code)

    def models(self, model: str) -> dict[str, Any]:
        """See openai.models."""
        return openai.models(model)


CHAT = Chat()


def _tools(tools: object, network: bool) -> str | None:
    if tools is None:
        return None
    if not isinstance(tools, list):
        return "feature: tools is not a list"
    for number, tool in enumerate(tools):
        kind = tool.get("type") if isinstance(tool, dict) else None
        if not isinstance(kind, str) or not (network or kind in _TOOLS):
            return f"feature: tools[{number}].type {str(kind)[:64]}"
    return None


def _messages(messages: object, network: bool) -> str | None:
    if not isinstance(messages, list):
        return "feature: messages is not a list"
    if len(messages) > MAX_MESSAGES:
        return f"feature: more than {MAX_MESSAGES} messages"
    for number, message in enumerate(messages):
        if not isinstance(message, dict):
            return f"feature: messages[{number}] is not an object"
        role = message.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            return f"feature: messages[{number}].role {str(role)[:64]}"
        if message.get("audio") is not None:
            return f"feature: messages[{number}].audio"
        found = _parts(message.get("content"), network)
        if found:
            return f"feature: messages[{number}] {found}"
    return None


def _parts(content: object, network: bool) -> str | None:
    if content is None or isinstance(content, str):
        return None
    if not isinstance(content, list):
        return "content is neither text nor a list"
    for part in content:
        if not isinstance(part, dict):
            return "part is not an object"
        kind = part.get("type")
        if not isinstance(kind, str) or not (network or kind in _PARTS):
            return f"part {str(kind)[:64]}"
        if kind == "image_url":
            image = part.get("image_url")
            found = openai.image_refused(image.get("url") if isinstance(image, dict) else image, network)
            if found:
                return found
    return None
