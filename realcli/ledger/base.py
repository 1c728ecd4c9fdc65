"""What every event of the ledger is made of: limits of a line, references to blobs, the base of typed data."""

from __future__ import annotations

import math
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, JsonValue

from realcli.api.base import Frozen, Hex64

SCHEMA_VERSION = 1
INLINE_TEXT = 65_536  # bytes of UTF-8 that may stand in a line
PLAIN_TEXT = 8_192  # characters of a text that has no blob form: names, ids, paths
MAX_LINE = 1 << 20
MAX_DEPTH = 64  # lists and objects in each other; ours are 5 deep
ZERO_HASH = "0" * 64

Actor = Literal["session", "user", "agent", "gateway", "runner"]


class BlobRef(Frozen):
    """A value stored once by digest below the attempt's blobs/."""

    blob: Hex64
    size: int  # bytes


def writable(value: Any, depth: int = MAX_DEPTH) -> Any:
    """A value parsed from an agent's JSON, as one that can be written: NaN and Infinity (which Python's parser takes) become
    texts, what is nested deeper than `MAX_DEPTH` is left out."""
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, list | dict) and not depth:
        return f"[… {len(value)} members nested deeper than {MAX_DEPTH}]"
    if isinstance(value, list):
        return [writable(item, depth - 1) for item in value]
    if isinstance(value, dict):
        return {key: writable(item, depth - 1) for key, item in value.items()}
    return value


Text = str | BlobRef
Json = Annotated[  # in this order: a reference is an object too
    BlobRef | JsonValue, Field(union_mode="left_to_right"), BeforeValidator(writable)
]
JsonObject = Annotated[dict[str, JsonValue], BeforeValidator(writable)]
Refs = list[BlobRef] | BlobRef  # a blob of the list's JSON where it is long: a turn adds two messages


class Data(Frozen):
    """Typed data of one kind of event; `kind` is the class's name in the ledger."""

    kind: ClassVar[str]
