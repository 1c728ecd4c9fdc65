"""Small ledgers in memory, event by event."""

from __future__ import annotations

from typing import Any

from realcli.ledger.events import (
    ZERO_HASH,
    Actor,
    Data,
    EpisodeEnd,
    EpisodeStart,
    Event,
    FinalClaim,
    ModelRequest,
    UserMessage,
    Yield,
)
from realcli.trajectory import Item, Trajectory

AGENT = ("agent_message", "tool_call", "agent_question", "yield", "file_write", "file_delete", "permission_request", "command")


class Ledger:
    """Every method appends and returns the ledger, so that a run reads as one sentence."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.turn = 0
        self.exchange = 0

    def emit(self, *happened: Data, actor: Actor | None = None) -> Ledger:
        for data in happened:
            who = actor or ("agent" if data.kind in AGENT else "session")
            self.events.append(
                Event(
                    seq=len(self.events) + 1,
                    prev=ZERO_HASH,
                    t="2026-01-01T00:00:00.000Z",
                    mono=float(len(self.events)),
                    actor=who,
                    kind=data.kind,
                    turn=self.turn,
                    exchange=self.exchange,
                    data=data.dump(),
                )
            )
        return self

    def starts(self) -> Ledger:
        """The opener."""
        self.exchange = 1
        return self.emit(EpisodeStart()).message(["opener"])

    def message(self, sources: list[str], how: Any = "send", text: str = "please") -> Ledger:
        message = UserMessage(id=f"m{len(self.events)}", text=text, source_ids=sources, how=how)
        return self.emit(message, actor="user")

    def says(self, *sources: str) -> Ledger:
        """A message that starts an exchange."""
        self.exchange += 1
        return self.message(list(sources) or ["batch"])

    def request(self, refused: str | None = None) -> Ledger:
        self.turn += refused is None
        return self.emit(
            ModelRequest(
                request_id=f"r{self.turn}", dialect="anthropic", path="/", body_sha256=ZERO_HASH, body_bytes=1, model_asked="m",
                counted=refused is None, refused=refused,
            ),
            actor="gateway",
        )  # fmt: skip

    def yields(self, how: Any = "yielded") -> Ledger:
        return self.emit(Yield(how=how))

    def ends(self, reason: str = "Completed") -> Ledger:
        if reason == "Completed":
            self.emit(FinalClaim())
        return self.emit(EpisodeEnd(reason=reason))

    @property
    def items(self) -> tuple[Item, ...]:
        return self.trajectory.items

    @property
    def last(self) -> int:
        return len(self.events)

    @property
    def trajectory(self) -> Trajectory:
        return Trajectory.from_events(self.events)
