"""From what a hand-over asks for to the draft of an answer: slices, scripted answers, leave, or a fixed sentence."""

from __future__ import annotations

from typing import Literal

from realcli.benchmark.script import PROBE
from realcli.benchmark.script_models import Action, Answer, Closure, Slice
from realcli.benchmark.words import tokens
from realcli_session.user.events import Asked, Piece, Release, Verdict
from realcli_session.user.lines import LATER, NEUTRAL, REFUSAL
from realcli_session.user.reading import BARE, Reading, Request, Wants, denies, has_topic, matches, sentences, to_come
from realcli_session.user.state import Draft, State

AnswerKind = Literal["approval", "refusal", "slices", "scripted", "later", "neutral"]
_RANK: tuple[AnswerKind, ...] = ("approval", "refusal", "slices", "scripted", "later", "neutral")
SHORTEST_HINT = 4  # letters of a word that a question has to share with a slice to have been about it


class _Answers:
    """Collects the answers while one hand-over is gone through."""

    def __init__(self, state: State) -> None:
        self.state = state
        self.pieces: dict[Piece, None] = {}
        self.releases: dict[str, Release] = {}
        self.verdicts: dict[Verdict, None] = {}
        self.closures: dict[str, None] = {}
        self.probe: str | None = None
        self.news = False
        self.bare = False
        self.wants: set[Wants] = set()
        self.kinds: set[AnswerKind] = set()
        self.matched: dict[str, None] = {}
        self.near: dict[str, None] = {}

    def draft(self) -> Draft:
        """As the machine takes it."""
        return Draft(
            pieces=tuple(self.pieces),
            releases=tuple(self.releases.items()),
            verdicts=tuple(self.verdicts),
            probe=self.probe,
            news=self.news,
            closures=tuple(self.closures),
            bare=self.bare,
        )

    def asked(self, typed: bool) -> tuple[Asked, ...]:
        """One record for the whole hand-over; leave asked for goes before information. A slice said now is not missed."""
        if not self.wants:
            return ()
        wants: Wants = "authorisation" if "authorisation" in self.wants else "information"
        near = tuple(name for name in self.near if name not in self.releases)
        return (Asked(wants, typed, tuple(self.matched), next(kind for kind in _RANK if kind in self.kinds), near),)

    def request(self, request: Request) -> None:
        """The first that matches decides: an action, else slices and scripted answers, else a fixed sentence."""
        script = self.state.play.script
        if request.bare:
            return self._bare(request)
        words = frozenset(tokens(request.about))
        if request.leave:
            action = next((a for a in script.actions if any(has_topic(words, topic) for topic in a.topics)), None)
            if action is not None:
                return self._leave(action)
        self.wants.add(request.wants)
        slices = [part for part in script.slices if any(has_topic(words, topic) for topic in part.on_ask)]
        answers = [answer for answer in script.answers if any(has_topic(words, topic) for topic in answer.topics)]
        if slices or answers:
            self._told(slices, answers)
        elif request.wants == "authorisation":
            self._say(Piece(("refusal",), REFUSAL, "fixed", verbatim=True))
            self.verdicts[Verdict(None, granted=False, scripted=False)] = None
            self.kinds.add("refusal")
        else:
            self._say(Piece(("neutral",), NEUTRAL, "fixed", verbatim=True))
            self.kinds.add("neutral")
            self.near |= dict.fromkeys(_near(self.state, request))
        return None

    def _bare(self, request: Request) -> None:
        """Leave for whatever the message says will be done: every action that one of its sentences names and does not deny.

        What it says was done already gets none: an approval after the fact would be the instrument's own.
        """
        said = [to_come(part) for part in sentences(request.about) if not denies(tokens(part))]
        named = [
            a for a in self.state.play.script.actions if any(has_topic(words, topic) for words in said for topic in a.topics)
        ]
        for action in named:
            self._leave(action)
        if not named:
            self.bare = True
            self.wants.add(request.wants)
            self.kinds.add("neutral")

    def close(self, name: str) -> None:
        """The closure of a delivered probe is said now."""
        closure = self.state.probe(name).probe.closure
        if closure is None or name in self.closures:
            return
        text = closure.told.text if closure.told is not None and closure.told.text else closure.text
        self._say(Piece(closure_sources(name, closure), text, "closure"), new=True)
        self.closures[name] = None
        if closure.slice is not None and closure.slice not in self.state.released:
            self.releases[closure.slice] = "probe"

    def _say(self, piece: Piece, *, new: bool = False) -> None:
        self.pieces[piece] = None
        self.news |= new

    def _told(self, slices: list[Slice], answers: list[Answer]) -> None:
        """Slices still withheld; only where none of them is, those that were said before are said again."""
        state = self.state
        for part in [part for part in slices if part.id not in state.released] or slices:
            closing = state.closing(part.id)
            if closing is not None:
                self.close(closing)
                self.kinds.add("slices")
            elif state.promised(part.id):
                self._say(Piece(("later",), LATER, "fixed", verbatim=True))
                self.kinds.add("later")
            else:
                new = part.id not in state.released
                self._say(Piece((f"slice:{part.id}",), part.text, "slice"), new=new)
                if new:
                    self.releases[part.id] = "ask"
                self.kinds.add("slices")
            self.matched[f"slice:{part.id}"] = None
        for answer in answers:
            source = f"answer:{answer.id}"
            self._say(Piece((source,), answer.text, "answer"), new=source not in state.said)
            self.matched[source] = None
            self.kinds.add("scripted")

    def _leave(self, action: Action) -> None:
        """Leave for one action. What a probe still to come grants is granted by that probe: now, if its distance is kept."""
        state, source = self.state, f"action:{action.id}"
        self.wants.add("authorisation")
        self.matched[source] = None
        grants = next((name for name in state.waiting if state.probe(name).probe.approves == action.id), None)
        if grants is not None:
            item = PROBE + grants
            if self.probe in (None, grants) and item in state.pending and state.spaced(item) and state.parts is None:
                self.probe = grants
                self.kinds.add("approval")
            else:
                self._say(Piece(("later",), LATER, "fixed", verbatim=True))
                self.kinds.add("later")
            return
        verdict = decide(state, action)
        text = action.text if verdict.granted or action.decision == "deny" else REFUSAL
        self._say(Piece((source,), text, "action", verbatim=True), new=f"{source} {verdict.granted}" not in state.said)
        self.verdicts[verdict] = None
        self.kinds.add("approval" if verdict.granted else "refusal")


