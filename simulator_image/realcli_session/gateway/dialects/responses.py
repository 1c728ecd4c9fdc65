"""OpenAI Responses, as Codex speaks it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from realcli.api.models import Api
from realcli_session.gateway.allow import MAX_MESSAGES, digest_of, result_text, unknown_field
from realcli_session.gateway.dialects import openai
from realcli_session.gateway.dialects.base import Output, ReplyReader, Route, Shown
from realcli_session.gateway.dialects.responses_reply import ResponsesReply

SUB_AGENT: Final = "x-openai-subagent"
"""Header by which Codex marks requests of sub-agents, reviews and the like; their text is not shown to the user."""
_FIELDS = frozenset(
    {
        *("model", "instructions", "input", "tools", "tool_choice", "parallel_tool_calls", "reasoning", "store", "stream"),
        *("include", "prompt_cache_key", "text", "client_metadata", "service_tier", "max_output_tokens", "temperature", "top_p"),
        *("metadata", "truncation", "user", "safety_identifier", "top_logprobs", "stream_options", "max_tool_calls"),
    }
)
_INCLUDES = frozenset({"reasoning.encrypted_content", "message.output_text.logprobs"})
_TOOLS = frozenset({"function", "custom", "local_shell", "shell", "apply_patch"})  # run by the agent program itself
_ITEMS = frozenset(
    {
        *("message", "reasoning", "function_call", "function_call_output", "custom_tool_call", "custom_tool_call_output"),
        *("local_shell_call", "local_shell_call_output", "shell_call", "shell_call_output", "apply_patch_call"),
        *("apply_patch_call_output", "tool_search_call", "tool_search_output", "compaction", "compaction_summary"),
    }
)
_OUTPUTS = re.compile(r"(function|custom_tool|local_shell|shell|apply_patch)_call_output|tool_search_output|custom_tool_output")
_PARTS = frozenset({"input_text", "output_text", "text", "refusal", "summary_text", "reasoning_text", "input_image"})
_ERROR_FIRST = re.compile(rb"\s*event: ?(error|response\.failed)\b")
_UNREAD = frozenset({"stream", "stream_options", "client_metadata"})


class Responses:
    """The dialect; see `Dialect`."""

    name: Api = "responses"
    plain_path = "/v1/responses"

    def base_url(self, origin: str) -> str:
        """With /v1."""
        return f"{origin}/v1"

    def route(self, method: str, path: str, query: str) -> Route | None:
        """Responses, their token count, models. Nothing that was stored can be asked for."""
        if method == "GET" and openai.MODEL_PATH.fullmatch(path):
            return "models"
        if method == "POST" and not query:
            if path == "/v1/responses":
                return "generate"
            if path == "/v1/responses/input_tokens":
                return "count"
        return None

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
        """The provider's own tools, connectors, files, URLs, whatever it keeps (background, store, conversations, prompts)."""
        if body.get("store"):
            return "feature: store"
        return (
            unknown_field(body, _FIELDS)
            or _include(body.get("include"))
            or _tools(body.get("tools"), "tools", network)
            or _choice(body.get("tool_choice"), network)
            or _input(body.get("input"), network)
            or (None if isinstance(body.get("instructions"), str | None) else "feature: instructions is no text")
        )

    def turn_key(self, body: Mapping[str, Any]) -> str:
        """Everything but how the answer is sent and the program's notes about itself, which no model reads."""
        return digest_of({name: value for name, value in body.items() if name not in _UNREAD})

    def shown(self, body: Mapping[str, Any]) -> Shown:
        """Instructions, tools and input items."""
        instructions = body.get("instructions")
        return Shown(system=[instructions] if instructions else [], tools=body.get("tools") or None, messages=_items(body))

    def outputs(self, body: Mapping[str, Any]) -> Iterator[Output]:
        """Outputs of calls. The API has no mark for errors; the text says what happened."""
        for item in _items(body):
            if _OUTPUTS.fullmatch(str(item.get("type"))):
                yield Output(str(item.get("call_id")), _output_text(item), is_error=False)

    def texts(self, body: Mapping[str, Any]) -> Iterator[str]:
        """Texts of messages that are not the model's own."""
        for item in _items(body):
            if _kind(item) != "message" or item.get("role") == "assistant":
                continue
            content = item.get("content")
            if isinstance(content, str):
                yield content
                continue
            for part in content if isinstance(content, list) else ():
                if isinstance(part.get("text"), str):
                    yield part["text"]

    def visible(self, body: Mapping[str, Any], headers: Mapping[str, str]) -> bool:
        """Requests without tools are compactions and titles."""
        return bool(body.get("tools")) and SUB_AGENT not in headers

    def reader(self) -> ReplyReader:
        """For one response."""
        return ResponsesReply()

    def begins_with_error(self, first: bytes) -> bool:
        """An error event first."""
        return _ERROR_FIRST.match(first) is not None

    def refusal_error(self, status: int, message: Mapping[str, Any]) -> bool:
        """The error names a filter."""
        return status == 400 and openai.declined(message)

    def plain(self, model: str) -> Sequence[dict[str, Any]]:
        """16 tokens are the least the API takes; some servers know no bound."""
        body = {"model": model, "input": "Hi", "store": False}
        return [{**body, "max_output_tokens": 16}, body]

    def error(self, status: int, message: str, code: str | None = None) -> dict[str, Any]:
        """See openai.error."""
        return openai.error(status, message, code)

    def models(self, model: str) -> dict[str, Any]:
        """See openai.models."""
        return openai.models(model)


