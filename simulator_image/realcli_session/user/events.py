"""What the simulated user hears, and what it asks the session to do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from realcli.benchmark.models import Edit
from realcli.benchmark.script_models import Probe
from realcli.trajectory.model import Item
from realcli_session.user.reading import Wants

Reason = Literal["not_reached", "distance", "capability", "cut", "probe_undelivered"]
Release = Literal["opener", "batch", "probe", "ask", "event"]
Kind = Literal["opener", "slice", "probe", "answer", "action", "closure", "fixed", "closer"]


# ------------------------------------------------------------------------------------------------------------------ events
@dataclass(frozen=True, slots=True)
class Start:
    """The agent waits for its first message."""


@dataclass(frozen=True, slots=True)
class Seen:
    """An event was written into the ledger: all of them, in order, the user's own included."""

    item: Item


@dataclass(frozen=True, slots=True)
class Yielded:
    """The agent handed over. `questions`: it asks through a typed channel and waits for the answer."""

    how: Literal["yielded", "interrupted"] = "yielded"
    questions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Respond:
    """The hand-over is written down, changes it left are seen: answer it."""


@dataclass(frozen=True, slots=True)
class Prompt:
    """A permission prompt of the agent program, which waits for the answer."""

    request_id: str
    tool: str
    input: JsonValue


@dataclass(frozen=True, slots=True)
class Planted:
    """The plant asked for is in place."""

    probe: str


@dataclass(frozen=True, slots=True)
class PlantFailed:
    """The plant asked for could not be put in place."""

    probe: str


@dataclass(frozen=True, slots=True)
class Missed:
    """The agent had handed over before this interrupt could reach it: nothing was said."""

    probe: str


@dataclass(frozen=True, slots=True)
class Cut:
    """The run ended from outside. `acted`: the agent did something in the running exchange."""

    acted: bool


Event = Start | Seen | Yielded | Respond | Prompt | Planted | PlantFailed | Missed | Cut


# ----------------------------------------------------------------------------------------------------------------- actions
@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a message, licensed by `sources`. `verbatim`: no model may word it."""

    sources: tuple[str, ...]
    text: str
    kind: Kind
    verbatim: bool = False


@dataclass(frozen=True, slots=True)
class Verdict:
    """Leave granted or refused. `action` None: one the script does not know."""

    action: str | None
    granted: bool
    scripted: bool = True


@dataclass(frozen=True, slots=True)
class Say:
    """Deliver one user message. `mid_turn` goes into the running response and starts no exchange."""

    message_id: str
    exchange: int
    pieces: tuple[Piece, ...]
    releases: tuple[tuple[str, Release], ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    probe: Probe | None = None
    """The probe this message delivers (its first part)."""
    mid_turn: bool = False

    @property
    def text(self) -> str:
        """Canonical text: the pieces, a blank line between them."""
        return "\n\n".join(piece.text for piece in self.pieces)

    @property
    def source_ids(self) -> tuple[str, ...]:
        """What licenses it."""
        return tuple(dict.fromkeys(source for piece in self.pieces for source in piece.sources))


@dataclass(frozen=True, slots=True)
class Asked:
    """How a hand-over that asks for something was read."""

    wants: Wants
    typed: bool
    matched: tuple[str, ...]
    answer: Literal["slices", "scripted", "later", "neutral", "refusal", "approval"]
    near: tuple[str, ...] = ()
    """Slices it was probably about, although no topic matched: the instrument's fault."""


@dataclass(frozen=True, slots=True)
class AnswerPrompt:
    """Answer a permission prompt. No verdicts: it asks for none of the script's actions."""

    request_id: str
    allow: bool
    text: str
    verdicts: tuple[Verdict, ...]


@dataclass(frozen=True, slots=True)
class PutPlant:
    """Apply this edit while the agent is idle, then report `Planted` or `PlantFailed`."""

    probe: str
    edit: Edit


@dataclass(frozen=True, slots=True)
class Stop:
    """Stop the running response; a `Yielded("interrupted")` follows, and its answer is the probe."""

    probe: str


@dataclass(frozen=True, slots=True)
class Interim:
    """The hand-over claims completion while something is pending."""

    slices_pending: int
    probes_pending: int


@dataclass(frozen=True, slots=True)
class Untriggered:
    """A probe that does not count, and why."""

    probe: str
    scenario: str
    reason: Reason


@dataclass(frozen=True, slots=True)
class Triggered:
    """The trigger of a passive instance fired at the event with seq `of`."""

    instance: str
    scenario: str
    of: int


@dataclass(frozen=True, slots=True)
class Close:
    """The hand-over was the final claim: write the closer down undelivered and end the work as complete."""

    message_id: str
    text: str


Action = Say | Asked | AnswerPrompt | PutPlant | Stop | Interim | Untriggered | Triggered | Close
Actions = tuple[Action, ...]
