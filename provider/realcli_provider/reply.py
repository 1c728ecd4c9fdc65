"""An answer in the words of a wire that all three share: text, reasoning, tool calls, why it ends. Pure."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any, Literal

from realcli_provider import terminus
from realcli_provider.conversation import Request, Tool
from realcli_provider.script import Answer, Ask, Call, Delegate, ScriptError, Write
from realcli_provider.shell import as_list, write_command

Stop = Literal["end", "tool", "length", "refusal"]
QUESTION_TOOLS = ("AskUserQuestion", "request_user_input")
AGENT_TOOLS = ("Agent", "Task", "spawn_agent")


@dataclass(frozen=True)
class ToolCall:
    """One call. `input` is a text for a custom tool."""

    name: str
    input: dict[str, Any] | str
    custom: bool = False
    namespace: str | None = None


@dataclass(frozen=True)
class Usage:
    """Tokens; the whole input is fresh + read + written."""

    fresh: int
    read: int
    written: int
    output: int
    reasoning: int = 0


@dataclass(frozen=True)
class Made:
    """What a wire has to say. `mark` follows from the request: ids are made of it, so a repeated request gets equal bytes."""

    model: str
    mark: str
    usage: Usage
    text: str = ""
    thinking: str = ""
    calls: tuple[ToolCall, ...] = ()
    stop: Stop = "end"


def make(body: dict[str, Any], request: Request, answer: Answer) -> Made:
    """The answer for this agent's tools. ScriptError where it lacks one."""
    calls = () if request.agent == "terminus-2" else tuple(_calls(request, answer))
    if request.agent == "terminus-2":
        text = terminus.text_of(request, answer)
    elif answer.data is not None:
        text = json.dumps(answer.data, ensure_ascii=False)
    else:
        text = answer.raw if answer.raw is not None else answer.say or ""
    said = tokens(text) + sum(tokens(call.input) for call in calls)
    thought = tokens(answer.think or "")
    return Made(
        model=request.model,
        mark=mark_of(body),
        usage=usage_of(body, request, said + thought, thought),
        text=text,
        thinking=answer.think or "",
        calls=calls,
        stop=answer.stop or ("tool" if calls else "end"),
    )


def mark_of(body: object) -> str:
    """22 hex digits that follow from the request."""
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()[:22]


def tokens(value: object) -> int:
    """About as many tokens as a model would count: four characters each."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return (len(text) + 3) // 4


def messages_of(body: dict[str, Any]) -> list[Any]:
    """The messages of a request of any wire."""
    found = body.get("messages", body.get("input", []))
    return found if isinstance(found, list) else [found]


def input_tokens(body: dict[str, Any]) -> int:
    """For count_tokens and usage."""
    head = tokens(body.get("system", body.get("instructions", "")) or "") + tokens(body.get("tools", []) or [])
    return head + sum(tokens(message) for message in messages_of(body))


def usage_of(body: dict[str, Any], request: Request, output: int, reasoning: int = 0) -> Usage:
    """Usage as with a prompt cache: what an earlier request held is read, the rest written, a few tokens are neither."""
    total, fresh = input_tokens(body), 3
    newest = sum(tokens(message) for message in messages_of(body)[-2:])
    cached = not request.side
    read = max(total - newest - fresh, 0) if cached and request.conversation.replies else 0
    written = max(total - read - fresh, 0) if cached else 0
    return Usage(total - read - written, read, written, output, reasoning)


def changed(made: Made, usage: dict[str, int] | None) -> Made:
    """With the numbers that a fault wants."""
    if not usage:
        return made
    names = {"input": "fresh", "cache_read": "read", "cache_write": "written", "output": "output", "reasoning": "reasoning"}
    if unknown := set(usage) - set(names):
        raise ScriptError(f"fault.usage: {', '.join(sorted(unknown))} is not known; expected {', '.join(names)}")
    return replace(made, usage=replace(made.usage, **{names[name]: value for name, value in usage.items()}))


def _calls(request: Request, answer: Answer) -> list[ToolCall]:
    calls = [_shell(request, command, answer.background) for command in as_list(answer.run)]
    if answer.write is not None:
        calls.append(_write(request, answer.write))
    calls += [_delegate(request, work) for work in as_list(answer.delegate)]
    calls += [_exact(request, call) for call in as_list(answer.call)]
    if answer.ask is not None:
        calls.append(_ask(request, answer.ask))
    return calls


def _shell(request: Request, command: str, background: bool) -> ToolCall:
    shapes: list[tuple[str, dict[str, Any]]] = [
        ("Bash", {"command": command, "description": "Run a command", **({"run_in_background": True} if background else {})}),
        ("exec_command", {"cmd": command, **({"yield_time_ms": 250} if background else {})}),
        ("shell_command", {"command": command}),
        ("shell", {"command": ["bash", "-lc", command]}),
    ]
    for name, shape in shapes:
        if (tool := request.tool(name)) is not None:
            return ToolCall(name, shape, namespace=tool.namespace)
    raise _lacks(request, "run", [name for name, _ in shapes])


def _write(request: Request, write: Write) -> ToolCall:
    if request.tool("Write"):
        return ToolCall("Write", {"file_path": write.path, "content": write.content})
    if (tool := request.tool("apply_patch")) is not None and tool.kind == "custom":
        lines = "".join(f"+{line}\n" for line in write.content.splitlines())
        return ToolCall("apply_patch", f"*** Begin Patch\n*** Add File: {write.path}\n{lines}*** End Patch\n", custom=True)
    return _shell(request, write_command(write), False)


def _ask(request: Request, ask: Ask) -> ToolCall:
    options = [{"label": option, "description": option} for option in ask.options]
    if request.tool("AskUserQuestion"):
        question = {"question": ask.question, "header": ask.header, "options": options, "multiSelect": False}
        return ToolCall("AskUserQuestion", {"questions": [question]})
    if request.tool("request_user_input"):
        question = {"id": "question", "question": ask.question, "header": ask.header, "options": options}
        return ToolCall("request_user_input", {"questions": [question]})
    raise _lacks(request, "ask", list(QUESTION_TOOLS))


def _delegate(request: Request, work: Delegate) -> ToolCall:
    for name in AGENT_TOOLS:
        if (tool := request.tool(name)) is None:
            continue
        if name == "spawn_agent":
            return ToolCall(name, {"message": work.prompt, "task_name": "delegated"}, namespace=tool.namespace)
        call: dict[str, Any] = {"description": work.description, "prompt": work.prompt, "subagent_type": "general-purpose"}
        return ToolCall(name, call | ({"run_in_background": True} if work.background else {}))
    raise _lacks(request, "delegate", list(AGENT_TOOLS))


def _exact(request: Request, call: Call) -> ToolCall:
    """A tool the request does not offer is called all the same: what an agent does then is worth a test."""
    tool = request.tool(call.name) or Tool(call.name, "custom" if isinstance(call.input, str) else "function")
    return ToolCall(call.name, call.input, tool.kind == "custom", call.namespace or tool.namespace)


def _lacks(request: Request, action: str, names: list[str]) -> ScriptError:
    offered = ", ".join(sorted(tool.name for tool in request.tools)) or "no tools"
    return ScriptError(f"{action}: the request offers none of {', '.join(names)} (it offers {offered}); use say or call")
