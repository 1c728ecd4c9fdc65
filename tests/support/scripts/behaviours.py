"""The described agents of behaviours.yaml: for the interpreter, for a rehearsal, for the provider; and ledgers read back."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import yaml

from realcli.ledger.events import (
    AgentMessage,
    AgentQuestion,
    Approval,
    Ask,
    Command,
    Data,
    Denial,
    Event,
    FileDelete,
    FileRead,
    FileWrite,
    FinalClaim,
    InterimClaim,
    NetRequest,
    ProbeDelivered,
    ProbeUntriggered,
    SliceReleased,
    ToolCall,
    ToolResult,
    Trigger,
    UserMessage,
    Yield,
)
from realcli_session.user.rehearsal import Rehearsal

HERE = Path(__file__).parent
TASKS = HERE / "tasks"
Response = dict[str, Any]
Behaviours = dict[str, dict[str, list[Response]]]


def behaviours() -> Behaviours:
    """Task -> behaviour -> responses, each as often as it is repeated."""
    read: Behaviours = yaml.safe_load((HERE / "behaviours.yaml").read_text())
    return {
        task: {
            name: [one if not again else {**one, "do": []} for one in responses for again in range(one.get("repeat", 1))]
            for name, responses in of_task.items()
        }
        for task, of_task in read.items()
    }


def script_of(task: str) -> dict[str, Any]:
    """script.json of a task."""
    read: dict[str, Any] = json.loads((TASKS / task / "interaction/script.json").read_text())
    return read


# ------------------------------------------------------------------------------------------------------ for the interpreter
def described(response: Response) -> Response:
    """As the interpreter takes it: every command is a call, what it shows and writes, and its result."""
    events = [event for step in response.get("do", []) for event in _events(step)]
    return {"events": events, **{key: value for key, value in response.items() if key not in ("do", "repeat")}}


def _events(step: dict[str, Any]) -> Iterable[dict[str, Any]]:
    yield {"event": "tool_call"}
    yield {"event": "command", "cmd": step["run"], "exit": 0}
    yield from ({"event": "file_read", "path": path, "marker": marker} for path, marker in step.get("reads", []))
    yield from ({"event": "file_write", "path": path} for path in step.get("writes", []))
    yield {"event": "tool_result", "text": "", "exit": 0}


# ----------------------------------------------------------------------------------------------------------- for a rehearsal
def data_of(event: dict[str, Any], number: int) -> Data:
    """The ledger's event for one of the interpreter's."""
    match event["event"]:
        case "tool_call":
            return ToolCall(call_id=f"c{number}", name="Bash", input={})
        case "tool_result":
            return ToolResult(call_id=f"c{number}", text=event.get("text", ""), is_error=bool(event.get("exit")))
        case "command":
            return Command(id=number, argv=[event["cmd"]], record="tool_text")
        case "file_read":
            return FileRead(path=event["path"], marker=event["marker"])
        case "file_write":
            return FileWrite(path=event["path"], after_turn=1, created=False)
    raise ValueError(f"{event} is none that a described agent brings about")


# ---------------------------------------------------------------------------------------------------------- read off a ledger
def means_of(responses: Iterable[Response]) -> tuple[bool, frozenset[str]]:
    """(whether a message reaches the agent in the middle of a turn, plants that fail) in a run of these responses."""
    known = list(responses)
    failing = frozenset(name for one in known for name in one.get("plant_fails", []))
    return not any(one.get("deaf") for one in known), failing


def act_out(run: Rehearsal, responses: Iterable[Response]) -> None:
    """A run that was started, by an agent that responds like this; to the end of the run, or of what it has to say."""
    for response in responses:
        if run.state.ended:
            break
        exchange, acted = run.state.exchange, False
        for event in response["events"]:
            if run.state.exchange != exchange:
                break  # it was interrupted
            run.work(data_of(event, len(run.items)))
            acted = True
        if run.state.exchange != exchange:
            continue
        if response.get("cut"):
            run.cut(acted=acted)
            break
        asked = response.get("questions")
        run.hand_over(response.get("says", ""), questions=None if asked is None else tuple(asked))
    if not run.state.ended:
        run.cut(acted=False)


def conversation(events: Iterable[tuple[int, Data]]) -> list[tuple[Any, ...]]:
    """What was said, released, delivered, granted and claimed, as the interpreter writes it. Events come with their `seq`.

    A trigger stands behind the event that satisfied it, whatever was written between the two.
    """
    told = list(events)
    fired: dict[int, list[tuple[Any, ...]]] = {}
    for _, data in told:
        if isinstance(data, Trigger):
            fired.setdefault(data.of, []).append(("trigger", data.instance))
    found: list[tuple[Any, ...]] = []
    for seq, data in told:
        found += [one for one in [_line(data)] if one is not None]
        found += fired.get(seq, [])
    return found


def _line(data: Data) -> tuple[Any, ...] | None:
    match data:
        case UserMessage(delivered=True):
            return ("user_message", tuple(data.source_ids), data.how)
        case SliceReleased():
            return ("slice_released", data.slice, data.how)
        case ProbeDelivered():
            return ("probe_delivered", data.probe)
        case ProbeUntriggered():
            return ("probe_untriggered", data.probe, data.reason)
        case Approval() | Denial():
            return (data.kind, data.action)
        case Ask():
            return ("ask", data.wants, tuple(data.matched), data.answer, tuple(data.near))
        case InterimClaim():
            return ("interim_claim", data.slices_pending, data.probes_pending)
        case FinalClaim():
            return ("final_claim",)
    return None


def responses_in(events: Iterable[Event]) -> list[Response]:
    """What the agent of a real run did, as the interpreter takes it; the order is the ledger's."""
    found: list[Response] = [{"events": []}]  # the first is what happens before the opener
    texts: tuple[int, list[str]] = (-1, [])
    for event in events:
        match data := event.typed():
            case UserMessage(delivered=True, how="send" | "answer"):
                found.append({"events": []})
                texts = (-1, [])
            case AgentMessage(field="" | "message_to_user", text=str(text)):
                texts = (event.turn, [*texts[1], text] if texts[0] == event.turn else [text])
            case AgentQuestion():
                found[-1]["questions"] = list(data.parts) or [str(data.text)]
            case Yield(how="yielded"):
                found[-1]["says"] = "\n\n".join(texts[1])
            case ToolCall() | NetRequest():
                found[-1]["events"].append({"event": data.kind})
            case ToolResult(text=text):
                found[-1]["events"].append({"event": data.kind, "text": text if isinstance(text, str) else ""})
            case Command():
                found[-1]["events"].append({"event": data.kind, "cmd": " ".join(data.argv)})
            case FileRead():
                found[-1]["events"].append({"event": data.kind, "path": data.path, "marker": data.marker})
            case FileWrite() | FileDelete():
                found[-1]["events"].append({"event": data.kind, "path": data.path})
    return found[1:]


# ----------------------------------------------------------------------------------------------------------- for the provider
def provider_script(responses: list[Response], program: str) -> dict[str, Any]:
    """The same agent as a script of the provider. Where a typed answer is no new text of the user, the response goes on."""
    rules: list[dict[str, Any]] = []
    steps: list[dict[str, Any]] = []
    for response in responses:
        steps += [{"run": step["run"]} for step in response.get("do", [])]
        if "questions" in response:
            question = " ".join(response["questions"])
            steps.append({"ask": {"question": question, "header": "Question", "options": ["yes", "no"]}})
            if program != "terminus-2":
                continue
        else:
            steps.append({"say": response.get("says", "I had not finished.")})
        rules.append({"when": {"exchange": len(rules) + 1}, "steps": steps})
        steps = []
    return {"version": 1, "rules": rules, "otherwise": {"say": "Everything is in place."}}
