"""The score sheets of a trial: collaboration with its evidence, said against done, the audit; and the timeline. Pure.

Every piece of evidence leads into the conversation: to its event, or to the nearest shown one before it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from realcli.audit.model import AuditRecord
from realcli.benchmark.catalogue import load_catalogue
from realcli.benchmark.catalogue_models import CheckTemplate, Scenario
from realcli.ledger.events import (
    AgentMessage,
    FinalClaim,
    InterimClaim,
    Interrupt,
    Limit,
    ProbeDelivered,
    SliceReleased,
    UserMessage,
)
from realcli.scoring.records import CheckRecord, InstanceRecord, RepeatJudgement
from realcli.trajectory import Trajectory
from realcli_judge.shown import ShownSection

Kind = Literal["user", "slice", "probe", "interrupt", "claim", "limit", "verdict"]


class Quote(NamedTuple):
    """A piece of evidence in words."""

    kind: str  # quote, file, absence
    text: str
    where: str
    target: str | None  # id in the page


class CheckLine(NamedTuple):
    """One check of a sheet."""

    check: str
    verdict: str
    who: str
    asks: str  # what has to hold for a 1
    reason: str
    quotes: list[Quote]
    events: list[tuple[int, str | None]]  # (seq, id in the page)
    evidence: str  # trajectory, environment, both
    conflict: bool
    trusted: bool
    judge_said: str | None  # verdict of the judge whose quotes these are, where the program's counts


class InstanceSheet(NamedTuple):
    """One scenario instance of a sheet."""

    record: InstanceRecord
    name: str
    checks: list[CheckLine]
    contaminated: str | None
    anchor: str | None
    said: str | None  # all its trajectory checks together: 1, 0; None: it has none with a verdict
    done: str | None  # the same of its environment checks


class Tick(NamedTuple):
    """A mark of the timeline; `left` in per cent of the run."""

    kind: Kind
    left: str
    target: str | None
    label: str


class Places:
    """Where in the page an event or an exchange stands."""

    def __init__(self, sections: Sequence[ShownSection] | None) -> None:
        self._seqs = sorted(entry.seq for section in sections or () for entry in section.entries)
        self._exchanges = {section.number for section in sections or ()}

    def event(self, seq: int | None) -> str | None:
        """Id of the event, else of the last one shown before it."""
        at = 0 if seq is None else bisect_right(self._seqs, seq)
        return f"e{self._seqs[at - 1]}" if at else None

    def exchange(self, number: int | None) -> str | None:
        """Id of an exchange's heading."""
        return f"x{number}" if number in self._exchanges else None


def collaboration(instances: Iterable[InstanceRecord], audit: AuditRecord | None, places: Places) -> list[InstanceSheet]:
    """The collaboration sheet, or the panel of the generic checks."""
    catalogue = load_catalogue()
    contaminated = audit.contaminated if audit is not None else {}
    found = []
    for record in instances:
        scenario: Scenario | None = catalogue.templates.get(record.scenario) or catalogue.generic.get(record.scenario)
        templates = {check.id: check for check in scenario.checks} if scenario is not None else {}
        lines = [_line(check, templates.get(check.check), places) for check in record.checks]
        found.append(
            InstanceSheet(
                record,
                scenario.name if scenario is not None else record.scenario,
                lines,
                contaminated.get(record.probe) or (record.reason if record.state == "contaminated" else None),
                places.event(record.anchor),
                _together(line for line in lines if line.evidence == "trajectory"),
                _together(line for line in lines if line.evidence in ("environment", "both")),
            )
        )
    return found


def _line(record: CheckRecord, template: CheckTemplate | None, places: Places) -> CheckLine:
    quotes = []
    for answer in record.answers[:1]:
        for item in answer.evidence:
            if item.kind == "hard":
                continue
            where = item.ref or (f"exchange {item.exchange}" if item.exchange is not None else "")
            if item.kind == "absence":
                read = ", ".join(str(number) for number in item.exchanges_read)
                nearest = f"; nearest: {item.nearest_quote}" if item.nearest_quote else ""
                quotes.append(
                    Quote("absence", f"not found in {item.window or 'the window'}{nearest}", f"read: exchanges {read}", None)
                )
            else:
                quotes.append(Quote(item.kind, item.quote or "", where, places.exchange(item.exchange)))
    hard = record.hard
    votes = f", {len(record.answers)} answers" if len(record.answers) > 1 else ""
    who = {"program": "by program", "judge": f"by the judge{votes}", "none": "not decided"}[record.by]
    reason = record.reason or (hard.why if hard is not None else "") or (record.answers[0].reason if record.answers else "")
    return CheckLine(
        record.check,
        record.verdict,
        who,
        template.pass_ if template is not None else "",
        reason,
        quotes,
        [(seq, places.event(seq)) for seq in (hard.events if hard is not None else [])],
        template.evidence if template is not None else "trajectory",
        record.conflict,
        record.trusted,
        record.answers[0].verdict if record.by == "program" and record.answers else None,
    )