RESPONSES = Responses()


def _items(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    given = body.get("input")
    if isinstance(given, str):
        return [{"type": "message", "role": "user", "content": given}]
    return given if isinstance(given, list) else []


def _kind(item: Mapping[str, Any]) -> object:
    """A message may leave its type out."""
    return item.get("type", "message" if "role" in item else None)


def _output_text(item: Mapping[str, Any]) -> str:
    output = item.get("output", item.get("tools"))
    if isinstance(output, dict):  # {"content": "...", "success": true}
        output = output.get("content")
    return result_text(output)


def _include(include: object) -> str | None:
    if include is None:
        return None
    if not isinstance(include, list):
        return "feature: include is not a list"
    unknown = (name for name in include if not isinstance(name, str) or name not in _INCLUDES)
    return next((f"feature: include {str(name)[:64]}" for name in unknown), None)


def _tools(tools: object, where: str, network: bool) -> str | None:
    if tools is None:
        return None
    if not isinstance(tools, list):
        return f"feature: {where} is not a list"
    for number, tool in enumerate(tools):
        if not isinstance(tool, dict):
            return f"feature: {where}[{number}] is not an object"
        kind = tool.get("type")
        if network or (isinstance(kind, str) and kind in _TOOLS) or (kind == "tool_search" and tool.get("execution") == "client"):
            if kind == "shell" and tool.get("environment", {"type": "local"}) != {"type": "local"} and not network:
                return f"feature: {where}[{number}].environment"
            continue
        if kind == "namespace":
            found = _tools(tool.get("tools"), f"{where}[{number}].tools", network)
            if found:
                return found
            continue
        return f"feature: {where}[{number}].type {str(kind)[:64]}"
    return None


def _choice(choice: object, network: bool) -> str | None:
    """auto, none, required; one of the program's own tools, or a choice among them."""
    if choice is None or isinstance(choice, str) or network:
        return None
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind == "allowed_tools" and isinstance(choice, dict):
        return _tools(choice.get("tools"), "tool_choice.tools", network)
    return None if isinstance(kind, str) and kind in _TOOLS else f"feature: tool_choice.type {str(kind)[:64]}"


def _input(given: object, network: bool) -> str | None:
    if isinstance(given, str):
        return None
    if not isinstance(given, list):
        return "feature: input is neither text nor a list"
    if len(given) > MAX_MESSAGES:
        return f"feature: more than {MAX_MESSAGES} input items"
    for number, item in enumerate(given):
        if not isinstance(item, dict):
            return f"feature: input[{number}] is not an object"
        kind = _kind(item)
        if not isinstance(kind, str) or not (network or kind in _ITEMS):
            return f"feature: input[{number}] {str(kind)[:64]}"
        output = item.get("output")
        content = output.get("content") if isinstance(output, dict) else output
        for name, parts in (("content", item.get("content")), ("output", content), ("summary", item.get("summary"))):
            found = _parts(parts, network, bare=kind != "message")
            if found:
                return f"feature: input[{number}] {name} {found}"
        if kind == "tool_search_output":
            found = _tools(item.get("tools"), f"input[{number}].tools", network)
            if found:
                return found
    return None


def _parts(content: object, network: bool, *, bare: bool) -> str | None:
    """A text or a list of parts. `bare`: parts of a shell's output have no type."""
    if content is None or isinstance(content, str):
        return None
    if not isinstance(content, list):
        return "is neither text nor a list"
    for part in content:
        if not isinstance(part, dict):
            return "part is not an object"
        kind = part.get("type")
        if kind is None and bare and not part.keys() & {"image_url", "file_id", "file_url", "file_data"}:
            continue
        if not isinstance(kind, str) or not (network or kind in _PARTS):
            return f"part {str(kind)[:64]}"
        if kind == "input_image":
            if part.get("file_id") is not None:
                return "source file_id"
            found = openai.image_refused(part.get("image_url"), network)
            if found:
                return found
    return None
