"""What a judge is asked about a run: one question per check, with its window as exchanges and pieces. Pure.

Asked is every check of a triggered instance; what a program has settled is asked as a control, without its record.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from realcli.benchmark.catalogue_models import CheckTemplate, Template
from realcli.checks import Instance
from realcli.checks.instances import window_of
from realcli.checks.states import rule_of
from realcli.judging.reading import Reading
from realcli.judging.state_files import snapshot_name
from realcli.ledger.events import AgentMessage, AgentQuestion, Command, FileDelete, FileWrite, Snapshot, ToolCall
from realcli.scoring.records import CheckRecord, HardRecord, InstanceRecord
from realcli.trajectory import Trajectory, Window
from realcli.trajectory.anchors import Anchor


@dataclass(frozen=True)
class Question:
    """One check of one instance, as it is asked."""

    id: str  # "<instance>/<check>"
    instance: str
    check: CheckTemplate
    anchor_exchange: int
    window: Window
    exchanges: tuple[int, ...]  # that the window touches
    first: str | None  # id of the first piece inside the window; None: no piece is
    last: str | None
    hard: HardRecord | None  # the program's record, shown as a hint; None for a control
    settled: bool  # the program decides it; the answer shows how the judge errs, and never counts
    snapshots: frozenset[str] = frozenset()  # those that show the state the window led to
    found: frozenset[str] = frozenset()  # those that show the state the window began with
    stretch: tuple[int, int] = (1, 0)  # seq, inclusive: from where the scenario begins to where the last of its windows ends

    @property
    def window_name(self) -> str:
        """The catalogue's word."""
        return self.check.window


@dataclass(frozen=True)
class Scenario:
    """An instance and what is asked about it: answered in one call."""

    instance: Instance
    questions: tuple[Question, ...]

    @property
    def id(self) -> str:
        """The instance's."""
        return self.instance.id

    @property
    def meanings(self) -> Mapping[str, str]:
        """What the names in its clauses stand for, in the template's words."""
        return self.instance.scenario.bindings if isinstance(self.instance.scenario, Template) else {}

    @property
    def bound(self) -> dict[str, JsonValue]:
        """What they are in this task."""
        return {name: value for name, value in sorted(self.instance.bindings.items()) if name in self.meanings}

    @property
    def exchanges(self) -> tuple[int, ...]:
        """All that its questions are about."""
        return tuple(sorted({number for question in self.questions for number in question.exchanges}))


def scenario_of(instance: Instance, record: InstanceRecord, trajectory: Trajectory, reading: Reading) -> Scenario | None:
    """What there is to ask about an instance; None for one that has no checks in this run."""
    if record.anchor is None or not record.checks:
        return None
    anchor = Anchor(rule_of(instance), record.anchor)
    records = {check.check: check for check in record.checks}
    windows = {check.id: window_of(check, instance, trajectory, anchor) for check in instance.scenario.checks}
    stretch = _stretch(anchor, windows.values(), trajectory)
    questions = tuple(
        _question(instance, check, records[check.id], anchor, windows[check.id], stretch, trajectory, reading)
        for check in instance.scenario.checks
        if check.id in records
    )
    return Scenario(instance, questions)


def _stretch(anchor: Anchor, windows: Iterable[Window], trajectory: Trajectory) -> tuple[int, int]:
    """A window nothing closed goes on to the end of the run: what cut it stands there."""
    first, last = anchor.seq, anchor.seq
    for window in windows:
        end = trajectory.items[-1].seq if window.closed_by is None else window.closed_by.seq
        first = min(first, window.first)
        last = max(last, end, *(item.seq for item in window.items[-1:]))
    return first, last


def _question(
    instance: Instance,
    check: CheckTemplate,
    record: CheckRecord,
    anchor: Anchor,
    window: Window,
    stretch: tuple[int, int],
    trajectory: Trajectory,
    reading: Reading,
) -> Question:
    inside = [piece for piece in reading.pieces if any(in_window(window, part.seq) for part in piece.parts)]
    settled = record.by == "program"
    return Question(
        id=f"{instance.id}/{check.id}",
        instance=instance.id,
        check=check,
        anchor_exchange=trajectory.items[anchor.seq - 1].event.exchange,
        window=window,
        exchanges=reading.inside(window),
        first=inside[0].id if inside else None,
        last=inside[-1].id if inside else None,
        hard=None if settled else record.hard,
        settled=settled,
        snapshots=frozenset(snapshots_of(trajectory, window)),
        found=frozenset(snapshots_before(trajectory, window)),
        stretch=stretch,
    )


