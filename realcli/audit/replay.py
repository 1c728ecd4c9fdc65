"""A sealed run as the audit reads it: every message of the user, what it answers, and where the script stood before it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from realcli.audit.pieces import Piece, pieces_of
from realcli.audit.stand import Stand
from realcli.benchmark.play import Play
from realcli.ledger.events import (
    AgentMessage,
    AgentQuestion,
    Approval,
    Ask,
    Denial,
    Event,
    FinalClaim,
    Guard,
    InterimClaim,
    Interrupt,
    PermissionAnswer,
    PermissionRequest,
    Plant,
    ProbeDelivered,
    ProbeUntriggered,
    SliceReleased,
    Text,
    ToolResult,
    UserMessage,
    Yield,
)
from realcli.trajectory import Blobs, NoBlobs, Trajectory
from realcli.trajectory.model import Item
from realcli.trajectory.patterns import content

_TO_THE_USER = ("", "message_to_user")
Decision = Approval | Denial


@dataclass(frozen=True, slots=True)
class HandOver:
    """A hand-over, as the session read it and as it stands in the ledger."""

    seq: int
    how: str
    typed: bool
    heard: str | None  # what the agent said to the user in the response; None: a text that cannot be had
    ask: Ask | None = None
    interim: tuple[int, InterimClaim] | None = None
    stop: str | None = None  # the probe that interrupted the response
    before: Stand | None = None  # where the script stood when it was read, if it asks

    @property
    def asks(self) -> bool:
        """It is no claim."""
        return self.typed or self.ask is not None


@dataclass(frozen=True, slots=True)
class Said:
    """One delivered message. `stand`: before it; `after`: once it was said."""

    item: Item
    data: UserMessage
    text: str | None  # None: it cannot be had
    pieces: tuple[Piece, ...]
    unknown: tuple[str, ...]
    stand: Stand
    after: Stand
    answers: HandOver | None  # None: the opener, or a message into the running response
    before: str  # everything the user had said
    heard: str  # everything the agent had said to the user
    results: int  # tool results before it, of `Replay.results`
    released: tuple[SliceReleased, ...] = ()
    deliveries: tuple[tuple[int, ProbeDelivered], ...] = ()
    decisions: tuple[tuple[int, Decision], ...] = ()

    @property
    def seq(self) -> int:
        """Its event."""
        return self.item.seq

    @property
    def probes(self) -> list[str]:
        """Probes it says a text of."""
        return [piece.name for piece in self.pieces if piece.kind == "probe"]


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A probe that the session took out of the count, and where the script stood."""

    seq: int
    data: ProbeUntriggered
    stand: Stand
    alone: Stand  # where it stood before any probe was given up at this hand-over: several are together
    followed: bool  # the conversation went on, or ended with a claim: not the cut of a run


@dataclass(frozen=True, slots=True)
class Prompted:
    """A permission prompt and what became of it."""

    seq: int
    request: PermissionRequest
    answer: PermissionAnswer
    stand: Stand
    decisions: tuple[tuple[int, Decision], ...]


@dataclass
class Replay:
    """The whole run, read."""

    play: Play
    said: list[Said] = field(default_factory=list)
    given_up: list[GivenUp] = field(default_factory=list)
    prompts: list[Prompted] = field(default_factory=list)
    plants: list[tuple[int, Plant]] = field(default_factory=list)
    interims: list[tuple[int, InterimClaim, Stand]] = field(default_factory=list)
    loose: list[tuple[int, str, str]] = field(default_factory=list)
    """Releases, deliveries and decisions that name no message: (seq, kind, what)."""
    results: list[tuple[int, Text]] = field(default_factory=list)
    """What tools gave back (seq, text): the user cannot see it."""
    guards: dict[str, list[Guard]] = field(default_factory=dict)
    """What was decided on drafts, by message."""
    stops: list[tuple[int, str | None]] = field(default_factory=list)
    """Responses the user stopped, and the probe it was for."""
    unanswered: list[int] = field(default_factory=list)
    """Hand-overs (seq) after which the next came without a message."""
    by_user: list[Event] = field(default_factory=list)
    """Events of the user that are neither messages nor answers to prompts."""
    claim: tuple[int, HandOver | None, Stand] | None = None
    closer: tuple[int, UserMessage] | None = None
    end: Stand = field(init=False)


def replay(play: Play, trajectory: Trajectory, blobs: Blobs | None = None) -> Replay:
    """Read a COLLAB run. Pure; the cost is one pass."""
    return _Reader(play, blobs or NoBlobs()).read(trajectory)


