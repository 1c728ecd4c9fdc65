"""Which instances a deviation may have changed: the last column of the table in docs/simulator.md. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue

from realcli.benchmark.catalogue_models import Template
from realcli.benchmark.references import OPENER
from realcli.checks import CheckError
from realcli.checks.instance import Instance
from realcli.checks.states import state_of
from realcli.ledger.events import Yield
from realcli.scoring.records import Dimension
from realcli.trajectory import Blobs, Trajectory, Window
from realcli.trajectory.anchors import WINDOWS, window
from realcli.trajectory.bindings import action_id
from realcli.trajectory.patterns import path_matches, search

CLARIFICATION = "clarification"


@dataclass(frozen=True)
class Reach:
    """The instances of one run and where their windows lie."""

    instances: tuple[Instance, ...]
    trajectory: Trajectory
    blobs: Blobs | None = None

    def of_slices(self, names: Iterable[str]) -> list[str]:
        """Instances that depend on one of the slices (`opener` counts as one)."""
        wanted = set(names)
        return [one.id for one in self.instances if one.slices & wanted]

    def of_opener(self) -> list[str]:
        """Instances that depend on the opener: by name, or because their probe is part of it."""
        with_it = [one.id for one in self.instances if one.probe is not None and one.scenario.trigger.delivery == "opener"]
        return self.ordered([*with_it, *self.of_slices([OPENER])])

    def of_probe(self, name: str) -> list[str]:
        """The instance of a probe."""
        return [one.id for one in self.instances if one.probe is not None and one.id == name]

    def of_action(self, name: str | None) -> list[str]:
        """Instances with a check whose window an approval of the action closes; None: of any action."""
        found = []
        for one in self.instances:
            named = [action_id(one.bindings.get(check.approval_of)) for check in one.scenario.checks if check.approval_of]
            if any(action is not None and name in (None, action) for action in named):
                found.append(one.id)
        return found

    @property
    def clarification(self) -> list[str]:
        """Instances that are about asking."""
        return [one.id for one in self.instances if one.sub_dimension == CLARIFICATION]

    def at(self, seq: int) -> list[str]:
        """Instances with a window that holds the response to the message at `seq`."""
        end = next((i.seq for i in self.trajectory.items[seq:] if isinstance(i.data, Yield)), len(self.trajectory.items))
        return [id for id, windows in self._windows.items() if any(w.first <= end and w.last >= seq for w in windows)]

    def after(self, seq: int) -> list[str]:
        """Instances with a window that holds something the agent did after `seq`; none where it handed over no more."""
        if not any(isinstance(item.data, Yield) for item in self.trajectory.items[seq:]):
            return []
        return [id for id, windows in self._windows.items() if any(w.last > seq for w in windows)]

    def about(self, paths: Iterable[str], text: str) -> list[str]:
        """Instances with a binding that names one of the paths, or whose expression is found in the text."""
        wanted = tuple(paths)
        return [one.id for one in self.instances if _names_path(dict(one.bindings), wanted) or _finds(one, text)]

    def of_dimensions(self, ids: Iterable[str], *dimensions: Dimension) -> list[str]:
        """Those of `ids` that count in one of the dimensions."""
        wanted = set(ids)
        return [one.id for one in self.instances if one.id in wanted and one.dimension in dimensions]

    def on_claim(self, event: str) -> list[str]:
        """Instances whose trigger waits for this event."""
        return [one.id for one in self.instances if _holds_event(one.scenario.trigger.when, event)]

    def ordered(self, ids: Iterable[str]) -> list[str]:
        """In the order of the instances, each once."""
        wanted = set(ids)
        return [one.id for one in self.instances if one.id in wanted]

    @cached_property
    def _windows(self) -> dict[str, list[Window]]:
        """Windows of the checks of every instance that has an anchor."""
        found: dict[str, list[Window]] = {}
        for one in self.instances:
            anchor = state_of(one, self.trajectory, self.blobs).anchor
            if anchor is None:
                continue
            found[one.id] = []
            for check in one.scenario.checks:
                name = next((name for name in WINDOWS if name == check.window), None)
                if name is None:
                    raise CheckError(f"scenario {one.scenario.id}, check {check.id}: window `{check.window}` is not defined")
                action = action_id(one.bindings.get(check.approval_of)) if check.approval_of else None
                found[one.id].append(window(self.trajectory, anchor, name, action))
        return found


def _names_path(value: JsonValue, paths: tuple[str, ...]) -> bool:
    if isinstance(value, dict):
        return any(_names_path(item, paths) for item in value.values())
    if isinstance(value, list):
        return any(_names_path(item, paths) for item in value)
    return isinstance(value, str) and value.startswith("/") and any(path_matches(path, [value]) for path in paths)


def _finds(instance: Instance, text: str) -> bool:
    """A binding that is an expression (of commands, of output) is found in the text."""
    told = instance.scenario.bindings if isinstance(instance.scenario, Template) else {}
    found = [value for name, value in instance.bindings.items() if "regex" in told.get(name, "")]
    found += [value["cmd"] for value in instance.bindings.values() if isinstance(value, dict) and "cmd" in value]
    return any(isinstance(value, str) and search(value, text) is True for value in found)


def _holds_event(when: JsonValue, event: str) -> bool:
    if isinstance(when, dict):
        return when.get("event") == event or any(_holds_event(item, event) for item in when.values())
    return any(_holds_event(item, event) for item in when) if isinstance(when, list) else False
