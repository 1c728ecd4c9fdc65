"""The OpenAI Chat Completions wire, for agents with tools, for Terminus-2 and for the simulated user."""

from __future__ import annotations

import json
from collections.abc import Iterator

from realcli_provider import terminus
from realcli_provider.conversation import Part, Reply, Request, Tool, conversation_of
from realcli_provider.dialects.openai import error as error
from realcli_provider.dialects.port import Body, blocks, lacking, pieces, sse, text_of
from realcli_provider.reply import Made, ToolCall

_STOPS = {"end": "stop", "tool": "tool_calls", "length": "length", "refusal": "content_filter"}


def invalid(body: object) -> str | None:
    """See Dialect."""
    if fault := lacking(body, ("model", str, "string"), ("messages", list, "list")):
        return fault
    assert isinstance(body, dict)
    if not body["messages"] or not all(isinstance(message, dict) for message in body["messages"]):
        return "messages: expected a list of at least one message"
    return None


def parse(body: Body) -> Request:
    """Terminus-2 is known by its prompt: then keystrokes are calls and screens are results."""
    messages = body["messages"]
    first = next((text_of(m.get("content")) for m in messages if m.get("role") == "user"), "")
    tools = tuple(Tool(str(tool.get("function", {}).get("name"))) for tool in blocks(body.get("tools")))
    is_terminus = not tools and terminus.is_prompt(first)
    confirms = False
    if is_terminus:
        parts, confirms = terminus.without_confirmations(list(_screens(messages)))
    else:
        parts = list(_parts(messages))
    return Request(
        api="chat",
        model=body["model"],
        stream=bool(body.get("stream")),
        conversation=conversation_of(parts),
        system="\n".join(text_of(m.get("content")) for m in messages if m.get("role") in ("system", "developer")),
        tools=tools,
        agent="terminus-2" if is_terminus else None,
        channel=is_terminus and terminus.USER_FIELD in first,
        confirms=confirms,
    )


def _parts(messages: list[Body]) -> Iterator[Part]:
    for message in messages:
        text = text_of(message.get("content"))
        if message.get("role") == "assistant":
            yield Part(True)
        elif message.get("role") == "tool":
            yield Part(False, Reply(result=text))
        elif message.get("role") == "user":
            yield Part(False, Reply(said=text.strip()))


def _screens(messages: list[Body]) -> Iterator[tuple[Part, str]]:
    first = True
    for message in messages:
        text = text_of(message.get("content"))
        if message.get("role") == "assistant":
            yield Part(True), text
        elif message.get("role") == "user":
            yield Part(False, terminus.opening(text) if first else terminus.reply(text)), text
            first = False


def whole(made: Made, body: Body) -> Body:
    """The complete answer."""
    choice = {"index": 0, "message": _message(made), "logprobs": None, "finish_reason": _STOPS[made.stop]}
    return {**_head(made, "chat.completion"), "choices": [choice], "usage": _usage(made)}


def _head(made: Made, kind: str) -> Body:
    return {"id": f"chatcmpl-{made.mark}", "object": kind, "created": 1_764_000_000, "model": made.model}


def _message(made: Made) -> Body:
    message: Body = {"role": "assistant", "content": made.text or None, "refusal": None}
    if made.stop == "refusal" and made.text:
        message |= {"content": None, "refusal": made.text}
    if made.thinking:
        message["reasoning_content"] = made.thinking
    if made.calls:
        message["tool_calls"] = [_call(call, made.mark, number) for number, call in enumerate(made.calls)]
    return message


def _call(call: ToolCall, mark: str, number: int) -> Body:
    arguments = call.input if isinstance(call.input, str) else json.dumps(call.input)
    return {"id": f"call_{mark}{number:02x}", "type": "function", "function": {"name": call.name, "arguments": arguments}}


def _usage(made: Made) -> Body:
    usage = made.usage
    total = usage.fresh + usage.read + usage.written
    return {
        "prompt_tokens": total,
        "completion_tokens": usage.output,
        "total_tokens": total + usage.output,
        "prompt_tokens_details": {"cached_tokens": usage.read},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def events(made: Made, body: Body) -> Iterator[bytes]:
    """The same answer as a stream; usage at its end if `stream_options.include_usage` asks for it."""
    head = _head(made, "chat.completion.chunk")
    yield _chunk(head, {"role": "assistant", "content": ""})
    text = "refusal" if made.stop == "refusal" else "content"
    for field, value in (("reasoning_content", made.thinking), (text, made.text)):
        for piece in pieces(value):
            yield _chunk(head, {field: piece})
    for number, call in enumerate(made.calls):
        called = _call(call, made.mark, number)
        arguments = called["function"]["arguments"]
        begun = {**called, "index": number, "function": {"name": call.name, "arguments": ""}}
        yield _chunk(head, {"tool_calls": [begun]})
        for piece in pieces(arguments):
            yield _chunk(head, {"tool_calls": [{"index": number, "function": {"arguments": piece}}]})
    yield _chunk(head, {}, _STOPS[made.stop])
    if isinstance(options := body.get("stream_options"), dict) and options.get("include_usage"):
        yield sse(None, {**head, "choices": [], "usage": _usage(made)})
    yield sse(None, "[DONE]")


def _chunk(head: Body, delta: Body, finish: str | None = None) -> bytes:
    return sse(None, {**head, "choices": [{"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}]})
