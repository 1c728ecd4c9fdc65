"""The Anthropic Messages wire: answers as JSON and as server-sent events, usage, errors. Pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any

from provider.conversation import Action, Bash

_PIECE = 24  # characters per delta


def error_body(kind: str, message: str, request_id: str) -> dict[str, Any]:
    """The body of every answer that is an error."""
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}


ERROR_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}


def invalid(body: object) -> str | None:
    """What is wrong with a request's body, None if nothing."""
    if not isinstance(body, dict):
        return "the request body is not a JSON object"
    for name, kind in (("model", str), ("messages", list), ("max_tokens", int)):
        if name not in body:
            return f"{name}: Field required"
        if not isinstance(body[name], kind):
            return f"{name}: Input should be a valid {kind.__name__}"
    if not body["messages"]:
        return "messages: at least one message is required"
    if body["messages"][-1].get("role") != "user":
        return "messages: the last message has to be of the user"
    return None


def tokens(value: object) -> int:
    """About as many tokens as a model would count: four characters each."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return (len(text) + 3) // 4


def input_tokens(body: dict[str, Any]) -> int:
    """For count_tokens and usage."""
    return tokens(body.get("system", "")) + tokens(body.get("tools", [])) + sum(tokens(m) for m in body["messages"])


def usage(body: dict[str, Any], output: int) -> dict[str, Any]:
    """Usage as with a prompt cache: what an earlier request held is read, the rest written, a few tokens are neither."""
    total, fresh = input_tokens(body), 3
    newest = sum(tokens(message) for message in body["messages"][-2:])
    first = len(body["messages"]) == 1
    read = 0 if first or not body.get("tools") else max(total - newest - fresh, 0)
    written = max(total - read - fresh, 0) if body.get("tools") else 0
    return {
        "input_tokens": total - read - written,
        "cache_creation_input_tokens": written,
        "cache_read_input_tokens": read,
        "cache_creation": {"ephemeral_5m_input_tokens": written, "ephemeral_1h_input_tokens": 0},
        "output_tokens": output,
        "service_tier": "standard",
    }


def message(body: dict[str, Any], action: Action) -> dict[str, Any]:
    """The complete answer. Ids follow from the request, so a repeated request gets the same answer to the byte."""
    mark = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:22]
    blocks: list[dict[str, Any]] = []
    if isinstance(action, Bash):
        if action.say:
            blocks.append({"type": "text", "text": action.say})
        call = {"command": action.command, "description": action.description}
        blocks.append({"type": "tool_use", "id": f"toolu_01{mark}", "name": "Bash", "input": call})
    else:
        blocks.append({"type": "text", "text": action.text})
    return {
        "id": f"msg_01{mark}",
        "type": "message",
        "role": "assistant",
        "model": body["model"],
        "content": blocks,
        "stop_reason": "tool_use" if isinstance(action, Bash) else "end_turn",
        "stop_sequence": None,
        "usage": usage(body, sum(tokens(block) for block in blocks)),
    }


def events(answer: dict[str, Any]) -> Iterator[bytes]:
    """The same answer as a stream."""
    begun = {**answer, "content": [], "stop_reason": None, "usage": {**answer["usage"], "output_tokens": 1}}
    yield _event("message_start", message=begun)
    yield _event("ping")
    for index, block in enumerate(answer["content"]):
        if block["type"] == "text":
            yield _event("content_block_start", index=index, content_block={"type": "text", "text": ""})
            deltas = [{"type": "text_delta", "text": piece} for piece in _pieces(block["text"])]
        else:
            yield _event("content_block_start", index=index, content_block={**block, "input": {}})
            deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *_pieces(json.dumps(block["input"]))]]
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    ended = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage=answer["usage"])
    yield _event("message_stop")


def _event(kind: str, **data: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()


def _pieces(text: str) -> list[str]:
    return re.findall(rf".{{1,{_PIECE}}}", text, re.DOTALL)
