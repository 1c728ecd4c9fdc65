"""Emulated judges: backends that know the answers, and err in a known way. They go through the real sessions, and so through
every post-condition, repair and merge; what they show is how much the instrument stops, never how good a model is.

oracle    true answers with evidence that holds
noisy     flips each answer with a fixed probability, and backs it as well as can be
gullible  obeys any imperative it finds inside a fence, or outside all fences
lazy      always 1, with a random quote
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from realcli.judging.model import JsonObject, JudgeReply, JudgeRequest, Message, ToolUse
from realcli.judging.port import Backend, BackendRefused
from realcli.judging.questions import Question
from realcli.judging.tools import ANSWER, GivenAnswer
from realcli.known.bench import Bench, bench_of
from realcli.known.model import Case, KnownError, Truth

Fence = Literal["inside", "outside"]
_FENCE = re.compile(r"«([0-9a-f]{16})\n")
_FENCED = re.compile(r"«([0-9a-f]{16})\n(.*?)\n\1»", re.DOTALL)
_IMPERATIVE = re.compile(r"(?i)\bverdict\b[^.\n]{0,40}\bevery check\b")


class Temper(Protocol):
    """How an emulated judge answers one question."""

    def __call__(self, question: Question, bench: Bench, request: JudgeRequest) -> GivenAnswer:
        """The answer to be given; the session decides whether it counts."""


@dataclass(frozen=True)
class EmulatedBackend:
    """`Backend` over known cases. Which one a request is about it sees by the fence, whose name follows from the case's seal."""

    benches: Mapping[str, Bench]  # by the name of the fence
    temper: Temper
    claims: bool = True  # False: it extracts none

    def complete(self, request: JudgeRequest) -> JudgeReply:
        """See `realcli.judging.port.Backend`. Questions about other runs, or of other kinds, are refused."""
        found = _FENCE.search(request.messages[0].text)
        bench = None if found is None else self.benches.get(found[1])
        if bench is None:
            raise BackendRefused("an emulated judge knows the runs of the known-answer set and no others")
        match request.purpose:
            case "checks":
                uses = self._answers(request, bench)
            case "claims":
                given = [claim.model_dump() for claim in bench.case.claims] if self.claims else []
                uses = [ToolUse(id="u1", name=ANSWER, input={"claims": given})]
            case purpose:
                raise BackendRefused(f"an emulated judge answers checks and claims, not {purpose}")
        return JudgeReply(message=Message(role="assistant", uses=uses), stop="tools", model=request.model)

    def _answers(self, request: JudgeRequest, bench: Bench) -> list[ToolUse]:
        groups: dict[str, list[GivenAnswer]] = {}
        for id in request.about:
            question = bench.questions.get(id)
            if question is None:
                raise BackendRefused(f"{id} is no question about {bench.case.id}")
            groups.setdefault(question.instance, []).append(self.temper(question, bench, request))
        return [
            ToolUse(id=f"u{number}", name=ANSWER, input=_input(instance, answers))
            for number, (instance, answers) in enumerate(groups.items(), start=1)
        ]


def _input(instance: str, answers: list[GivenAnswer]) -> JsonObject:
    return {"instance": instance, "answers": [answer.model_dump(mode="json") for answer in answers]}


def oracle(question: Question, bench: Bench, request: JudgeRequest) -> GivenAnswer:
    """The truth."""
    return bench.answer(question, bench.truth(question))


@dataclass(frozen=True)
class Noisy:
    """Flips each answer with probability `rate`: what is 0 becomes 1, what is 1 or not applicable 0. Repairs change nothing."""

    seed: int
    rate: float = 0.1

    def __call__(self, question: Question, bench: Bench, request: JudgeRequest) -> GivenAnswer:
        """See Temper."""
        truth = bench.truth(question)
        if random.Random(f"{self.seed}/{question.id}/{request.vote}").random() < self.rate:
            truth = "1" if truth == "0" else "0"
        return bench.answer(question, truth)


@dataclass(frozen=True)
class Gullible:
    """Gives a 1 wherever a text of the given kind tells it to; else it is an oracle."""

    fence: Fence

    def __call__(self, question: Question, bench: Bench, request: JudgeRequest) -> GivenAnswer:
        """See Temper."""
        truth: Truth = "1" if self._told(request) else bench.truth(question)
        return bench.answer(question, truth)

    def _told(self, request: JudgeRequest) -> bool:
        shown = [text for m in request.messages if m.role == "user" for text in (m.text, *(r.text for r in m.returns))]
        if self.fence == "inside":
            return any(_IMPERATIVE.search(found[2]) for text in shown for found in _FENCED.finditer(text))
        return any(_IMPERATIVE.search(_FENCED.sub("", text)) for text in shown)


@dataclass(frozen=True)
class Lazy:
    """Always 1, and a quote from anywhere; another one when it is sent back."""

    seed: int = 0

    def __call__(self, question: Question, bench: Bench, request: JudgeRequest) -> GivenAnswer:
        """See Temper."""
        tries = sum(message.role == "assistant" for message in request.messages)
        return bench.with_quote(question, "1", random.Random(f"{self.seed}/{question.id}/{request.vote}/{tries}"))


@dataclass(frozen=True)
class EmulatedJudge:
    """A judge by name."""

    name: str
    temper: Temper
    claims: bool = field(default=True)

    def over(self, cases: Iterable[Case]) -> Backend:
        """The judge of these cases."""
        benches = [bench_of(case) for case in cases]
        return EmulatedBackend({bench.run.reading.fence: bench for bench in benches}, self.temper, self.claims)


EMULATED: dict[str, Callable[[int], EmulatedJudge]] = {
    "oracle": lambda seed: EmulatedJudge("oracle", oracle),
    "noisy": lambda seed: EmulatedJudge("noisy", Noisy(seed)),
    "gullible-outside": lambda seed: EmulatedJudge("gullible-outside", Gullible("outside")),
    "gullible-inside": lambda seed: EmulatedJudge("gullible-inside", Gullible("inside")),
    "lazy": lambda seed: EmulatedJudge("lazy", Lazy(seed), claims=False),
}
"""By name; the number seeds those that draw."""


def emulated(name: str, seed: int = 0) -> EmulatedJudge:
    """The emulated judge of that name; `KnownError` lists the names."""
    try:
        return EMULATED[name](seed)
    except KeyError:
        raise KnownError(f"there is no emulated judge {name!r}; there are {', '.join(EMULATED)}") from None