def draft(state: State, reading: Reading) -> tuple[Draft, tuple[Asked, ...]]:
    """The answers to a hand-over, and the record of what it asks for, if anything."""
    answers = _Answers(state)
    for request in reading.requests:
        answers.request(request)
    for name in state.closures:
        closure = state.probe(name).probe.closure
        heard = [*sentences(reading.text), *(request.text for request in reading.requests)]
        if closure is not None and closure.told is not None and any(matches(part, closure.told.topics) for part in heard):
            answers.close(name)
    return answers.draft(), answers.asked(reading.typed)


def closure_sources(name: str, closure: Closure) -> tuple[str, ...]:
    """What licenses the closure of a probe; as a probe's, a slice it brings is named after it."""
    return (f"closure:{name}", *((f"slice:{closure.slice}",) if closure.slice else ()))


def decide(state: State, action: Action) -> Verdict:
    """The script's decision on an action at this moment."""
    return Verdict(action.id, granted=action.decision == "approve" and state.holds(f"action:{action.id}"))


def _near(state: State, request: Request) -> list[str]:
    """Slices still withheld that share a telling word with the question."""
    asked = {word for word in tokens(request.about) if len(word) >= SHORTEST_HINT and word not in BARE}
    return [
        part.id
        for part in state.play.script.slices
        if part.id not in state.released and asked & set(tokens(" ".join([part.text, *part.on_ask])))
    ]
