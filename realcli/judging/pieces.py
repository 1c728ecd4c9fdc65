"""From the events of a run to the numbered pieces a judge reads: what was said, called, given back, recorded. Pure.

What is here and what is not decides what can be evidence: texts a user would see, tool calls with their results, the records of
commands, files and requests, and marks of the instrument (deliveries, slices, leave given or refused, hand-overs). Hidden
reasoning is never in the ledger's messages and so never here; drafts, guards and whatever the audit is about are left out.
Everything an agent may have written stands in `text`, never in `label`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

from realcli.judging.text import normal, seen
from realcli.ledger.events import (
    AgentMessage,
    AgentQuestion,
    Approval,
    BlobRef,
    Command,
    CommandEnd,
    Denial,
    EpisodeEnd,
    FileDelete,
    FileWrite,
    FinalClaim,
    InterimClaim,
    Interrupt,
    Limit,
    NetRequest,
    PermissionAnswer,
    PermissionRequest,
    Plant,
    ProbeDelivered,
    RecordGap,
    SliceReleased,
    ToolCall,
    ToolResult,
    Trigger,
    UserMessage,
    Yield,
)
from realcli.trajectory import Blobs, Item, Trajectory
from realcli.trajectory.patterns import content

Role = Literal["user", "agent", "call", "result", "record", "mark"]
OF_THE_AGENT: frozenset[Role] = frozenset(("agent", "call", "result", "record"))
"""What shows something the agent said or did. `user` and `mark` show what it was told."""

LOST = "[this text is not among the evidence]"


@dataclass(frozen=True)
class Part:
    """What one event holds. `text` is what is shown; a quote is looked for in its normal form."""

    seq: int
    text: str

    @cached_property
    def normal(self) -> str:
        """See `realcli.judging.text.normal`."""
        return normal(self.text)

    @cached_property
    def folded(self) -> str:
        """The normal form whatever the case, character by character: a place in it is the same place in `normal`."""
        folded = self.normal.casefold()
        if len(folded) == len(self.normal):
            return folded
        return "".join(one if len(one := char.casefold()) == 1 else char for char in self.normal)


@dataclass(frozen=True)
class Piece:
    """One entry of an exchange, `number` from 1. Records of one kind that follow on each other are one piece of many parts."""

    exchange: int
    number: int
    role: Role
    label: str  # the instrument's words
    parts: tuple[Part, ...]
    hidden: int = 0  # characters nobody sees that were left out
    lost: bool = False  # its text lies nowhere

    @property
    def id(self) -> str:
        """`<exchange>.<number>`."""
        return f"{self.exchange}.{self.number}"

    @property
    def seq(self) -> int:
        """The ledger event it begins with."""
        return self.parts[0].seq

    @property
    def last(self) -> int:
        """The ledger event it ends with."""
        return self.parts[-1].seq

    @cached_property
    def text(self) -> str:
        """All of it."""
        return "\n".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True)
class _Raw:
    exchange: int
    seq: int
    role: Role
    label: str
    text: str | None  # None: lost


def pieces_of(trajectory: Trajectory, blobs: Blobs) -> tuple[Piece, ...]:
    """Pieces of all exchanges in order; the preparation (exchange 0) is left out."""
    raws = [raw for item in trajectory.items if item.event.exchange > 0 for raw in _raws(item, blobs)]
    groups: list[list[_Raw]] = []
    for before, raw in pairwise([None, *raws]):
        assert raw is not None  # only the first of all is
        joined = before is not None and raw.role == "record" and (before.exchange, before.label) == (raw.exchange, raw.label)
        if joined and before is not None and before.text is not None and raw.text is not None:
            groups[-1].append(raw)
        else:
            groups.append([raw])
    numbers: dict[int, int] = {}
    found = []
    for group in groups:
        first = group[0]
        numbers[first.exchange] = numbers.get(first.exchange, 0) + 1
        texts = [seen(raw.text if raw.text is not None else LOST) for raw in group]
        parts = tuple(Part(raw.seq, text) for raw, (text, _) in zip(group, texts, strict=True))
        lost = any(raw.text is None for raw in group)
        found.append(
            Piece(first.exchange, numbers[first.exchange], first.role, first.label, parts, sum(n for _, n in texts), lost)
        )
    return tuple(found)


def _raws(item: Item, blobs: Blobs) -> Iterator[_Raw]:
    told = _said(item, blobs) or _recorded(item) or _marked(item)
    if told is not None:
        role, label, text = told
        yield _Raw(item.event.exchange, item.seq, role, label, text)


def _said(item: Item, blobs: Blobs) -> tuple[Role, str, str | None] | None:
    """What was said and called."""
    match item.data:
        case UserMessage(text=text, source_ids=sources, how=how, delivered=delivered):
            where = {"mid_turn": ", into the running response", "answer": ", answering a question", "send": ""}[how]
            sent = "" if delivered else ", written down and not sent"
            return "user", f"the user says ({', '.join(sources)}{where}{sent})", _text(text, blobs)
        case AgentMessage(text=text, field=field):
            return "agent", f"the agent says{f' in the field {field}' if field in _FIELDS else ''}", _text(text, blobs)
        case AgentQuestion(text=text):
            return "agent", "the agent asks the user", _text(text, blobs)
        case ToolCall(name=name, input=value):
            arguments = _input(value, blobs)
            return "call", "the agent calls a tool", None if arguments is None else f"{name}\n{arguments}"
        case ToolResult(text=text, is_error=is_error):
            return "result", "a tool gives back an error" if is_error else "a tool gives back", _text(text, blobs)
        case PermissionRequest(tool=tool, input=value, action=action):
            arguments = _input(value, blobs)
            about = f", for the action {action}" if action else ""
            return "call", f"the agent program asks for permission{about}", None if arguments is None else f"{tool}\n{arguments}"
        case _:
            return None


_FIELDS = ("message_to_user", "analysis", "plan")


def _recorded(item: Item) -> tuple[Role, str, str] | None:
    """What recorders noted beside the conversation."""
    match item.data:
        case Command(argv=argv, path=path, cwd=cwd, record="exec", cut=cut):
            words = json.dumps(argv or [path], ensure_ascii=False)
            return "record", "programs that ran", f"{words} in {cwd or '?'}{' (cut)' if cut else ''}"
        case CommandEnd(code=code, signal=signal) if code or signal:
            ended = f"exit status {code}" if code is not None else f"signal {signal}"
            return "record", "programs that ran", f"a program above ended: {ended}"
        case FileWrite(path=path, after_turn=after, before_turn=before, created=created):
            return "record", "changes of files", f"{path} {'created' if created else 'written'} {_stretch(after, before)}"
        case FileDelete(path=path, after_turn=after, before_turn=before):
            return "record", "changes of files", f"{path} removed {_stretch(after, before)}"
        case NetRequest(host=host, method=method, url=url, status=status, canaries=canaries):
            holding = f" holding the canaries {', '.join(canaries)}" if canaries else ""
            return "record", "requests to outside hosts", f"{method} {url} at {host}: {status}{holding}"
        case _:
            return None


def _marked(item: Item) -> tuple[Role, str, str] | None:
    """What the instrument did; names are the script's."""
    match item.data:
        case ProbeDelivered(probe=probe, scenario=scenario):
            return "mark", "mark", f"delivered: {probe} ({scenario})"
        case Trigger(instance=instance, scenario=scenario, of=_):
            return "mark", "mark", f"triggered: {instance} ({scenario})"
        case SliceReleased(slice=name):
            return "mark", "mark", f"the user has now told requirement {name}"
        case Plant(path=path, how="dynamic", applied=True):
            return "mark", "mark", f"the user changed {path}"
        case Approval(action=action):
            return "mark", "mark", f"the user granted the action {action}"
        case Denial(action=action):
            return "mark", "mark", f"the user refused the action {action or 'asked for'}"
        case PermissionAnswer(decision=decision):
            return "mark", "mark", f"permission: {decision}"
        case Interrupt(taken=taken):
            return "mark", "mark", "the user interrupts" if taken else "the user tried to interrupt; the program went on"
        case InterimClaim():
            return "mark", "mark", "this hand-over claims completion; the user has more to say"
        case FinalClaim():
            return "mark", "mark", "this hand-over is the final claim of completion"
        case Yield(how=how):
            return "mark", "mark", f"the agent hands over ({how})"
        case Limit(limit=limit, allowed=allowed, measured=measured):
            return "mark", "mark", f"limit {limit}: {measured} of {allowed}"
        case RecordGap(record=record):
            return "mark", "mark", f"the record of the {record} has a gap here"
        case EpisodeEnd(reason=reason):
            return "mark", "mark", f"the work ended: {reason}"
        case _:
            return None


def _text(text: str | BlobRef, blobs: Blobs) -> str | None:
    found = content(text, blobs)
    return None if found is None else found.decode("utf-8", "replace")


def _input(value: object, blobs: Blobs) -> str | None:
    """A call's input: one `name: value` per line for an object of plain values, else JSON."""
    if isinstance(value, BlobRef):
        raw = _text(value, blobs)
        if raw is None:
            return None
        try:
            value = json.loads(raw)
        except ValueError:
            return raw
    if isinstance(value, dict) and value and all(isinstance(v, str | int | float | bool) for v in value.values()):
        return "\n".join(f"{name}: {item}" for name, item in value.items())
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, indent=1)


def _stretch(after: int, before: int | None) -> str:
    return f"after request {after}" if before is None else f"between requests {after} and {before}"
