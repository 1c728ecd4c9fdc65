"""CRD YAML from the pydantic models: `python -m realcli.api.crd --write | --check`.

The API server wants a structural schema, which pydantic's JSON schema is not: references are inlined, `Optional` becomes an
absent field, `const` an enum, unknown fields are pruned (not `additionalProperties: false`). Every string and list must have a
bound, because the cost of CEL rules is computed from it. `crds/*.yaml` are golden files of this module.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import yaml

from realcli.api.base import GROUP, VERSION, Frozen
from realcli.api.kinds import DEFINITIONS, Column, Definition, Schema
from realcli.generated import generate

CARRIED: Final = frozenset(
    ("type", "format", "description", "enum", "pattern", "minLength", "maxLength", "minimum", "maximum", "minItems", "maxItems")
) | {"maxProperties"}
IGNORED: Final = frozenset(
    ("title", "additionalProperties", "default", "const", "anyOf", "$ref", "properties", "required", "items")
)


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
        elif isinstance(node.get("additionalProperties"), dict):  # a map
            result["additionalProperties"] = self._node(node["additionalProperties"], f"{path}{{}}")
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
        if path in definition.atomic:
            result["x-kubernetes-map-type"] = "atomic"
        if path in definition.rules:
            result["x-kubernetes-validations"] = [rule.dump() for rule in definition.rules[path]]

    @staticmethod
    def _check_bounds(result: Schema, path: str) -> None:
        kind = result.get("type")
        if kind == "string" and not ("maxLength" in result or "enum" in result or result.get("format") == "date-time"):
            raise SchemaError(f"{path}: a string without maxLength; the cost of rules is computed from it")
        if kind == "array" and "maxItems" not in result:
            raise SchemaError(f"{path}: a list without maxItems; the cost of rules is computed from it")
        if "additionalProperties" in result and "maxProperties" not in result:
            raise SchemaError(f"{path}: a map without maxProperties; the cost of rules is computed from it")
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
        name = path.removeprefix("spec.").removesuffix("[]")  # an entry of a list map; the list has a rule of its own
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
    return generate("realcli.api.crd", "the models", lambda: {f"crds/{name}": text for name, text in files().items()}, arguments)


if __name__ == "__main__":
    sys.exit(main())
