"""A Responses answer put together while its bytes pass by: items as they are done, usage at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from realcli.api.trial import Tokens
from realcli_session.gateway.dialects.base import Called, Part, Said
from realcli_session.gateway.dialects.json_parts import arguments_of, error_text, list_of, mapping_of, object_of, text_of
from realcli_session.gateway.dialects.openai import names_filter, tokens_of
from realcli_session.gateway.sse import SseEvent

_DELTAS = {
    "response.output_text.delta": "text",
    "response.function_call_arguments.delta": "arguments",
    "response.custom_tool_call_input.delta": "input",
    "response.reasoning_summary_text.delta": "summary",
    "response.reasoning_text.delta": "reasoning",
    "response.refusal.delta": "refusal",
}
_ENDS = frozenset({"response.completed", "response.incomplete"})


@dataclass
class _Open:
    item: dict[str, Any]
    parts: dict[str, list[str]] = field(default_factory=dict)


class ResponsesReply:
    """One response; see `ReplyReader`. Complete at `response.completed` and `response.incomplete`; failed ones are not."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.model: str | None = None
        self.stop_reason: str | None = None
        self.refusal = False
        self.complete = False
        self.error: str | None = None
        self.usage: dict[str, JsonValue] = {}
        self._items: list[dict[str, Any]] = []
        self._open: dict[object, _Open] = {}

    def feed(self, event: SseEvent) -> list[Part]:
        """Take one event."""
        data = object_of(event.data)
        if data is None:
            return []
        kind = text_of(data.get("type"))
        response = mapping_of(data.get("response"))
        if kind in ("response.created", "response.in_progress"):
            self._about(response)
        elif kind == "response.output_item.added" and isinstance(data.get("item"), dict):
            self._open[_key(data)] = _Open(dict(data["item"]))
        elif kind in _DELTAS and isinstance(data.get("delta"), str):
            opened = self._open.get(_key(data))
            if opened is not None:
                opened.parts.setdefault(_DELTAS[kind], []).append(data["delta"])
        elif kind == "response.output_item.done" and isinstance(data.get("item"), dict):
            self._open.pop(_key(data), None)
            return self._done(data["item"])
        elif kind in _ENDS:
            self._finish(response)
        elif kind == "response.failed":
            self._about(response)
            self._broke(response.get("error"))
        elif kind == "error":
            self._broke(data.get("error") or {name: data.get(name) for name in ("code", "message")})
        return []

    def end(self) -> list[Part]:
        """Nothing but an event of the API's ends a response."""
        return []

    def whole(self, message: Mapping[str, Any]) -> list[Part]:
        """Take a response that was not streamed."""
        output = message.get("output")
        if message.get("status") == "failed" or not isinstance(output, list):
            self._about(message)
            if message.get("error") is not None:
                self._broke(message["error"])
            return []
        parts = [part for item in output if isinstance(item, dict) for part in self._done(item)]
        self._finish(message)
        return parts

    def tokens(self) -> Tokens | None:
        """`input_tokens` counts cached ones too."""
        return tokens_of(self.usage, "input_tokens", "output_tokens") if self.complete else None

    def message(self) -> dict[str, Any]:
        """As one response."""
        return {
            "id": self.id,
            "model": self.model,
            "status": self.stop_reason,
            "output": [*self._items, *(_join(opened) for opened in self._open.values())],
            "usage": self.usage,
        }

    def _about(self, response: Mapping[str, Any]) -> None:
        self.id = text_of(response.get("id")) or self.id
        self.model = text_of(response.get("model")) or self.model
        usage = mapping_of(response.get("usage"))
        self.usage.update({name: value for name, value in usage.items() if value is not None})

    def _finish(self, response: Mapping[str, Any]) -> None:
        self._about(response)
        incomplete = mapping_of(response.get("incomplete_details")).get("reason")
        self.stop_reason = text_of(incomplete) or text_of(response.get("status"))
        self.refusal = self.refusal or self.stop_reason == "content_filter"
        self.complete = True

    def _broke(self, error: object) -> None:
        self.error = error_text(error)
        self.refusal = self.refusal or names_filter(error)

    def _done(self, item: dict[str, Any]) -> list[Part]:
        self._items.append(item)
        content = [part for part in list_of(item.get("content")) if isinstance(part, dict)]
        kind = item.get("type")
        if kind == "message":
            self.refusal = self.refusal or any(part.get("type") == "refusal" for part in content)
            texts = [part["text"] for part in content if part.get("type") == "output_text" and isinstance(part.get("text"), str)]
            return [Said("".join(texts))] if texts else []
        call_id = str(item.get("call_id") or item.get("id"))
        match kind:
            case "function_call":
                space = text_of(item.get("namespace"))
                name = f"{space}.{item.get('name')}" if space else str(item.get("name"))
                return [Called(call_id, name, arguments_of(item.get("arguments")))]
            case "custom_tool_call":
                return [Called(call_id, str(item.get("name")), text_of(item.get("input")))]
            case "local_shell_call" | "shell_call":
                return [Called(call_id, str(kind).removesuffix("_call"), item.get("action"))]
            case "apply_patch_call":
                return [Called(call_id, "apply_patch", item.get("operation"))]
            case "tool_search_call":
                return [Called(call_id, "tool_search", item.get("arguments"))]
        return []


def _join(opened: _Open) -> dict[str, Any]:
    texts = {name: "".join(parts) for name, parts in opened.parts.items()}
    return {**opened.item, **({"received": texts} if texts else {}), "unfinished": True}


def _key(data: Mapping[str, Any]) -> object:
    """Which item an event is about."""
    index, item_id = data.get("output_index"), data.get("item_id")
    return index if isinstance(index, int) else text_of(item_id)
