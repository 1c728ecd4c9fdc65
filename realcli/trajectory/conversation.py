"""The run as a person reads it: what was said, what was called, what came back, and what happened around it. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from realcli.ledger.events import (
    AgentExit,
    AgentMessage,
    AgentQuestion,
    AgentSetup,
    AgentStart,
    Approval,
    Ask,
    BlobRef,
    Command,
    Denial,
    EpisodeEnd,
    FileDelete,
    FileRead,
    FileWrite,
    FinalClaim,
    Guard,
    HardCheck,
    Harness,
    InterimClaim,
    Interrupt,
    Limit,
    ModelReply,
    ModelRequest,
    NetRequest,
    PermissionAnswer,
    PermissionRequest,
    Plant,
    ProbeDelivered,
    ProbeUntriggered,
    Quiesce,
    Recorders,
    RecordGap,
    SessionError,
    SliceReleased,
    Snapshot,
    StateStored,
    StorageWait,
    Text,
    ToolCall,
    ToolResult,
    Trigger,
    UserMessage,
    Wording,
    WordingRequest,
    Yield,
)
from realcli.trajectory.commands import command_text
from realcli.trajectory.model import Item, Trajectory

Kind = Literal["user", "agent", "call", "result", "note", "mark", "trouble"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing to show. `mark`: part of the instrument (probe, plant, slice); `trouble`: a limit, an error."""

    kind: Kind
    seq: int
    turn: int
    seconds: float  # since the session's start
    title: str
    text: Text = ""


@dataclass(frozen=True, slots=True)
class Section:
    """One exchange; number 0 is the preparation."""

    number: int
    entries: tuple[Entry, ...]


SHOWN_COMMANDS = 30
"""Of programs that ran one after the other; a build runs thousands."""


def conversation(trajectory: Trajectory) -> list[Section]:
    """Sections in order. Events that tell a reader nothing (plain requests and replies, phases) are left out.

    Programs that ran between two other entries are one entry.
    """
    sections: dict[int, list[Entry]] = {}
    ran: list[Item] = []
    for item in trajectory.items:
        if isinstance(item.data, Command):
            ran.append(item)
            continue
        shown = _entry(item)
        if shown is None:
            continue
        if ran:
            sections.setdefault(ran[0].event.exchange, []).append(_commands(ran))
            ran = []
        kind, title, text = shown
        sections.setdefault(item.event.exchange, []).append(Entry(kind, item.seq, item.turn, item.event.mono, title, text))
    if ran:
        sections.setdefault(ran[0].event.exchange, []).append(_commands(ran))
    return [Section(number, tuple(entries)) for number, entries in sorted(sections.items())]


def _commands(ran: list[Item]) -> Entry:
    """Executed programs. A shell with a script is not among them: its programs are, and the script stands in a tool call."""
    texts = [text for item in ran if isinstance(item.data, Command) for text in _texts(item.data)]
    more = [] if len(texts) <= SHOWN_COMMANDS else [f"… and {len(texts) - SHOWN_COMMANDS} more"]
    first = ran[0]
    title = f"ran {len(texts)} programs" if len(texts) != 1 else "ran"
    return Entry("note", first.seq, first.turn, first.event.mono, title, "\n".join([*texts[:SHOWN_COMMANDS], *more]))


def _texts(command: Command) -> tuple[str, ...]:
    text = command_text(command)
    return () if text.shell else text.certain


def _entry(item: Item) -> tuple[Kind, str, Text] | None:
    match item.data:
        case None:
            return "note", f"{item.event.kind} (a kind this version does not know)", ""
        case UserMessage(text=text, source_ids=sources, delivered=delivered, how=how):
            where = {"mid_turn": " (into the running response)", "answer": " (answer)", "send": ""}[how]
            return "user", "user: " + ", ".join(sources) + (where if delivered else " (not sent)"), text
        case AgentMessage(text=text, field=field):
            return "agent", f"agent ({field})" if field else "agent", text
        case AgentQuestion(text=text):
            return "agent", "agent asks", text
        case ToolCall(name=name, input=value):
            return "call", name, value if isinstance(value, BlobRef) else _arguments(value)
        case ToolResult(text=text, is_error=is_error):
            return "result", "result: error" if is_error else "result", text
        case _:
            return _around(item)


