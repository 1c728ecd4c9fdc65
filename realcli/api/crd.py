"""CRD YAML from the pydantic models: `python -m realcli.api.crd --write|--check [--directory crds]`.

The API server wants a structural schema, which pydantic's JSON schema is not: references are inlined, `Optional` becomes an
absent field, `const` an enum, unknown fields are pruned (not `additionalProperties: false`). Every string and list must have a
bound, because the cost of CEL rules is computed from it. `crds/*.yaml` are golden files of this module.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import yaml

from realcli.api.agents import PROGRAMS, Permissions
from realcli.api.base import GROUP, VERSION, Frozen
from realcli.api.models import APIS, Api
from realcli.api.sweep import IMMUTABLE, MUTABLE, SweepSpec, SweepStatus
from realcli.api.trial import TrialSpec, TrialStatus

Schema = dict[str, Any]

NAME_PATTERN: Final = "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
CARRIED: Final = frozenset(
    ["type", "format", "description", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems"]
)
IGNORED: Final = frozenset(
    ("title", "additionalProperties", "default", "const", "anyOf", "$ref", "properties", "required", "items")
)


class Rule(NamedTuple):
    """One CEL rule. `message` tells a person what to do."""

    rule: str
    message: str

    def dump(self) -> Schema:
        """An entry of x-kubernetes-validations."""
        return {"rule": self.rule, "message": self.message}


class Column(NamedTuple):
    """One printer column."""

    name: str
    type: str
    path: str
    description: str = ""
    priority: int = 0


class Definition(NamedTuple):
    """Everything of a CRD that the models cannot say."""

    kind: str
    plural: str
    singular: str
    short_names: tuple[str, ...]
    categories: tuple[str, ...]
    description: str
    spec: type[Frozen]
    status: type[Frozen]
    rules: Mapping[str, tuple[Rule, ...]]  # path from the root, "" for the root itself
    list_maps: Mapping[str, str]  # path -> key
    sets: tuple[str, ...]
    status_default: Schema | None
    columns: tuple[Column, ...]
    selectable: tuple[str, ...]


NAME_RULES: Final = (
    Rule(
        "self.metadata.name.size() <= 40", "metadata.name may have at most 40 characters, so that all names made from it fit 63"
    ),
    Rule(
        f"self.metadata.name.matches('{NAME_PATTERN}')",
        "metadata.name may hold lower case letters, digits and '-' only: pods and Jobs are named after it",
    ),
)

LIMIT_RULE: Final = Rule(
    "duration(self) >= duration('1s') && duration(self) <= duration('720h')",
    "a limit has to be from 1s to 720h: a shorter one ends every trial, a longer one fits no pod",
)
LIMITS: Final = ("exec.deadline", "collab.deadline", "pending", "setup", "verify", "spoolHold")

HTTP_RULE: Final = Rule(
    "self.url.startsWith('https://') || self.insecureHttp == 'InCluster'",
    "http:// sends the key in clear text: use https://, or insecureHttp: InCluster for a Service in this cluster",
)
BASE_URL_RULES: Final[dict[Api, tuple[Rule, ...]]] = {
    "anthropic": (
        Rule(
            "!self.url.matches('/v1/*$')", "url is the base URL of the Anthropic API: leave out /v1 at its end, the agent adds it"
        ),
    ),
    "responses": (),
    "chat": (),
}

SWEEP: Final = Definition(
    kind="BenchmarkSweep",
    plural="benchmarksweeps",
    singular="benchmarksweep",
    short_names=("sweep", "sweeps", "sw"),
    categories=("all", "realcli"),
    description="A sweep: a benchmark run with every agent x model, in EXEC and COLLAB, several times.",
    spec=SweepSpec,
    status=SweepStatus,
    rules={
        "": NAME_RULES,
        "spec": (
            *(
                Rule(
                    f"!self.agents.exists(a, (has(a.program) ? a.program : a.name) == '{program}')"
                    f" || self.models.all(m, has(m.endpoints.{facts.api}))",
                    f"{program} speaks the {facts.api} API: every model needs endpoints.{facts.api}",
                )
                for program, facts in PROGRAMS.items()
            ),
            Rule(
                "!has(self.limits.trialBudget) || self.models.all(m, has(m.prices))",
                "limits.trialBudget needs models[].prices of every model: without a price no cost is known",
            ),
            Rule(
                "self.simulatedUser.mode != 'Model' || has(self.simulatedUser.model)",
                "mode: Model needs simulatedUser.model, the model that words",
            ),
        ),
        "spec.agents[]": (
            Rule(
                f"has(self.program) || self.name in [{', '.join(repr(program) for program in PROGRAMS)}]",
                f"program is missing: it may be left out only where name is the program's ({', '.join(PROGRAMS)})",
            ),
            *(
                Rule(
                    f"(has(self.program) ? self.program : self.name) != '{program}'"
                    f" || self.permissions in {list(facts.permissions)}",
                    f"{program} knows permissions {', '.join(facts.permissions)}",
                )
                for program, facts in PROGRAMS.items()
                if len(facts.permissions) < len(Permissions)
            ),
        ),
        "spec.agents[].files": (
            Rule(
                "has(self.source) != has(self.configMapRef)",
                "give either source (with digest) or configMapRef",
            ),
            Rule("has(self.source) == has(self.digest)", "source and digest go together: the archive is pinned by its sha256"),
        ),
        "spec.agents[].mcpServers[].env[]": (Rule("has(self.value) != has(self.secretRef)", "give either value or secretRef"),),
        **{
            f"{place}.endpoints.{api}": (HTTP_RULE, *BASE_URL_RULES[api])
            for place in ("spec.models[]", "spec.simulatedUser.model")
            for api in APIS
        },
        "spec.simulatedUser.model.endpoints": (
            Rule(
                "has(self.anthropic) || has(self.chat)", "the simulated user's model needs endpoints.anthropic or endpoints.chat"
            ),
        ),
        **{f"spec.limits.{name}": (LIMIT_RULE,) for name in LIMITS},
        **{f"spec.{name}": (Rule("self == oldSelf", IMMUTABLE),) for name in SweepSpec.aliases() if name not in MUTABLE},
    },
    list_maps={
        "spec.agents": "name",
        "spec.models": "name",
        "spec.agents[].mcpServers": "name",
        "spec.agents[].toolImages": "mountPath",
        "status.conditions": "type",
        "status.scores": "configuration",
    },
    sets=("spec.modes",),
    status_default=None,
    columns=(
        Column("State", "string", ".status.state", "Summary of the conditions."),
        Column("Ready", "string", '.status.conditions[?(@.type=="Ready")].reason', "Proven, or what keeps it from going on."),
        Column("Trials", "string", ".status.trials", "Terminal and all trials."),
        Column("Valid", "integer", ".status.counts.sealed", "Valid trials."),
        Column("Invalid", "integer", ".status.counts.invalid", "Invalid trials."),
        Column("R-EXEC", "string", ".status.rExec", "R of EXEC, where there is one configuration."),
        Column("R-COLLAB", "string", ".status.rCollab", "R of COLLAB, where there is one configuration."),
        Column("S", "string", ".status.s", "S; ~ marks S_rate or a partial S."),
        Column("J", "string", ".status.j", "J."),
        Column("Age", "date", ".metadata.creationTimestamp"),
    ),
    selectable=(),
)

TRIAL: Final = Definition(
    kind="Trial",
    plural="trials",
    singular="trial",
    short_names=("tr",),
    categories=("realcli",),
    description="A trial: one repeat of (configuration, task, mode) of a sweep. Made by the operator.",
    spec=TrialSpec,
    status=TrialStatus,
    rules={"spec": (Rule("self == oldSelf", "spec of a Trial is immutable: it is a cell of the frozen plan"),)},
    list_maps={"status.conditions": "type"},
    sets=(),
    status_default={"phase": "Pending"},  # no write is needed to show a trial that has not started
    columns=(
        Column("Task", "string", ".spec.task"),
        Column("Mode", "string", ".spec.mode"),
        Column("Repeat", "integer", ".spec.repeat"),
        Column("Attempt", "integer", ".status.attempt"),
        Column("Phase", "string", ".status.phase"),
        Column("Reason", "string", ".status.reason", "The outcome, or why it waits."),
        Column("Reward", "string", ".status.reward"),
        Column("Turns", "integer", ".status.turns"),
        Column("Age", "date", ".metadata.creationTimestamp"),
        Column("Configuration", "string", ".spec.configuration", priority=1),
        Column("Cost", "string", ".status.costUSD", "US dollars by the sweep's prices.", priority=1),
        Column("Node", "string", ".status.node", priority=1),
    ),
    selectable=(".spec.sweep", ".spec.configuration", ".spec.task", ".spec.mode", ".status.phase"),
)

DEFINITIONS: Final = (SWEEP, TRIAL)


class SchemaError(ValueError):
    """A model that no structural schema can be made of; names the path."""


class _Builder:
    """Turns one model into a structural schema."""

    def __init__(self, definition: Definition, root: str, model: type[Frozen], *, defaults: bool) -> None:
        self._definition = definition
        self._root = root
        self._defaults = defaults
        self._schema = model.model_json_schema(by_alias=True, mode="validation")
        self._refs: Schema = self._schema.get("$defs", {})

    def build(self) -> Schema:
        return self._node(self._schema, self._root)

    def _node(self, node: Schema, path: str) -> Schema:
        node = self._resolved(node, path)
        result: Schema = {key: value for key, value in node.items() if key in CARRIED}
        strange = set(node) - CARRIED - IGNORED - {"$defs"}
        if strange:
            raise SchemaError(f"{path}: {', '.join(sorted(strange))} has no place in a structural schema")
        if "const" in node:
            result["enum"] = [node["const"]]
            result.setdefault("type", "string")
        if "properties" in node:
            result["properties"] = {name: self._property(name, child, path) for name, child in node["properties"].items()}
            if node.get("required"):
                result["required"] = sorted(node["required"])
        if "items" in node:
            result["items"] = self._node(node["items"], f"{path}[]")
        self._annotate(result, path)
        self._check_bounds(result, path)
        return _ordered(result)

    def _property(self, name: str, child: Schema, parent: str) -> Schema:
        path = f"{parent}.{name}"
        result = self._node(child, path)
        default = child.get("default")
        if self._defaults and default is not None:
            result["default"] = _leaf_default(default, result)
        return _ordered(result)

    def _resolved(self, node: Schema, path: str) -> Schema:
        """References and `Optional` folded away; what stands beside a reference (description, default) wins."""
        while True:
            if "anyOf" in node:
                options = [option for option in node["anyOf"] if option.get("type") != "null"]
                if len(options) != 1:
                    raise SchemaError(f"{path}: a union of {len(options)} types; a structural schema knows one")
                node = {**options[0], **{key: value for key, value in node.items() if key != "anyOf"}}
            elif "$ref" in node:
                target = self._refs[node["$ref"].rpartition("/")[2]]
                node = {**target, **{key: value for key, value in node.items() if key != "$ref"}}
            else:
                return node

    def _annotate(self, result: Schema, path: str) -> None:
        definition = self._definition
        if path in definition.list_maps:
            result["x-kubernetes-list-type"] = "map"
            result["x-kubernetes-list-map-keys"] = [definition.list_maps[path]]
        elif path in definition.sets:
            result["x-kubernetes-list-type"] = "set"
        elif result.get("type") == "array":
            result["x-kubernetes-list-type"] = "atomic"
        if path in definition.rules:
            result["x-kubernetes-validations"] = [rule.dump() for rule in definition.rules[path]]

    @staticmethod
    def _check_bounds(result: Schema, path: str) -> None:
        kind = result.get("type")
        if kind == "string" and not ("maxLength" in result or "enum" in result or result.get("format") == "date-time"):
            raise SchemaError(f"{path}: a string without maxLength; the cost of rules is computed from it")
        if kind == "array" and "maxItems" not in result:
            raise SchemaError(f"{path}: a list without maxItems; the cost of rules is computed from it")
        if kind is None:
            raise SchemaError(f"{path}: no type")


def _leaf_default(default: Any, schema: Schema) -> Any:
    """The default to write: of an object only what its own leaves do not give, so that `{}` is enough where they do."""
    if not isinstance(default, dict):
        return default
    properties: Schema = schema.get("properties", {})
    rest = {key: _leaf_default(value, properties[key]) for key, value in default.items()}
    return {key: value for key, value in rest.items() if properties[key].get("default") != value}


_ORDER: Final = ("description", "type", "format", "default")


def _ordered(schema: Schema) -> Schema:
    first = {key: schema[key] for key in _ORDER if key in schema}
    return first | {key: schema[key] for key in sorted(schema) if key not in first}


def _check_transitions(definition: Definition, spec: Schema) -> None:
    """A transition rule on a field that may be absent would not be asked when the field comes or goes."""
    for path, rules in definition.rules.items():
        name = path.removeprefix("spec.")
        if path.startswith("spec.") and any("oldSelf" in rule.rule for rule in rules):
            schema = spec["properties"].get(name)
            if schema is None or (name not in spec.get("required", ()) and "default" not in schema):
                raise SchemaError(f"{path}: an immutable field has to be required or have a default")


def build_crd(definition: Definition) -> Schema:
    """The CustomResourceDefinition object."""
    spec = _Builder(definition, "spec", definition.spec, defaults=True).build()
    status = _Builder(definition, "status", definition.status, defaults=False).build()
    status.pop("required", None)
    _check_transitions(definition, spec)
    if definition.status_default is not None:
        status = _ordered(status | {"default": definition.status_default})
    schema: Schema = {
        "description": definition.description,
        "type": "object",
        "required": ["metadata", "spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec,
            "status": status,
        },
    }
    if "" in definition.rules:
        schema["x-kubernetes-validations"] = [rule.dump() for rule in definition.rules[""]]
    version: Schema = {
        "name": VERSION,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in definition.columns],
    }
    if definition.selectable:
        version["selectableFields"] = [{"jsonPath": path} for path in definition.selectable]
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{definition.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "names": {
                "kind": definition.kind,
                "listKind": f"{definition.kind}List",
                "plural": definition.plural,
                "singular": definition.singular,
                "shortNames": list(definition.short_names),
                "categories": list(definition.categories),
            },
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _column(column: Column) -> Schema:
    result: Schema = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.description:
        result["description"] = column.description
    if column.priority:
        result["priority"] = column.priority
    return result


class _Dumper(yaml.SafeDumper):
    """Lists indented, no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def render(definition: Definition) -> str:
    """The YAML of `crds/<group>_<plural>.yaml`."""
    head = "# Generated from realcli/api by `python -m realcli.api.crd --write`; do not edit.\n"
    return head + yaml.dump(build_crd(definition), Dumper=_Dumper, sort_keys=False, width=130, allow_unicode=True)


def files() -> dict[str, str]:
    """File name -> content of every CRD."""
    return {f"{GROUP}_{definition.plural}.yaml": render(definition) for definition in DEFINITIONS}


def main(arguments: list[str] | None = None) -> int:
    """Write the files, or check that they are what would be written (exit code 1 if not)."""
    parser = argparse.ArgumentParser(prog="python -m realcli.api.crd", description="Generate the CRDs from the models.")
    action = parser.add_mutually_exclusive_group(required=True)
    action.add_argument("--write", action="store_true", help="write crds/*.yaml")
    action.add_argument("--check", action="store_true", help="fail if crds/*.yaml are not up to date")
    parser.add_argument("--directory", type=Path, default=Path("crds"))
    options = parser.parse_args(arguments)
    stale = []
    for name, content in files().items():
        path: Path = options.directory / name
        if options.write:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
        elif not path.exists() or path.read_text() != content:
            stale.append(str(path))
    if stale:
        print(f"not what the models say: {', '.join(stale)}; run python -m realcli.api.crd --write", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
