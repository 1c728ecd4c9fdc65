"""A ledger as an ATIF trajectory: what was said, called and given back, for tools that read Harbor's format. Pure.

A step is a message of the user, a turn of the agent (the request the gateway accepted and all that its reply led to), or an event
around them. Nothing is added: texts, calls and results are the ledger's, with its redactions and its placeholders for what is no
text (`[image]`). Reasoning is not exported: what a provider showed of it lies in the bodies of replies and stays there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from realcli.api.base import Frozen
from realcli.ledger.events import (
    AgentExit,
    AgentMessage,
    AgentQuestion,
    AgentStart,
    EpisodeEnd,
    Event,
    Interrupt,
    Limit,
    ModelReply,
    ModelRequest,
    PermissionAnswer,
    PermissionRequest,
    RecordGap,
    ToolCall,
    ToolResult,
    UserMessage,
    Yield,
)
from realcli.trajectory.atif_document import (
    AtifAgent,
    AtifCall,
    AtifDocument,
    AtifObservation,
    AtifResult,
    AtifStep,
    Extra,
)
from realcli.trajectory.atif_values import Contents, arguments_of, as_json, metrics_of, moment, tool_definitions, totals_of
from realcli.trajectory.model import Item, Trajectory
from realcli.trajectory.patterns import Blobs

SPAN = "A text, a tool call or a result stands in the turn in whose reply it came; a result with the call it answers."
LEFT_OUT = "Reasoning, system prompts, executed programs, changed files and snapshots are in the ledger alone."


class Sealed(Frozen):
    """What the seal and the lock say beside the ledger; all of it optional, for a ledger that is still being written."""

    work_seal: str | None = None  # digest
    reason: str | None = None  # how the trial ended, as its last seal says
    valid: bool | None = None  # whether it counts
    reward: str | None = None  # decimal, as sealed; None: there is none, which is not 0
    model_id: str | None = None  # the configuration's
    effort: str | None = None


def atif_of(trajectory: Trajectory, blobs: Blobs, sealed: Sealed | None = None) -> AtifDocument:
    """Any ledger converts. A blob that cannot be had becomes a text that says so, and a note."""
    sealed = sealed or Sealed()
    contents = Contents(blobs)
    script = _Script(trajectory, contents)
    steps = [made.step(number, sealed.effort) for number, made in enumerate(script.entries, start=1)]
    opened = trajectory.opened
    trial = f"{opened.sweep}-{opened.ordinal:05d}-a{opened.attempt}" if opened is not None else "unknown"
    uid = opened.sweep_uid.replace("-", "")[:8] if opened is not None else "unknown"
    return AtifDocument(
        session_id=trial,
        trajectory_id=f"{uid}-{trial}",
        agent=_agent(trajectory, contents, sealed),
        steps=tuple(steps),
        notes=" ".join([SPAN, LEFT_OUT, *_notes(trajectory, contents)]),
        final_metrics=totals_of(steps),
        extra={"realcli": _about(trajectory, sealed, script.not_sent)},
    )


@dataclass
class _Entry:
    """A step being put together."""

    event: Event
    source: Literal["system", "user", "agent"]
    texts: list[str] = field(default_factory=list)
    calls: list[AtifCall] = field(default_factory=list)
    results: list[AtifResult] = field(default_factory=list)
    extra: Extra = field(default_factory=dict)
    model: str | None = None
    side: bool = False  # it offered no tools: a title, a summary, or a program that needs none
    requests: int = 0  # of the turn: repeats of a cut answer count
    replies: list[ModelReply] = field(default_factory=list)

    def step(self, number: int, effort: str | None) -> AtifStep:
        agent = self.source == "agent"
        silent: Extra = {"side": True} if self.side and not self.texts and not self.calls else {}
        return AtifStep(
            step_id=number,
            timestamp=moment(self.event.t),
            source=self.source,
            model_name=next((reply.model for reply in reversed(self.replies) if reply.model), self.model),
            reasoning_effort=effort if agent else None,
            message="\n\n".join(self.texts),
            tool_calls=tuple(self.calls) or None,
            observation=AtifObservation(results=tuple(self.results)) if self.results else None,
            metrics=metrics_of(self.replies, self.requests),
            llm_call_count=self.requests or None,
            extra={"seq": self.event.seq, "exchange": self.event.exchange, **self.extra, **silent},
        )


class _Script:
    """The entries of a trajectory, in the order in which they began."""

    def __init__(self, trajectory: Trajectory, contents: Contents) -> None:
        self.entries: list[_Entry] = []
        self.turns: dict[int, _Entry] = {}
        self.not_sent: list[JsonValue] = []
        self._contents = contents
        self._requests: dict[str, _Entry] = {}
        self._calls: dict[str, list[tuple[_Entry, str]]] = {}
        self._asked: dict[str, str] = {}
        for item in trajectory.items:
            self._take(item)
        if trajectory.end is None and trajectory.items:
            self._around(trajectory.items[-1], "The ledger ends here, without an end of the work.")
        if not self.entries:
            raise ValueError("a ledger without any event has no trajectory")

    def _take(self, item: Item) -> None:
        match item.data:
            case UserMessage():
                self._said(item, item.data)
            case ModelRequest(refused=None):
                self._request(item, item.data)
            case ModelReply(request_id=request) if request in self._requests:
                self._requests[request].replies.append(item.data)
            case AgentMessage(text=text, field=name):
                told = self._contents.text(text)
                self._turn(item).texts.append(f"{name}: {told}" if name else told)
            case AgentQuestion(text=text, request_id=request):
                asked: Extra = {"text": self._contents.text(text), **({"requestId": request} if request else {})}
                _listed(self._turn(item).extra, "questions").append(asked)
            case ToolCall():
                self._call(item, item.data)
            case ToolResult():
                self._result(item, item.data)
            case Yield(how=how) if item.turn in self.turns:
                self.turns[item.turn].extra["handedOver"] = how
            case _:
                self._event(item)

    def _event(self, item: Item) -> None:
        match item.data:
            case Interrupt(taken=taken):
                self._around(item, "The user interrupts" + ("." if taken else "; the program does not stop."))
            case PermissionRequest(request_id=request, tool=tool):
                self._asked[request] = tool
            case PermissionAnswer(request_id=request, decision=decision, by=by, text=text):
                told = f"Permission for {self._asked.get(request, 'a tool')}: {decision}" + (f": {text}" if text else "")
                self._around(item, told, by=by, requestId=request)
            case Limit(limit=limit, allowed=allowed, measured=measured):
                self._around(item, f"Limit {limit}: {measured} of {allowed}.")
            case AgentExit(code=code, signal=signal, stderr_tail=tail) if code or signal:
                self._around(item, _joined(f"The agent program ended (code {code}, signal {signal}).", self._contents.text(tail)))
            case EpisodeEnd(reason=reason, detail=detail):
                self._around(item, _joined(f"End of the work: {reason}.", detail))

    def _said(self, item: Item, data: UserMessage) -> None:
        text = self._contents.text(data.text)
        about: Extra = {"id": data.id, "sources": list[JsonValue](data.source_ids), "wordedBy": data.worded_by}
        if not data.delivered:
            self.not_sent.append({**about, "text": text})
            return
        how: Extra = {} if data.how == "send" else {"how": data.how}
        self.entries.append(_Entry(item.event, "user", texts=[text], extra=about | how))

    def _request(self, item: Item, data: ModelRequest) -> None:
        if not data.counted and (item.turn not in self.turns or data.path.endswith("/count_tokens")):
            return  # no turn: it only counts tokens
        made = self._turn(item)
        made.requests += 1
        made.model = made.model or data.model_sent or data.model_asked or None
        made.side = data.side
        self._requests[data.request_id] = made

    def _turn(self, item: Item) -> _Entry:
        """The step of the turn in which something happened."""
        if item.turn not in self.turns:
            self.turns[item.turn] = _Entry(item.event, "agent", extra={"turn": item.turn})
            self.entries.append(self.turns[item.turn])
        return self.turns[item.turn]

    def _call(self, item: Item, data: ToolCall) -> None:
        made = self._turn(item)
        taken = {call.tool_call_id for call in made.calls}
        name = data.call_id
        while name in taken:  # the repeat of a cut answer, or a model that numbers its calls anew
            name += "'"
        arguments, odd = arguments_of(self._contents.json(data.input))
        extra: Extra = ({"callId": data.call_id} if name != data.call_id else {}) | ({"notAnObject": True} if odd else {})
        made.calls.append(AtifCall(tool_call_id=name, function_name=data.name, arguments=arguments, extra=extra or None))
        self._calls.setdefault(data.call_id, []).append((made, name))

    def _result(self, item: Item, data: ToolResult) -> None:
        text = self._contents.text(data.text)
        extra: Extra = {"turn": item.turn, **({"isError": True} if data.is_error else {})}
        calls = self._calls.get(data.call_id, [])
        if calls:
            made, name = calls.pop() if len(calls) > 1 else calls[0]
            made.results.append(AtifResult(source_call_id=name, content=text, extra=extra))
            return
        last = next((one for one in reversed(self.entries) if one.source == "agent"), None)
        if last is None:
            last = self._around(item, "A result without a call.")
        last.results.append(AtifResult(content=text, extra={**extra, "callId": data.call_id}))

    def _around(self, item: Item, text: str, **extra: JsonValue) -> _Entry:
        made = _Entry(item.event, "system", texts=[text], extra=extra)
        self.entries.append(made)
        return made


def _agent(trajectory: Trajectory, contents: Contents, sealed: Sealed) -> AtifAgent:
    started = next((data for _, data in trajectory.of(AgentStart)), None)
    opened = trajectory.opened
    sent = next((data.model_sent for _, data in trajectory.of(ModelRequest) if data.model_sent), None)
    return AtifAgent(
        name=started.program if started is not None else opened.configuration if opened is not None else "unknown",
        version=started.version if started is not None else "unknown",
        model_name=sealed.model_id or sent,
        tool_definitions=tool_definitions(_offered(trajectory, contents)) or None,
    )


def _offered(trajectory: Trajectory, contents: Contents) -> Iterator[JsonValue]:
    """Lists of tools that accepted requests offered, each once."""
    seen = set()
    for _, data in trajectory.of(ModelRequest):
        if data.tools is not None and data.refused is None and data.tools.blob not in seen:
            seen.add(data.tools.blob)
            raw = contents.read(data.tools)
            if raw is not None:
                yield as_json(raw)


def _about(trajectory: Trajectory, sealed: Sealed, not_sent: list[JsonValue]) -> Extra:
    opened, end = trajectory.opened, trajectory.end
    about: Extra = {"events": len(trajectory.items)}
    if opened is not None:
        about |= opened.dump()
    about |= {"workEnd": end.reason} if end is not None else {}
    kept = {"workSeal": sealed.work_seal, "reason": sealed.reason, "valid": sealed.valid, "reward": sealed.reward}
    about |= {name: value for name, value in kept.items() if value is not None}
    return about | ({"notSent": not_sent} if not_sent else {})


def _notes(trajectory: Trajectory, contents: Contents) -> Iterator[str]:
    unknown = sorted({item.event.kind for item in trajectory.items if item.data is None})
    if unknown:
        yield f"Events of kinds that this version does not know are left out: {', '.join(unknown)}."
    if any(data.record == "ledger" for _, data in trajectory.of(RecordGap)):
        yield "The ledger itself has gaps: something that happened is not here."
    if contents.missing:
        yield f"{len(contents.missing)} contents could not be had: {', '.join(sorted(contents.missing))}."


def _listed(extra: Extra, name: str) -> list[JsonValue]:
    found = extra.setdefault(name, [])
    assert isinstance(found, list)
    return found


def _joined(*texts: str) -> str:
    return "\n\n".join(text for text in texts if text)