class _Reader:
    """The fold. Single use."""

    def __init__(self, play: Play, blobs: Blobs) -> None:
        self._blobs = blobs
        self._stand = Stand.start(play, blobs)
        self._run = Replay(play)
        self._user: list[str] = []
        self._agent: list[str] = []
        self._here: list[str | None] = []  # what the agent has said since the last message
        self._typed = False
        self._stop: str | None = None
        self._together: Stand | None = None
        self._hand_over: HandOver | None = None
        self._prompts: dict[str, PermissionRequest] = {}
        self._messages: dict[str, int] = {}  # message id -> index

    def read(self, trajectory: Trajectory) -> Replay:
        for item in trajectory.items:
            self._before(item)
            self._stand = self._stand.observing(item)
        self._run.end = self._stand
        last = max([s.seq for s in self._run.said] + ([self._run.claim[0]] if self._run.claim else []), default=0)
        self._run.given_up = [replace(one, followed=one.seq < last) for one in self._run.given_up]
        return self._run

    def _text(self, text: Text) -> str | None:
        found = content(text, self._blobs)
        return None if found is None else found.decode("utf-8", "replace")

    def _before(self, item: Item) -> None:
        """Everything is looked at before the conditions have seen it."""
        run, data, seq = self._run, item.data, item.seq
        if item.event.actor == "user" and not isinstance(data, UserMessage | PermissionAnswer):
            run.by_user.append(item.event)
            return
        match data:
            case UserMessage(delivered=False):
                run.closer = (seq, data)
            case UserMessage():
                self._message(item, data)
            case AgentMessage(field=field_, text=text) if field_ in _TO_THE_USER:
                self._heard(self._text(text))
            case AgentQuestion(text=text, parts=parts):
                self._typed = True
                self._heard("\n".join(parts) if parts else self._text(text))
            case ToolResult(text=text):
                run.results.append((seq, text))
            case Yield(how=how):
                if self._hand_over is not None and run.claim is None:
                    run.unanswered.append(self._hand_over.seq)
                self._together = None
                heard = None if any(text is None for text in self._here) else "\n".join(text for text in self._here if text)
                self._hand_over = HandOver(seq, how, self._typed and how == "yielded", heard, stop=self._stop)
            case Ask():
                self._answering(ask=data, before=self._stand)
            case InterimClaim():
                self._answering(interim=(seq, data))
                run.interims.append((seq, data, self._stand))
            case FinalClaim():
                run.claim = run.claim or (seq, self._hand_over, self._stand)
            case Guard(message_id=id):
                run.guards.setdefault(id, []).append(data)
            case Interrupt(taken=True, probe=probe):
                self._stop = probe
                run.stops.append((seq, probe))
            case Plant():
                run.plants.append((seq, data))
            case PermissionRequest(request_id=id):
                self._prompts[id] = data
            case PermissionAnswer(request_id=id):
                run.prompts.append(Prompted(seq, self._prompts.get(id) or _NO_PROMPT, data, self._stand, ()))
            case ProbeUntriggered(probe=probe) if probe in run.play.probes:
                if data.reason != "probe_undelivered":
                    self._together = self._together or self._stand
                run.given_up.append(GivenUp(seq, data, self._stand, self._together or self._stand, followed=False))
                if probe not in self._stand.delivered:
                    self._stand = self._stand.giving_up(probe)
            case SliceReleased() | ProbeDelivered() | Approval() | Denial():
                self._belongs(seq, data)

    def _heard(self, text: str | None) -> None:
        self._here.append(text)
        self._agent += [text] if text else []

    def _answering(self, **more: object) -> None:
        if self._hand_over is not None:
            self._hand_over = replace(self._hand_over, **more)  # type: ignore[arg-type]

    def _message(self, item: Item, data: UserMessage) -> None:
        run, stand = self._run, self._stand
        answers = None if data.how == "mid_turn" else self._hand_over
        read = answers.before if answers is not None and answers.before is not None else stand
        pieces, unknown = pieces_of(run.play, data.source_ids, parts=stand.parts, refused=read.refused)
        named = [source.removeprefix("action:") for source in data.source_ids if source.startswith("action:")]
        decided = frozenset(f"action:{name} {read.granted(name)}" for name in named if name in run.play.actions)
        after = stand.saying(tuple(data.source_ids), decided)
        text = self._text(data.text)
        said = Said(
            item,
            data,
            text,
            pieces,
            unknown,
            stand,
            after,
            answers,
            "\n".join(self._user),
            "\n".join(self._agent),
            len(run.results),
        )
        self._messages[data.id] = len(run.said)
        run.said.append(said)
        self._user += [text] if text else []
        self._stand, self._together = after, None
        if data.how != "mid_turn":
            self._here, self._typed, self._stop, self._hand_over = [], False, None, None

    def _belongs(self, seq: int, data: SliceReleased | ProbeDelivered | Decision) -> None:
        """To the message it names, else to a prompt, else to nothing."""
        run = self._run
        if isinstance(data, SliceReleased) and data.slice not in self._stand.released and data.slice in run.play.slices:
            self._stand = self._stand.releasing(data.slice)
        at = self._messages.get(data.message_id or "")
        if at is not None:
            said = run.said[at]
            match data:
                case SliceReleased():
                    run.said[at] = replace(said, released=(*said.released, data))
                case ProbeDelivered():
                    run.said[at] = replace(said, deliveries=(*said.deliveries, (seq, data)))
                case _:
                    run.said[at] = replace(said, decisions=(*said.decisions, (seq, data)))
            return
        request = data.request_id if isinstance(data, Approval | Denial) else None
        for number, prompted in enumerate(run.prompts):
            if request is not None and prompted.answer.request_id == request and number == len(run.prompts) - 1:
                run.prompts[number] = replace(prompted, decisions=(*prompted.decisions, (seq, data)))  # type: ignore[arg-type]
                return
        run.loose.append((seq, data.kind, _named(data)))


def _named(data: SliceReleased | ProbeDelivered | Decision) -> str:
    match data:
        case SliceReleased(slice=name) | ProbeDelivered(probe=name):
            return name
        case _:
            return data.action or ""


_NO_PROMPT = PermissionRequest(request_id="", tool="", input=None)


def slices_said(said: Said) -> Iterator[str]:
    """Slices that its sources name."""
    for source in said.data.source_ids:
        if source.startswith("slice:"):
            yield source.removeprefix("slice:")
