"""The Anthropic Messages wire."""

from __future__ import annotations

import json
from collections.abc import Iterator

from realcli_provider.conversation import Part, Reply, Request, Tool, conversation_of, interjected, visible, without_reminders
from realcli_provider.dialects.port import Body, blocks, lacking, pieces, sse, text_of
from realcli_provider.reply import Made

ERROR_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    529: "overloaded_error",
}
_STOPS = {"end": "end_turn", "tool": "tool_use", "length": "max_tokens", "refusal": "refusal"}


def error(status: int, message: str, request_id: str) -> Body:
    """The body of every answer that is an error."""
    kind = ERROR_KINDS.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": request_id}


def invalid(body: object) -> str | None:
    """See Dialect."""
    if fault := lacking(body, ("model", str, "string"), ("messages", list, "list"), ("max_tokens", int, "integer")):
        return fault
    assert isinstance(body, dict)
    if not body["messages"]:
        return "messages: at least one message is required"
    if not all(isinstance(message, dict) for message in body["messages"]):
        return "messages: Input should be a valid dictionary"
    if body["messages"][-1].get("role") != "user":
        return "messages: the last message has to be of the user"
    return None


def parse(body: Body) -> Request:
    """What the agent program adds for the model's eyes is left out."""
    tools = tuple(Tool(str(tool.get("name")), "function") for tool in blocks(body.get("tools")))
    return Request(
        api="anthropic",
        model=body["model"],
        stream=bool(body.get("stream")),
        conversation=conversation_of(parts(body["messages"])),
        system=text_of(body.get("system")),
        tools=tools,
        agent="claude-code" if any(tool.name in ("Bash", "Read") for tool in tools) else None,
    )


def parts(messages: list[Body]) -> Iterator[Part]:
    """Each block of the user's messages is a part; an answer of ours is one."""
    for message in messages:
        if message.get("role") == "assistant":
            yield Part(True)
        else:
            yield from (Part(False, _reply(block)) for block in blocks(message.get("content")))


def _reply(block: Body) -> Reply:
    if block.get("type") == "text":
        return Reply(said=visible(str(block.get("text", ""))))
    if block.get("type") == "tool_result":
        text = text_of(block.get("content"))
        return Reply(result=without_reminders(text), said=interjected(text), is_error=bool(block.get("is_error")))
    return Reply()


def whole(made: Made, body: Body) -> Body:
    """The complete answer."""
    content: list[Body] = []
    if made.thinking:
        content.append({"type": "thinking", "thinking": made.thinking, "signature": f"sig_{made.mark}"})
    if made.text or not made.calls:
        content.append({"type": "text", "text": made.text})
    for number, call in enumerate(made.calls):
        suffix = f"{number:02x}" if number else ""
        content.append({"type": "tool_use", "id": f"toolu_01{made.mark}{suffix}", "name": call.name, "input": call.input})
    usage = made.usage
    return {
        "id": f"msg_01{made.mark}",
        "type": "message",
        "role": "assistant",
        "model": made.model,
        "content": content,
        "stop_reason": _STOPS[made.stop],
        "stop_sequence": None,
        "usage": {
            "input_tokens": usage.fresh,
            "cache_creation_input_tokens": usage.written,
            "cache_read_input_tokens": usage.read,
            "cache_creation": {"ephemeral_5m_input_tokens": usage.written, "ephemeral_1h_input_tokens": 0},
            "output_tokens": usage.output,
            "service_tier": "standard",
        },
    }


def events(made: Made, body: Body) -> Iterator[bytes]:
    """The same answer as a stream."""
    answer = whole(made, body)
    begun = {**answer, "content": [], "stop_reason": None, "usage": {**answer["usage"], "output_tokens": 1}}
    yield _event("message_start", message=begun)
    yield _event("ping")
    for index, block in enumerate(answer["content"]):
        yield from _block(index, block)
    ended = {"stop_reason": answer["stop_reason"], "stop_sequence": None}
    yield _event("message_delta", delta=ended, usage=answer["usage"])
    yield _event("message_stop")


def _block(index: int, block: Body) -> Iterator[bytes]:
    if block["type"] == "text":
        empty: Body = {"type": "text", "text": ""}
        deltas = [{"type": "text_delta", "text": piece} for piece in pieces(block["text"])]
    elif block["type"] == "thinking":
        empty = {"type": "thinking", "thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    else:
        empty = {**block, "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces(json.dumps(block["input"]))]]
    yield _event("content_block_start", index=index, content_block=empty)
    for delta in deltas:
        yield _event("content_block_delta", index=index, delta=delta)
    yield _event("content_block_stop", index=index)


def _event(kind: str, **data: object) -> bytes:
    return sse(kind, {"type": kind, **data})
