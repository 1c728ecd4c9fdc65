"""An instance: a scenario bound to one task, delivered (probe) or observed (passive)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from realcli.benchmark.catalogue_models import Catalogue, GenericCheck, Scenario, Template
from realcli.benchmark.script_models import Passive, Probe, Script
from realcli.checks.bindings import bindings_of
from realcli.scoring.records import Dimension


@dataclass(frozen=True)
class Instance:
    """`id` is the probe's or the passive binding's; it names the instance in ledger, judgement and report."""

    id: str
    scenario: Scenario
    bindings: Mapping[str, JsonValue] = field(default_factory=dict)
    probe: Probe | None = None  # None: observed

    @property
    def dimension(self) -> Dimension:
        """The dimension it counts in; of a generic check, the nearest."""
        if isinstance(self.scenario, Template):
            return self.scenario.dimension
        assert isinstance(self.scenario, GenericCheck)
        return self.scenario.nearest_dimension

    @property
    def sub_dimension(self) -> str:
        """Empty for a generic check, which has none."""
        return self.scenario.sub_dimension if isinstance(self.scenario, Template) else ""

    @property
    def slices(self) -> frozenset[str]:
        """Slices it depends on: those its bindings name (`…_SLICE`, or said to be one), its probe's and its closure's."""
        told = self.scenario.bindings if isinstance(self.scenario, Template) else {}
        named = [
            value for name, value in self.bindings.items()
            if isinstance(value, str) and (name.endswith("_SLICE") or "slice" in told.get(name, ""))
        ]  # fmt: skip
        closure = self.probe.closure if self.probe is not None else None
        own = [self.probe.slice if self.probe is not None else None, closure.slice if closure is not None else None]
        return frozenset((*named, *(one for one in own if one is not None)))


def of_probe(probe: Probe, scenario: Scenario) -> Instance:
    """The instance of a probe."""
    return Instance(probe.id, scenario, bindings_of(probe), probe)


def of_passive(passive: Passive, scenario: Scenario) -> Instance:
    """The instance of a passive binding."""
    return Instance(passive.name, scenario, dict(passive.bindings))


def instances_of(script: Script, catalogue: Catalogue) -> list[Instance]:
    """All instances of a script, probes first. KeyError names a scenario that the catalogue lacks."""
    probes = [of_probe(probe, catalogue.template(probe.scenario)) for probe in script.probes]
    return probes + [of_passive(passive, catalogue.template(passive.scenario)) for passive in script.passive]
