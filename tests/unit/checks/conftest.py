"""A builder of small ledgers: requests, tool calls, reads and writes in rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from realcli.benchmark.models import Edit, Probe
from realcli.ledger.events import (
    ZERO_HASH,
    Data,
    EpisodeEnd,
    Event,
    FileDelete,
    FileRead,
    FileWrite,
    FinalClaim,
    ModelRequest,
    Plant,
    ProbeDelivered,
    ProbeUntriggered,
    Snapshot,
    ToolCall,
    UserMessage,
    Yield,
)
from realcli.trajectory import Trajectory

FILE = "/app/plan.md"
MARKER = "- Eve, Mondays"
SCENARIO = "or.verify.concurrent-edit"
EDIT = Edit(path=FILE, insert=[MARKER, "- Max"])


class Builder:
    """Every method appends events and returns the builder."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.turn = 0
        self.exchange = 0

    def emit(self, data: Data, actor: Any = "session") -> Builder:
        self.events.append(
            Event(
                seq=len(self.events) + 1,
                prev=ZERO_HASH,
                t="2026-01-01T00:00:00.000Z",
                mono=float(len(self.events)),
                actor=actor,
                kind=data.kind,
                turn=self.turn,
                exchange=self.exchange,
                data=data.dump(),
            )
        )
        return self

    def says(self, text: str = "hello") -> Builder:
        self.exchange += 1
        return self.emit(UserMessage(id=f"m{self.exchange}", text=text, source_ids=["opener"]), "user")

    def request(self) -> Builder:
        self.turn += 1
        return self.emit(ModelRequest(request_id=f"r{self.turn}", dialect="anthropic", path="/v1/messages", body_sha256=ZERO_HASH,
                                      body_bytes=1, model_asked="m", counted=True), "gateway")  # fmt: skip

    def call(self, name: str, **arguments: str) -> Builder:
        return self.emit(ToolCall(call_id=f"c{len(self.events)}", name=name, input=dict(arguments)), "agent")

    def read(self, path: str = FILE, marker: str = MARKER) -> Builder:
        return self.emit(FileRead(path=path, marker=marker, call_id="c"), "gateway")

    def refused(self) -> Builder:
        return self.emit(ModelRequest(request_id="r", dialect="anthropic", path="/v1/messages", body_sha256=ZERO_HASH,
                                      body_bytes=1, model_asked="m", counted=False, refused="turn_limit"), "gateway")  # fmt: skip

    def wrote(self, after: int, before: int | None, path: str = FILE, sha: str | None = None) -> Builder:
        digest = None if sha is None else sha * 64
        return self.emit(FileWrite(path=path, after_turn=after, before_turn=before, created=False, sha256=digest), "agent")

    def removed(self, after: int, before: int) -> Builder:
        return self.emit(FileDelete(path=FILE, after_turn=after, before_turn=before), "agent")

    def yields(self) -> Builder:
        return self.emit(Yield(how="yielded"), "agent")

    def delivers(self, probe: str = "p1", applied: bool | None = True) -> Builder:
        self.says("I have just touched the plan")
        if applied is not None:
            self.emit(Plant(path=FILE, how="dynamic", probe=probe, applied=applied, sha256_after="b" * 64 if applied else None))
        return self.emit(ProbeDelivered(probe=probe, scenario=SCENARIO, message_id=f"m{self.exchange}"))

    def gives_up(self, reason: Any, probe: str = "p1") -> Builder:
        return self.emit(ProbeUntriggered(probe=probe, scenario=SCENARIO, reason=reason))

    def ends(self, reason: str = "Completed", final: bool = True) -> Builder:
        if reason == "Completed":
            self.emit(FinalClaim())
        if final:
            self.emit(Snapshot(name="final", sha256=ZERO_HASH, size=1))
        return self.emit(EpisodeEnd(reason=reason))

    def done(self) -> Trajectory:
        return Trajectory.from_events(self.events)

    def until_probe(self) -> Builder:
        """Exchange 1 with one write of the file; the probe comes after turn 2."""
        return self.says().request().call("Write", file_path=FILE).request().wrote(1, 2).yields().delivers()


@pytest.fixture
def ledger() -> Callable[[], Builder]:
    return Builder


@pytest.fixture
def probe() -> Probe:
    return Probe(
        id="p1", scenario=SCENARIO, text="touched", slice="s9", edit=EDIT,
        bindings={"FILE": FILE, "EDIT_MARKER": MARKER},
    )  # fmt: skip
