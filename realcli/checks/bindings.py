"""`${NAME}` in a catalogue entry, replaced by what the task's author bound to the probe."""

from __future__ import annotations

import re
from collections.abc import Mapping

from pydantic import JsonValue

from realcli.benchmark.models import Probe
from realcli.checks.model import CheckError

_NAME = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")


def bindings_of(probe: Probe) -> dict[str, JsonValue]:
    """The probe's bindings; `USER_EDIT` and `NEXT_SLICE` are its `edit` and `slice` where they are not bound by name."""
    bound = dict(probe.bindings)
    if probe.edit is not None:
        bound.setdefault("USER_EDIT", probe.edit.dump())
    if probe.slice is not None:
        bound.setdefault("NEXT_SLICE", probe.slice)
    return bound


def substitute(value: JsonValue, bindings: Mapping[str, JsonValue]) -> JsonValue:
    """`value` with every `${NAME}` replaced. A text that is nothing but one name takes the bound value as it is.

    Raises `CheckError` for a name that is not bound, or one inside a longer text whose value is not a text.
    """
    if isinstance(value, dict):
        return {key: substitute(item, bindings) for key, item in value.items()}
    if isinstance(value, list):
        return [substitute(item, bindings) for item in value]
    if not isinstance(value, str):
        return value
    whole = _NAME.fullmatch(value)
    if whole is not None:
        return _bound(whole[1], bindings)

    def inside(match: re.Match[str]) -> str:
        found = _bound(match[1], bindings)
        if not isinstance(found, str):
            raise CheckError(f"${{{match[1]}}} stands inside the text {value!r}, so its binding has to be a text, not {found!r}")
        return found

    return _NAME.sub(inside, value)


def _bound(name: str, bindings: Mapping[str, JsonValue]) -> JsonValue:
    if name not in bindings:
        known = ", ".join(sorted(bindings)) or "nothing"
        raise CheckError(f"${{{name}}} is not bound; the probe binds {known}: add it to `bindings` in interaction/script.json")
    return bindings[name]
