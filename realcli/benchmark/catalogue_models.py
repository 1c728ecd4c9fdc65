"""What the scenario catalogue holds: templates, generic checks, and the vocabulary they are written in."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from realcli.trajectory.exposure import Exposure


class _Part(BaseModel):
    """Part of the file: snake_case, frozen; further keys are kept in the raw text alone."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, protected_namespaces=())


class CheckTemplate(_Part):
    """One binary check of a template."""

    id: str
    evidence: Literal["trajectory", "environment", "both"]
    window: str
    one_needs: Literal["quote", "absence"]
    pass_: str = Field(alias="pass", min_length=1)
    zero_when: str = Field(min_length=1)
    na_when: str = Field(min_length=1)
    approval_of: str | None = None  # binding that names the action whose approval closes the window
    hard: dict[str, Any] | None = None  # operator with its parameters, `decides` on top


class Trigger(_Part):
    """When a scenario happens."""

    when: dict[str, Any]
    exposure: Exposure
    neutral_because: str | None = None  # why not triggering neither helps nor hurts; with exposure `agent` alone
    delivery: Literal["opener", "at_yield", "mid_turn", "observe"]
    fallback: Literal["none", "before_completion"]
    fallback_violator: str | None = None  # what a violator does on the fallback's path
    requires: list[str] = []


class Scenario(_Part):
    """What templates and generic checks have in common."""

    id: str = Field(pattern=r"^[a-z]+(\.[a-z0-9-]+)+$")
    name: str
    type: Literal["probe", "passive"]
    trigger: Trigger
    hosts: list[str] | Literal["declared"] = []
    needs: list[str] = []
    expected: str
    anchor: dict[str, str]
    checks: list[CheckTemplate] = Field(min_length=1)


class Template(Scenario):
    """One scenario."""

    dimension: Literal["U", "S", "OR", "TC", "SR"]
    sub_dimension: str
    bindings: dict[str, str]  # name -> what an author fills in
    stimulus: dict[str, Any]

    @property
    def plant(self) -> Literal["static", "dynamic"] | None:
        """Kind of plant, None without one."""
        plant = self.stimulus.get("plant")
        return plant["kind"] if plant else None


class GenericCheck(Scenario):
    """A check of every run, outside S. Its names (`@…`) are the task's, nobody binds them."""

    nearest_dimension: Literal["U", "S", "OR", "TC", "SR"]


class EventWord(_Part):
    """An event of the vocabulary. `by`: program, structured, or `structured or model`."""

    means: str
    by: str

    @property
    def read_by_a_model(self) -> bool:
        """What rests on it is a hint at most."""
        return "model" in self.by


class OperatorWord(_Part):
    """A hard-check operator and the arguments it cannot do without."""

    means: str
    needs: list[str]


class SubDimension(_Part):
    """A part of a dimension."""

    key: str
    dimension: str
    templates: int


class Vocabulary(_Part):
    """The words templates are written in. What they mean to a program is in the code; `catalogue_rules` compares."""

    events: dict[str, EventWord]
    triggers: dict[str, Any]
    exposure: dict[str, str]
    anchors: dict[str, Any]
    windows: dict[str, Any]
    snapshots: dict[str, str]
    checks: dict[str, Any]
    hard_ops: dict[str, OperatorWord]
    scopes: list[str]
    capabilities: dict[str, str]
    plants: dict[str, str]
    closure: dict[str, str]
    mock_hosts: dict[str, Any]


class Catalogue(_Part):
    """All templates and generic checks by id, with the digest of the file they came from."""

    schema_: str
    digest: str
    templates: dict[str, Template]
    generic: dict[str, GenericCheck] = {}
    vocabulary: Vocabulary
    sub_dimensions: dict[str, SubDimension] = {}

    def template(self, id: str) -> Template:
        """The template; KeyError names it and where to look."""
        try:
            return self.templates[id]
        except KeyError:
            raise KeyError(f"scenario {id!r} is not in the catalogue ({len(self.templates)} templates)") from None
