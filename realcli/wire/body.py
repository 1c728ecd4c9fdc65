"""Arguments and results: JSON objects in the payload, checked field by field.

Byte strings of the operating system (paths, arguments, environment) are text where they are UTF-8 and
``{"b64": "…"}`` where they are not, so that every body is plain JSON.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from realcli.wire.frames import MAX_PAYLOAD


class BadBody(ValueError):
    """A body that cannot be read; the message names the field, what was expected and what was found."""


def dump(body: dict[str, Any]) -> bytes:
    """Payload of a body. ValueError when it does not fit in one frame."""
    raw = json.dumps(body, separators=(",", ":"), allow_nan=False).encode("ascii")
    if len(raw) > MAX_PAYLOAD:
        raise ValueError(f"body of {len(raw)} bytes, at most {MAX_PAYLOAD} are allowed")
    return raw


def load(raw: bytes) -> dict[str, Any]:
    """Body of a payload; an empty payload is an empty body."""
    if not raw:
        return {}
    try:
        body = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadBody(f"body is not JSON: {error}") from None
    if not isinstance(body, dict):
        raise BadBody(f"body must be an object, found {type(body).__name__}")
    return body


def wire_bytes(value: bytes) -> Any:
    """The JSON form of a byte string."""
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        return {"b64": base64.b64encode(value).decode("ascii")}


def plain_bytes(value: Any, field: str) -> bytes:
    """The byte string of its JSON form."""
    if isinstance(value, str):
        try:
            return value.encode("utf-8")
        except UnicodeEncodeError:
            raise BadBody(f"{field}: a lone surrogate is not allowed, send such bytes as b64") from None
    if isinstance(value, dict) and isinstance(value.get("b64"), str):
        try:
            return base64.b64decode(value["b64"], validate=True)
        except (binascii.Error, ValueError):
            raise BadBody(f"{field}: b64 is not base64") from None
    raise BadBody(f"{field}: expected text or {{b64}}, found {type(value).__name__}")


class Fields:
    """Typed access to one body. Every getter raises BadBody naming the field."""

    def __init__(self, body: dict[str, Any]) -> None:
        self._body = body

    def integer(self, name: str, low: int = 0, high: int = (1 << 63) - 1) -> int:
        """An integer within bounds."""
        value = self._body.get(name)
        if type(value) is not int or not low <= value <= high:
            raise BadBody(f"{name}: expected an integer in {low}..{high}, found {str(value)[:40]!r}")
        return value

    def optional_integer(self, name: str, low: int = 0, high: int = (1 << 63) - 1) -> int | None:
        """An integer within bounds, or None when it is null or absent."""
        return None if self._body.get(name) is None else self.integer(name, low, high)

    def number(self, name: str, low: float = 0.0, high: float = 1e9) -> float:
        """A finite number within bounds."""
        value = self._body.get(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not low <= value <= high:
            raise BadBody(f"{name}: expected a number in {low}..{high}, found {str(value)[:40]!r}")
        return float(value)

    def text(self, name: str) -> str:
        """A text."""
        value = self._body.get(name)
        if not isinstance(value, str):
            raise BadBody(f"{name}: expected text, found {type(value).__name__}")
        return value

    def optional_text(self, name: str) -> str | None:
        """A text, or None when it is null or absent."""
        return None if self._body.get(name) is None else self.text(name)

    def mapping(self, name: str) -> dict[str, Any]:
        """An object."""
        value = self._body.get(name)
        if not isinstance(value, dict):
            raise BadBody(f"{name}: expected an object, found {type(value).__name__}")
        return value

    def flag(self, name: str) -> bool:
        """A boolean."""
        value = self._body.get(name)
        if not isinstance(value, bool):
            raise BadBody(f"{name}: expected true or false, found {type(value).__name__}")
        return value

    def items(self, name: str) -> list[Any]:
        """A list."""
        value = self._body.get(name)
        if not isinstance(value, list):
            raise BadBody(f"{name}: expected a list, found {type(value).__name__}")
        return value

    def raw(self, name: str) -> bytes:
        """A byte string without NUL, as the kernel takes them."""
        return _without_nul(plain_bytes(self._body.get(name), name), name)

    def optional_raw(self, name: str) -> bytes | None:
        """A byte string, or None when it is null or absent."""
        return None if self._body.get(name) is None else self.raw(name)

    def raws(self, name: str) -> list[bytes]:
        """A list of byte strings without NUL."""
        return [_without_nul(plain_bytes(item, f"{name}[{i}]"), f"{name}[{i}]") for i, item in enumerate(self.items(name))]

    def pairs(self, name: str) -> dict[bytes, bytes]:
        """A list of [name, value] as a dictionary; later pairs win."""
        found: dict[bytes, bytes] = {}
        for i, item in enumerate(self.items(name)):
            where = f"{name}[{i}]"
            if not isinstance(item, list) or len(item) != 2:
                raise BadBody(f"{where}: expected [name, value]")
            key = _without_nul(plain_bytes(item[0], where), where)
            if not key or b"=" in key:
                raise BadBody(f"{where}: a name must not be empty nor hold '='")
            found[key] = _without_nul(plain_bytes(item[1], where), where)
        return found


def _without_nul(value: bytes, field: str) -> bytes:
    if b"\0" in value:
        raise BadBody(f"{field}: must not hold a NUL byte")
    return value
