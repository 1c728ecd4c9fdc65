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


def substitute(value: JsonValue, bindings: Mapping[str, JsonValue]) -> JsonValue:
    """As `realcli.trajectory.bindings.substitute`; `CheckError` for what is not bound."""
    try:
        return names.substitute(value, bindings)
    except names.BindingError as error:
        raise CheckError(str(error)) from error
