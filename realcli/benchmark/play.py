"""A script made ready to be played: each probe with its template's delivery, fallback and parsed triggers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from pydantic import JsonValue

from realcli.benchmark.catalogue import Catalogue, Template
from realcli.benchmark.problems import BenchmarkError, Problem
from realcli.benchmark.references import OPENER, check_script, usable
from realcli.benchmark.script import SCRIPT
from realcli.benchmark.script_models import Action, Passive, Probe, Script, Slice
from realcli.benchmark.when import When as Written
from realcli.benchmark.when import mapping
from realcli.trajectory.bindings import action_id, whole_name
from realcli.trajectory.triggers import (
    Atom,
    Count,
    ExchangesSince,
    Nth,
    SlicePending,
    TriggerError,
    When,
    atoms,
    parse_when,
)

Delivery = Literal["opener", "at_yield", "mid_turn"]
_ALWAYS = ("episode_start", "user_message", "slice_released", "yield")


@dataclass(frozen=True, slots=True)
class PlayedProbe:
    """A probe and when it comes. Both conditions have to hold."""

    probe: Probe
    delivery: Delivery
    fallback: bool
    conditions: tuple[When, ...]


@dataclass(frozen=True)
class Play:
    """Everything the state machine needs of a script; immutable."""

    script: Script
    probes: dict[str, PlayedProbe]
    slices: dict[str, Slice]
    actions: dict[str, Action]
    conditions: dict[str, tuple[When, ...]] = field(repr=False)
    """Everything that is watched, by name: `probe:`, `slice:`, `action:` and `passive:` with an id."""
    bound: dict[str, str]
    """Slice -> the probe it is released with or after."""

    @cached_property
    def heeds(self) -> dict[str, frozenset[str]]:
        """Kinds of events that can move what is watched, by name: a run has a million others."""
        found: dict[str, frozenset[str]] = {}
        for name, conditions in self.conditions.items():
            counted = [a.pattern.event for when in conditions for a in atoms(when) if isinstance(a, Nth | Count)]
            also = {"agent_question": "ask", "agent_message": "agent_question"}  # other kinds that count as one
            found[name] = frozenset(_ALWAYS).union(counted, (also[event] for event in counted if event in also))
        return found

    judged: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)
    """Action id -> regexes on commands that a check counts as that action, so that leave for them is leave for it."""

    @property
    def names_opener(self) -> bool:
        """A condition is about the release of the opener."""
        return any(
            _names(atom) == OPENER for conditions in self.conditions.values() for when in conditions for atom in atoms(when)
        )

    def passive(self, name: str) -> Passive:
        """The passive instance of that name."""
        return next(one for one in self.script.passive if one.name == name)

    def of_delivery(self, delivery: Delivery) -> list[str]:
        """Probes of that delivery, in the order of `script.probes`."""
        return [name for name, played in self.probes.items() if played.delivery == delivery]


def ready(script: Script, catalogue: Catalogue) -> Play:
    """BenchmarkError, with every problem, for a script that cannot be played."""
    problems = list(check_script(script))
    play, more = resolve(script, catalogue)
    if problems or more:
        raise BenchmarkError(problems + more)
    return play


def resolve(script: Script, catalogue: Catalogue) -> tuple[Play, list[Problem]]:
    """What can be resolved, and what is wrong with templates and conditions."""
    problems: list[Problem] = []
    probes: dict[str, PlayedProbe] = {}
    conditions: dict[str, tuple[When, ...]] = {}
    for probe in script.probes:
        field_ = f"probe {probe.id!r}"
        template = _template(probe.scenario, "probe", catalogue, field_, problems)
        if template is None:
            continue
        own = _written(probe.when, f"{field_} when", problems)
        parsed = (*_parsed(template, probe.bindings, field_, problems), *own)
        conditions[f"probe:{probe.id}"] = parsed
        delivery = template.trigger.delivery
        if delivery == "observe":
            raise AssertionError(f"{template.id}: a probe that is observed")
        fallback = template.trigger.fallback == "before_completion" and probe.fallback is None
        probes[probe.id] = PlayedProbe(probe, delivery, fallback, parsed)
    for passive in script.passive:
        field_ = f"passive {passive.name!r}"
        template = _template(passive.scenario, "passive", catalogue, field_, problems)
        if template is not None:
            conditions[f"passive:{passive.name}"] = _parsed(template, passive.bindings, field_, problems)
    for part in script.slices:
        if part.on_event is not None:
            conditions[f"slice:{part.id}"] = _written(part.on_event, f"slice {part.id!r} onEvent", problems)
    for action in script.actions:
        if action.when is not None:
            conditions[f"action:{action.id}"] = _written(action.when, f"action {action.id!r} when", problems)
    play = Play(
        judged=_judged(script, catalogue),
        script=script,
        probes=probes,
        slices={part.id: part for part in script.slices},
        actions={action.id: action for action in script.actions},
        conditions=conditions,
        bound=dict(_bound(script)),
    )
    return play, problems


def _names(atom: Atom) -> str | None:
    """The slice that an atom is about."""
    match atom:
        case ExchangesSince(exchanges_since=name) | SlicePending(slice_pending=name):
            return name
        case Nth() | Count():
            return atom.pattern.where.slice if atom.pattern.where is not None else None
    return None


def _judged(script: Script, catalogue: Catalogue) -> dict[str, tuple[str, ...]]:
    found: dict[str, dict[str, None]] = {}
    instances: list[Probe | Passive] = [*script.probes, *script.passive]
    for instance in instances:
        template = catalogue.templates.get(instance.scenario)
        for check in template.checks if template is not None else ():
            action = instance.bindings.get(check.approval_of or "")
            id = action_id(action)
            if id is None:
                continue
            commands = [action.get("cmd")] if isinstance(action, dict) else []
            if check.hard is not None and check.hard.get("op") == "cmd_absent":
                commands.append(instance.bindings.get(whole_name(check.hard.get("match")) or ""))
            found.setdefault(id, {}).update(dict.fromkeys(one for one in commands if isinstance(one, str) and usable(one)))
    return {id: tuple(commands) for id, commands in found.items()}


def _bound(script: Script) -> Iterator[tuple[str, str]]:
    for probe in script.probes:
        for name in (probe.slice, probe.closure.slice if probe.closure else None):
            if name is not None:
                yield name, probe.id


def _template(id: str, kind: str, catalogue: Catalogue, field_: str, problems: list[Problem]) -> Template | None:
    template = catalogue.templates.get(id)
    if template is None:
        problems.append(Problem(SCRIPT, field_, f"scenario {id!r} is not in the catalogue", "name the id of a template"))
    elif template.type != kind:
        place = "`passive`" if template.type == "passive" else "`probes`"
        problems.append(Problem(SCRIPT, field_, f"{id} is a {template.type} template", f"bind it in {place}"))
        return None
    return template


def _parsed(template: Template, bindings: dict[str, JsonValue], field_: str, problems: list[Problem]) -> tuple[When, ...]:
    try:
        return (parse_when(template.trigger.when, bindings),)
    except TriggerError as error:
        problems.append(
            Problem(SCRIPT, f"{field_} bindings", f"do not fill the trigger of {template.id}: {error}", "correct them")
        )
        return ()


def _written(when: Written | None, field_: str, problems: list[Problem]) -> tuple[When, ...]:
    if when is None:
        return ()
    try:
        return (parse_when(mapping(when), {}),)
    except TriggerError as error:
        problems.append(Problem(SCRIPT, field_, f"cannot be used: {error}", "write it in the trigger vocabulary"))
        return ()
