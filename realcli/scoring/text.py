"""JSON or YAML with nothing lost and nothing guessed: decimals exact, every key once, no NaN. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Hashable
from decimal import Decimal, InvalidOperation
from typing import Any

import yaml

from realcli.scoring.document import ScoreInputError, shown


def parse(text: str | bytes, name: str) -> object:
    """What the text says. `ScoreInputError` without a place names the line; `name` decides JSON or YAML."""
    if isinstance(text, bytes):
        try:
            text = text.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise ScoreInputError(f"not UTF-8 (byte {error.start}); expected a JSON or YAML document") from error
    lower = name.lower()
    if lower.endswith(".json"):
        return _json(text)
    if not lower.endswith((".yaml", ".yml")) and text.lstrip().startswith("{"):
        return _json_or_flow(text)
    return _yaml(text)


def _json_or_flow(text: str) -> object:
    """A text in braces of which nobody says what it is: JSON, or YAML in flow style."""
    try:
        return _json(text)
    except ScoreInputError as error:
        if not isinstance(error.__cause__, json.JSONDecodeError):
            raise
        no_json = error
    try:
        return _yaml(text)
    except ScoreInputError as error:
        if not isinstance(error.__cause__, yaml.YAMLError):
            raise
        raise ScoreInputError(f"neither JSON ({_why(no_json)}) nor YAML ({_why(error)})") from error


def _why(error: ScoreInputError) -> str:
    return str(error).split(": ", 1)[-1]


def _yaml(text: str) -> object:
    try:
        return yaml.load(text, _LOADER)
    except ScoreInputError:
        raise
    except ValueError as error:  # a date that is none, a number longer than Python converts
        raise ScoreInputError(f"no YAML this reads: {error}") from error
    except yaml.YAMLError as error:
        raise ScoreInputError(f"no YAML: {' '.join(str(error).split())}{_hint(text, error)}") from error
    except RecursionError as error:
        raise ScoreInputError("no YAML document this reads: it is nested too deeply") from error


def _hint(text: str, error: yaml.YAMLError) -> str:
    """What to do where a bare "-" (not triggered) stands as a value: to YAML it begins a list."""
    mark = error.problem_mark if isinstance(error, yaml.MarkedYAMLError) else None
    lines = text.splitlines()
    if mark is None or mark.line >= len(lines) or not _BARE.search(lines[mark.line]):
        return ""
    return '; a bare - begins a list in YAML: quote it: "-"'


def _json(text: str) -> object:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_float=_decimal, parse_constant=_constant)
    except json.JSONDecodeError as error:
        raise ScoreInputError(f"no JSON: {error.msg} in line {error.lineno}, column {error.colno}") from error
    except RecursionError as error:
        raise ScoreInputError("no JSON document this reads: it is nested too deeply") from error
    except ScoreInputError:
        raise
    except ValueError as error:  # an integer longer than Python converts
        raise ScoreInputError(f"no JSON this reads: {error}") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ScoreInputError(f"key {shown(twice)} stands twice in one object; expected every key once")
    return found


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise ScoreInputError(f"{shown(text)} is no number this reads") from error


def _constant(text: str) -> object:
    raise ScoreInputError(f"{text} is no number; expected a finite number or null")


def _yaml_mapping(loader: yaml.SafeLoader, node: yaml.MappingNode) -> dict[object, object]:
    found: dict[object, object] = {}
    for key_node, value_node in node.value:
        line = key_node.start_mark.line + 1
        key = loader.construct_object(key_node, deep=True)
        if not isinstance(key, Hashable):
            raise ScoreInputError(f"line {line}: a key that is no text")
        if key in found:
            raise ScoreInputError(f"line {line}: key {shown(key)} stands twice in one mapping; expected every key once")
        found[key] = loader.construct_object(value_node, deep=True)
    return found


def _yaml_float(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> Decimal:
    text = str(loader.construct_scalar(node)).replace("_", "").lower()
    line = node.start_mark.line + 1
    if ":" in text:
        raise ScoreInputError(f"line {line}: {text} is a number of base 60 in YAML; quote it or write a decimal")
    try:
        return Decimal({".inf": "Infinity", "+.inf": "Infinity", "-.inf": "-Infinity", ".nan": "NaN"}.get(text, text))
    except InvalidOperation as error:
        raise ScoreInputError(f"line {line}: {shown(text)} is no number this reads") from error


def _yaml_int(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    """YAML 1.1 reads 010 as 8 and 1:30 as 90."""
    text = str(loader.construct_scalar(node))
    if not _DECIMAL.fullmatch(text):
        raise ScoreInputError(
            f"line {node.start_mark.line + 1}: {shown(text)} is no decimal integer; write it as one, or quote a name"
        )
    return int(text)


_BARE = re.compile(r":\s+-\s*(?:#.*)?$")
_DECIMAL = re.compile(r"[+-]?(?:0|[1-9][0-9]*)", re.ASCII)
_LOADER: Any = type("ScoreLoader", (getattr(yaml, "CSafeLoader", yaml.SafeLoader),), {})
"""libyaml's where it is there: ten times as fast on the runs of a sweep."""
_LOADER.add_constructor("tag:yaml.org,2002:map", _yaml_mapping)
_LOADER.add_constructor("tag:yaml.org,2002:float", _yaml_float)
_LOADER.add_constructor("tag:yaml.org,2002:int", _yaml_int)
