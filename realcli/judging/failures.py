"""Why a run did not solve its task: one primary label, from the verifier's log, its summary and the run (measuring.md 4.3). Pure.

This session knows the reward, so it is another one than Part A's. What a limit ended needs no judge.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, get_args

from pydantic import Field, ValidationError

from realcli.api.trial import Checks
from realcli.judging.conditions import MIN_QUOTE
from realcli.judging.model import JsonObject, ToolSpec
from realcli.judging.opening import first_request
from realcli.judging.prompts import prompt
from realcli.judging.reading import Reading, Seen
from realcli.judging.session import Ask, Done, Model, Opening, Outcome, start
from realcli.judging.state_files import StateFiles
from realcli.judging.text import normal
from realcli.judging.tools import ANSWER, Snake
from realcli.scoring.records import Failure, FailureLabel, GroupMember

ABOUT = "failure"
LABELS: tuple[FailureLabel, ...] = get_args(FailureLabel)
LOG_HEAD, LOG_TAIL = 8_000, 24_000  # characters of the verifier's log that are shown
STOPPED = frozenset(("TurnLimit", "Deadline", "Budget", "AgentRefused"))
"""Ends by a limit or by the model's own refusal: the label needs no judge."""


class GivenFailure(Snake):
    """Input of `answer`."""

    label: FailureLabel
    exchange: int
    quote: str
    reason: Annotated[str, Field(max_length=4_000)]


@dataclass(frozen=True)
class FailureForm:
    """`Form[GivenFailure]`: one label with a literal quote of the run or of the verifier's log."""

    reading: Reading
    log: str

    asked: tuple[str, ...] = (ABOUT,)
    calls: int = 1

    @property
    def tool(self) -> ToolSpec:
        """See Form."""
        return ToolSpec(
            name=ANSWER,
            description="Give the one primary reason for the failure.",
            parameters={
                "type": "object",
                "properties": {
                    "exchange": {"type": "integer", "description": "The exchange of the quote; 0: the verifier's log."},
                    "quote": {"type": "string", "description": "Copied literally."},
                    "reason": {"type": "string"},
                    "label": {"type": "string", "enum": list(LABELS)},
                },
                "required": ["exchange", "quote", "reason", "label"],
                "additionalProperties": False,
            },
        )

    def judge(self, given: JsonObject, seen: Seen) -> Outcome[GivenFailure]:
        """See Form."""
        try:
            answer = GivenFailure.model_validate(given)
        except ValidationError as error:
            found = error.errors()[0]
            return Outcome(malformed=f"not of the tool's schema: {'.'.join(map(str, found['loc']))}: {found['msg']}")
        wrong = "; ".join(self._faults(answer))
        return Outcome(faults={ABOUT: wrong}) if wrong else Outcome(accepted={ABOUT: answer})

    def _faults(self, answer: GivenFailure) -> Iterator[str]:
        wanted = normal(answer.quote)
        texts = [part.normal for piece in self.reading.by_exchange.get(answer.exchange, ()) for part in piece.parts]
        if answer.exchange == 0:
            texts = [normal(self.log)]
        if len(wanted) < MIN_QUOTE:
            yield f"a quote has at least {MIN_QUOTE} characters"
        elif not any(wanted in text for text in texts):
            place = "the verifier's log" if answer.exchange == 0 else f"exchange {answer.exchange}"
            yield f"the quote does not stand in {place}: copy it literally from one item"


def by_program(member: GroupMember) -> Failure:
    """What a program sees: a limit that ended the run; else nobody has said yet."""
    stopped = member.reason in STOPPED
    return Failure(
        ordinal=member.ordinal,
        mode=member.mode,
        repeat=member.repeat,
        label="gave-up-or-budget" if stopped else None,
        by="program" if stopped else "none",
        reason=f"the run ended with {member.reason}" if stopped else "",
    )


def failure_session(
    reading: Reading, files: StateFiles, member: GroupMember, checks: Checks | None, log: str, model: Model
) -> Ask[GivenFailure] | Done[GivenFailure]:
    """A session about one failed run. `log`: what the tests printed; it may hold what the agent's programs print."""
    shown = log
    if len(log) > LOG_HEAD + LOG_TAIL:
        left = len(log) - LOG_HEAD - LOG_TAIL
        shown = f"{log[:LOG_HEAD]}\n[… {left} characters of the log are left out …]\n{log[-LOG_TAIL:]}"
    summary = f"{checks.passed} of {checks.total} checks passed" if checks else "the verifier gave no summary"
    told = f"The run ({member.mode}) ended with {member.reason}; its reward is {member.reward or 'none'}; {summary}."
    fenced = reading.fenced("log of the verifier; quote it with exchange 0", shown)
    text = f"{told}\n{fenced}\n\nWhat is the primary reason for the failure?"
    system = prompt("failure")
    first = first_request(reading, range(1, reading.last_exchange + 1), text, model, system)
    return start(model, Opening("failure", system, first.text, first.spans), FailureForm(reading, log), reading, files)


def judged(member: GroupMember, done: Done[GivenFailure]) -> Failure:
    """The record of a session that is over."""
    taken = done.answers.get(ABOUT)
    if taken is None:
        return by_program(member).model_copy(update={"reason": done.unscored.get(ABOUT, "")})
    return Failure(
        ordinal=member.ordinal, mode=member.mode, repeat=member.repeat, label=taken.answer.label, by="judge",
        reason=taken.answer.reason, quote=taken.answer.quote, exchanges=[taken.key],
    )  # fmt: skip
