"""What the names of a catalogue entry stand for in one instance."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from realcli.benchmark.models import Probe
from realcli.checks.model import CheckError
from realcli.trajectory import bindings as names


def bindings_of(probe: Probe) -> dict[str, JsonValue]:
    """The probe's bindings; `USER_EDIT` and `NEXT_SLICE` are its `edit` and `slice` where they are not bound by name."""
    bound = dict(probe.bindings)
    if probe.edit is not None:
        bound.setdefault("USER_EDIT", probe.edit.dump())
    if probe.slice is not None:
        bound.setdefault("NEXT_SLICE", probe.slice)
    return bound


def action_id(value: JsonValue) -> str | None:
    """The action a binding names: the id itself, or the `id` of an action written as {id, cmd, paths}; None: it names none."""
    found = value.get("id") if isinstance(value, dict) else value
    return found if isinstance(found, str) and found else None


def substitute(value: JsonValue, bindings: Mapping[str, JsonValue]) -> JsonValue:
    """As `realcli.trajectory.bindings.substitute`; `CheckError` for what is not bound."""
    try:
        return names.substitute(value, bindings)
    except names.BindingError as error:
        raise CheckError(str(error)) from error
