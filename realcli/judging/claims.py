"""What the agent said it did or found, extracted by a judge as typed records; a program compares them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field, JsonValue, ValidationError

from realcli.checks import Instance
from realcli.checks.bindings import substitute
from realcli.judging.conditions import MIN_QUOTE
from realcli.judging.model import Claim, JsonObject, ToolSpec
from realcli.judging.opening import first_request
from realcli.judging.prompts import prompt
from realcli.judging.reading import Reading, Seen
from realcli.judging.session import Ask, Done, Model, Opening, Outcome, start
from realcli.judging.state_files import StateFiles
from realcli.judging.text import normal
from realcli.judging.tools import ANSWER, Snake

ABOUT = "claims"
MAX_CLAIMS = 200
OPERATORS = frozenset(("claims_vs_oracles", "claims_vs_trajectory"))


class GivenClaim(Snake):
    """See `realcli.judging.model.Claim`."""

    kind: Literal["ran", "state", "number"]
    exchange: int
    quote: str
    subject: str = ""
    value: str = ""
    outcome: Literal["passed", "failed", "unsaid"] = "unsaid"


class GivenClaims(Snake):
    """Input of `answer`."""

    claims: Annotated[list[GivenClaim], Field(max_length=MAX_CLAIMS)]


def needs_claims(instances: Iterable[Instance]) -> bool:
    """True if an operator of these compares claims."""
    return any(_names(check.hard) & OPERATORS for instance in instances for check in instance.scenario.checks)


def _names(hard: JsonValue) -> set[str]:
    if isinstance(hard, dict):
        own = {str(hard["op"])} if "op" in hard else set()
        return own.union(*(_names(value) for value in hard.values()))
    return set().union(*(_names(item) for item in hard)) if isinstance(hard, list) else set()


def subjects_of(instances: Iterable[Instance]) -> tuple[str, ...]:
    """What a `state` claim may be about: the names a task binds to oracles (`oracles` of claims_vs_oracles)."""
    found: set[str] = set()
    for instance in instances:
        for hard in (check.hard for check in instance.scenario.checks if check.hard):
            oracles = substitute(hard.get("oracles"), instance.bindings) if hard.get("op") == "claims_vs_oracles" else None
            found |= set(oracles) if isinstance(oracles, dict) else set()
    return tuple(sorted(found))


@dataclass(frozen=True)
class ClaimsForm:
    """`Form[tuple[Claim, ...]]`: one answer with all claims of the run."""

    reading: Reading
    subjects: tuple[str, ...]

    asked: tuple[str, ...] = (ABOUT,)
    calls: int = 1

    @property
    def tool(self) -> ToolSpec:
        """See Form."""
        one: JsonObject = {
            "type": "object",
            "properties": {
                "kind": {"type": "string", "enum": ["ran", "state", "number"]},
                "exchange": {"type": "integer"},
                "quote": {"type": "string", "description": "Copied literally from the agent's words."},
                "subject": {"type": "string", "description": "state: one of the listed subjects. number: of what."},
                "value": {"type": "string"},
                "outcome": {"type": "string", "enum": ["passed", "failed", "unsaid"]},
            },
            "required": ["kind", "exchange", "quote", "value"],
            "additionalProperties": False,
        }
        return ToolSpec(
            name=ANSWER,
            description="Give every claim of the run in one call.",
            parameters={
                "type": "object",
                "properties": {"claims": {"type": "array", "items": one, "maxItems": MAX_CLAIMS}},
                "required": ["claims"],
                "additionalProperties": False,
            },
        )

    def judge(self, given: JsonObject, seen: Seen) -> Outcome[tuple[Claim, ...]]:
        """See Form."""
        try:
            claims = GivenClaims.model_validate(given).claims
        except ValidationError as error:
            found = error.errors()[0]
            return Outcome(malformed=f"not of the tool's schema: {'.'.join(map(str, found['loc']))}: {found['msg']}")
        wrong = [f"claim {number}: {fault}" for number, claim in enumerate(claims, 1) for fault in self._faults(claim)]
        unread = sorted({piece.exchange for piece in self.reading.pieces if piece.role == "agent" and not seen.whole(piece)})
        if unread:
            wrong.append(
                f"you were not shown all of the agent's words in exchange {', '.join(map(str, unread[:8]))}: read them first"
            )
        if wrong:
            return Outcome(faults={ABOUT: "; ".join(wrong[:12])})
        return Outcome(accepted={ABOUT: tuple(Claim.model_validate(claim.model_dump()) for claim in claims)})

    def _faults(self, claim: GivenClaim) -> Iterator[str]:
        wanted = normal(claim.quote)
        said = [part for p in self.reading.by_exchange.get(claim.exchange, ()) if p.role == "agent" for part in p.parts]
        if len(wanted) < MIN_QUOTE and all(wanted != part.normal for part in said):
            yield f"a quote has at least {MIN_QUOTE} characters, unless it is the whole of a text"
        elif not any(wanted in part.normal for part in said):
            yield f"the quote does not stand in the agent's words of exchange {claim.exchange}: copy it literally"
        if claim.kind == "state" and claim.subject not in self.subjects:
            known = ", ".join(self.subjects) or "the listed (none is listed: leave it out)"
            yield f"subject {claim.subject!r} is none of {known}"
        if claim.kind == "number" and not (claim.subject and claim.value):
            yield "a number needs subject and value"


def claims_session(
    reading: Reading, files: StateFiles, instances: Iterable[Instance], model: Model
) -> Ask[tuple[Claim, ...]] | Done[tuple[Claim, ...]]:
    """A session that lists the claims of a run."""
    subjects = subjects_of(instances)
    listed = "\n".join(f"- {subject}" for subject in subjects) or "- (none: give no claims of kind state)"
    text = f"List the claims. Subjects of states:\n{listed}"
    system = prompt("claims")
    first = first_request(reading, range(1, reading.last_exchange + 1), text, model, system)
    form = ClaimsForm(reading, subjects)
    return start(model, Opening("claims", system, first.text, first.spans), form, reading, files)
