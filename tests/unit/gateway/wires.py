"""The three wire APIs as small builders: what an agent asks, what a provider answers."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from realcli.api.models import Api
from realcli.api.trial import Tokens

USED = Tokens(input=100, cache_read=20, cache_write=10, output=7)
CALL = ("call_1", "run", {"command": "ls"})
Json = dict[str, Any]


def named(*events: Json) -> bytes:
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def bare(*events: Json | str) -> bytes:
    return b"".join(f"data: {e if isinstance(e, str) else json.dumps(e)}\n\n".encode() for e in events)


@dataclass(frozen=True)
class Wire:
    """One API. Streams are lists of pieces, one event each; the first two finish no part of the answer."""

    api: Api
    path: str
    plain: Callable[[str], Json]
    """A request with one user text and one tool."""
    stream: Callable[..., list[bytes]]
    """stream(text, model=, refused=, call=): the pieces of a whole answer."""
    broken: list[bytes]
    """A stream with an error of the provider's inside, after the first byte."""
    error_first: bytes
    whole: Callable[..., Json]
    """whole(text, model=, refused=): an answer that is not streamed."""
    with_result: Callable[[str, str], Json]
    """with_result(call id, text): a request that shows a tool's result."""
    error_code: Callable[[Json], object]
    """Where the code of an error stands."""
    key_header: Callable[[str], tuple[str, str]]

    def half(self, model: str) -> list[bytes]:
        return self.stream("half", model)[:-2]


# Anthropic Messages


def _a_request(text: str) -> Json:
    tools = [{"name": "run", "description": "d", "input_schema": {"type": "object"}}]
    messages = [{"role": "user", "content": text}]
    return {"model": "m", "max_tokens": 10, "stream": True, "messages": messages, "tools": tools}


def _a_usage(output: int) -> Json:
    return {"input_tokens": 100, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 20, "output_tokens": output}


def _a_stream(text: str = "hello", model: str = "m", *, refused: bool = False, call: bool = False) -> list[bytes]:
    start = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": [], "usage": _a_usage(1)}
    events: list[Json] = [
        {"type": "message_start", "message": start},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}},
        {"type": "content_block_stop", "index": 0},
    ]
    if call:
        block = {"type": "tool_use", "id": CALL[0], "name": CALL[1], "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(CALL[2])}
        events += [
            {"type": "content_block_start", "index": 1, "content_block": block},
            {"type": "content_block_delta", "index": 1, "delta": delta},
            {"type": "content_block_stop", "index": 1},
        ]
    stop = "refusal" if refused else "tool_use" if call else "end_turn"
    events += [{"type": "message_delta", "delta": {"stop_reason": stop}, "usage": {"output_tokens": 7}}, {"type": "message_stop"}]
    return [named(event) for event in events]


def _a_whole(text: str = "hello", model: str = "m", *, refused: bool = False) -> Json:
    content = [{"type": "text", "text": text}]
    stop = "refusal" if refused else "end_turn"
    return {"id": "msg_1", "type": "message", "model": model, "content": content, "stop_reason": stop, "usage": _a_usage(7)}


def _a_result(call_id: str, text: str) -> Json:
    shown = {"type": "tool_result", "tool_use_id": call_id, "content": [{"type": "text", "text": text}]}
    return _a_request("go") | {"messages": [{"role": "user", "content": [shown]}]}


_A_ERROR = named({"type": "error", "error": {"type": "overloaded_error", "message": "busy"}})
ANTHROPIC = Wire(
    api="anthropic",
    path="/v1/messages?beta=true",
    plain=_a_request,
    stream=_a_stream,
    broken=[*_a_stream()[:4], _A_ERROR],
    error_first=_A_ERROR,
    whole=_a_whole,
    with_result=_a_result,
    error_code=lambda body: body["error"].get("code"),
    key_header=lambda key: ("x-api-key", key),
)

# OpenAI Responses


def _r_request(text: str) -> Json:
    tools = [{"type": "function", "name": "run", "description": "d", "strict": False, "parameters": {"type": "object"}}]
    message = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}
    return {
        "model": "m", "instructions": "be good", "input": [message], "tools": tools, "tool_choice": "auto", "store": False,
        "parallel_tool_calls": True, "reasoning": {"effort": "medium", "summary": "auto"}, "stream": True,
        "include": ["reasoning.encrypted_content"], "prompt_cache_key": "k", "text": {"verbosity": "low"},
        "client_metadata": {"turn_id": "t"},
    }  # fmt: skip


R_USAGE: Json = {
    "input_tokens": 130, "input_tokens_details": {"cached_tokens": 20, "cache_creation_tokens": 10}, "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3}, "total_tokens": 137,
}  # fmt: skip


def _r_items(text: str, refused: bool, call: bool) -> list[Json]:
    part = {"type": "refusal", "refusal": text} if refused else {"type": "output_text", "text": text, "annotations": []}
    items: list[Json] = [
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "hidden"}], "encrypted_content": "x"},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed", "content": [part]},
    ]
    if call:
        arguments = json.dumps(CALL[2])
        items.append({"type": "function_call", "id": "fc_1", "call_id": CALL[0], "name": CALL[1], "arguments": arguments})
    return items


