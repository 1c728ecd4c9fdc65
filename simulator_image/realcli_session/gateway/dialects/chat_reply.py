"""A chat completion put together while its bytes pass by: text and calls when the choice is finished, usage after it."""

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


@dataclass
class _Call:
    call_id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class ChatReply:
    """One completion of one choice; see `ReplyReader`.

    Complete at `[DONE]`, or where the stream ends in order after a finish reason: not every server says `[DONE]`.
    """

    def __init__(self) -> None:
        self.id: str | None = None
        self.model: str | None = None
        self.stop_reason: str | None = None
        self.refusal = False
        self.complete = False
        self.error: str | None = None
        self.usage: dict[str, JsonValue] = {}
        self._text: list[str] = []
        self._reasoning: list[str] = []
        self._declined: list[str] = []
        self._calls: dict[int, _Call] = {}
        self._handed_out = False

    def feed(self, event: SseEvent) -> list[Part]:
        """Take one event."""
        if event.data.strip() == "[DONE]":
            return self._done()
        data = object_of(event.data)
        if data is None:
            return []
        if data.get("error") is not None:
            self._broke(data["error"])
            return []
        self._about(data)
        for choice in list_of(data.get("choices")):
            if isinstance(choice, dict) and choice.get("index", 0) == 0:
                self._take(mapping_of(choice.get("delta")))
                self._stopped(choice.get("finish_reason"))
        return self._parts() if self.stop_reason is not None else []

    def end(self) -> list[Part]:
        """The connection was closed in order."""
        return self._done() if self.stop_reason is not None and self.error is None else []

    def whole(self, message: Mapping[str, Any]) -> list[Part]:
        """Take a completion that was not streamed."""
        self._about(message)
        choices = [choice for choice in list_of(message.get("choices")) if isinstance(choice, dict)]
        if not choices:
            if message.get("error") is not None:
                self._broke(message["error"])
            return []
        self._take(mapping_of(choices[0].get("message")))
        self._stopped(choices[0].get("finish_reason"))
        return self._done()

    def tokens(self) -> Tokens | None:
        """`prompt_tokens` counts cached ones too. A stream tells usage only if the agent asked for it."""
        return tokens_of(self.usage, "prompt_tokens", "completion_tokens") if self.complete else None

    def message(self) -> dict[str, Any]:
        """As one completion."""
        said: dict[str, Any] = {"role": "assistant", "content": "".join(self._text)}
        if self._reasoning:
            said["reasoning_content"] = "".join(self._reasoning)
        if self._declined:
            said["refusal"] = "".join(self._declined)
        if self._calls:
            said["tool_calls"] = [
                {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": "".join(call.arguments)}}
                for _, call in sorted(self._calls.items())
            ]
        choice = {"index": 0, "message": said, "finish_reason": self.stop_reason}
        if not self.complete:
            choice["unfinished"] = True
        return {"id": self.id, "model": self.model, "choices": [choice], "usage": self.usage}

    def _about(self, data: Mapping[str, Any]) -> None:
        self.id = text_of(data.get("id")) or self.id
        self.model = text_of(data.get("model")) or self.model
        self.usage.update({name: value for name, value in mapping_of(data.get("usage")).items() if value is not None})

    def _take(self, delta: Mapping[str, Any]) -> None:
        content = delta.get("content")
        if isinstance(content, str):
            self._text.append(content)
        for name, into in (("reasoning_content", self._reasoning), ("reasoning", self._reasoning), ("refusal", self._declined)):
            if isinstance(delta.get(name), str) and delta[name]:
                into.append(delta[name])
        for given in list_of(delta.get("tool_calls")):
            if not isinstance(given, dict):
                continue
            call = self._calls.setdefault(self._index(given), _Call())
            call.call_id = text_of(given.get("id")) or call.call_id
            function = mapping_of(given.get("function") or given.get("custom"))
            call.name = text_of(function.get("name")) or call.name
            call.arguments.append(text_of(function.get("arguments")) or text_of(function.get("input")) or "")

    def _index(self, given: Mapping[str, Any]) -> int:
        """Which call a piece belongs to: its index; without one its id, or the last call."""
        index, call_id = given.get("index"), text_of(given.get("id"))
        if isinstance(index, int):
            return index
        known = [number for number, call in self._calls.items() if call_id is not None and call.call_id == call_id]
        new = call_id is not None or not self._calls
        return known[0] if known else max(self._calls, default=-1) + (1 if new else 0)

    def _stopped(self, reason: object) -> None:
        self.stop_reason = text_of(reason) or self.stop_reason
        self.refusal = self.refusal or self.stop_reason == "content_filter" or bool(self._declined)

    def _broke(self, error: object) -> None:
        self.error = error_text(error)
        self.refusal = self.refusal or names_filter(error)

    def _done(self) -> list[Part]:
        self.complete = self.error is None
        return self._parts()

    def _parts(self) -> list[Part]:
        if self._handed_out:
            return []
        self._handed_out = True
        text = "".join(self._text)
        calls = [
            Called(call.call_id, call.name, arguments_of("".join(call.arguments))) for _, call in sorted(self._calls.items())
        ]
        return [*([Said(text)] if text else []), *calls]
