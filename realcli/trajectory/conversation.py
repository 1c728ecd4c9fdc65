"""The run as a person reads it: what was said, what was called, what came back, and what happened around it. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Literal

from realcli.ledger.events import (
    AgentExit,
    AgentMessage,
    AgentQuestion,
    AgentStart,
    BlobRef,
    EpisodeEnd,
    FileDelete,
    FileRead,
    FileWrite,
    FinalClaim,
    InterimClaim,
    Limit,
    ModelReply,
    ModelRequest,
    PermissionAnswer,
    PermissionRequest,
    Plant,
    ProbeDelivered,
    ProbeUntriggered,
    Quiesce,
    SessionError,
    SliceReleased,
    Snapshot,
    StateStored,
    Text,
    ToolCall,
    ToolResult,
    UserMessage,
    Yield,
)
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


def conversation(trajectory: Trajectory) -> list[Section]:
    """Sections in order. Events that tell a reader nothing (plain requests and replies, phases) are left out."""
    sections: dict[int, list[Entry]] = {}
    for item in trajectory.items:
        shown = _entry(item)
        if shown is not None:
            kind, title, text = shown
            sections.setdefault(item.event.exchange, []).append(Entry(kind, item.seq, item.turn, item.event.mono, title, text))
    return [Section(number, tuple(entries)) for number, entries in sorted(sections.items())]


def _entry(item: Item) -> tuple[Kind, str, Text] | None:
    match item.data:
        case None:
            return "note", f"{item.event.kind} (a kind this version does not know)", ""
        case UserMessage(text=text, source_ids=sources, delivered=delivered):
            return "user", "user: " + ", ".join(sources) + ("" if delivered else " (not sent)"), text
        case AgentMessage(text=text):
            return "agent", "agent", text
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
            return "mark", f"slice {name} released with the {how}", ""
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
        case PermissionRequest(tool=tool):
            return "note", f"permission asked for {tool}", ""
        case PermissionAnswer(decision=decision, text=text):
            return "note", f"permission: {decision}", text
        case StateStored(files=files, size=size, missing=missing):
            gone = f", {len(missing)} declared paths missing" if missing else ""
            return "note", f"state stored: {files} files, {size} bytes{gone}", "\n".join(missing)
        case Snapshot(name=name, probe=probe, size=size):
            return "note", f"snapshot {name}{f' of probe {probe}' if probe else ''}: {size} bytes", ""
        case Quiesce(stopped=stopped, survivors=survivors):
            title = f"stopped {len(stopped)} processes" + (f", {len(survivors)} survived" if survivors else "")
            return ("trouble" if survivors else "note"), title, "\n".join([*stopped, *survivors])
        case _:
            return _trouble(item)


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