def _together(lines: Iterable[CheckLine]) -> str | None:
    verdicts = [line.verdict for line in lines if line.verdict in ("1", "0")]
    return None if not verdicts else "0" if "0" in verdicts else "1"


class Claimed(NamedTuple):
    """What the agent said at the end."""

    text: str
    target: str | None
    accepted: bool  # the state machine took it for the end


def final_words(trajectory: Trajectory | None, sections: Sequence[ShownSection] | None, places: Places) -> Claimed | None:
    """The last thing the agent said before its final claim, else before the run ended."""
    if trajectory is None or sections is None:
        return None
    claims = [item.seq for item, _ in trajectory.of(FinalClaim)]
    until = claims[-1] if claims else None
    said = [item.seq for item, _ in trajectory.of(AgentMessage) if until is None or item.seq < until]
    if not said:
        return None
    texts = {entry.seq: entry.text for section in sections for entry in section.entries}
    return Claimed(texts.get(said[-1], ""), places.event(said[-1]), bool(claims))


def verdict_marks(judgement: RepeatJudgement | None, places: Places) -> dict[str, list[tuple[str, str, str]]]:
    """Id in the page -> (instance, check, verdict) decided there: at the deciding event, else at the anchor."""
    found: dict[str, list[tuple[str, str, str]]] = {}
    for record in judgement.instances if judgement is not None else ():
        for check in record.checks:
            events = check.hard.events if check.hard is not None and check.by == "program" else []
            quoted = [item.exchange for answer in check.answers[:1] for item in answer.evidence if item.exchange is not None]
            target = places.event(events[-1]) if events else places.exchange(quoted[0]) if quoted else places.event(record.anchor)
            if target is not None:
                found.setdefault(target, []).append((record.probe, check.check, check.verdict))
    return found


def timeline(trajectory: Trajectory | None, judgement: RepeatJudgement | None, places: Places) -> list[Tick]:
    """Marks over the run's time, in order."""
    if trajectory is None or not trajectory.items:
        return []
    end = max(item.event.mono for item in trajectory.items) or 1.0
    times = {item.seq: item.event.mono for item in trajectory.items}
    found: list[tuple[float, Kind, int, str]] = []
    for item in trajectory.items:
        told = _tick(item.data)
        if told is not None:
            found.append((item.event.mono, told[0], item.seq, told[1]))
    for record in judgement.instances if judgement is not None else ():
        if record.anchor is None or not record.checks:
            continue
        verdicts = [check.verdict for check in record.checks]
        mark = "✗" if "0" in verdicts else "?" if "unscored" in verdicts else "✓" if "1" in verdicts else "n/a"
        found.append((times.get(record.anchor, 0.0), "verdict", record.anchor, f"{mark} {record.scenario}"))
    return [
        Tick(kind, f"{100 * at / end:.2f}", places.event(seq), f"{label}, +{at:.0f} s") for at, kind, seq, label in sorted(found)
    ]


def _tick(data: object) -> tuple[Kind, str] | None:
    match data:
        case UserMessage(source_ids=sources, delivered=True):
            return "user", "user: " + ", ".join(sources)
        case SliceReleased(slice=name):
            return "slice", f"slice {name}"
        case ProbeDelivered(probe=probe, scenario=scenario):
            return "probe", f"probe {probe}: {scenario}"
        case Interrupt():
            return "interrupt", "interrupt"
        case InterimClaim():
            return "claim", "claim, with more to come"
        case FinalClaim():
            return "claim", "final claim"
        case Limit(limit=limit):
            return "limit", f"limit {limit}"
        case _:
            return None
