"""The CRD generator: golden files, and what it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import pytest
import yaml
from pydantic import Field, StringConstraints

from realcli.api.base import Frozen
from realcli.api.crd import SchemaError, build_crd, files, main
from realcli.api.kinds import DEFINITIONS, SWEEP, TRIAL, Definition, Rule
from realcli.api.sweep import MUTABLE, SweepSpec

ROOT = Path(__file__).resolve().parents[3]
Text = Annotated[str, StringConstraints(max_length=10)]


def schema_of(crd: dict[str, Any], *path: str) -> dict[str, Any]:
    node: dict[str, Any] = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for name in path:
        node = node["items"] if name == "[]" else node["properties"][name]
    return node


@pytest.mark.parametrize("name", sorted(files()))
def test_the_files_are_what_the_models_say(name: str) -> None:
    assert (ROOT / "crds" / name).read_text() == files()[name], "run python -m realcli.api.crd --write"


def test_check_finds_a_stale_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", "--under", str(tmp_path)]) == 1
    assert "run python -m realcli.api.crd --write" in capsys.readouterr().err
    assert main(["--write", "--under", str(tmp_path)]) == 0
    assert main(["--check", "--under", str(tmp_path)]) == 0
    file = next((tmp_path / "crds").iterdir())
    file.write_text(file.read_text() + "\n")
    assert main(["--check", "--under", str(tmp_path)]) == 1


def walk(node: dict[str, Any], path: str = "") -> Any:
    yield path, node
    for name, child in node.get("properties", {}).items():
        yield from walk(child, f"{path}.{name}")
    if "items" in node:
        yield from walk(node["items"], f"{path}[]")


@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda d: d.kind)
def test_the_schema_is_structural_and_bounded(definition: Definition) -> None:
    for path, node in walk(schema_of(build_crd(definition))):
        assert node["type"] in {"object", "array", "string", "integer", "boolean"}, path
        assert not node.keys() & {"$ref", "anyOf", "title", "const", "$defs"}, path
        assert ("additionalProperties" in node) == ("maxProperties" in node), path
        if path.count(".") > 1:
            assert node.get("description") or path.endswith("[]"), f"{path} has no description"


def test_every_field_is_immutable_but_those_that_are_not() -> None:
    properties = schema_of(build_crd(SWEEP), "spec")["properties"]
    guarded = {name for name, node in properties.items() if "oldSelf" in str(node.get("x-kubernetes-validations"))}
    one_way = {"cancel", "retryInvalid"}  # may be set and raised, not taken back
    whole = {"from"}  # may be absent, so a rule of the whole spec guards it
    assert guarded - one_way == set(SweepSpec.aliases()) - set(MUTABLE) - whole
    assert all(
        f"self.{name} == oldSelf.{name}" in str(schema_of(build_crd(SWEEP), "spec")["x-kubernetes-validations"]) for name in whole
    )


def test_defaults_stand_at_the_leaves() -> None:
    limits = schema_of(build_crd(SWEEP), "spec", "limits")
    assert limits["default"] == {}
    assert limits["properties"]["turns"]["default"] == 600
    assert limits["properties"]["exec"]["default"] == {"deadline": "6h"}
    statuses = [node for path, node in walk(schema_of(build_crd(SWEEP), "status")) if "default" in node]
    assert statuses == [], "a status holds what was observed"
    assert schema_of(build_crd(TRIAL), "status")["default"] == {"phase": "Pending"}


def test_columns_name_fields_that_exist() -> None:
    for definition in DEFINITIONS:
        crd = build_crd(definition)
        for column in definition.columns:
            if not column.path.startswith(".metadata"):
                schema_of(crd, *column.path.replace('[?(@.type=="Ready")]', ".[]").strip(".").split("."))
        for path in definition.selectable:
            schema_of(crd, *path.strip(".").split("."))


class Unbounded(Frozen):
    text: str = Field(description="x")


class Many(Frozen):
    texts: list[Text] = Field(description="x")


class Union(Frozen):
    value: int | Text = Field(description="x")


class Maybe(Frozen):
    value: Text | None = Field(default=None, description="x")


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (Unbounded, r"spec\.text: a string without maxLength"),
        (Many, r"spec\.texts: a list without maxItems"),
        (Union, r"spec\.value: a union of 2 types"),
    ],
)
def test_what_the_api_server_would_not_take_is_refused_here(model: type[Frozen], message: str) -> None:
    with pytest.raises(SchemaError, match=message):
        build_crd(TRIAL._replace(spec=model, selectable=(), columns=(), rules={}))


def test_a_transition_rule_needs_a_field_that_is_always_there() -> None:
    rules = {"spec.value": (Rule("self == oldSelf", "no"),)}
    with pytest.raises(SchemaError, match=r"spec\.value: an immutable field has to be required"):
        build_crd(TRIAL._replace(spec=Maybe, selectable=(), columns=(), rules=rules))


def test_yaml_is_plain() -> None:
    for content in files().values():
        assert "&id" not in content
        assert yaml.safe_load(content)["kind"] == "CustomResourceDefinition"
