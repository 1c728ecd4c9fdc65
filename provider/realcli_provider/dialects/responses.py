"""The OpenAI Responses wire, with the events that Codex reads (and the others of the same stream)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from realcli_provider.conversation import Part, Reply, Request, Tool, conversation_of
from realcli_provider.dialects.openai import error as error
from realcli_provider.dialects.port import Body, blocks, lacking, pieces, sse, text_of
from realcli_provider.reply import Made, ToolCall

_ADDED = re.compile(
    r"\s*(<environment_context>|<user_instructions>|<permissions|<turn_aborted>|<skills_instructions>|<apps_instructions>"
    r"|<plugins_instructions>|<collaboration_mode>|<personality_spec>|<model_switch>|<subagent_notification>|<goal_context>"
    r"|# AGENTS\.md instructions)"
)
_RESULT = re.compile(r"\A(?:Chunk ID|Exit code|Wall time)[^\n]*\n(?:[^\n]*\n)*?Output:\n")
_SHELLS = ("exec_command", "shell_command", "shell", "local_shell")


def invalid(body: object) -> str | None:
    """See Dialect."""
    return lacking(body, ("model", str, "string"), ("input", (str, list), "string or list"))


def parse(body: Body) -> Request:
    """What the agent program adds for the model's eyes is left out."""
    tools = tuple(_tools(body.get("tools")))
    return Request(
        api="responses",
        model=body["model"],
        stream=bool(body.get("stream")),
        conversation=conversation_of(parts(body["input"])),
        system=str(body.get("instructions") or ""),
        tools=tools,
        agent="codex" if any(tool.name in _SHELLS for tool in tools) else None,
    )


def _tools(listed: object) -> Iterator[Tool]:
    for tool in blocks(listed):
        kind = tool.get("type")
        if kind == "namespace":
            for inner in blocks(tool.get("tools")):
                yield Tool(str(inner.get("name")), "function", str(tool.get("name")))
        elif kind in ("function", "custom"):
            yield Tool(str(tool.get("name")), kind)
        else:
            yield Tool(str(tool.get("name") or kind), "other")


def parts(items: str | list[Any]) -> Iterator[Part]:
    """The items of the input, in order."""
    if isinstance(items, str):
        yield Part(False, Reply(said=items))
        return
    for item in blocks(items):
        kind, role = item.get("type", "message"), item.get("role")
        if kind == "message" and role == "user":
            said = "\n\n".join(text for text in _texts(item.get("content")) if not _ADDED.match(text))
            yield Part(False, Reply(said=said.strip()))
        elif str(kind).endswith("_output"):
            text, failed = _output(item.get("output"))
            yield Part(False, Reply(result=text, is_error=failed))
        elif kind != "message" or role == "assistant":
            yield Part(True)


def _texts(content: object) -> list[str]:
    return [str(block["text"]) for block in blocks(content) if "text" in block]


def _output(output: object) -> tuple[str, bool]:
    text = output if isinstance(output, str) else text_of(output)
    head = _RESULT.match(text)
    code = re.search(r"exit(?:ed with)? code:? (\d+)", head[0] if head else "", re.IGNORECASE)
    return text[head.end() :] if head else text, code is not None and code[1] != "0"


def whole(made: Made, body: Body) -> Body:
    """The complete answer."""
    return {**_response(made, body), "status": _status(made), "output": _items(made), "usage": _usage(made), **_incomplete(made)}


def _status(made: Made) -> str:
    return "incomplete" if made.stop in ("length", "refusal") and not _refused(made) else "completed"


def _refused(made: Made) -> bool:
    return made.stop == "refusal" and bool(made.text)


def _incomplete(made: Made) -> Body:
    if _status(made) == "completed":
        return {"incomplete_details": None}
    return {"incomplete_details": {"reason": "max_output_tokens" if made.stop == "length" else "content_filter"}}


def _response(made: Made, body: Body) -> Body:
    return {
        "id": f"resp_{made.mark}",
        "object": "response",
        "created_at": 1_764_000_000,
        "status": "in_progress",
        "error": None,
        "model": made.model,
        "output": [],
        "parallel_tool_calls": bool(body.get("parallel_tool_calls", True)),
        "tool_choice": body.get("tool_choice", "auto"),
        "tools": [],
        "store": False,
        "usage": None,
    }