def _r_stream(text: str = "hello", model: str = "m", *, refused: bool = False, call: bool = False) -> list[bytes]:
    response = {"id": "resp_1", "object": "response", "status": "in_progress", "model": model, "output": []}
    items = _r_items(text, refused, call)
    events: list[Json] = [{"type": "response.created", "response": response}]
    for index, item in enumerate(items):
        events.append({"type": "response.output_item.added", "output_index": index, "item": item | {"content": []}})
        if item["type"] == "message":
            events.append({"type": "response.output_text.delta", "output_index": index, "item_id": "msg_1", "delta": text})
        events.append({"type": "response.output_item.done", "output_index": index, "item": item})
    done = response | {"status": "completed", "output": items, "usage": R_USAGE}
    return [named(event) for event in (*events, {"type": "response.completed", "response": done})]


def _r_whole(text: str = "hello", model: str = "m", *, refused: bool = False) -> Json:
    items = _r_items(text, refused, call=False)
    return {"id": "resp_1", "object": "response", "status": "completed", "model": model, "output": items, "usage": R_USAGE}


def _r_result(call_id: str, text: str) -> Json:
    shown = {"type": "function_call_output", "call_id": call_id, "output": text}
    base = _r_request("go")
    return base | {"input": [*base["input"], shown]}


_R_FAILED = named({"type": "response.failed", "response": {"id": "resp_1", "error": {"code": "server_error", "message": "busy"}}})
RESPONSES = Wire(
    api="responses",
    path="/v1/responses",
    plain=_r_request,
    stream=_r_stream,
    broken=[*_r_stream()[:3], _R_FAILED],
    error_first=named({"type": "error", "code": "rate_limit_exceeded", "message": "busy"}),
    whole=_r_whole,
    with_result=_r_result,
    error_code=lambda body: body["error"].get("code"),
    key_header=lambda key: ("authorization", f"Bearer {key}"),
)

# OpenAI Chat Completions


def _c_request(text: str) -> Json:
    tools = [{"type": "function", "function": {"name": "run", "parameters": {"type": "object"}}}]
    messages = [{"role": "system", "content": "be good"}, {"role": "user", "content": text}]
    return {"model": "m", "messages": messages, "tools": tools, "stream": True, "stream_options": {"include_usage": True}}


C_USAGE: Json = {
    "prompt_tokens": 130, "completion_tokens": 7, "total_tokens": 137, "prompt_tokens_details": {"cached_tokens": 20},
    "cache_creation_input_tokens": 10,
}  # fmt: skip


def _c_stream(
    text: str = "hello", model: str = "m", *, refused: bool = False, call: bool = False, usage: bool = True
) -> list[bytes]:
    def chunk(delta: Json, finish: str | None = None) -> Json:
        base = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": model}
        return base | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}

    events: list[Json | str] = [
        chunk({"role": "assistant", "content": ""}),
        chunk({"reasoning_content": "hidden"}),
        chunk({"content": text[:2]}),
        chunk({"content": text[2:]}),
    ]
    if call:
        arguments = json.dumps(CALL[2])
        function = {"name": CALL[1], "arguments": arguments[:5]}
        events.append(chunk({"tool_calls": [{"index": 0, "id": CALL[0], "type": "function", "function": function}]}))
        events.append(chunk({"tool_calls": [{"index": 0, "function": {"arguments": arguments[5:]}}]}))
    events.append(chunk({}, "content_filter" if refused else "tool_calls" if call else "stop"))
    if usage:
        events.append({"id": "chatcmpl-1", "model": model, "choices": [], "usage": C_USAGE})
    return [bare(event) for event in (*events, "[DONE]")]


def _c_whole(text: str = "hello", model: str = "m", *, refused: bool = False) -> Json:
    choice = {
        "index": 0,
        "message": {"role": "assistant", "content": text},
        "finish_reason": "content_filter" if refused else "stop",
    }
    return {"id": "chatcmpl-1", "object": "chat.completion", "model": model, "choices": [choice], "usage": C_USAGE}


def _c_result(call_id: str, text: str) -> Json:
    base = _c_request("go")
    return base | {"messages": [*base["messages"], {"role": "tool", "tool_call_id": call_id, "content": text}]}


_C_ERROR = bare({"error": {"message": "busy", "code": 529}})
CHAT = Wire(
    api="chat",
    path="/v1/chat/completions",
    plain=_c_request,
    stream=_c_stream,
    broken=[*_c_stream()[:4], _C_ERROR],
    error_first=_C_ERROR,
    whole=_c_whole,
    with_result=_c_result,
    error_code=lambda body: body["error"].get("code"),
    key_header=lambda key: ("authorization", f"Bearer {key}"),
)

WIRES = {wire.api: wire for wire in (ANTHROPIC, RESPONSES, CHAT)}
