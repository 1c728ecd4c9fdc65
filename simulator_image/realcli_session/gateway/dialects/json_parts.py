"""Small readers of provider JSON of any dialect. Nothing absent or odd becomes a number."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pydantic import JsonValue


def object_of(text: str) -> dict[str, Any] | None:
    """The JSON object of a text; None for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def arguments_of(text: object) -> JsonValue:
    """A tool's input; as text if the model was cut before it was whole, or wrote no JSON."""
    if not isinstance(text, str):
        return None
    try:
        value: JsonValue = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        return text
    return value


def text_of(value: object) -> str | None:
    """A text, or None."""
    return value if isinstance(value, str) else None


def mapping_of(value: object) -> Mapping[str, Any]:
    """An object, or an empty one."""
    return value if isinstance(value, dict) else {}


def list_of(value: object) -> list[Any]:
    """A list, or an empty one."""
    return value if isinstance(value, list) else []


def count_of(usage: Mapping[str, Any], name: str) -> int | None:
    """A counter that has to be there; None if it is not, or is no count."""
    value = usage.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def part_of(usage: Mapping[str, Any], *names: str) -> int | None:
    """A counter that APIs leave out where it does not apply (no cache used): absent or null is 0, anything odd None."""
    for name in names:
        if usage.get(name) is not None:
            return count_of(usage, name)
    return 0


def error_text(value: object) -> str:
    """A provider's error as one line."""
    return json.dumps(value, ensure_ascii=False)