def snapshots_of(trajectory: Trajectory, window: Window) -> Iterator[str]:
    """Names of the snapshots that were taken after the agent did something in the window, and before it did more beyond it.

    A snapshot from before shows what the agent found, one from later what it made good.
    """
    taken, acts = _taken(trajectory), _acts(trajectory)
    said = [item.seq for item in window.items if isinstance(item.data, AgentMessage | AgentQuestion | FileWrite | FileDelete)]
    for name, seq in taken.items():
        before = any(window.first <= at < seq for at in (*acts, *said))
        if before and not any(window.last < at < seq for at in acts):
            yield name


def snapshots_before(trajectory: Trajectory, window: Window) -> Iterator[str]:
    """Names of the snapshots that show what the agent found: nothing was done between them and where the window begins."""
    acts = _acts(trajectory)
    for name, seq in _taken(trajectory).items():
        if not any(min(seq, window.first) <= at < max(seq, window.first) for at in acts):
            yield name


def _taken(trajectory: Trajectory) -> dict[str, int]:
    return {snapshot_name(data): event.seq for event, data in trajectory.of(Snapshot)}  # the last of a name counts


def _acts(trajectory: Trajectory) -> list[int]:
    return [item.seq for item in trajectory.items if isinstance(item.data, ToolCall | Command)]


def in_window(window: Window, seq: int) -> bool:
    """An event inside, or a change of a file told at the window's hand-over."""
    return window.first <= seq <= window.last or (bool(window.items) and window.last < seq <= window.items[-1].seq)


def asked_in(scenarios: Iterable[Scenario], *, controls: bool) -> list[Scenario]:
    """With `controls` everything, else what no program settles; scenarios of which nothing is left are dropped."""
    kept = []
    for scenario in scenarios:
        questions = tuple(q for q in scenario.questions if controls or not q.settled)
        if questions:
            kept.append(Scenario(scenario.instance, questions))
    return kept


def shuffled(scenarios: Sequence[Scenario], seed: str) -> list[Scenario]:
    """In another order for every seed: a judge's verdict must not hang on what was asked before."""
    order = random.Random(seed)
    mixed = [
        Scenario(scenario.instance, tuple(order.sample(scenario.questions, len(scenario.questions)))) for scenario in scenarios
    ]
    return order.sample(mixed, len(mixed))


def told(scenario: Scenario, reading: Reading) -> str:
    """A scenario and its questions in words, as they stand in a request."""
    instance = scenario.instance
    lines = [f"## Scenario {instance.id}: {instance.scenario.name}"]
    stimulus = instance.scenario.stimulus if isinstance(instance.scenario, Template) else {}
    intent, plant = stimulus.get("user_intent"), stimulus.get("plant")
    if intent:
        lines.append(f"What the user does: {' '.join(str(intent).split())}")
    if isinstance(plant, dict) and plant.get("what"):
        lines.append(f"What was prepared: {' '.join(str(plant['what']).split())}")
    lines.append(f"What a good agent does: {' '.join(instance.scenario.expected.split())}")
    lines += _bindings(scenario)
    for question in scenario.questions:
        lines += ["", *_told(question, reading)]
    return "\n".join(lines)


def _bindings(scenario: Scenario) -> list[str]:
    meanings = scenario.meanings
    bound = [
        f"- {name} ({' '.join(meanings[name].split())}): {json.dumps(value, ensure_ascii=False)}"
        for name, value in scenario.bound.items()
    ]
    return ["In this task:", *bound] if bound else []


def _told(question: Question, reading: Reading) -> list[str]:
    check = question.check
    place = "nothing stands in it" if question.first is None else f"items {question.first} to {question.last}"
    exchanges = ", ".join(map(str, question.exchanges)) or "none"
    lines = [
        f"### Check {question.id}",
        f"anchor_exchange: {question.anchor_exchange}",
        f"window: {check.window} (exchanges {exchanges}; {place})",
        f"one_needs: {check.one_needs}; evidence: {check.evidence}",
        f"pass: {' '.join(check.pass_.split())}",
        f"zero_when: {' '.join(check.zero_when.split())}",
        f"na_when: {' '.join(check.na_when.split())}",
    ]
    if question.hard is not None:
        told = f"program record of {question.id}: {question.hard.op} says {question.hard.result}; a hint, it does not decide"
        lines.append(reading.fenced(told, question.hard.why))
    return lines
