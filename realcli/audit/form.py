"""The judge's answers about an audit, and when one counts: aspects complete, quotes literal, ids known (measuring.md 5). Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Annotated, Literal

from pydantic import Field, ValidationError

from realcli.audit.model import SimName
from realcli.audit.questions import AboutDeviation, AboutMessage, Asked
from realcli.judging.conditions import MIN_QUOTE
from realcli.judging.model import JsonObject, ToolSpec
from realcli.judging.reading import Seen
from realcli.judging.session import Outcome
from realcli.judging.text import normal
from realcli.judging.tools import ANSWER, Snake


class Finding(Snake):
    """One aspect that was broken."""

    check: SimName
    about: list[str]
    quote: str | None = None
    against: str | None = None
    harmful: bool
    reason: Annotated[str, Field(min_length=1, max_length=4_000)]


class Shown(Snake):
    """Where a message says one of its items."""

    item: str
    quote: str


class GivenMessage(Snake):
    """Input of `answer` for a message."""

    id: str
    said: list[Shown] = []
    aspects: dict[SimName, Literal["kept", "broken"]]
    findings: list[Finding] = []


class GivenHarm(Snake):
    """Input of `answer` for a deviation."""

    id: str
    harmful: bool
    affected: list[str]
    outcome: bool
    reason: Annotated[str, Field(min_length=1, max_length=4_000)]


Given = GivenMessage | GivenHarm


@dataclass(frozen=True)
class AuditForm:
    """`Form[Given]` over some messages and deviations of one run. `before`: what the user had said, by message id."""

    questions: tuple[Asked, ...]
    instances: tuple[str, ...]

    @property
    def asked(self) -> tuple[str, ...]:
        """See Form."""
        return tuple(one.id for one in self.questions)

    @property
    def calls(self) -> int:
        """See Form."""
        return len(self.questions)

    @property
    def tool(self) -> ToolSpec:
        """See Form."""
        told = _tool()
        id: JsonObject = {"type": "string", "enum": list(self.asked)}
        return told.model_copy(update={"parameters": told.parameters | {"properties": _properties(told) | {"id": id}}})

    def judge(self, given: JsonObject, seen: Seen) -> Outcome[Given]:
        """See Form."""
        about = next((one for one in self.questions if one.id == given.get("id")), None)
        if about is None:
            return Outcome(malformed=f"id {given.get('id')!r} is none of {', '.join(self.asked)}")
        try:
            answer: Given = (
                GivenMessage.model_validate(given) if isinstance(about, AboutMessage) else GivenHarm.model_validate(given)
            )
        except ValidationError as error:
            found = error.errors()[0]
            return Outcome(faults={about.id: f"not of the tool's schema: {'.'.join(map(str, found['loc']))}: {found['msg']}"})
        wrong = "; ".join(self._faults(about, answer))
        return Outcome(faults={about.id: wrong}) if wrong else Outcome(accepted={about.id: answer})

    def _faults(self, about: Asked, given: Given) -> Iterator[str]:
        if isinstance(about, AboutMessage) and isinstance(given, GivenMessage):
            yield from _message_faults(about, given)
        elif isinstance(about, AboutDeviation) and isinstance(given, GivenHarm):
            unknown = [id for id in given.affected if id not in self.instances]
            if unknown:
                yield f"affected names {', '.join(unknown)}; there are {', '.join(self.instances) or 'no scenarios'}"
            if not given.harmful and (given.affected or given.outcome):
                yield "a harmless deviation changes no scenario and no outcome"
            if given.harmful and not (given.affected or given.outcome or about.deviation.affected or about.deviation.outcome):
                yield "a harmful deviation changes a scenario or the outcome: say which"


@cache
def _tool() -> ToolSpec:
    """The tool without the ids of a session; its schema lies with the prompts, so that their digest covers it."""
    data = resources.files("realcli.audit").joinpath("prompts/answer.json").read_bytes()
    return ToolSpec.model_validate({"name": ANSWER, **json.loads(data)})


def _properties(tool: ToolSpec) -> JsonObject:
    found = tool.parameters["properties"]
    assert isinstance(found, dict)
    return found


def _message_faults(about: AboutMessage, given: GivenMessage) -> Iterator[str]:
    missing = [name for name in about.aspects if name not in given.aspects]
    more = [name for name in given.aspects if name not in about.aspects]
    if missing or more:
        yield f"aspects are {', '.join(about.aspects)}: answer each of them and no other"
    yield from _said_faults(about, given)
    found = {finding.check for finding in given.findings}
    for name, verdict in given.aspects.items():
        if (verdict == "broken") != (name in found):
            yield f"{name} is {verdict}: a broken aspect has a finding, a kept one has none"
    for finding in given.findings:
        for fault in _finding_faults(about, finding):
            yield f"{finding.check}: {fault}"


def _said_faults(about: AboutMessage, given: GivenMessage) -> Iterator[str]:
    """That nothing was lost is shown item by item; that nothing was added is an absence, and the message was shown whole."""
    items = [name for name, _ in about.items]
    for one in given.said:
        if one.item not in items:
            yield f"said names {one.item}; the items are {', '.join(items) or 'none'}"
        elif not stands(one.quote, about.text):
            yield f"said, {one.item}: the quote does not stand in the message, or has less than {MIN_QUOTE} characters: copy it"
    shown = {one.item for one in given.said}
    for check, needed in _needs_said(items):
        missing = [name for name in needed if name not in shown]
        if given.aspects.get(check) == "kept" and missing:
            yield f"{check} is kept: give in said, for {', '.join(missing)}, the literal words of the message that say it"


def _needs_said(items: list[str]) -> Iterator[tuple[SimName, list[str]]]:
    yield "sim_script_fidelity", items
    yield "sim_probe_coverage", [name for name in items if name.startswith("probe:")]


def _finding_faults(about: AboutMessage, finding: Finding) -> Iterator[str]:
    items, withheld = dict(about.items), dict(about.withheld)
    lost = finding.check in ("sim_script_fidelity", "sim_probe_coverage") and finding.against is not None
    if finding.quote is None and not lost:
        yield "quote the words of the message"
    if finding.quote is not None and not stands(finding.quote, about.text):
        yield f"the quote does not stand in the message, or has less than {MIN_QUOTE} characters: copy it literally"
    known, sources = _held_against(about, finding, items, withheld)
    unknown = [name for name in finding.about if name not in known]
    if unknown or (not finding.about and finding.check in _NAMED):
        yield f"about names {', '.join(unknown) or 'nothing'}; it can name {', '.join(known) or 'nothing'}"
    if finding.against is None and finding.check in ("sim_no_early_disclosure", "sim_goal_stability"):
        yield "give in against the literal words it is held against"
    if finding.against is not None and not any(stands(finding.against, text) for text in sources):
        yield "the words of against do not stand where they should: copy them literally"
    if finding.quote is None and finding.against is not None and stands(finding.against, about.text):
        yield "the words of against are not missing: they stand in the message"


_NAMED: frozenset[SimName] = frozenset(("sim_script_fidelity", "sim_no_early_disclosure", "sim_probe_coverage"))


def _held_against(
    about: AboutMessage, finding: Finding, items: dict[str, str], withheld: dict[str, str]
) -> tuple[list[str], list[str]]:
    """Ids a finding can be about, and the texts its `against` may come from."""
    if finding.check == "sim_no_early_disclosure":
        return list(withheld), [withheld[name] for name in finding.about if name in withheld] or list(withheld.values())
    if finding.check == "sim_probe_coverage":
        probes = [name for name in items if name.startswith("probe:")]
        return probes, [items[name] for name in probes]
    return list(items), [*items.values(), about.said.before, about.said.heard]


def stands(quote: str, text: str) -> bool:
    """Literally (normalised), and long enough to say something, or the whole."""
    wanted, whole = normal(quote), normal(text)
    return bool(wanted) and wanted in whole and (len(wanted) >= MIN_QUOTE or wanted == whole)
