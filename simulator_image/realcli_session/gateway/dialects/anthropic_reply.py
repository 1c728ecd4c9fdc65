"""An Anthropic reply put together while its bytes pass by: finished blocks at once, model, stop reason and usage at the end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from realcli.api.trial import Tokens
from realcli_session.gateway.dialects.base import Called, Part, Said
from realcli_session.gateway.dialects.json_parts import arguments_of, count_of, error_text, object_of, part_of, text_of
from realcli_session.gateway.sse import SseEvent

_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature", "input_json_delta": "partial_json"}


@dataclass
class _Open:
    block: dict[str, Any]
    parts: dict[str, list[str]] = field(default_factory=dict)


class AnthropicReply:
    """One message; see `ReplyReader`. Complete at `message_stop`."""

    def __init__(self) -> None:
        self.id: str | None = None
        self.model: str | None = None
        self.stop_reason: str | None = None
        self.complete = False
        self.error: str | None = None
        self.usage: dict[str, JsonValue] = {}
        self._usage_final = False
        self._blocks: list[dict[str, Any]] = []
        self._open: dict[int, _Open] = {}

    @property
    def refusal(self) -> bool:
        """The stop reason says so."""
        return self.stop_reason == "refusal"

    def whole(self, message: Mapping[str, Any]) -> list[Part]:
        """Take a reply that was not streamed."""
        self._start(message)
        self.stop_reason = text_of(message.get("stop_reason"))
        content = message.get("content")
        if isinstance(content, list):
            self._blocks = [block for block in content if isinstance(block, dict)]
            self.complete, self._usage_final = True, bool(self.usage)
        return [part for block in self._blocks for part in _parts(block)]

    def feed(self, event: SseEvent) -> list[Part]:
        """Take one event."""
        data = object_of(event.data)
        if data is None:
            return []
        kind = data.get("type")
        if kind == "message_start" and isinstance(data.get("message"), dict):
            self._start(data["message"])
        elif kind == "content_block_start" and isinstance(data.get("content_block"), dict):
            self._open[_index(data)] = _Open(dict(data["content_block"]))
        elif kind == "content_block_delta" and isinstance(data.get("delta"), dict):
            self._delta(_index(data), data["delta"])
        elif kind == "content_block_stop":
            return self._stop(_index(data))
        elif kind == "message_delta":
            delta = data.get("delta")
            if isinstance(delta, dict):
                self.stop_reason = text_of(delta.get("stop_reason")) or self.stop_reason
            self._use(data.get("usage"))
            self._usage_final = self._usage_final or isinstance(data.get("usage"), dict)
        elif kind == "message_stop":
            self.complete = True
        elif kind == "error":
            self.error = error_text(data.get("error"))
        return []

    def end(self) -> list[Part]:
        """Nothing but `message_stop` ends a message."""
        return []

    def tokens(self) -> Tokens | None:
        """`input_tokens` leaves out what the cache gave or took."""
        if not self._usage_final:
            return None
        fresh, output = count_of(self.usage, "input_tokens"), count_of(self.usage, "output_tokens")
        read, write = part_of(self.usage, "cache_read_input_tokens"), part_of(self.usage, "cache_creation_input_tokens")
        if fresh is None or output is None or read is None or write is None:
            return None
        return Tokens(input=fresh, cache_read=read, cache_write=write, output=output)

    def message(self) -> dict[str, Any]:
        """As one message."""
        rest = [{**_join(opened), "unfinished": True} for _, opened in sorted(self._open.items())]
        return {
            "id": self.id,
            "model": self.model,
            "stop_reason": self.stop_reason,
            "content": [*self._blocks, *rest],
            "usage": self.usage,
        }

    def _start(self, message: Mapping[str, Any]) -> None:
        self.id, self.model = text_of(message.get("id")), text_of(message.get("model"))
        self._use(message.get("usage"))

    def _use(self, usage: object) -> None:
        if isinstance(usage, dict):
            self.usage.update({key: value for key, value in usage.items() if value is not None})

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        opened, key = self._open.get(index), _DELTAS.get(str(delta.get("type")))
        if opened is not None and key is not None and isinstance(delta.get(key), str):
            opened.parts.setdefault(key, []).append(delta[key])

    def _stop(self, index: int) -> list[Part]:
        opened = self._open.pop(index, None)
        if opened is None:
            return []
        block = _join(opened)
        self._blocks.append(block)
        return _parts(block)


def _parts(block: Mapping[str, Any]) -> list[Part]:
    kind = block.get("type")
    if kind == "text" and isinstance(block.get("text"), str):
        return [Said(block["text"])]
    if kind == "tool_use":
        return [Called(str(block.get("id")), str(block.get("name")), block.get("input"))]
    return []


def _join(opened: _Open) -> dict[str, Any]:
    block = dict(opened.block)
    for key, parts in opened.parts.items():
        text = "".join(parts)
        if key == "partial_json":
            block["input"] = arguments_of(text)
        else:
            block[key] = str(block.get(key) or "") + text
    return block


def _index(data: dict[str, Any]) -> int:
    index = data.get("index")
    return index if isinstance(index, int) else -1
