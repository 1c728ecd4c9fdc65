"""The gate of a judge, where it lies in storage."""

from __future__ import annotations

from pydantic import ValidationError

from realcli.api.faults import first_fault
from realcli.known.gate import Gate
from realcli.storage.paths import calibration
from realcli.storage.port import NotFound, ObjectStore


class GateUnreadable(Exception):
    """What lies there is no gate of this judge; the message names the object."""


def kept_gate(store: ObjectStore, prefix: str, judge: str) -> Gate | None:
    """The stored gate of the judge with that digest, None without one. `prefix`: what lies before sweeps/ in a sweep's address.

    Raises `GateUnreadable` for an object of another form, or of another judge whose digest begins alike.
    """
    key = calibration(prefix, judge.removeprefix("sha256:")[:8])
    try:
        data = store.get(key)
    except NotFound:
        return None
    try:
        gate = Gate.model_validate_json(data)
    except ValidationError as error:
        raise GateUnreadable(f"{key} is no gate of this version: {first_fault(error)}") from error
    if gate.judge != judge:
        raise GateUnreadable(f"{key} is the gate of judge {gate.judge}, not of {judge}")
    why = gate.contradiction()
    if why is not None:
        raise GateUnreadable(f"{key} is no gate of this judge: {why}; remove it, and run `realcli judge calibrate` again")
    return gate