def _usage(made: Made) -> Body:
    usage = made.usage
    total = usage.fresh + usage.read + usage.written
    return {
        "input_tokens": total,
        "input_tokens_details": {"cached_tokens": usage.read},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": total + usage.output,
    }


def _items(made: Made) -> list[Body]:
    items: list[Body] = []
    if made.thinking:
        summary = [{"type": "summary_text", "text": made.thinking}]
        items.append({"type": "reasoning", "id": f"rs_{made.mark}", "summary": summary, "encrypted_content": f"enc_{made.mark}"})
    if made.text or not made.calls:
        part: Body = {"type": "output_text", "text": made.text, "annotations": []}
        if _refused(made):
            part = {"type": "refusal", "refusal": made.text}
        head = {"type": "message", "id": f"msg_{made.mark}", "role": "assistant", "status": "completed"}
        items.append({**head, "content": [part]})
    items += [_call(call, f"{made.mark}{number:02x}") for number, call in enumerate(made.calls)]
    return items


def _call(call: ToolCall, mark: str) -> Body:
    head: Body = {"call_id": f"call_{mark}", "name": call.name, "status": "completed"}
    if call.namespace:
        head["namespace"] = call.namespace
    if call.name == "tool_search":  # run by the client, but an item of a kind of its own
        return {
            "type": "tool_search_call",
            "id": f"tsc_{mark}",
            "call_id": f"call_{mark}",
            "execution": "client",
            "status": "completed",
            "arguments": call.input,
        }
    if call.custom:
        return {"type": "custom_tool_call", "id": f"ctc_{mark}", **head, "input": str(call.input)}
    arguments = call.input if isinstance(call.input, str) else json.dumps(call.input)
    return {"type": "function_call", "id": f"fc_{mark}", **head, "arguments": arguments}


def events(made: Made, body: Body) -> Iterator[bytes]:
    """The same answer as a stream."""
    opened = _response(made, body)
    stream = [("response.created", {"response": opened}), ("response.in_progress", {"response": opened})]
    for index, item in enumerate(_items(made)):
        stream += _item(index, item)
    stream.append(
        ("response.incomplete" if _status(made) == "incomplete" else "response.completed", {"response": whole(made, body)})
    )
    for number, (kind, data) in enumerate(stream):
        yield sse(kind, {"type": kind, "sequence_number": number, **data})


def _item(index: int, item: Body) -> Iterator[tuple[str, Body]]:
    place: Body = {"output_index": index}
    named = {**place, "item_id": item["id"]}
    empty = {"summary": [], "content": [], "arguments": "", "input": ""}
    begun = {**item, "status": "in_progress", **{key: value for key, value in empty.items() if key in item}}
    if item["type"] == "reasoning":
        del begun["status"]
    yield "response.output_item.added", {**place, "item": begun}
    if item["type"] == "message":
        yield from _content(named, item["content"][0])
    elif item["type"] == "reasoning":
        part = {**named, "summary_index": 0}
        text = item["summary"][0]["text"]
        yield "response.reasoning_summary_part.added", {**part, "part": {"type": "summary_text", "text": ""}}
        yield from (("response.reasoning_summary_text.delta", {**part, "delta": piece}) for piece in pieces(text))
        yield "response.reasoning_summary_text.done", {**part, "text": text}
        yield "response.reasoning_summary_part.done", {**part, "part": item["summary"][0]}
    else:
        if item["type"] == "tool_search_call":
            yield "response.output_item.done", {**place, "item": item}
            return
        field, kind = ("input", "custom_tool_call_input") if "input" in item else ("arguments", "function_call_arguments")
        yield from ((f"response.{kind}.delta", {**named, "delta": piece}) for piece in pieces(item[field]))
        yield f"response.{kind}.done", {**named, field: item[field]}
    yield "response.output_item.done", {**place, "item": item}


def _content(named: Body, part: Body) -> Iterator[tuple[str, Body]]:
    place = {**named, "content_index": 0}
    field, kind = ("refusal", "refusal") if part["type"] == "refusal" else ("text", "output_text")
    yield "response.content_part.added", {**place, "part": {**part, field: ""}}
    yield from ((f"response.{kind}.delta", {**place, "delta": piece}) for piece in pieces(part[field]))
    yield f"response.{kind}.done", {**place, field: part[field]}
    yield "response.content_part.done", {**place, "part": part}
