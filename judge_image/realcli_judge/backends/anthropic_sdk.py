"""A judge on the Anthropic Messages API, by the official SDK."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from time import sleep as _sleep
from typing import Any

import anthropic
import httpx2
from anthropic.types import Message as Answer

from realcli.api.trial import Tokens
from realcli.judging.model import JudgeReply, JudgeRequest, Message, ToolUse
from realcli.judging.opening import QUESTIONS
from realcli_judge.backends.calling import TIMEOUT, Trouble, as_object, call, plain, reply_from, usage_of
from realcli_judge.backends.timed import hooks

_CACHED = {"cache_control": {"type": "ephemeral"}}
_STOPS = {"end_turn": "end", "stop_sequence": "end", "tool_use": "tools", "max_tokens": "length", "refusal": "refusal"}


class AnthropicBackend:
    """`Backend`. `url` without /v1; None: the provider's own."""

    def __init__(self, url: str | None, key: str, sleep: Callable[[float], None] = _sleep) -> None:
        client = anthropic.DefaultHttpxClient(timeout=TIMEOUT, event_hooks=hooks(httpx2))
        weakref.finalize(self, client.close)  # the SDK ends those that it makes itself
        self._client = anthropic.Anthropic(
            api_key=key, auth_token=None, base_url=url, max_retries=0, timeout=TIMEOUT, http_client=client
        )
        self._where, self._key, self._sleep = url or "the Anthropic API", key, sleep

    def close(self) -> None:
        """End its connections; nothing is asked after that."""
        self._client.close()

    def complete(self, request: JudgeRequest) -> JudgeReply:
        """See `realcli.judging.port.Backend`."""
        body = body_of(request)
        return call(
            lambda: reply_from(reply_of, self._client.messages.create(**body)),
            _trouble, self._where, self._key, self._sleep,
        )  # fmt: skip


def _checked(answer: object) -> Answer:
    """ValueError for what a broken endpoint sends with status 200; the SDK takes a good deal."""
    if not isinstance(answer, Answer) or not isinstance(answer.content, list):
        raise ValueError("no message")
    return answer


def body_of(request: JudgeRequest) -> dict[str, Any]:
    """The request as the API wants it. The run, which is the same for every vote, and the newest message are cached."""
    messages = list(_messages(request.messages))
    messages[-1]["content"][-1] |= _CACHED
    body: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.parameters.max_output_tokens,
        "system": [{"type": "text", "text": request.system, **_CACHED}],
        "messages": messages,
        "tools": [
            {"name": tool.name, "description": tool.description, "input_schema": tool.parameters} for tool in request.tools
        ],
    }
    if request.parameters.temperature is not None:
        body["temperature"] = float(request.parameters.temperature)
    return body


def _messages(messages: list[Message]) -> Iterator[dict[str, Any]]:
    for number, message in enumerate(messages):
        blocks: list[dict[str, Any]] = []
        for returned in message.returns:
            blocks.append(
                {"type": "tool_result", "tool_use_id": returned.id, "content": returned.text, "is_error": returned.is_error}
            )
        if message.text:
            run, heading, questions = message.text.rpartition(f"\n{QUESTIONS}\n")
            if number == 0 and heading:
                blocks.append({"type": "text", "text": run, **_CACHED})
                blocks.append({"type": "text", "text": f"{QUESTIONS}\n{questions}"})
            else:
                blocks.append({"type": "text", "text": message.text})
        blocks += [{"type": "tool_use", "id": use.id, "name": use.name, "input": use.input} for use in message.uses]
        yield {"role": message.role, "content": blocks or [{"type": "text", "text": "(nothing)"}]}


def reply_of(given: object) -> JudgeReply:
    """What came back; thinking is left out."""
    answer = _checked(given)
    texts = [plain(block.text) for block in answer.content if block.type == "text"]
    uses = [
        ToolUse(id=plain(block.id), name=plain(block.name), input=as_object(block.input))
        for block in answer.content
        if block.type == "tool_use"
    ]
    return JudgeReply.model_validate(
        {
            "message": Message(role="assistant", text="\n".join(texts), uses=uses),
            "stop": _STOPS.get(answer.stop_reason or "", "other"),
            "model": plain(answer.model),
            "usage": _usage(answer.usage),
        }
    )


def _usage(usage: object) -> Tokens | None:
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return usage_of(*(getattr(usage, name, None) for name in names))


def _trouble(error: Exception) -> Trouble | None:
    match error:
        case anthropic.APIStatusError():
            return Trouble(error.status_code, error.message, error.response.headers.get("retry-after"))
        case anthropic.APIConnectionError():
            return Trouble(None, f"no answer: {error.message}")
        case anthropic.AnthropicError() | ValueError() | RecursionError():
            return Trouble(None, f"an answer that is none of the API's: {error}")
        case _:
            return None
