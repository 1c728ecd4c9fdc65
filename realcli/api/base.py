"""The base of every model that crosses a border: frozen, camelCase outside, snake_case inside, unknown fields refused."""

from __future__ import annotations

import hashlib
import json
import re
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, StringConstraints
from pydantic.alias_generators import to_camel

GROUP = "realcli.dev"
VERSION = "v1alpha1"
API_VERSION = f"{GROUP}/{VERSION}"


class Frozen(BaseModel):
    """A value: immutable, compared by content, written in camelCase, strict about unknown fields."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", alias_generator=to_camel, populate_by_name=True, protected_namespaces=()
    )

    def dump(self) -> dict[str, Any]:
        """The JSON form (camelCase, no unset optionals)."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @classmethod
    def aliases(cls) -> list[str]:
        """Field names as written outside."""
        return [field.alias or name for name, field in cls.model_fields.items()]

    def canonical(self) -> bytes:
        """The one byte form that digests are taken of: sorted keys, no spaces, UTF-8."""
        return canonical_json(self.dump())

    def content_digest(self) -> str:
        """`sha256:<hex>` of `canonical()`."""
        return sha256_digest(self.canonical())


def canonical_json(value: object) -> bytes:
    """JSON with sorted keys and no spaces, UTF-8; refuses NaN and Infinity."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def sha256_digest(data: bytes) -> str:
    """`sha256:<64 hex>`, the form of every digest a person reads."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


Digest = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$", max_length=71)]
Hex64 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
DnsLabel = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", min_length=1, max_length=63)]

POOLED = "all"
"""What tables call the row over all configurations, tasks or categories; none of them may have it as its own name."""


def not_pooled(name: str) -> str:
    """The name; ValueError for the one kept for rows over all."""
    if name == POOLED:
        raise ValueError(f'"{POOLED}" is the name of the rows over all of them in tables; choose another')
    return name


DURATION_PATTERN = r"^([0-9]+(\.[0-9]+)?(h|m|s|ms))+$"
Duration = Annotated[str, StringConstraints(pattern=DURATION_PATTERN, max_length=32)]
_UNIT_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}


def seconds(duration: str) -> float:
    """`6h`, `1h30m`, `20s`, `500ms` in seconds; ValueError names the text."""
    if not re.fullmatch(DURATION_PATTERN, duration):
        raise ValueError(f"{duration!r} is not a duration; expected one such as 6h, 1h30m, 20s or 500ms")
    parts = re.findall(r"([0-9]+(?:\.[0-9]+)?)(h|ms|m|s)", duration)
    return sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts)
