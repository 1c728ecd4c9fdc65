"""An Anthropic reply put together while its bytes pass by: finished blocks at once, model, stop reason and usage at the end."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from realcli.api.trial import Tokens
from realcli_session.gateway.sse import SseEvent

_DELTAS = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature", "input_json_delta": "partial_json"}


@dataclass
class _Open:
    block: dict[str, Any]
    parts: dict[str, list[str]] = field(default_factory=dict)


class Reply:
    """One message. Finished content blocks are handed out by `feed`, in the order in which they end.

    `complete`: the provider said `message_stop` (or gave the whole JSON). `error`: it broke off with an error of its own.
    """

    def __init__(self) -> None:
        self.id: str | None = None
        self.model: str | None = None
        self.stop_reason: str | None = None
        self.complete = False
        self.error: str | None = None
        self.usage: dict[str, JsonValue] = {}
        self.usage_final = False
        self.blocks: list[dict[str, Any]] = []
        self._open: dict[int, _Open] = {}

    def whole(self, message: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Take a reply that was not streamed; returns its content blocks."""
        self._start(message)
        self.stop_reason = _text(message.get("stop_reason"))
        content = message.get("content")
        self.blocks = [block for block in content if isinstance(block, dict)] if isinstance(content, list) else []
        self.complete, self.usage_final = True, bool(self.usage)
        return list(self.blocks)

    def feed(self, event: SseEvent) -> list[dict[str, Any]]:
        """Take one event; returns the content blocks it finishes. An unreadable one is skipped."""
        try:
            data = json.loads(event.data)
        except (ValueError, RecursionError):
            return []
        if not isinstance(data, dict):
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
                self.stop_reason = _text(delta.get("stop_reason")) or self.stop_reason
            self._use(data.get("usage"))
            self.usage_final = self.usage_final or isinstance(data.get("usage"), dict)
        elif kind == "message_stop":
            self.complete = True
        elif kind == "error":
            self.error = json.dumps(data.get("error"), ensure_ascii=False)
        return []

    def tokens(self) -> Tokens | None:
        """Usage in the project's terms; None if the provider gave no final one (an aborted stream)."""
        if not self.usage_final:
            return None
        return Tokens(
            input=_count(self.usage, "input_tokens"),
            cache_read=_count(self.usage, "cache_read_input_tokens"),
            cache_write=_count(self.usage, "cache_creation_input_tokens"),
            output=_count(self.usage, "output_tokens"),
        )

    def message(self) -> dict[str, Any]:
        """What was received, as one message; unfinished blocks at the end, marked `unfinished`."""
        rest = [{**_join(opened), "unfinished": True} for _, opened in sorted(self._open.items())]
        return {
            "id": self.id,
            "model": self.model,
            "stop_reason": self.stop_reason,
            "content": [*self.blocks, *rest],
            "usage": self.usage,
        }

    def _start(self, message: Mapping[str, Any]) -> None:
        self.id, self.model = _text(message.get("id")), _text(message.get("model"))
        self._use(message.get("usage"))

    def _use(self, usage: object) -> None:
        if isinstance(usage, dict):
            self.usage.update({key: value for key, value in usage.items() if value is not None})

    def _delta(self, index: int, delta: dict[str, Any]) -> None:
        opened, key = self._open.get(index), _DELTAS.get(str(delta.get("type")))
        if opened is not None and key is not None and isinstance(delta.get(key), str):
            opened.parts.setdefault(key, []).append(delta[key])

    def _stop(self, index: int) -> list[dict[str, Any]]:
        opened = self._open.pop(index, None)
        if opened is None:
            return []
        block = _join(opened)
        self.blocks.append(block)
        return [block]


def _join(opened: _Open) -> dict[str, Any]:
    block = dict(opened.block)
    for key, parts in opened.parts.items():
        text = "".join(parts)
        if key == "partial_json":
            block["input"] = _input(text)
        else:
            block[key] = str(block.get(key) or "") + text
    return block


def _input(text: str) -> JsonValue:
    """A tool's input; as text if the model was cut before it was whole."""
    try:
        value: JsonValue = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return text
    return value


def _index(data: dict[str, Any]) -> int:
    index = data.get("index")
    return index if isinstance(index, int) else -1


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _count(usage: Mapping[str, JsonValue], key: str) -> int:
    """A counter the Anthropic API leaves out when it does not apply (no cache used): absent is none."""
    value = usage.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else 0
