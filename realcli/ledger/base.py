"""What every event of the ledger is made of: limits of a line, references to blobs, the base of typed data."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field, JsonValue

from realcli.api.base import Frozen, Hex64

SCHEMA_VERSION = 1
INLINE_TEXT = 65_536  # bytes of UTF-8 that may stand in a line
PLAIN_TEXT = 8_192  # characters of a text that has no blob form: names, ids, paths
MAX_LINE = 1 << 20
ZERO_HASH = "0" * 64

Actor = Literal["session", "user", "agent", "gateway", "runner"]


class BlobRef(Frozen):
    """A value stored once by digest below the attempt's blobs/."""

    blob: Hex64
    size: int  # bytes


Text = str | BlobRef
Json = Annotated[BlobRef | JsonValue, Field(union_mode="left_to_right")]  # in this order: a reference is an object too
Refs = list[BlobRef] | BlobRef  # a blob of the list's JSON where it is long: a turn adds two messages


class Data(Frozen):
    """Typed data of one kind of event; `kind` is the class's name in the ledger."""

    kind: ClassVar[str]