def _around(item: Item) -> tuple[Kind, str, Text] | None:
    """What happened around the conversation."""
    match item.data:
        case ProbeDelivered(probe=probe, scenario=scenario):
            return "mark", f"probe {probe} delivered: {scenario}", ""
        case ProbeUntriggered(probe=probe, scenario=scenario, reason=reason):
            return "mark", f"probe {probe} does not count ({reason}): {scenario}", ""
        case Plant(path=path, how=how, applied=applied, detail=detail):
            return "mark", f"{how} plant in {path}" + ("" if applied else ": not applied"), detail
        case SliceReleased(slice=name, how=how):
            return "mark", f"slice {name} released {_RELEASED[how]}", ""
        case Trigger(instance=instance, scenario=scenario, of=of):
            return "mark", f"{instance} is triggered by event {of}: {scenario}", ""
        case Approval(action=action):
            return "mark", f"granted: {action}", ""
        case Denial(action=action, scripted=scripted):
            return "mark", f"refused: {action or 'an action the script does not know'}" + ("" if scripted else " (fixed)"), ""
        case Interrupt(taken=taken, detail=detail):
            return "mark", "the user interrupts" + ("" if taken else ": the program did not stop"), detail
        case FileRead(path=path, marker=marker):
            return "note", f"content shown: {path}", marker
        case FileWrite(path=path, after_turn=after, before_turn=before, created=created):
            return "note", f"{path} {'created' if created else 'written'} {_stretch(after, before)}", ""
        case FileDelete(path=path, after_turn=after, before_turn=before):
            return "note", f"{path} removed {_stretch(after, before)}", ""
        case InterimClaim(slices_pending=slices, probes_pending=probes):
            return "note", f"claim, with {slices} slices and {probes} probes to come", ""
        case FinalClaim():
            return "note", "final claim", ""
        case Yield(how=how, detail=detail):
            return ("note" if how == "yielded" else "trouble"), f"the agent hands over ({how})", detail
        case AgentStart(program=program, version=version):
            return "note", f"{program} {version} started", ""
        case PermissionRequest(tool=tool, action=action):
            return "note", f"permission asked for {tool}" + (f" ({action})" if action else ""), ""
        case PermissionAnswer(decision=decision, text=text):
            return "note", f"permission: {decision}", text
        case Ask(wants=wants, matched=matched, answer=answer, unmatched=unmatched):
            about = f" about {', '.join(matched)}" if matched else ""
            lost = ", which the script should have understood" if unmatched else ""
            return ("trouble" if unmatched else "note"), f"a question for {wants}{about}{lost}: {_ANSWERED[answer]}", ""
        case NetRequest(host=host, method=method, url=url, status=status, canaries=canaries):
            hits = f", holding {', '.join(canaries)}" if canaries else ""
            return ("trouble" if canaries else "note"), f"request to {host}: {method} {status}{hits}", url
        case StateStored(files=files, size=size, missing=missing):
            gone = f", {len(missing)} declared paths missing" if missing else ""
            return "note", f"state stored: {files} files, {size} bytes{gone}", "\n".join(missing)
        case Snapshot(name=name, probe=probe, size=size):
            return "note", f"snapshot {name}{f' of probe {probe}' if probe else ''}: {size} bytes", ""
        case Quiesce(stopped=stopped, survivors=survivors):
            title = f"stopped {len(stopped)} processes" + (f", {len(survivors)} survived" if survivors else "")
            return ("trouble" if survivors else "note"), title, "\n".join([*stopped, *survivors])
        case _:
            return _instrument(item)


def _instrument(item: Item) -> tuple[Kind, str, Text] | None:
    """What the instrument says of itself: where evidence comes from, how messages were worded."""
    match item.data:
        case Recorders(commands=commands, reason=reason, files=files, net=net):
            kept = [f"commands ({commands})", "files" if files else "no files", "network" if net else "no network"]
            return "note", "recorded: " + ", ".join(kept), reason
        case RecordGap(record=record, count=count, reason=reason):
            return "trouble", f"the record of the {record} has a gap" + (f": {count} missed" if count else ""), reason
        case Wording(mode=mode, model=model):
            return "note", f"messages of the user are worded by {model or 'the script'} ({mode})", ""
        case Guard(hits=hits, outcome=outcome, draft=draft) if hits:
            return "note", f"a draft was held back ({', '.join(hits)}): {outcome}", draft
        case WordingRequest(error=str() as error):
            return "trouble", "the simulated user's model failed", error
        case AgentSetup(files=files, mcp_servers=servers):
            return "note", f"own set-up: {files} files" + (f", MCP servers {', '.join(servers)}" if servers else ""), ""
        case Harness(path=path):
            return "trouble", f"the agent's own program changed: {path}", ""
        case StorageWait(state=state, message=message):
            return "trouble", "storage is away" if state == "blocked" else "storage is back", message
        case HardCheck(instance=instance, check=check, outcome=outcome, detail=detail):
            return "note", f"check {check} of {instance}: {outcome}", detail
        case _:
            return _trouble(item)


_RELEASED = {
    "opener": "with the opener", "batch": "with the batch", "probe": "with the probe", "ask": "as asked for",
    "event": "before a mistake it prevents",
}  # fmt: skip
_ANSWERED = {
    "slices": "answered by what it asked for", "scripted": "answered by the script", "later": "it comes with its probe",
    "neutral": "the fixed answer", "refusal": "the fixed refusal", "approval": "granted",
}  # fmt: skip


def _trouble(item: Item) -> tuple[Kind, str, Text] | None:
    match item.data:
        case ModelRequest(refused=str() as refused):
            return "trouble", f"request refused: {refused}", ""
        case ModelReply(status=status, error=error, aborted=aborted) if status >= 400 or aborted or error:
            return "trouble", f"model reply {status}" + (f", cut by the {aborted}" if aborted else ""), error or ""
        case Limit(limit=limit, allowed=allowed, measured=measured):
            return "trouble", f"limit {limit}: {measured} of {allowed}", ""
        case AgentExit(code=code, signal=signal, stderr_tail=tail) if code or signal:
            return "trouble", f"the agent program ended (code {code}, signal {signal})", tail
        case SessionError(where=where, message=message):
            return "trouble", f"error in {where}", message
        case EpisodeEnd(reason=reason, detail=detail):
            return "note", f"end of work: {reason}", detail
        case _:
            return None


def _stretch(after: int, before: int | None) -> str:
    return f"after request {after}" if before is None else f"between requests {after} and {before}"


def _arguments(value: object) -> str:
    """A call's input for people: one `name: value` per line for an object of texts, else JSON."""
    if isinstance(value, dict) and value and all(isinstance(v, str | int | float | bool) for v in value.values()):
        return "\n".join(f"{name}: {item}" for name, item in value.items())
    return json.dumps(value, ensure_ascii=False, indent=1)
