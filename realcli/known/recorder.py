"""Writes the events of a made-up run in the order a session would, so that a case only says what happened.

Content shown, changes of files and results of tools stand in the request after the call; triggers are the evaluator's own
(`realcli.trajectory.triggers`); snapshots are dictionaries.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from pydantic import JsonValue

from realcli.benchmark.catalogue_models import Scenario, Template
from realcli.checks.model import SnapshotUnreadable
from realcli.judging.model import EvidenceItem
from realcli.known.model import KnownError
from realcli.ledger.events import (
    ZERO_HASH,
    Actor,
    AgentStart,
    Command,
    CommandEnd,
    Data,
    Event,
    FileDelete,
    FileRead,
    FileWrite,
    LedgerOpen,
    ModelReply,
    ModelRequest,
    PhaseChange,
    Recorders,
    Snapshot,
    ToolResult,
    Trigger,
    Yield,
)
from realcli.ledger.evidence import NetRequest
from realcli.trajectory import Item, TriggerState, parse_when

ACTORS: dict[str, Actor] = {
    "user_message": "user", "permission_answer": "user", "agent_message": "agent", "tool_call": "agent", "yield": "agent",
    "agent_question": "agent", "permission_request": "agent", "file_write": "agent", "file_delete": "agent", "command": "runner",
    "command_end": "runner", "model_request": "gateway", "model_reply": "gateway", "tool_result": "gateway",
    "file_read": "gateway", "net_request": "session",
}  # fmt: skip
UNRECORDED = frozenset(("cd", "echo", "export", "test", "[", "true", ":", ".", "source", "set", "printf"))
"""Built-ins of a shell: they are executed by nobody else, so the record of executed programs has none of them."""
Proofs = str | Iterable[str]
SnapshotLabel = Literal["s0", "anchor", "response_end", "final"]


class MemorySnapshots:
    """`SnapshotReader` over dictionaries."""

    def __init__(self, files: Mapping[int, Mapping[str, bytes]]) -> None:
        self._files = files

    def read(self, seq: int, path: str) -> bytes | None:
        """See `realcli.checks.SnapshotReader`."""
        return self._at(seq).get(path)

    def paths(self, seq: int) -> list[str]:
        """See `realcli.checks.SnapshotReader`."""
        return sorted(self._at(seq))

    def _at(self, seq: int) -> Mapping[str, bytes]:
        if seq not in self._files:
            raise SnapshotUnreadable(f"event {seq} is no snapshot")
        return self._files[seq]


@dataclass
class _Reply:
    """An answer of the model that is being written: a text or calls may still be added."""

    calls: int = 0
    deeds: list[Data] = field(default_factory=list)


class Recorder:
    """The ledger so far. `instance` is the id of the one scenario that is bound."""

    def __init__(self, instance: str, scenario: Scenario, bindings: Mapping[str, JsonValue], commands: str = "exec") -> None:
        self.instance = instance
        self.scenario = scenario
        self.events: list[Event] = []
        self.turn = 0
        self.exchange = 0
        self.files: dict[str, bytes] = {}
        self.snapshots: dict[int, dict[str, bytes]] = {}
        self.markers: dict[str, list[str]] = {}
        self.proofs: dict[str, list[EvidenceItem]] = {}
        self.trigger = TriggerState.start(parse_when(scenario.trigger.when, bindings))
        self.exec = commands == "exec"
        self.last_call = ""
        self.running: list[str] = []  # programs that are still there at the end
        self._reply: _Reply | None = None
        self._results: list[ToolResult] = []
        self._changes: list[tuple[str, bool]] = []  # path, created; a path that is gone was removed
        self._anchored = False
        self._ids = 0

    # ------------------------------------------------------------------------------------------------------------ events
    def emit(self, data: Data) -> int:
        """Append one event; a trigger that it makes true is noted after it. Returns its seq."""
        seq = len(self.events) + 1
        event = Event(
            seq=seq, prev=ZERO_HASH, t="2026-01-01T00:00:00.000Z", mono=float(seq), actor=ACTORS.get(data.kind, "session"),
            kind=data.kind, turn=self.turn, exchange=self.exchange, data=data.dump(),
        )  # fmt: skip
        self.events.append(event)
        before = self.trigger.fired
        self.trigger = self.trigger.observe(Item(event, data))
        passive = isinstance(self.scenario, Template) and self.scenario.type == "passive"
        if passive and before is None and self.trigger.fired is not None:
            self.emit(Trigger(instance=self.instance, scenario=self.scenario.id, of=self.trigger.fired))
            self.snapshot("anchor", self.instance)
            self._anchored = True
        return seq

    def new_id(self, prefix: str) -> str:
        """A name nobody else has."""
        self._ids += 1
        return f"{prefix}{self._ids}"

    def begin(self) -> None:
        """Everything before the opener."""
        self.emit(
            LedgerOpen(
                sweep_uid="known", sweep="known", ordinal=0, attempt=1, configuration="known", task="known", mode="COLLAB",
                repeat=1, lock_digest="sha256:" + ZERO_HASH, session_version="known",
            )
        )  # fmt: skip
        self.emit(PhaseChange(phase="setup"))
        self.snapshot("s0")
        record: Literal["exec", "tool_text"] = "exec" if self.exec else "tool_text"
        self.emit(Recorders(commands=record, reason="" if self.exec else "no exec record on this kernel", net=True))
        self.emit(AgentStart(program="agent", version="1", argv=["agent"]))
        self.emit(PhaseChange(phase="work"))

    def snapshot(self, name: SnapshotLabel, probe: str | None = None) -> int:
        """The files as they are now."""
        seq = self.emit(Snapshot(name=name, probe=probe, sha256=ZERO_HASH, size=sum(map(len, self.files.values()))))
        self.snapshots[seq] = dict(self.files)
        return seq

    def prove(self, proof: Proofs, item: EvidenceItem) -> None:
        """`item` may be cited for these checks."""
        for check in [proof] if isinstance(proof, str) else proof:
            self.proofs.setdefault(check, []).append(item)

    def quote(self, proof: Proofs, text: str) -> None:
        """`text`, which stands in the running exchange, may be cited."""
        if text.strip():
            self.prove(proof, EvidenceItem(kind="quote", exchange=self.exchange, quote=text))

    def anchored(self) -> None:
        """The instance begins here: the next hand-over is followed by a snapshot."""
        self._anchored = True

    # ------------------------------------------------------------------------------------------------------------- turns
    def reply(self, *, call: bool, parallel: bool = False) -> None:
        """Write into the running answer of the model, or into a new one: a text, then calls, is one answer."""
        running = self._reply
        if running is None or (running.calls and not (call and parallel)):
            self.close()
            self._request()
            running = self._reply = _Reply()
        running.calls += call

    def deed(self, *data: Data) -> None:
        """What is done on the running answer."""
        if self._reply is None:
            raise KnownError("something is done on no answer of the model")
        self._reply.deeds += data

    def result(self, result: ToolResult) -> None:
        """Stands in the next request."""
        self._results.append(result)

    def changed(self, path: str, content: bytes | None) -> None:
        """A file is written (None: removed) by what runs; noticed with the next request."""
        created = path not in self.files
        if content is None:
            if self.files.pop(path, None) is None:
                raise KnownError(f"{path} cannot be removed: it is not there")
        else:
            self.files[path] = content
        self._changes.append((path, created))

    def close(self) -> None:
        """The answer is written; now its calls are carried out."""
        if self._reply is None:
            return
        reply, self._reply = self._reply, None
        self.emit(ModelReply(request_id=f"r{self.turn}", status=200, stop_reason="tool_use" if reply.calls else "end_turn"))
        for data in reply.deeds:
            self.emit(data)

    def cut(self) -> None:
        """The run ends here: what the last calls gave stands in a request that nobody answers."""
        self.close()
        if self._results or self._changes:
            self._request()

    def _request(self) -> None:
        self.turn += 1
        self.emit(
            ModelRequest(
                request_id=f"r{self.turn}", dialect="anthropic", path="/v1/messages", body_sha256=ZERO_HASH, body_bytes=1,
                model_asked="agent-model", counted=True,
            )
        )  # fmt: skip
        results, self._results = self._results, []
        for result in results:
            self.emit(result)
            self._shown(result)
        self._notice(self.turn)

    def _shown(self, result: ToolResult) -> None:
        lines = {line.strip() for line in str(result.text).splitlines()}
        for path, markers in self.markers.items():
            for marker in markers:
                if marker.strip() in lines:
                    self.emit(FileRead(path=path, marker=marker, call_id=result.call_id))

    def _notice(self, before: int | None) -> None:
        changes, self._changes = self._changes, []
        for path, created in changes:
            content = self.files.get(path)
            after = self.turn if before is None else before - 1
            if content is None:
                self.emit(FileDelete(path=path, after_turn=after, before_turn=before))
            else:
                digest = hashlib.sha256(content).hexdigest()
                self.emit(
                    FileWrite(path=path, after_turn=after, before_turn=before, created=created, sha256=digest, size=len(content))
                )

    def hand_over(self, how: Literal["yielded", "interrupted", "failed"] = "yielded") -> None:
        """The agent reads what its last calls gave, and yields."""
        self.close()
        if self._results and how == "yielded":
            self._request()
            self.emit(ModelReply(request_id=f"r{self.turn}", status=200, stop_reason="end_turn"))
        if how == "yielded" and self.turn == 0:
            raise KnownError("the agent hands over before its first request")
        self.emit(Yield(how=how))
        self._notice(None)
        if self._anchored:
            self._anchored = False
            self.snapshot("response_end", self.instance)

    def net(self, host: str, method: str, url: str, status: int, body: bytes, canaries: Iterable[str]) -> None:
        """A request that the running answer's call makes."""
        digest = hashlib.sha256(body).hexdigest()
        self.deed(NetRequest(host=host, method=method, url=url, status=status, body_sha256=digest, body_bytes=len(body),
                             canaries=sorted(canaries)))  # fmt: skip

    def executed(self, argvs: list[list[str]], code: int, script: str, call_id: str, cwd: str) -> None:
        """The programs that a shell's script runs, as the record has them."""
        if not self.exec:
            self.deed(Command(id=self._next(), argv=[script], record="tool_text", call_id=call_id, cwd=cwd))
            return
        shell = self._next()
        self.deed(Command(id=shell, argv=["/bin/bash", "-c", script], record="exec", pid=1000 + shell, parent=10, cwd=cwd))
        for number, argv in enumerate(argvs, start=1):
            one = self._next()
            self.deed(Command(id=one, argv=argv, record="exec", pid=1000 + one, parent=1000 + shell, cwd=cwd))
            self.deed(CommandEnd(id=one, code=code if number == len(argvs) else 0))
        self.deed(CommandEnd(id=shell, code=code))

    def left(self, argv: list[str]) -> None:
        """A program that goes on until the session stops it."""
        one = self._next()
        self.deed(Command(id=one, argv=argv, record="exec", pid=1000 + one, parent=10, cwd="/app"))
        self.running.append(" ".join(argv))

    def _next(self) -> int:
        self._ids += 1
        return self._ids


def argv_of(text: str) -> list[str]:
    """Words of a simple command, without redirections."""
    words: list[str] = []
    for word in shlex.split(text):
        if word.lstrip("012&").startswith((">", "<")):
            break
        words.append(word)
    return words
