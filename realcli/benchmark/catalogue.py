"""The scenario catalogue shipped with the package: templates, their checks and the vocabulary they are written in.

A template that uses a word the vocabulary does not define is refused, as the file itself demands.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field

from realcli.api.base import sha256_digest


class _Part(BaseModel):
    """Part of the file: snake_case, frozen; further keys are kept in the raw text alone."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True, protected_namespaces=())


class CheckTemplate(_Part):
    """One binary check of a template."""

    id: str
    evidence: Literal["trajectory", "environment", "both"]
    window: str
    one_needs: Literal["quote", "absence"]
    pass_: str = Field(alias="pass")
    zero_when: str
    na_when: str
    hard: dict[str, Any] | None = None  # operator with its parameters, `decides` on top


class Trigger(_Part):
    """When a scenario happens."""

    when: dict[str, Any]
    exposure: Literal["instrument", "environment", "agent"]
    delivery: Literal["opener", "at_yield", "mid_turn", "observe"]
    fallback: Literal["none", "before_completion"]
    requires: list[str] = []


class Template(_Part):
    """One scenario."""

    id: str
    name: str
    dimension: Literal["U", "S", "OR", "TC", "SR"]
    sub_dimension: str
    type: Literal["probe", "passive"]
    bindings: dict[str, str]  # name -> what an author fills in
    trigger: Trigger
    stimulus: dict[str, Any]
    needs: list[str] = []
    expected: str
    anchor: dict[str, str]
    checks: list[CheckTemplate]

    @property
    def plant(self) -> Literal["static", "dynamic"] | None:
        """Kind of plant, None without one."""
        plant = self.stimulus.get("plant")
        return plant["kind"] if plant else None


class Catalogue(_Part):
    """All templates by id, with the digest of the file they came from."""

    schema_: str
    digest: str
    templates: dict[str, Template]

    def template(self, id: str) -> Template:
        """The template; KeyError names it and where to look."""
        try:
            return self.templates[id]
        except KeyError:
            raise KeyError(f"scenario {id!r} is not in the catalogue ({len(self.templates)} templates)") from None


@cache
def load_catalogue() -> Catalogue:
    """The catalogue of this package."""
    return parse_catalogue(resources.files("realcli.benchmark").joinpath("data/scenarios.yaml").read_bytes())


def parse_catalogue(data: bytes) -> Catalogue:
    """A catalogue file; ValueError lists the undefined words."""
    raw = yaml.safe_load(data)
    templates = [Template.model_validate(item) for item in raw["templates"]]
    undefined = [fault for template in templates for fault in _undefined(template, raw["vocabulary"])]
    if undefined:
        raise ValueError("the scenario catalogue uses words its vocabulary does not define:\n" + "\n".join(undefined))
    return Catalogue(schema_=raw["schema"], digest=sha256_digest(data), templates={t.id: t for t in templates})


def _undefined(template: Template, vocabulary: dict[str, Any]) -> Iterator[str]:
    words = [("anchor rule", template.anchor["rule"], vocabulary["anchors"])]
    words += [("window", check.window, vocabulary["windows"]) for check in template.checks]
    for node in _nodes([template.trigger.when, *(check.hard for check in template.checks)]):
        if "op" in node:
            words.append(("operator", node["op"], vocabulary["hard_ops"]))
        event = node.get("event")
        if isinstance(event, str) and not event.startswith("${"):
            words.append(("event", event, vocabulary["events"]))
    for kind, word, known in words:
        if word not in known:
            yield f"{template.id}: {kind} {word!r}"


def _nodes(tree: object) -> Iterator[dict[str, Any]]:
    if isinstance(tree, dict):
        yield tree
        for child in tree.values():
            yield from _nodes(child)
    elif isinstance(tree, list):
        for child in tree:
            yield from _nodes(child)
