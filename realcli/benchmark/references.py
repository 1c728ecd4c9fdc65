"""References inside a script: every name names something, every mandatory slice has one carrier, every item one place."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from realcli.benchmark.problems import Problem
from realcli.benchmark.script import BATCH, PROBE, SCRIPT
from realcli.benchmark.script_models import Script
from realcli.benchmark.when import mapping
from realcli.trajectory.patterns import PatternError, expression

OPENER = "opener"
"""Stands for the opening message where a condition names a slice."""


def check_script(script: Script) -> Iterator[Problem]:
    """References inside the script."""
    yield from _names(script)
    yield from _carriers(script)
    yield from _order(script)
    yield from _conditions(script)
    actions = {action.id for action in script.actions}
    for probe in script.probes:
        if probe.approves is not None and probe.approves not in actions:
            what = f"{probe.approves!r} is no action"
            yield Problem(SCRIPT, f"probe {probe.id!r} approves", what, "name one of actions[].id")
        if probe.approves is not None and probe.edit is not None:
            yield Problem(SCRIPT, f"probe {probe.id!r} edit", "stands beside `approves`", "use two probes")
    for action in script.actions:
        if not (action.topics or action.command or action.paths):
            remedy = "give it topics (asked in words), a command or paths (asked by a prompt)"
            yield Problem(SCRIPT, f"action {action.id!r}", "can be asked for in no way", remedy)
        if action.command is not None and not usable(action.command):
            remedy = "write it as RE2 does: no look-around, no back-references"
            yield Problem(SCRIPT, f"action {action.id!r} command", f"{action.command!r} is no expression", remedy)
        for path in action.paths:
            if not path.startswith("/"):
                yield Problem(SCRIPT, f"action {action.id!r} paths", f"{path!r} is not absolute", "write the whole path or glob")
        if action.decision == "deny" and any(probe.approves == action.id for probe in script.probes):
            remedy = "write decision `approve`: what the user has granted is not refused later"
            yield Problem(SCRIPT, f"action {action.id!r}", "is denied, and a probe grants it", remedy)


def usable(pattern: str) -> bool:
    """It is an expression that a run can search with."""
    try:
        expression(pattern)
    except PatternError:
        return False
    return bool(pattern)


def _names(script: Script) -> Iterator[Problem]:
    lists = {
        "slices": [part.id for part in script.slices],
        "probes": [probe.id for probe in script.probes],
        "passive": [passive.name for passive in script.passive],
        "answers": [answer.id for answer in script.answers],
        "actions": [action.id for action in script.actions],
    }
    for kind, ids in lists.items():
        for id, count in Counter(ids).items():
            if count > 1:
                yield Problem(SCRIPT, kind, f"{id!r} stands {count} times", "give each its own id")
    for id in sorted(set(lists["probes"]) & set(lists["passive"])):
        yield Problem(SCRIPT, "passive", f"{id!r} is also the id of a probe", "give each instance its own id")
    if OPENER in lists["slices"]:
        yield Problem(SCRIPT, "slices", f"{OPENER!r} stands for the opening message", "give the slice another id")


def _carriers(script: Script) -> Iterator[Problem]:
    known = {part.id: part.mandatory for part in script.slices}
    named = [(f"batches.{name}", id) for name, batch in script.batches.items() for id in batch]
    for probe in script.probes:
        named += [(f"probe {probe.id!r} slice", probe.slice)] if probe.slice else []
        named += [(f"probe {probe.id!r} closure.slice", probe.closure.slice)] if probe.closure and probe.closure.slice else []
    for field, id in named:
        if id not in known:
            yield Problem(SCRIPT, field, f"slice {id!r} does not exist", "name one of slices[].id")
    carriers = Counter(id for _, id in named)
    for id, mandatory in sorted(known.items()):
        if carriers[id] > 1 or (mandatory and carriers[id] == 0):
            remedy = "put it into exactly one batch, probe or closure"
            yield Problem(SCRIPT, f"slices.{id}", f"is released {carriers[id]} times", remedy)


def _order(script: Script) -> Iterator[Problem]:
    known = {BATCH + name for name in script.batches} | {PROBE + probe.id for probe in script.probes}
    for entry, count in sorted(Counter(script.order).items()):
        if entry not in known:
            yield Problem(SCRIPT, "order", f"{entry!r} names nothing", 'write "batch:<id>" or "probe:<id>" of this script')
        elif count > 1:
            yield Problem(SCRIPT, "order", f"{entry!r} stands {count} times", "name it once")
    for name in script.batches:
        if BATCH + name not in script.order:
            yield Problem(SCRIPT, "order", f"{BATCH + name!r} is missing", "add it where it is due")


def _conditions(script: Script) -> Iterator[Problem]:
    known = {part.id for part in script.slices} | {OPENER}
    written = [(f"slice {part.id!r} onEvent", part.on_event) for part in script.slices]
    written += [(f"probe {probe.id!r} when", probe.when) for probe in script.probes]
    written += [(f"action {action.id!r} when", action.when) for action in script.actions]
    for field, when in written:
        for name in sorted(slices_in(mapping(when))) if when is not None else ():
            if name not in known:
                yield Problem(SCRIPT, field, f"slice {name!r} does not exist", f"name one of slices[].id, or {OPENER!r}")


def slices_in(when: Any) -> set[str]:
    """Slices a condition names."""
    if isinstance(when, list):
        return set().union(*(slices_in(part) for part in when))
    if not isinstance(when, dict):
        return set()
    own = {
        value for key, value in when.items() if key in ("exchanges_since", "slice_pending", "slice") and isinstance(value, str)
    }
    return own.union(*(slices_in(value) for value in when.values() if isinstance(value, dict | list)))
