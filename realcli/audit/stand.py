"""Where the script stands at one moment of a run, by docs/script.md section 5: what is out, what is open, what is due. Pure.

A reading of its own: it shares the triggers and the script with the state machine that spoke, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from realcli.benchmark.play import Play
from realcli.benchmark.script import BATCH, PROBE
from realcli.benchmark.script_models import BATCH_MAX
from realcli.trajectory import Blobs
from realcli.trajectory.model import Item
from realcli.trajectory.triggers import TriggerState

DueKind = Literal["part", "slices", "probe"]


@dataclass(frozen=True, slots=True)
class Due:
    """The due item: `names` is the probe, or the slices that its message says."""

    kind: DueKind
    names: tuple[str, ...]

    @property
    def sources(self) -> tuple[str, ...]:
        """Source ids that stand for it."""
        return tuple(f"{'slice:' if self.kind == 'slices' else PROBE}{name}" for name in self.names)


@dataclass(frozen=True)
class Stand:
    """Immutable. Conditions are those after the last event observed."""

    play: Play
    watched: dict[str, tuple[TriggerState, ...]] = field(repr=False)
    released: frozenset[str] = frozenset()
    delivered: frozenset[str] = frozenset()
    given_up: frozenset[str] = frozenset()
    plain: tuple[str, ...] = ()  # slices of given-up probes
    parts: tuple[str, int] | None = None  # probe with open parts, index of the next
    closures: tuple[str, ...] = ()  # delivered probes whose closure is to be said
    said: frozenset[str] = frozenset()  # sources, and "action:<id> <granted>"
    probed: bool = False  # the running response's message held a probe or a part

    @staticmethod
    def start(play: Play, blobs: Blobs | None = None) -> Stand:
        """Before the opener."""
        watched = {
            name: tuple(TriggerState.start(when, blobs) for when in conditions) for name, conditions in play.conditions.items()
        }
        return Stand(play, watched)

    def observing(self, item: Item) -> Stand:
        """After one more event."""
        moved = [name for name, kinds in self.play.heeds.items() if item.event.kind in kinds]
        if not moved:
            return self
        return replace(self, watched=self.watched | {name: tuple(s.observe(item) for s in self.watched[name]) for name in moved})

    # ------------------------------------------------------------------------------------------------------- conditions
    def holds(self, name: str) -> bool:
        """Everything under that name (`probe:`, `action:`) holds now."""
        return all(one.holds for one in self.watched.get(name, ()))

    def fired(self, name: str) -> bool:
        """Everything under that name has held at some time."""
        return all(one.fired is not None for one in self.watched.get(name, ()))

    def spaced(self, name: str) -> bool:
        """Distance and slice conditions hold, whatever else."""
        return all(one.conditions_hold for one in self.watched.get(name, ()))

    def far(self, name: str) -> bool:
        """A distance is not kept."""
        return not all(one.distances_hold for one in self.watched.get(name, ()))

    def granted(self, action: str) -> bool:
        """The script's decision on an action at this moment."""
        return self.play.actions[action].decision == "approve" and self.holds(f"action:{action}")

    @property
    def refused(self) -> frozenset[str]:
        """Actions that would be approved later and are not now."""
        return frozenset(name for name in self.play.actions if not self.granted(name))

    # ------------------------------------------------------------------------------------------------------ what is open
    @property
    def waiting(self) -> list[str]:
        """Probes to come, in the order of `script.probes`; one of delivery `opener` comes with the opener or never."""
        gone = self.delivered | self.given_up
        return [name for name, played in self.play.probes.items() if name not in gone and played.delivery != "opener"]

    @property
    def mandatory(self) -> list[str]:
        """Mandatory slices that are not out."""
        return [part.id for part in self.play.script.slices if part.mandatory and part.id not in self.released]

    @property
    def batches(self) -> list[str]:
        """Batches of the order that are not out."""
        order = [item.removeprefix(BATCH) for item in self.play.script.order if item.startswith(BATCH)]
        return [name for name in order if self.rest(name)]

    @property
    def open(self) -> bool:
        """A claim now would be an interim one."""
        return bool(self.mandatory or self.waiting or self.parts or self.closures or self.batches)

    def rest(self, batch: str) -> tuple[str, ...]:
        """Slices of a batch that are not out."""
        return tuple(name for name in self.play.script.batches[batch] if name not in self.released)

    def promised(self, name: str) -> bool:
        """The slice comes with, or after, a probe that is not delivered in full."""
        probe = self.play.bound.get(name)
        return probe is not None and (probe in self.waiting or (self.parts is not None and self.parts[0] == probe))

    def closing(self, name: str) -> str | None:
        """The probe whose open closure brings the slice."""
        probe = self.play.bound.get(name)
        return probe if probe in self.closures and name not in self.released else None

    # ------------------------------------------------------------------------------------------------------- what is due
    def due(self) -> Due | None:
        """The due item."""
        if self.parts is not None:
            return Due("part", (self.parts[0],))
        slices = self.plain or tuple(self._called())
        if slices:
            return Due("slices", slices[:BATCH_MAX])
        for item in self.play.script.order:
            name = item.split(":", 1)[1]
            if item.startswith(BATCH) and self.rest(name):
                return Due("slices", self.rest(name))
            if item.startswith(PROBE) and name in self.waiting and self.holds(item):
                return Due("probe", (name,))
        return None

    def _called(self) -> Iterator[str]:
        """Slices an event calls for."""
        for part in self.play.script.slices:
            if part.on_event is None or part.id in self.released or not self.fired(f"slice:{part.id}"):
                continue
            if not self.promised(part.id) and self.closing(part.id) is None:
                yield part.id

    def fallback(self) -> str | None:
        """The probe that answers a completion claim although its trigger has not fired."""
        for item in self.play.script.order:
            name = item.removeprefix(PROBE)
            if item.startswith(PROBE) and name in self.waiting and self.play.probes[name].fallback and self.spaced(item):
                return name
        return None

    # -------------------------------------------------------------------------------------------------------- what is said
    def saying(self, sources: tuple[str, ...], decided: frozenset[str] = frozenset()) -> Stand:
        """After a message of these sources. `decided`: its decisions, as `action:<id> <granted>`."""
        state = replace(self, probed=False)
        for source in sources:
            kind, _, name = source.partition(":")
            if kind == "slice" and name in self.play.slices:
                state = state.releasing(name)
            elif kind == "probe" and name in self.play.probes:
                state = state._probing(name)
            elif kind == "closure":
                state = replace(state, closures=tuple(one for one in state.closures if one != name))
        return replace(state, said=state.said | set(sources) | decided)

    def releasing(self, name: str) -> Stand:
        """A slice is out."""
        return replace(self, released=self.released | {name}, plain=tuple(one for one in self.plain if one != name))

    def giving_up(self, name: str) -> Stand:
        """A probe that will not come: slices bound to it are to be said plainly."""
        probe = self.play.probes[name].probe
        bound = [probe.slice, probe.closure.slice if probe.closure else None]
        left = tuple(one for one in bound if one is not None and one not in self.released and one not in self.plain)
        return replace(self, given_up=self.given_up | {name}, plain=self.plain + left)

    def _probing(self, name: str) -> Stand:
        probe = self.play.probes[name].probe
        at = self.parts[1] + 1 if self.parts is not None and self.parts[0] == name else 0 if name not in self.delivered else None
        granted = {f"action:{probe.approves} True"} if probe.approves and at == 0 else set()
        state = replace(self, delivered=self.delivered | {name}, probed=True, said=self.said | granted)
        if at is None:  # said again, which no script asks for
            return state
        if at < len(probe.parts):
            return replace(state, parts=(name, at))
        closes = (name,) if probe.closure is not None else ()
        return replace(state, parts=None if self.parts is None or self.parts[0] == name else self.parts,
                       closures=state.closures + closes)  # fmt: skip
